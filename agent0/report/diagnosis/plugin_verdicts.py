"""What verifiers of plugins said of a run's answers."""

import sqlite3
from typing import Any

from agent0.grading.normal_form import same
from agent0.run.diagnosis.case import Observation
from agent0.tasks.families import families
from agent0.verification.verifiers import verifiers
from projections.base import select


def count_plugin_verdicts(db: sqlite3.Connection, run: str, found: dict[int, dict[str, Any]]) -> None:
    """Add to the counts by iteration what verifiers that are not Agent0's own said of answers (``foreign``), and how
    many they called wrong that are right by their task's family (``misjudged``)."""
    ours = sorted(name for name, one in verifiers().items() if one.judge.__module__.partition(".")[0] == "agent0")
    rows = select(
        db,
        "SELECT verdicts.iteration, verifier, verdicts.correct, verdicts.reason, expected, answer, verdicts.attempt,"  # noqa: S608 - question marks
        " family, question FROM verdicts JOIN attempts USING (run, attempt) JOIN tasks ON tasks.run = verdicts.run"
        " AND tasks.task = verdicts.task WHERE verdicts.run = ? AND verdicts.correct IS NOT NULL"
        f" AND answer IS NOT NULL AND verifier NOT IN ({', '.join('?' * len(ours))}) ORDER BY verdicts.attempt",
        (run, *ours),
    )
    for row in rows:
        held = found[row["iteration"]]
        right, wrong = held.setdefault("foreign", {}).get(row["verifier"], (0, 0))
        held["foreign"][row["verifier"]] = (right + bool(row["correct"]), wrong + (not row["correct"]))
        if not row["correct"] and not row["expected"] and _is_right(row["family"], row["question"], row["answer"]):
            held["misjudged"] = held.get("misjudged", 0) + 1
            told = f"called wrong ({row['reason']}), and {row['answer']} is right by its family {row['family']}"
            held["examples"].setdefault("misjudged", Observation(told, attempt=row["attempt"]))


def _is_right(name: str, question: str, answer: str) -> bool:
    family = families(long=None).get(name)
    params = family.parse(question) if family else None
    if family is None or params is None:
        return False
    return not family.check(params, answer) if family.check else same(family.solve(params), answer)
