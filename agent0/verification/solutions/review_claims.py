"""Verifies a review of a person's repository: what it names at file and line is confirmed where a call that it gives
shows it, by raising, or where an earlier version is known by another value there; else it stays unconfirmed."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent0.events.values import Vote
from agent0.ports.sandbox import Sandbox
from agent0.tools.snapshots import Files
from agent0.verification.repositories.hidden_values import ModuleCalls, is_same, values_of
from agent0.verification.repositories.seeded_defects import CLEAN, LARGEST, MOST, REVIEW
from agent0.verification.repositories.source_tree import SourceTree
from agent0.verification.repositories.wrong_versions import FormError, called
from agent0.verification.solutions.repository_job import RepositoryJob
from agent0.verification.solutions.solution_votes import UnsaidError

_LINE = re.compile(r"([^\s:][^:\n]{0,400}\.py):([0-9]{1,6}):\s*(\S.{0,2000})")
RAISES = "raises "


@dataclass(frozen=True)
class _ReviewClaim:
    path: str
    line: int
    text: str
    call: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


async def review_votes(job: RepositoryJob, before: Files, base: Files, work: Files, sandbox: Sandbox) -> list[Vote]:
    """One vote for each place that the review in ``work`` names: True where execution confirms it, False where there is
    no such place, None where nothing was shown. ``base`` is the earlier version, empty where none is known.

    Raises:
        UnsaidError: the sandbox failed. SandboxUnavailableError: there is none.
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
    values = await _values(named, before, job.seconds, sandbox)
    earlier = await _values(named, base, job.seconds, sandbox) if base else [""] * len(named)
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


async def _values(claims: Sequence[_ReviewClaim], files: Files, seconds: float, sandbox: Sandbox) -> list[str]:
    """What the call of each claim gives on ``files``; empty where it has none, or nothing came of it."""
    root = SourceTree(files).root
    flat = {path.removeprefix("src/") if root else path: data for path, data in files.items()}
    calls = [
        ModuleCalls(
            module=claim.path.removeprefix("src/" if root else "").removesuffix(".py").replace("/", "."),
            prelude="",
            calls=((claim.call, ""),),
        )
        for claim in claims
        if claim.call
    ]
    values, problem, unsaid = await values_of(calls, flat, sandbox, seconds) if calls else ([], "", False)
    if unsaid:
        raise UnsaidError(problem)
    texts = iter([value for part in values for value in part])
    return [next(texts, "") if claim.call else "" for claim in claims]


def _vote(claim: _ReviewClaim, value: str, earlier: str, files: Files) -> Vote:
    lines = files.get(claim.path, b"").count(b"\n") + 1
    if claim.path not in files or not 0 < claim.line <= lines:
        return Vote(check=claim.place, correct=False, reason="there is no such line")
    if earlier and value and not is_same(earlier, value):
        why = f"confirmed: {claim.call[:80]} gives {value[:60]}, and gave {earlier[:60]} before the change"
        return Vote(check=claim.place, correct=True, reason=why)
    if not earlier and value.startswith(RAISES):
        return Vote(check=claim.place, correct=True, reason=f"confirmed: {claim.call[:80]} {value[:60]}")
    shown = f"; {claim.call[:80]} gives {value[:60]}" if value else ""
    return Vote(check=claim.place, correct=None, reason=f"unconfirmed: {claim.text[:100]}{shown}"[:300])
