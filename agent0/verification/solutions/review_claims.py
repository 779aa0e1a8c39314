"""Verifies a review of a person's repository: what it names at file and line is confirmed where a call that it gives
shows it and runs that line, by raising, or where an earlier version is known by another value there; else it stays
unconfirmed. A TypeError shows no defect: any function raises one where its arguments are of a wrong kind.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent0.events.values import Vote
from agent0.ports.sandbox import Sandbox
from agent0.tools.snapshots import Files
from agent0.verification.repositories.hidden_values import ModuleCalls, is_same
from agent0.verification.repositories.seeded_defects import CLEAN, LARGEST, MOST, NEAR, REVIEW
from agent0.verification.repositories.wrong_versions import FormError, called
from agent0.verification.solutions.module_values import module_of, module_values
from agent0.verification.solutions.repository_job import RepositoryJob

_LINE = re.compile(r"([^\s:][^:\n]{0,400}\.py):([0-9]{1,6}):\s*(\S.{0,2000})")
RAISES, WRONG_KIND = "raises ", "raises TypeError"
_TRACED = """
def agent0_traced(call, path, near):
    import sys
    lines = set()
    def trace(frame, event, argument):
        if frame.f_code.co_filename.endswith(path):
            lines.add(frame.f_lineno)
            return trace
    sys.settrace(trace)
    try:
        value = repr(call())
    except BaseException as error:
        value = 'raises ' + type(error).__name__
    finally:
        sys.settrace(None)
    return value, not lines.isdisjoint(near)
"""
"""Makes a call; gives the text of its value, and whether it ran one of some lines of a file."""


@dataclass(frozen=True)
class _ReviewClaim:
    path: str
    line: int
    text: str
    call: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def traced(self) -> str:
        near = set(range(self.line - NEAR, self.line + NEAR + 1))
        return f"agent0_traced(lambda: {self.call}, {'/' + self.path.removeprefix('src/')!r}, {near})"


async def review_votes(job: RepositoryJob, before: Files, base: Files, work: Files, sandbox: Sandbox) -> list[Vote]:
    """One vote for each place that the review in ``work`` names: True where execution confirms it, False where there is
    no such place, None where nothing was shown. ``base`` is the earlier version, empty where none is known.

    Raises:
        SandboxFailedError: the sandbox failed. SandboxUnavailableError: there is none.
    """
    data = work.get(REVIEW, b"")
    if not data or len(data) > LARGEST:
        return [Vote(check=REVIEW, correct=False, reason=f"it is {'too long' if data else 'not there'}")]
    lines = [line.strip() for line in data.decode(errors="replace").splitlines() if line.strip()]
    if lines == [CLEAN]:
        return [Vote(check=REVIEW, correct=True, reason=CLEAN)]
    claims = [_claim(line, before) for line in lines[:MOST]]
    if None in claims or len(lines) > MOST:
        return [Vote(check=REVIEW, correct=False, reason=f"its lines are FILE.py:LINE: CALL, {MOST} at most")]
    named = [claim for claim in claims if claim is not None]
    votes = [Vote(check=REVIEW, correct=True, reason=f"{len(named)} lines")]
    values = await _values(named, before, job, sandbox)
    earlier = await _values(named, base, job, sandbox) if base else [("", True)] * len(named)
    return [*votes, *(_vote(*row, before) for row in zip(named, values, earlier, strict=True))]


def _claim(line: str, files: Files) -> _ReviewClaim | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    try:
        tree = ast.parse(files.get(match[1], b""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = ast.Module([], [])
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    try:
        call = called(match[3], int(match[2]), functions)[1]
    except FormError:
        call = ""
    return _ReviewClaim(match[1], int(match[2]), match[3], call)


async def _values(
    claims: Sequence[_ReviewClaim], files: Files, job: RepositoryJob, sandbox: Sandbox
) -> list[tuple[str, bool]]:
    """What the call of each claim gives on ``files``, and whether it runs the line; empty where it has no call, or
    nothing came of it."""
    calls = [
        ModuleCalls(module=module_of(claim.path, files), prelude=_TRACED, calls=((claim.traced, ""),))
        for claim in claims
        if claim.call
    ]
    values, _ = await module_values(job, calls, files, sandbox)
    texts = iter([value for part in values for value in part])
    return [_read(next(texts, "")) if claim.call else ("", False) for claim in claims]


def _read(text: str) -> tuple[str, bool]:
    """What ``_TRACED`` gave; of a module that cannot be imported the reason."""
    try:
        value, reached = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return text, False
    return str(value), bool(reached)


def _vote(claim: _ReviewClaim, result: tuple[str, bool], base: tuple[str, bool], files: Files) -> Vote:
    (value, reached), (earlier, _) = result, base
    lines = files.get(claim.path, b"").count(b"\n") + 1
    if claim.path not in files or not 0 < claim.line <= lines:
        return Vote(check=claim.place, correct=False, reason="there is no such line")
    if reached and earlier and value and not is_same(earlier, value):
        why = f"confirmed: {claim.call[:80]} gives {value[:60]}, and gave {earlier[:60]} before the change"
        return Vote(check=claim.place, correct=True, reason=why)
    if reached and not earlier and value.startswith(RAISES) and value != WRONG_KIND:
        return Vote(check=claim.place, correct=True, reason=f"confirmed: {claim.call[:80]} {value[:60]}")
    shown = f"; {claim.call[:80]} gives {value[:60]}" if value else ""
    shown += ", and does not run this line" if value and not reached else ""
    return Vote(check=claim.place, correct=None, reason=f"unconfirmed: {claim.text[:100]}{shown}"[:300])
