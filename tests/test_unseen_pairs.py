"""Pairs by an author who had not seen the rules, not looked at for any rule: most are decided as labelled.

A rule that is made by looking at these rows makes this measurement worthless; write another set then.
"""

from pathlib import Path

from agent0.grading.math.symbolic import compared
from agent0.verification.labelled_pairs import read_pairs

PAIRS = Path(__file__).parent / "data" / "unseen_pairs.jsonl"


def test_most_of_the_right_and_hardly_any_of_the_wrong_are_accepted() -> None:
    """The aims: .92 of the right, .01 of the wrong; without the symbolic engine, which accepts a few more."""
    rows = [row for row in read_pairs(PAIRS.read_text(encoding="utf-8"), PAIRS.name) if not row.get("policy")]
    found: dict[str, list[bool]] = {"accept": [], "reject": []}
    for row in rows:
        decided = compared(row["gold"], row["candidate"], reply=row["form"] == "response")
        found[row["label"]].append(decided.correct is True)
    assert len(rows) == 608
    assert sum(found["accept"]) >= 0.92 * len(found["accept"])
    assert sum(found["reject"]) <= 0.01 * len(found["reject"])
