"""Solved within some checked attempts: counted beside single attempts, the same every time, and shown side by side."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.runtime.prometheus import LATEST
from agent0.evaluation.checkpoint_score import ScoredItem, score
from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointEvaluated, EvaluationRequested
from agent0.events.tasks import TaskRequested
from agent0.events.values import Artifact
from agent0.projections import Projector, tables
from agent0.projections.evaluations import learning_curve
from agent0.projections.tasks import list_tasks
from agent0.report.charts.learning_curve import curve_svg
from agent0.report.charts.terminal_plot import plot
from agent0.report.findings import findings
from agent0.report.html.run_page import page
from agent0.report.overview import curve_columns, overview, rows_for_people
from agent0.report.tables import run_tables
from agent0.settings import RunConfig
from agent0.stats.intervals import wilson
from agent0.tasks.families import families
from tests.play import finished, play
from tests.story import bodies
from tests.world import ports, small, started

ASKED = EvaluationRequested(
    evaluation="base-validation", checkpoint="base", iteration=-1, split="validation", n=3, seed=1, state_sha=""
)
STORED = Artifact(sha256="a" * 64, size=1)


def config(checked: int = 3, **student: Any) -> RunConfig:
    return small(
        iterations=1,
        curriculum={"embedder": "ngram", "families": ["countdown", "placement", "linear", "boolean"]},
        evaluation={"validation": 12, "test": 4, "checked": checked},
        student={"temperature": 1.0, **student},
    )


def evaluated(told_: list[Recorded]) -> list[CheckpointEvaluated]:
    return [r.event for r in told_ if isinstance(r.event, CheckpointEvaluated)]


WORLD = ports()


@cache
def the_run() -> list[Recorded]:
    return finished(play(started(config()), WORLD))


def lines(one: CheckpointEvaluated) -> list[dict[str, Any]]:
    assert one.items
    return [json.loads(line) for line in WORLD["artifacts"].get(one.items).decode().split("\n")]


def test_it_stands_beside_accuracy_for_what_can_be_checked_and_only_that() -> None:
    scores = evaluated(the_run())
    assert {one.split for one in scores} == {"validation", "test"} and any(one.forced_tool for one in scores)
    for one in scores:
        items = lines(one)
        checkable = [item["task"].split(" ")[0] in ("countdown", "placement") for item in items]
        assert [mark != "-" for mark in one.outcomes_within] == checkable == ["within" in item for item in items]
        tried = [item for item in items if "within" in item]
        assert (one.checked, one.checkable) == (3, len(tried)) and tried
        assert one.solved_within == one.outcomes_within.count("1") / len(tried)
        assert one.solved_at_once == sum(item["correct"] is True for item in tried) / len(tried)
        assert (one.lower95_within, one.upper95_within) == wilson(one.outcomes_within.count("1"), len(tried))
        assert one.attempts_within == sum(item["tries"] for item in tried)
        said = [item["signals"]["answer"] if item["answer"] is not None else None for item in items]
        assert one.confidences == "".join("--" if c is None else f"{min(99, round(100 * c)):02d}" for c in said)
        for item in tried:
            assert item["tries"] == (item["within"] or 3), "it stops at the first that the check accepts"
    assert 0 < scores[0].checkable < scores[0].n
    assert any(item.get("within", 0) > 1 for one in scores for item in lines(one))


def test_who_asks_for_no_checked_attempts_gets_the_events_there_were() -> None:
    world = ports()
    plain = evaluated(asyncio.run(play(started(config(checked=0)), world)))[0]
    beside = evaluated(the_run())[0]
    assert (plain.checked, plain.outcomes_within, plain.solved_within, plain.solved_at_once) == (0, "", None, None)
    assert (plain.outcomes, plain.accuracy) == (beside.outcomes, beside.accuracy), "the greedy attempt stays as it is"
    assert plain.items and "within" not in world["artifacts"].get(plain.items).decode()


def test_the_same_again_and_more_attempts_solve_no_less() -> None:
    again = evaluated(asyncio.run(play(started(config()), ports())))
    assert [one.outcomes_within for one in again] == [one.outcomes_within for one in evaluated(the_run())]
    (more, *_) = evaluated(asyncio.run(play(started(config(checked=9)), ports())))
    for few, many in zip(again[0].outcomes_within, more.outcomes_within, strict=True):
        assert few in ("-", "0") or many == "1"


def test_a_student_without_temperature_is_asked_once() -> None:
    (one, *_) = evaluated(asyncio.run(play(started(config(checked=5, temperature=0.0)), ports())))
    assert one.attempts_within == one.checkable
    assert one.solved_within == one.solved_at_once


def test_tasks_of_named_families_go_through_the_whole_loop() -> None:
    asked = {r.event.family for r in the_run() if isinstance(r.event, TaskRequested)}
    assert asked <= {"countdown", "placement", "linear", "boolean"} and asked & {"countdown", "placement"}
    verified = [r.event for r in the_run() if r.type == "ResultVerified"]
    by = {one.verifier for one in verified}  # type: ignore[attr-defined]
    assert by == {"checked", "exact"}


def test_older_events_are_read() -> None:
    body = evaluated(the_run())[0].model_dump(mode="json")
    older = {
        name: value for name, value in body.items() if "within" not in name and name not in ("checked", "checkable")
    }
    read = CheckpointEvaluated.model_validate({**older, "solved_at_once": None})
    assert (read.checked, read.outcomes_within) == (0, "")


def item(within: int | None, correct: bool | None, tries: int) -> ScoredItem:
    return ScoredItem("t", "math", 1, "q", "a", correct, 0, 1, 0.1, within=within, tries=tries)


items = st.tuples(st.none() | st.integers(0, 4), st.sampled_from((True, False, None)), st.integers(0, 4))


@settings(max_examples=25, deadline=None)
@given(st.lists(items, max_size=30))
def test_shares_are_of_what_was_tried(drawn: list[tuple[int | None, bool | None, int]]) -> None:
    one = score(ASKED, [item(*each) for each in drawn], STORED, checked=4)
    tried = [each for each in drawn if each[0] is not None]
    assert len(one.outcomes_within) == len(one.outcomes) == len(drawn)
    assert one.checkable == len(tried) == len(one.outcomes_within.replace("-", ""))
    assert (one.solved_within is None) == (one.solved_at_once is None) == (not tried)
    if tried:
        assert one.solved_within == sum(bool(each[0]) for each in tried) / len(tried)
        assert one.lower95_within is not None and one.upper95_within is not None
        assert one.lower95_within - 1e-9 <= one.solved_within <= one.upper95_within + 1e-9
    plain = score(ASKED, [item(None, each[1], 0) for each in drawn], STORED)
    assert plain.outcomes == one.outcomes and plain.outcomes_within == ""


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    held = sqlite3.connect(":memory:", isolation_level=None)
    Projector(Path("memory"), lambda _: held, tables(), "stream").apply(bodies(the_run()))
    yield held
    held.close()


def test_both_are_shown_side_by_side_everywhere(db: sqlite3.Connection) -> None:
    first, last = evaluated(the_run())[0], [one for one in evaluated(the_run()) if one.split == "validation"][-1]
    points = learning_curve(db, "r1")
    assert points[0]["solved_within"] == first.solved_within and points[0]["solved_at_once"] == first.solved_at_once
    assert {"solved_at_once", "solved_within"} < set(curve_columns(points))
    assert not {"solved_at_once", "solved_within"} & set(curve_columns([{**p, "checked": None} for p in points]))
    held = overview(db, "r1")
    rows = rows_for_people(held)
    assert len(rows) == 3 and all(row["solved_within"] is not None and row["attempts"] == 3 for row in rows)
    found = findings(db, WORLD["artifacts"], "r1")
    tabled = dict(run_tables(found))
    assert all("pass@3 (verifier-selected)" in row for row in tabled["Iteration over iteration, on validation"])
    assert "◆ pass@3 (verifier-selected)" in plot(found["iterations"])
    assert "pass@3 (verifier-selected)" in curve_svg(db, "r1") and "var(--within)" in curve_svg(db, "r1")
    html = page(db, WORLD["artifacts"], "r1")
    assert "pass@k (verifier-selected)" in html and "tool forced" in html
    (measured,) = db.execute(LATEST.format(column="solved_within")).fetchall()
    assert tuple(measured) == ("r1", last.solved_within)


def test_a_task_is_solved_where_one_of_its_attempts_is(db: sqlite3.Connection) -> None:
    rows = [row for row in list_tasks(db, "r1") if row["solve_rate"] is not None]
    assert rows and all(row["solved"] == (row["solve_rate"] > 0) for row in rows)
    point = next(point for point in learning_curve(db, "r1") if point["iteration"] == 0)
    assert point["solved_tasks"] == pytest.approx(sum(row["solved"] for row in rows) / len(rows))
    assert point["solved_tasks"] >= point["solve_rate"]


@pytest.mark.parametrize(
    "named, kinds", [(None, {False, True}), (["computed"], {False}), (["checked"], {True}), ([], {False})]
)
def test_the_mix_is_of_both_kinds_and_either_can_be_left_out(named: list[str] | None, kinds: set[bool]) -> None:
    plan = {"embedder": "ngram"} | ({} if named is None else {"families": named})
    run = started(small(iterations=1, tasks=30, curriculum=plan))
    asked = {r.event.family for r in asyncio.run(play(run, ports())) if isinstance(r.event, TaskRequested)}
    assert {families()[name].check is not None for name in asked} == kinds
