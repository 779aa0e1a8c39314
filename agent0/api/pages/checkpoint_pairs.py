"""Two checkpoints side by side, and their answers to the same items of an evaluation."""

import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Query

from agent0.api.pages.readings import VERDICTS, plan_of
from agent0.evaluation.checkpoint_registry import side_by_side
from agent0.projections.base import Row
from agent0.projections.checkpoints import find_student
from agent0.projections.evaluation_items import list_items
from agent0.projections.evaluations import list_evaluations, scores_with_shared
from agent0.projections.runs import show_run
from agent0.stats.paired_tests import agreeing, compare

Kind = Literal["gained", "lost", "right", "wrong", "undecided"]
Change = Annotated[Kind | Literal[""], Query(description="items of one outcome only")]
CHANGES: dict[Kind, str] = {
    "gained": "wrong, then right",
    "lost": "right, then wrong",
    "right": "right by both",
    "wrong": "wrong by both",
    "undecided": "undecided for one",
}
SHOWN = 50
"""Items of a page."""


@dataclass(frozen=True)
class ItemChoice:
    """Which items are listed: ``on`` is the split or benchmark (empty: validation, where both have it), ``change`` an
    outcome (empty: all, those that only one solved first), without the first ``after``."""

    on: str = ""
    change: Kind | Literal[""] = ""
    after: int = 0


def checkpoint_data(db: sqlite3.Connection, left: str, right: str, choice: ItemChoice) -> Row:
    """Compare the checkpoints ``left`` and ``right``, RUN/CHECKPOINT, as ``agent0 model diff`` does, and item by item.
    ``on`` is what the items are of, ``sets`` what they may be of, ``exact`` McNemar's test over those that are decided
    for both: None where there are none.

    Raises:
        NotFoundError: there is no such checkpoint.
    """
    checkpoints = [find_student(db, name) for name in (left, right)]
    scores = [list_evaluations(db, checkpoint["run"]) for checkpoint in checkpoints]
    plans = [plan_of(show_run(db, checkpoint["run"])).evaluation.model_dump(mode="json") for checkpoint in checkpoints]
    finished = [_finished(db, checkpoint) for checkpoint in checkpoints]
    sets = [name for name in finished[0] if name in finished[1]]
    on = choice.on if choice.on in sets else "validation" if "validation" in sets else next(iter(sets), "")
    rows = _paired(*(_items(db, of[on]) for of in finished)) if on else []
    counts = Counter(row["change"] for row in rows)
    chosen = [row for row in rows if choice.change in ("", row["change"])]
    shown = chosen[choice.after : choice.after + SHOWN]
    return {
        "left": left,
        "right": right,
        **side_by_side(checkpoints, scores, plans),
        "on": on,
        "sets": sets,
        "change": choice.change,
        "counts": {kind: counts[kind] for kind in CHANGES},
        "exact": _exact(counts),
        "items": shown,
        "of_items": len(chosen),
        "after": choice.after,
        "next": choice.after + SHOWN if len(chosen) > choice.after + SHOWN else None,
    }


def _finished(db: sqlite3.Connection, checkpoint: Row) -> dict[str, Row]:
    """The last evaluation of a checkpoint on each split and benchmark, its parents' included; none with a forced
    tool."""
    rows = scores_with_shared(db, checkpoint["run"])
    name = checkpoint["checkpoint"]
    evaluations = [row for row in rows if row["checkpoint"] == name and not row["forced_tool"]]
    return {row["benchmark"] or row["split"]: row for row in evaluations}


def _items(db: sqlite3.Connection, evaluation: Row) -> dict[str, Row]:
    return {row["item"]: row for row in list_items(db, evaluation["run"], evaluation["evaluation"], limit=-1)}


def _paired(left: dict[str, Row], right: dict[str, Row]) -> list[Row]:
    """Answers to the same items, those that only one solved first."""
    rows = [_pair(left[item], right[item]) for item in left if item in right]
    return sorted(rows, key=lambda row: (*CHANGES,).index(row["change"]))


def _pair(left: Row, right: Row) -> Row:
    outcomes = left["correct"], right["correct"]
    changed: Kind = "gained" if outcomes[1] else "lost"
    stayed: Kind = "right" if outcomes[0] else "wrong"
    kind: Kind = "undecided" if None in outcomes else stayed if outcomes[0] == outcomes[1] else changed
    sides = {
        name: {
            "answer": row["answer"],
            "verdict": VERDICTS[row["correct"]],
            "run": row["run"],
            "attempt": row["attempt"],
        }
        for name, row in (("left", left), ("right", right))
    }
    return {"question": left["question"] or left["item"], "change": kind, **sides}


def _exact(counts: Counter[Kind]) -> Row | None:
    """The paired test of the counts; its interval is the one that a conclusion on the same items has."""
    outcomes = {"gained": (0.0, 1.0), "lost": (1.0, 0.0), "right": (1.0, 1.0), "wrong": (0.0, 0.0)}
    pairs = [pair for kind, pair in outcomes.items() for _ in range(counts[kind])]  # type: ignore[index]
    if not pairs:
        return None
    difference = compare([before for before, _ in pairs], [after for _, after in pairs], rounds=0)
    tested = agreeing(difference, difference.p)
    return {
        "p": tested.p,
        "n": tested.items,
        "mean": tested.mean,
        "lower95": tested.lower95,
        "upper95": tested.upper95,
    }
