"""The page of runs side by side: scores stand at their iteration, who has none says so, a scale holds what it shows."""

import re
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events.base import Event, Recorded
from agent0.events.checkpoints import CheckpointEvaluated
from agent0.events.tasks import TaskProposed, ToolCalled
from agent0.events.values import Task, ToolCall, ToolResult, ToolState
from agent0.experiments.compare_runs import Side, side_by_side, side_of
from agent0.report.charts.plots import Score, spreads
from agent0.report.html.benchmark_page import compare_page

FIGURE = re.compile(r"text-anchor: middle[^>]*>([-+.e\d]+)</text>")
LINE = re.compile(r'<path d="([^"]+)"[^>]*style="fill: none; [^"]*stroke: var\(--c\d\)')
AXES = re.compile(r'<path d="([^"]+)"[^>]*style="fill: none"')


def ends(path: str) -> list[tuple[float, float]]:
    """The points of a path without curves."""
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] ([-.\d]+) ([-.\d]+)", path)]


def scored(iteration: int, outcomes: str) -> CheckpointEvaluated:
    facts: dict[str, Any] = {"evaluation": "e", "checkpoint": f"s{iteration}", "split": "validation"}
    n, correct = len(outcomes), outcomes.count("1")
    facts |= {"n": n, "correct": correct, "accuracy": correct / n, "outcomes": outcomes, "lower95": 0.0, "upper95": 1.0}
    return CheckpointEvaluated(**facts, iteration=iteration, tool_use=0.5)


def test_a_training_that_was_scored_later_stands_at_its_own_iterations() -> None:
    run = Side("run", {("t", "a", "student"): 1.0}, [scored(-1, "0000"), scored(0, "0011"), scored(1, "0111")])
    again = Side("again", {("t", "a", "student"): 0.5}, [scored(0, "0011"), scored(1, "0111")])
    page = compare_page(side_by_side([run, again, Side("silent")]))
    held = [ends(path) for path in LINE.findall(page)]
    first, second = (points for points in held if len({y for _, y in points}) > 1)  # those of the key are level
    assert second == first[1:] and len(first) == 3
    assert ">untrained</text>" in page and "not scored on the same items" in page


@settings(max_examples=12)
@given(st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 3).map(sorted), min_size=1, max_size=5))
def test_a_scale_holds_what_it_shows(values: list[list[float]]) -> None:
    drawn = str(spreads({str(n): [Score("s", middle, low, high)] for n, (low, middle, high) in enumerate(values)}, ""))
    figures = [float(text) for text in FIGURE.findall(drawn.replace("\N{MINUS SIGN}", "-"))]
    assert figures == sorted(figures) and 2 <= len(figures) <= 9
    left, right = (pick(x for x, _ in ends(AXES.findall(drawn)[1])) for pick in (min, max))
    drawn_at = [x for path in LINE.findall(drawn) for x, _ in ends(path)]
    assert len(drawn_at) == 2 * len(values) and all(left - 0.01 <= x <= right + 0.01 for x in drawn_at)


def test_what_was_written_is_counted_beside_what_could_be_read() -> None:
    task = Task(domain="math", family="linear", level=1, question="1+1?", canonical="1+1")
    proposed: dict[str, Any] = {"iteration": 0, "slot": 0, "teacher": "base", "text": "t", "prompt": "p"}
    tried: dict[str, Any] = {"task": "t1", "attempt": "a", "turn": 0, "result": ToolResult(state=ToolState.OK)}
    events: list[Event] = [
        TaskProposed(task="t0", proposal=None, problem="no task", **proposed),
        TaskProposed(task="t1", proposal=task, **proposed),
        ToolCalled(number=0, call=ToolCall(name="", raw="{", error="no JSON"), **tried),
        ToolCalled(number=1, call=ToolCall(name="python"), **tried),
    ]
    now = datetime.now(UTC)
    kept = [Recorded(id=str(n), type=type(e).__name__, run="r", time=now, event=e) for n, e in enumerate(events)]
    found = side_by_side([side_of("run", kept)])
    (row,) = found["read"]
    assert (row["proposals"], row["readable"], row["calls"], row["malformed"]) == (2, 1, 2, 1)
    assert "malformed" in compare_page(found)


def test_nothing_to_show_is_no_picture() -> None:
    assert spreads({}, "") == ""
