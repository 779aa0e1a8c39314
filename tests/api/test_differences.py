"""Two answers word by word, and two checkpoints on the same items: nothing is lost, counts are those of the items."""

from math import comb
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from agent0.api.pages.attempt_pairs import word_changes
from agent0.events.base import Recorded
from agent0.events.checkpoints import EvaluationItemScored
from agent0.report.html.rendering import LONGEST
from tests.api.conftest import seeing
from tests.api.served import stored
from tests.api.test_pages import links
from tests.story import whole_run

WORDS = st.lists(st.sampled_from(["one", "two", " ", "\n", "(", "x", "Ω", "<b>"]), max_size=60).map("".join)
PAIR = "/compare{}?left=r1/student-0&right=r1/student-1"


@given(WORDS | st.text(max_size=300), WORDS | st.text(max_size=300))
def test_pieces_are_the_texts_and_what_is_unmarked_is_in_both(left: str, right: str) -> None:
    sides = word_changes(left, right)
    assert ["".join(piece["text"] for piece in side) for side in sides] == [left, right]
    kept = ["".join(piece["text"] for piece in side if not piece["changed"]) for side in sides]
    assert kept[0] == kept[1]


def test_one_word_of_many_alike_is_marked_alone() -> None:
    left, right = word_changes("a " * 500 + "b " + "a " * 500, "a " * 500 + "c " + "a " * 500)
    assert [piece["text"] for side in (left, right) for piece in side if piece["changed"]] == ["b", "c"]
    assert len("".join(piece["text"] for piece in word_changes("x " * LONGEST, "y")[0])) == LONGEST


SCORED: dict[str, tuple[bool | None, bool]] = {
    "base-validation": (True, False),
    "student-0-validation": (None, True),
    "student-1-validation": (False, True),
}
"""Verdicts on both items of each evaluation."""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """A run whose checkpoints solve different items."""
    return seeing(stored(tmp_path_factory.mktemp("changed"), [*map(rescored, whole_run(iterations=2))]))


def rescored(recorded: Recorded) -> Recorded:
    event = recorded.event
    if not isinstance(event, EvaluationItemScored) or event.evaluation not in SCORED:
        return recorded
    correct = SCORED[event.evaluation][event.number]
    return recorded.model_copy(
        update={"event": event.model_copy(update={"correct": correct, "answer": f"{event.evaluation} said"})}
    )


def outcome(pair: Any) -> str:
    left, right = (pair[side]["verdict"] for side in ("left", "right"))
    if "undecided" in (left, right):
        return "undecided"
    return left if left == right else "gained" if right == "right" else "lost"


@pytest.mark.parametrize(
    ("pair", "kinds"),
    [
        ("left=r1/base&right=r1/student-1", {"gained": 1, "lost": 1}),
        ("left=r1/student-0&right=r1/student-1", {"undecided": 1, "right": 1}),
        ("left=r1/base&right=r1/base", {"right": 1, "wrong": 1}),
    ],
)
def test_counts_are_those_of_the_items(changed: TestClient, pair: str, kinds: dict[str, int]) -> None:
    page = changed.get(f"/compare.json?{pair}").json()
    shown = [outcome(row) for row in page["items"]]
    assert page["of_items"] == len(shown) > 0 and [row["change"] for row in page["items"]] == shown
    assert page["counts"] == {kind: shown.count(kind) for kind in page["counts"]}
    assert {kind: count for kind, count in page["counts"].items() if count} == kinds
    for kind, count in page["counts"].items():
        rows = changed.get(f"/compare.json?{pair}&change={kind}").json()["items"]
        assert len(rows) == count and {outcome(row) for row in rows} <= {kind}
    gained, lost = shown.count("gained"), shown.count("lost")
    tail = sum(comb(gained + lost, k) for k in range(min(gained, lost) + 1)) / 2 ** (gained + lost)
    assert page["exact"]["p"] == pytest.approx(min(1.0, 2 * tail))
    for side in ("left", "right"):
        for row in page["items"]:
            item = changed.get(f"/v1/runs/{row[side]['run']}/trajectories/{row[side]['attempt']}").json()
            assert item["question"] == row["question"] and item["answer"] == row[side]["answer"]


def test_each_item_leads_to_both_answers_side_by_side(whole: TestClient) -> None:
    found = {
        one
        for one in links(whole.get(PAIR.format("")).text)
        if one.startswith("/compare?") and "change" not in one and "validation-" in one
    }
    assert found
    for one in sorted(found)[:4]:
        page = whole.get(one).text
        assert "<h2>Verdicts</h2>" in page and page.count('class="good"') + page.count('class="bad"') >= 2


def test_before_they_were_scored_there_is_nothing_to_pair(whole: TestClient) -> None:
    rows = whole.get("/v1/events?run=r1&type=CheckpointEvaluated").json()["data"]
    late = next(row["seq"] for row in rows if row["data"]["checkpoint"] == "student-1")
    past = whole.get(f"/compare.json?left=r1/base&right=r1/student-1&at={late - 1}").json()
    assert past["items"] == [] and past["exact"] is None and past["on"] == ""
