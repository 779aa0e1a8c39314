"""Measures a verifier on labelled pairs of answers or programs: accuracy, true and false positive rates."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from agent0.errors import ConfigError
from agent0.grading import Grade
from agent0.grading.answer_types import VALUE, kinds
from agent0.grading.golds import one_answer
from agent0.grading.math.symbolic import compared, settle, warm
from agent0.ports.sandbox import Sandbox
from agent0.provenance.foreign_files import require_own
from agent0.stats.intervals import wilson
from agent0.verification.programs import Problem, check

AT_ONCE = 2
"""Decisions at once: as many as the smallest sandbox carries out at once, so that none waits for others in line."""
_MATHS = ("pair_id", "gold", "candidate", "form", "label")
_WORDS = {"label": ("accept", "reject"), "form": ("answer", "response")}
_CODE = ("pair_id", "setup", "test", "entry_point", "candidate", "label")


@dataclass(frozen=True)
class Decided:
    """One decided pair: ``correct`` as the verifier says (None: undecided), ``accept`` as the label says.

    ``seconds`` spent deciding it, without waiting for others. ``policy``: graders may reasonably differ on it.
    """

    pair: str
    accept: bool
    correct: bool | None
    reason: str
    seconds: float
    policy: bool


class PairShares(TypedDict):
    """How many pairs there are and which shares of them are decided as labelled; None where there are none."""

    n: int
    accuracy: float | None
    lower95: float | None
    tpr: float | None
    fpr: float | None
    undecided: int
    slowest_s: float
    wrong: list[str]


class PairSummary(PairShares):
    """The shares of pairs, and apart from them those of pairs on which graders may differ."""

    policy: PairShares


class LabelledPair(TypedDict, total=False):
    """A row of a file of pairs: an answer has a gold and a form, a program what it is tested with."""

    pair_id: str
    candidate: str
    label: str
    policy: bool
    gold: str
    form: str
    kind: str
    setup: str
    test: str
    entry_point: str


def read_pairs(text: str, name: str) -> list[LabelledPair]:
    """Read and check the rows of a file of pairs, of answers or of programs.

    Raises:
        ConfigError: a line that is no row, with file, line and field; no row at all; or a file of another framework.
    """
    require_own(text, name)
    rows = list(_rows(text, name))
    if not rows:
        raise ConfigError(f"{name} has no rows.", "It is read as one JSON object a line.")
    return rows


def decoded(data: bytes, name: str) -> str:
    """Decode a file of rows as UTF-8, with or without a mark at its beginning.

    Raises:
        ConfigError: it is no UTF-8, with file and line.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{name}, line {line}: no UTF-8.", f"Byte {data[error.start]:#04x} stands for nothing."
        ) from error


def _rows(text: str, name: str) -> Iterator[LabelledPair]:
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_once)
        except _TwiceError as error:
            raise ConfigError(f"{name}, line {number}: the field {error} is there twice.") from error
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{name}, line {number}: no JSON.", f"{error}.") from error
        _check(row, f"{name}, line {number}")
        pair = _with_one_answer(row, f"{name}, line {number}")
        if (first := lines.setdefault(pair["pair_id"], number)) != number:
            raise ConfigError(f"{name}, line {number}: pair_id {pair['pair_id']!r} is that of line {first} too.")
        yield pair


class _TwiceError(Exception):
    """A field that an object has twice."""


def _once(fields: list[tuple[str, object]]) -> dict[str, object]:
    out: dict[str, object] = {}
    for name, value in fields:
        if name in out:
            raise _TwiceError(ascii(name[:80]))
        out[name] = value
    return out


def _check(row: object, location: str) -> None:
    if not isinstance(row, dict):
        raise ConfigError(f"{location}: no JSON object.")
    required = _CODE if _is_program(row) else _MATHS
    for field in required:
        if not isinstance(row.get(field), str):
            raise ConfigError(f"{location}: {field} is missing or no text.", f"Wanted: {', '.join(required)}.")
    if not row["pair_id"] or ("gold" in row and not row["gold"].strip()):
        raise ConfigError(f"{location}: {'gold' if row['pair_id'] else 'pair_id'} is empty.")
    for field, allowed in _WORDS.items():
        if field in row and row[field] not in allowed:
            raise ConfigError(f"{location}: {field} {str(row[field])[:80]!r} is none of {', '.join(allowed)}.")
    _check_policy_and_kind(row, location)


def _check_policy_and_kind(row: Mapping[str, object], location: str) -> None:
    if not isinstance(row.get("policy", False), bool):
        raise ConfigError(f"{location}: policy is neither true nor false.")
    if row.get("kind", VALUE) not in kinds():
        raise ConfigError(f"{location}: kind {str(row['kind'])[:80]!r} is none of {', '.join(kinds())}.")


def _with_one_answer(row: LabelledPair, location: str) -> LabelledPair:
    """``row`` with the answer alone for its gold, where that is published with its solution."""
    if "gold" not in row or row.get("kind", VALUE) != VALUE:
        return row
    try:
        return {**row, "gold": one_answer(row["gold"])}
    except ValueError as error:
        raise ConfigError(f"{location}: gold cannot be read.", f"{error}.") from error


def _is_program(row: Mapping[str, object]) -> bool:
    """Answers have a gold or a form, programs what they are tested with; what has neither should be an answer."""
    return not {"gold", "form"} & row.keys() and bool({"setup", "test", "entry_point"} & row.keys())


async def decide_pairs(rows: Sequence[LabelledPair], sandbox: Sandbox, at_once: int = AT_ONCE) -> list[Decided]:
    """Decide every pair by the verifier; ``at_once`` is how many the sandbox carries out concurrently."""
    room = asyncio.Semaphore(at_once)
    clock = asyncio.get_running_loop().time
    graded: list[tuple[Grade | None, float]] = []
    for row in rows:
        start = clock()
        graded.append((None if _is_program(row) else _compared(row), clock() - start))
    if any(grade is not None and grade.symbolic for grade, _ in graded):
        await asyncio.gather(*(warm(sandbox) for _ in range(at_once)))

    async def decide(row: LabelledPair, grade: Grade | None, spent: float) -> Decided:
        async with room:
            start = clock()
            correct, reason = await _verdict(row, grade, sandbox)
            accept, policy = row["label"] == "accept", bool(row.get("policy"))
            return Decided(row["pair_id"], accept, correct, reason, spent + clock() - start, policy)

    return list(await asyncio.gather(*(decide(row, *comparison) for row, comparison in zip(rows, graded, strict=True))))


def _compared(row: LabelledPair) -> Grade:
    reply, kind = row["form"] == "response", row.get("kind", VALUE)
    return compared(row["gold"], row["candidate"], reply=reply, kind=kind)


async def _verdict(row: LabelledPair, grade: Grade | None, sandbox: Sandbox) -> tuple[bool | None, str]:
    if grade is not None:
        grade = await settle(grade, sandbox) if grade.symbolic else grade
        return grade.correct, grade.reason
    outcome = await check(Problem(row["test"], row["setup"], row["entry_point"]), row["candidate"], sandbox)
    return outcome.passed, outcome.reason


def summary(decided: Sequence[Decided]) -> PairSummary:
    """Counts and rates over decided pairs; undecided pairs count as rejected. Policy pairs are counted apart."""
    core = [pair for pair in decided if not pair.policy]
    return {**_shares(core), "policy": _shares([pair for pair in decided if pair.policy])}


def _shares(decided: Sequence[Decided]) -> PairShares:
    wrong = [pair for pair in decided if (pair.correct is True) != pair.accept]
    right = [pair for pair in decided if pair.accept]
    false = [pair for pair in decided if not pair.accept]
    n = len(decided)
    return {
        "n": n,
        "accuracy": (n - len(wrong)) / n if n else None,
        "lower95": wilson(n - len(wrong), n)[0] if n else None,
        "tpr": sum(pair.correct is True for pair in right) / len(right) if right else None,
        "fpr": sum(pair.correct is True for pair in false) / len(false) if false else None,
        "undecided": sum(pair.correct is None for pair in decided),
        "slowest_s": max((pair.seconds for pair in decided), default=0.0),
        "wrong": sorted(pair.pair for pair in wrong),
    }
