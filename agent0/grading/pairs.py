"""How good is a verifier? Labelled pairs of answers or programs, decided and counted."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent0.errors import ConfigError
from agent0.grading.kinds import VALUE, kinds
from agent0.grading.symbolic import decide
from agent0.ports import Sandbox
from agent0.programs import Problem, check
from agent0.statistics import wilson

AT_ONCE = 4
_MATHS = ("pair_id", "gold", "candidate", "form", "label")
_WORDS = {"label": ("accept", "reject"), "form": ("answer", "response")}
_CODE = ("pair_id", "setup", "test", "entry_point", "candidate", "label")


@dataclass(frozen=True)
class Decided:
    """One pair: ``correct`` as the verifier says (None: undecided), ``accept`` as the label says."""

    pair: str
    accept: bool
    correct: bool | None
    reason: str
    seconds: float
    policy: bool


def read_pairs(text: str, name: str) -> list[dict[str, Any]]:
    """Rows of either schema.

    Raises:
        ConfigError: a line that is no row, with file, line and field; or no row at all.
    """
    rows = list(_rows(text, name))
    if not rows:
        raise ConfigError(f"{name} has no rows.", "It is read as one JSON object a line.")
    if twice := next((one for one, times in Counter(row["pair_id"] for row in rows).items() if times > 1), ""):
        raise ConfigError(f"{name}: pair_id {twice!r} occurs twice.")
    return rows


def _rows(text: str, name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{name}, line {number}: no JSON.", f"{error}.") from error
        if not isinstance(row, dict):
            raise ConfigError(f"{name}, line {number}: no JSON object.")
        _check(row, f"{name}, line {number}")
        yield row


def _check(row: Mapping[str, Any], place: str) -> None:
    wanted = _MATHS if "gold" in row else _CODE
    for field in wanted:
        if not isinstance(row.get(field), str):
            raise ConfigError(f"{place}: {field} is missing or no text.", f"Wanted: {', '.join(wanted)}.")
    if not row["pair_id"] or ("gold" in row and not row["gold"].strip()):
        raise ConfigError(f"{place}: {'gold' if row['pair_id'] else 'pair_id'} is empty.")
    for field, known in _WORDS.items():
        if field in row and row[field] not in known:
            raise ConfigError(f"{place}: {field} {str(row[field])[:80]!r} is none of {', '.join(known)}.")
    if not isinstance(row.get("policy", False), bool):
        raise ConfigError(f"{place}: policy is neither true nor false.")
    if row.get("kind", VALUE) not in kinds():
        raise ConfigError(f"{place}: kind {str(row['kind'])[:80]!r} is none of {', '.join(kinds())}.")


async def decide_pairs(rows: Sequence[Mapping[str, Any]], sandbox: Sandbox) -> list[Decided]:
    """Every pair, a few at once."""
    room = asyncio.Semaphore(AT_ONCE)
    clock = asyncio.get_running_loop().time

    async def one(row: Mapping[str, Any]) -> Decided:
        async with room:
            start = clock()
            correct, reason = await _verdict(row, sandbox)
            accept, policy = row["label"] == "accept", bool(row.get("policy"))
            return Decided(str(row["pair_id"]), accept, correct, reason, clock() - start, policy)

    return list(await asyncio.gather(*map(one, rows)))


async def _verdict(row: Mapping[str, Any], sandbox: Sandbox) -> tuple[bool | None, str]:
    if "gold" in row:
        kind = str(row.get("kind", VALUE))
        found = await decide(row["gold"], row["candidate"], sandbox, reply=row["form"] == "response", kind=kind)
        return found.correct, found.reason
    outcome = await check(Problem(row["test"], row["setup"], row["entry_point"]), row["candidate"], sandbox)
    return outcome.passed, outcome.reason


def summary(decided: Sequence[Decided]) -> dict[str, Any]:
    """Counts and shares; undecided pairs count as rejected. Pairs on which graders may differ are apart."""
    core = [one for one in decided if not one.policy]
    return {**_shares(core), "policy": _shares([one for one in decided if one.policy])}


def _shares(decided: Sequence[Decided]) -> dict[str, Any]:
    wrong = [one for one in decided if (one.correct is True) != one.accept]
    right = [one for one in decided if one.accept]
    false = [one for one in decided if not one.accept]
    n = len(decided)
    return {
        "n": n,
        "accuracy": (n - len(wrong)) / n if n else None,
        "lower95": wilson(n - len(wrong), n)[0] if n else None,
        "tpr": sum(one.correct is True for one in right) / len(right) if right else None,
        "fpr": sum(one.correct is True for one in false) / len(false) if false else None,
        "undecided": sum(one.correct is None for one in decided),
        "slowest_s": max((one.seconds for one in decided), default=0.0),
        "wrong": sorted(one.pair for one in wrong),
    }
