"""What verifiers of plugins said of a run's answers."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from agent0.grading.answer_types import grade_as
from agent0.grading.normal_form import same
from agent0.projections.base import select
from agent0.run.diagnosis.case import Observation
from agent0.tasks.families import families
from agent0.verification.human_review import PERSON
from agent0.verification.verifiers import verifiers


def count_plugin_verdicts(db: sqlite3.Connection, run: str, counts: dict[int, dict[str, Any]]) -> None:
    """Add to the counts by iteration what verifiers that are not Agent0's own said of answers (``foreign``), and how
    many of them their task's family computes otherwise: right ones that were called wrong (``misjudged``), and wrong
    ones that were called right (``overrated``)."""
    ours = sorted(
        name for name, verifier in verifiers().items() if verifier.judge.__module__.partition(".")[0] == "agent0"
    )
    names = [*ours, PERSON]
    rows = select(
        db,
        "SELECT verdicts.iteration, verifier, verdicts.correct, verdicts.reason, expected, answer, verdicts.attempt,"  # noqa: S608 - question marks
        " family, question FROM verdicts JOIN attempts USING (run, attempt) JOIN tasks ON tasks.run = verdicts.run"
        " AND tasks.task = verdicts.task WHERE verdicts.run = ? AND verdicts.correct IS NOT NULL"
        f" AND answer IS NOT NULL AND verifier NOT IN ({', '.join('?' * len(names))}) ORDER BY verdicts.attempt",
        (run, *names),
    )
    for row in rows:
        iteration = counts[row["iteration"]]
        right, wrong = iteration.setdefault("foreign", {}).get(row["verifier"], (0, 0))
        iteration["foreign"][row["verifier"]] = (right + bool(row["correct"]), wrong + (not row["correct"]))
        if contrary := _contrary(row):
            kind, text = contrary
            iteration[kind] = iteration.get(kind, 0) + 1
            iteration["examples"].setdefault(kind, Observation(text, attempt=row["attempt"]))


def _contrary(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """How a verdict contradicts what the task's family computes, and in words; None where it does not."""
    called_right = bool(row["correct"])
    if (not called_right and row["expected"]) or computed(row["family"], row["question"], row["answer"]) is not (
        not called_right
    ):
        return None
    if called_right:
        return (
            "overrated",
            f"called right ({row['reason']}), and {row['answer']} is wrong by its family {row['family']}",
        )
    return "misjudged", f"called wrong ({row['reason']}), and {row['answer']} is right by its family {row['family']}"


def computed(name: str, question: str, answer: str) -> bool | None:
    """Whether ``answer`` is right by what the family called ``name`` computes or checks; None where it does not say."""
    family = families(long=None).get(name)
    params = family.parse(question) if family else None
    if family is None or params is None:
        return None
    if family.check:
        return not family.check(params, answer)
    solved = family.solve(params)
    return same(solved, answer) or grade_as("", solved, answer).correct
