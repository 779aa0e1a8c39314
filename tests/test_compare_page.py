"""The page of runs side by side: scores stand at their iteration, who has none says so, a scale holds what it shows."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent0.experiments.compare_runs import Side, side_by_side
from agent0.report.charts.svg import Score, spreads
from agent0.report.html.compare_page import compare_page
from events.checkpoints import CheckpointEvaluated

FIGURE = re.compile(r'text-anchor="middle">([-+.e\d]+)</text>')
POINTS = re.compile(r'points="([^"]+)"')


def scored(iteration: int, outcomes: str) -> CheckpointEvaluated:
    facts: dict[str, Any] = {"evaluation": "e", "checkpoint": f"s{iteration}", "split": "validation"}
    n, correct = len(outcomes), outcomes.count("1")
    facts |= {"n": n, "correct": correct, "accuracy": correct / n, "outcomes": outcomes, "lower95": 0.0, "upper95": 1.0}
    return CheckpointEvaluated(**facts, iteration=iteration, tool_use=0.5)


def test_a_training_that_was_scored_later_stands_at_its_own_iterations() -> None:
    run = Side("run", {("t", "a", "student"): 1.0}, [scored(-1, "0000"), scored(0, "0011"), scored(1, "0111")])
    again = Side("again", {("t", "a", "student"): 0.5}, [scored(0, "0011"), scored(1, "0111")])
    page = compare_page(side_by_side([run, again, Side("silent")]))
    first, second = ([point.split(",") for point in found.split(" ")] for found in POINTS.findall(page))
    assert second == first[1:] and len(first) == 3
    assert ">untrained</text>" in page and "not scored on the same items" in page


@given(st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 3).map(sorted), min_size=1, max_size=5))
def test_a_scale_holds_what_it_shows(values: list[list[float]]) -> None:
    drawn = str(spreads({str(n): [Score("s", middle, low, high)] for n, (low, middle, high) in enumerate(values)}, ""))
    figures = [float(text) for text in FIGURE.findall(drawn)]
    assert figures == sorted(figures) and 2 <= len(figures) <= 8
    ends = [
        float(x)
        for pair in re.findall(r'class="c0 thick" x1="([-.\d]+)" y1="[^"]+" x2="([-.\d]+)"', drawn)
        for x in pair
    ]
    assert len(ends) == 2 * len(values) and all(180 <= x <= 530 for x in ends)


def test_nothing_to_show_is_no_picture() -> None:
    assert spreads({}, "") == ""
