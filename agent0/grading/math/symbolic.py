"""The last word on answers that exact comparison cannot settle: math-verify, in the sandbox and under its limits."""

import json
import re
from dataclasses import replace

from agent0.events.values import ToolState
from agent0.grading import Grade
from agent0.grading.answer_types import VALUE, grade_as
from agent0.grading.extraction import extracted, reply_of
from agent0.grading.extraction.other_readings import other_readings
from agent0.grading.math.undone import UNDONE
from agent0.ports.sandbox import Root, Sandbox, SandboxCall

WALL_S = 4.0
ROOT = Root((), ("antlr4", "latex2sympy2_extended", "math_verify", "mpmath", "sympy"))
_base, _argument = re.compile(r"\\?log_\{?e\}?(?![a-z])"), re.compile(r"\b(ln|log)\s+(\d+)")
_function = re.compile(r"(?<![A-Za-z\\{])(ln|log|sin|cos|tan|exp|sqrt)(?![a-z])")
_PROGRAM = r"""
import importlib.metadata, json, logging
importlib.metadata.version = lambda _: '4.13.2'  # antlr's, as pinned; its metadata is not in the sandbox
from math_verify import parse, verify

logging.disable(logging.CRITICAL)
gold, answer = (parse('$' + text + '$', parsing_timeout=None) for text in json.loads(TEXTS))
print(json.dumps(bool(gold and answer and verify(gold, answer, timeout_seconds=None))))
"""


async def decide(gold: str, answer: str | None, sandbox: Sandbox, *, reply: bool = False, kind: str = VALUE) -> Grade:
    """Grade an answer of a ``kind`` (empty: as ``gold`` reads), or the answer in a whole ``reply``, asking the symbolic
    engine where it may know more.

    Raises:
        SandboxUnavailableError: it would have to be asked, and there is no sandbox.
    """
    grade = compared(gold, answer, reply=reply, kind=kind)
    return await settle(grade, sandbox) if grade.symbolic else grade


def compared(gold: str, candidate: str | None, *, reply: bool = False, kind: str = VALUE) -> Grade:
    """Compare an answer without symbolic algebra: the grade that ``decide`` starts from.

    ``reply``: ``candidate`` is a whole reply, whose answer is extracted first.
    """
    if not reply or candidate is None:
        return grade_as(kind, gold, candidate)
    text = reply_of(candidate)
    extract = extracted(text)
    first = grade_as(kind, gold, extract.answer)
    if first.correct is True:
        return first
    others = other_readings(gold, extract, text, lambda *both: grade_as(kind, *both).correct is True)
    grades: list[Grade] = []
    for other in others:
        grades.append(grade_as(kind, gold, other))
        if grades[-1].correct is True:
            return grades[-1]
    if undone := next((grade for grade in grades if grade.reason == UNDONE), None):
        return undone
    return replace(first, got=_function.sub(r"\\\1", _argument.sub(r"\1(\2)", _base.sub("ln", first.got))))


async def warm(sandbox: Sandbox) -> None:
    """Start the symbolic engine's process, which takes seconds, so that no decision has to wait for it.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    await sandbox.call(SandboxCall("python", "pass", wall_s=WALL_S, root=ROOT))


async def settle(grade: Grade, sandbox: Sandbox) -> Grade:
    """``grade`` with the engine's decision; still undecided where that takes too long."""
    texts = json.dumps([grade.expected, grade.got])
    result = await sandbox.call(SandboxCall("python", f"TEXTS = {texts!r}\n{_PROGRAM}", wall_s=WALL_S, root=ROOT))
    answer = result.stdout.strip()
    if result.state is ToolState.OK and answer in ("true", "false"):
        reason = "equal by symbolic comparison" if answer == "true" else "different"
        return replace(grade, correct=answer == "true", reason=reason, symbolic=False)
    return replace(grade, reason=f"the symbolic engine ended {result.state.value}", symbolic=False)
