"""The table of every training step, what is made of it for people, and its charts."""

from collections.abc import Iterator
from contextlib import closing
from sqlite3 import Connection

import pytest

from agent0.assembly.tracking.measured import measured
from agent0.events.checkpoints import CheckpointTrained, TrainingMeasured
from agent0.events.values import Artifact, TrainingStep
from agent0.ports.training import TrainingResult
from agent0.projections.base import Row
from agent0.projections.training_steps import list_training_steps, list_trainings
from agent0.report.charts.training_steps import HIGH, METRICS, MOST_POINTS, WIDE, step_panels
from agent0.report.html.run_page import page
from agent0.training.pipeline import STEPS_PER_EVENT
from tests.story import whole_run
from tests.story_training import training_steps
from tests.test_making import made
from tests.test_report import NOWHERE, told

TOLD = training_steps(0)


@pytest.fixture
def db() -> Iterator[Connection]:
    with closing(told(whole_run(iterations=2))) as held:
        yield held


def test_each_step_is_a_row_in_its_place(db: Connection) -> None:
    rows = list_training_steps(db, "r1")
    places = [(row["role"], row["checkpoint"], row["step"]) for row in rows]
    names = [(role, f"{role}-{n}") for role in ("student", "teacher") for n in (0, 1)]
    assert places == [(*name, step) for name in names for step in range(1, len(TOLD) + 1)]
    assert [TrainingStep(**{name: rows[n][name] for name in TrainingStep.model_fields}) for n in range(6)] == [*TOLD]


def test_a_training_is_summed_up_over_its_sound_steps(db: Connection) -> None:
    (row,) = list_trainings(db, "r1", "student-0")
    assert (row["steps"], row["skipped"]) == (6, 1)
    assert row["loss"] == pytest.approx(-0.025) and row["replay_loss"] == 0.7
    assert row["largest_norm"] == 0.9 and row["largest_kl"] == pytest.approx(0.006)
    assert row["mismatch"] == 0.001, "known at one step, which is not zero at the others"
    assert [row["checkpoint"] for row in list_trainings(db, "r1")] == [
        f"{role}-{n}" for role in ("student", "teacher") for n in (0, 1)
    ]


async def test_a_long_training_is_told_in_several_events() -> None:
    steps = TOLD[:4] * STEPS_PER_EVENT
    _, events, _ = await made({}, steps=steps)
    parts = [event for event in events if isinstance(event, TrainingMeasured)]
    assert isinstance(events[-1], CheckpointTrained) and len(parts) == 4
    assert [part.first for part in parts] == [1 + n * STEPS_PER_EVENT for n in range(4)]
    assert sum((part.steps for part in parts), ()) == steps
    assert max(len(part.model_dump_json()) for part in parts) < 64_000


def test_a_trainer_may_tell_no_steps() -> None:
    assert TrainingResult(Artifact(sha256="a" * 64, size=1), {}).steps == ()


def step(number: int, **change: object) -> Row:
    plain = dict.fromkeys([*METRICS, "loss"], 0.5) | {"role": "student", "kind": "policy", "iteration": 0}
    return plain | {"step": number} | change


def test_losses_of_the_two_kinds_of_steps_are_two_charts(db: Connection) -> None:
    panels = {panel.title: panel for panel in step_panels(list_training_steps(db, "r1"))}
    assert set(panels) == set(METRICS.values())
    policy, replay = panels[METRICS["loss"]], panels[METRICS["replay_loss"]]
    assert (policy.low, policy.high) == (-0.04, -0.01)
    assert [len(line.points.split()) for line in policy.lines] == [8, 8]
    assert {line.role: line.last for line in replay.lines} == {"student": 0.7, "teacher": 0.7}
    assert policy.steps == 12 and policy.begins == (pytest.approx(6 + 6 * (WIDE - 12) / 11, abs=0.1),)


def test_a_spike_among_many_steps_is_drawn() -> None:
    rows = [step(n, gradient_norm=9.0 if n == 777 else 0.1) for n in range(1, 5001)]
    panel = next(panel for panel in step_panels(rows) if panel.title == METRICS["gradient_norm"])
    points = panel.lines[0].points.split()
    assert len(points) <= MOST_POINTS and panel.high == 9.0
    assert min(float(point.partition(",")[2]) for point in points) == 6.0


def test_trainings_of_an_iteration_share_its_stretch_of_the_axis() -> None:
    student = [step(n, iteration=i) for i in range(2) for n in range(1, 5)]
    teacher = [step(n, iteration=i, role="teacher") for i in (1, 2) for n in (1, 2)]
    panel = next(panel for panel in step_panels([*student, *teacher]) if panel.title == METRICS["gradient_norm"])
    places = {line.role: [float(p.partition(",")[0]) for p in line.points.split()] for line in panel.lines}
    step_width = (WIDE - 12) / 9
    assert panel.steps == 10 and panel.begins == pytest.approx([6 + 4 * step_width, 6 + 8 * step_width], abs=0.1)
    assert places["teacher"] == pytest.approx([6 + at * step_width for at in (4, 6, 8, 9)], abs=0.1)


def test_places_lie_within_the_picture_and_what_is_not_known_has_none() -> None:
    for panel in step_panels([step(1, loss=-3.0, mismatch=None), step(2, loss=2.0, mismatch=None)]):
        assert panel.title != METRICS["mismatch"]
        for point in " ".join(line.points for line in panel.lines).split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= WIDE and 0 <= y <= HIGH
    assert step_panels([]) == ()


def test_a_single_step_is_drawn_in_the_middle() -> None:
    (line,) = step_panels([step(1)])[0].lines
    assert {float(point.partition(",")[0]) for point in line.points.split()} == {WIDE / 2}


def test_the_report_shows_every_metric(db: Connection) -> None:
    text = page(db, NOWHERE, "r1")
    assert all(title in text for title in METRICS.values()) and "Training, step by step" in text


def test_an_export_has_every_step(db: Connection) -> None:
    rows = measured(db, "r1").training_rows()
    assert [row["step"] for row in rows] == [*range(1, 13)]
    assert [row["training/student/loss"] for row in rows[:6]] == [-0.01, -0.02, -0.03, -0.04, None, None]
    assert rows[4]["training/student/replay_loss"] == 0.7 and rows[5]["training/teacher/skipped"] == 1.0
