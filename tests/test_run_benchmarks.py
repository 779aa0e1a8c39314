"""Benchmarks that a run scores: the same items each time, paired, refused where their rows have changed, and the one
table of targets."""

import asyncio
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.validate.requirements import REQUIREMENTS
from agent0.errors import ConfigError, NotFoundError, RequirementsError
from agent0.evaluation.benchmarks import chosen, read_items
from agent0.evaluation.promotion import lost_benchmark
from agent0.evaluation.suite import benchmark_suite
from agent0.events.alarms import ReactionDropped
from agent0.events.base import Recorded, record
from agent0.events.checkpoints import (
    CheckpointEvaluated,
    EvaluationItemRequested,
    EvaluationItemScored,
    EvaluationRequested,
)
from agent0.events.values import Artifact
from agent0.handlers import handlers
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.datasets import BenchmarkFolder
from agent0.projections import Projector, tables
from agent0.report.html.run_page import page
from agent0.report.overview import overview
from agent0.report.targets import RunMeasures, Spent, target_table
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import BenchmarkSettings, RunConfig, Settings
from agent0.state.run_state import Checkpoint, ValidationScore
from tests.play import play
from tests.story import bodies
from tests.world import NOON, ports, small, started

ROWS = Path(__file__).parents[2] / "shared" / "benchmarks"
pytestmark = pytest.mark.skipif(not ROWS.is_dir(), reason="no benchmark rows here")
N = 4


def config(*names: str, **evaluation: Any) -> RunConfig:
    plan = {"validation": 4, "test": 0, "benchmarks": names or ("gsm8k",), "benchmark_items": N, "at_once": 2}
    return small(evaluation={**plan, **evaluation})


def played(plan: RunConfig, folder: Path = ROWS, **more: Any) -> list[Recorded]:
    return asyncio.run(play(started(plan), {**ports(), "benchmark_files": BenchmarkFolder(folder)}, **more))


@pytest.fixture(scope="module")
def told() -> list[Recorded]:
    """A run with two benchmarks: GSM8K's rows, and items made from a seed."""
    return played(config("gsm8k", "tool_scenarios"))


def scores(events: Sequence[Recorded], benchmark: str = "") -> list[CheckpointEvaluated]:
    held = [event.event for event in events if isinstance(event.event, CheckpointEvaluated)]
    return [one for one in held if one.split == "benchmark" and benchmark in ("", one.benchmark)]


def state_at(events: Sequence[Recorded], seq: int) -> RunState:
    state: RunState | None = None
    for event in events[:seq]:
        state = evolve(state, event)
    assert state
    return state


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_every_checkpoint_answers_the_same_drawn_rows(told: list[Recorded]) -> None:
    asked = {
        score.evaluation: [
            (one.event.number, one.event.item, one.event.question)
            for one in told
            if isinstance(one.event, EvaluationItemScored) and one.event.evaluation == score.evaluation
        ]
        for score in scores(told, "gsm8k")
    }
    first, *others = (sorted(items) for items in asked.values())
    assert len(first) == N and others and all(items == first for items in others)
    (entry,) = chosen(["gsm8k"])
    rows = {item.id: item.question for item in read_items(entry, (ROWS / entry.files[0]).read_text("utf-8"), "f")}
    assert all(rows[item] == question for _, item, question in first), "they are rows of the file"


def test_the_base_each_candidate_and_the_last_student_are_scored_once_each(told: list[Recorded]) -> None:
    for name in ("gsm8k", "tool_scenarios"):
        assert [score.checkpoint for score in scores(told, name)] == ["base", "student-0", "student-1"]
    assert told[-1].type == "RunFinished"


def test_scored_every_n_iterations_and_at_the_end() -> None:
    told = played(small(iterations=3, evaluation={**config().evaluation.model_dump(), "benchmark_every": 2}))
    names = [score.evaluation for score in scores(told)]
    student = state_at(told, len(told)).student.id
    assert names[:2] == ["base-benchmark-gsm8k", "student-1-benchmark-gsm8k"]
    at_the_end = [f"{student}-benchmark-gsm8k-final"] if student not in ("base", "student-1") else []
    assert names[2:] == at_the_end


def test_fewer_rows_than_asked_are_all_asked() -> None:
    held = benchmark_suite("aime24", 100, 1, BenchmarkFolder(ROWS))
    assert len(held.items) == 30 == len(benchmark_suite("aime24", 0, 1, BenchmarkFolder(ROWS)).items)
    told = played(small(iterations=1, evaluation={**config("aime24").evaluation.model_dump(), "benchmark_items": 100}))
    assert {score.n for score in scores(told)} == {30}


def test_the_gate_judges_validation_whichever_score_comes_last(told: list[Recorded]) -> None:
    last = played(config(), pick=lambda n: n - 1)
    for events in (told, last):
        held = {e.event.checkpoint: e.event.accuracy for e in events if _validation(e)}  # type: ignore[attr-defined]
        verdicts = [e.event for e in events if e.type in ("CheckpointPromoted", "CheckpointRejected")]
        assert len(verdicts) == 2
        assert all(verdict.accuracy == held[verdict.checkpoint] for verdict in verdicts)  # type: ignore[attr-defined]


def _validation(one: Recorded) -> bool:
    return isinstance(one.event, CheckpointEvaluated) and one.event.split == "validation"


async def test_a_benchmark_that_is_given_up_leaves_the_verdict_to_validation(told: list[Recorded]) -> None:
    place = next(
        i for i, one in enumerate(told) if one.event in scores(told) and state_at(told, i + 1).phase == "judging"
    )
    about = {"cause_type": "EvaluationRequested", "cause_task": told[place].event.evaluation, "cause_attempt": "-"}  # type: ignore[attr-defined]
    event = ReactionDropped(failure="f", cause_id="c", **about, failed_handler="evaluate_checkpoint", reason="policy")
    dropped = record(event, run="r1", time=NOON).model_copy(update={"seq": place + 1})
    state = state_at([*told[:place], dropped], place + 1)
    assert state.phase == "judging"
    (verdict,) = await handlers()["judge_checkpoint"](dropped, state, {})
    assert state.candidate and state.candidate.score
    assert verdict.accuracy == state.candidate.score.accuracy  # type: ignore[attr-defined]


# --- rows that are gone, changed or wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize("handler", ["evaluate_checkpoint", "evaluate_item"])
async def test_other_rows_than_the_run_began_with_are_refused_by_name(
    told: list[Recorded], handler: str, tmp_path: Path
) -> None:
    """Between two evaluations, and in the middle of one."""
    text = (ROWS / "gsm8k_test.jsonl").read_text("utf-8")
    (tmp_path / "gsm8k_test.jsonl").write_text(text.rpartition("{")[0], "utf-8")
    kind = EvaluationRequested if handler == "evaluate_checkpoint" else EvaluationItemRequested
    cause = [one for one in told if isinstance(one.event, kind) and "gsm8k" in one.event.evaluation][-1]
    world = {**ports(), "history": None, "benchmark_files": BenchmarkFolder(tmp_path)}
    with pytest.raises(ConfigError, match="rows of gsm8k have changed") as caught:
        await handlers()[handler](cause, state_at(told, cause.seq), world)
    assert "gsm8k_test.jsonl" in str(caught.value)


async def test_what_is_not_there_is_named_before_a_run_begins(tmp_path: Path) -> None:
    async def missing(folder: Path | None, *names: str) -> list[str]:
        held = Settings(run=config(*names), benchmarks=BenchmarkSettings(folder=folder))
        found = await REQUIREMENTS["benchmarks"](held)
        assert len(found) == len(names)
        return [f"{one.name} {one.detail}" for one in found if one.state == "fail"]

    assert await missing(ROWS, "gsm8k", "humaneval", "tool_scenarios") == []
    (nowhere,) = await missing(None, "gsm8k", "tool_scenarios")
    assert "benchmark gsm8k No folder" in nowhere
    (unknown,) = await missing(ROWS, "gsm9k")
    assert "no benchmark 'gsm9k'" in unknown
    shutil.copy(ROWS / "humaneval.jsonl", tmp_path)
    (tmp_path / "gsm8k_test.jsonl").write_text('{"id": "1", "question": 3, "answer": "2"}\n', "utf-8")
    gone, wrong = await missing(tmp_path, "svamp", "gsm8k", "humaneval")
    assert "No rows of svamp" in gone
    assert "gsm8k_test.jsonl, line 1: no row of gsm8k. Field 'question'" in wrong


def test_the_port_reads_a_file_once_and_refuses_without_a_folder(tmp_path: Path) -> None:
    shutil.copy(ROWS / "svamp300.jsonl", tmp_path)
    files = BenchmarkFolder(tmp_path)
    held = files.find(("svamp300.jsonl",), "svamp")
    (tmp_path / "svamp300.jsonl").unlink()
    assert files.find(("svamp300.jsonl",), "svamp") is held
    with pytest.raises(NotFoundError):
        files.find(("gsm8k_test.jsonl",), "gsm8k")
    with pytest.raises(RequirementsError, match="gsm8k"):
        BenchmarkFolder(None).find(("gsm8k_test.jsonl",), "gsm8k")


# --- the gate --------------------------------------------------------------------------------------------------------


def scored(name: str, *right: int) -> Checkpoint:
    """Right answers of 40 items in each benchmark."""
    told = {f"b{i}/40/1": ValidationScore(n / 40, "1" * n + "0" * (40 - n)) for i, n in enumerate(right)}
    return Checkpoint(name, Artifact(sha256="a" * 64, size=1), benchmarks=told)


@pytest.mark.parametrize(
    ("promoted", "candidate", "against"),
    [
        ([(20, 20)], (20, 20), None),
        ([(20, 20)], (18, 20), None),
        ([(20, 20)], (20, 5), "base"),
        ([(20, 20), (30, 20)], (19, 20), "s1"),
        ([(30, 20), (20, 20)], (19, 20), "base"),
        ([(0, 0)], (40, 0), None),
        ([()], (3, 3), None),
    ],
)
def test_a_loss_beyond_chance_on_a_benchmark_is_refused(
    promoted: list[tuple[int, ...]], candidate: tuple[int, ...], against: str | None
) -> None:
    before = [scored(f"s{place}" if place else "base", *right) for place, right in enumerate(promoted)]
    verdict = lost_benchmark(scored("new", *candidate), before)
    assert (verdict is None) == (against is None)
    if verdict and against:
        assert not verdict.promoted and f"of {against}: a proven loss on a benchmark" in verdict.reason


@pytest.mark.parametrize("on", [True, False])
async def test_the_gate_is_off_unless_set(told: list[Recorded], on: bool) -> None:
    cause = next(one for one in told if one.event in scores(told) and state_at(told, one.seq).phase == "judging")
    state = state_at(told, cause.seq)
    assert state.candidate and state.candidate.score
    high = ValidationScore(1.0, "1" * 4)
    candidate = replace(scored("student-0", 5), score=high)
    evaluation = state.config.evaluation.model_copy(update={"benchmark_gate": on})
    config = state.config.model_copy(update={"evaluation": evaluation})
    state = replace(state, candidate=candidate, promoted=(scored("base", 20),), config=config)
    (verdict,) = await handlers()["judge_checkpoint"](cause, state, {})
    assert type(verdict).__name__ == ("CheckpointRejected" if on else "CheckpointPromoted")


# --- the tables ------------------------------------------------------------------------------------------------------


def held(events: list[Recorded]) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    Projector(Path("memory"), lambda _: db, tables(), "stream").apply(bodies(events))
    return db


def test_the_run_tells_each_score_paired_and_zeros_are_zeros(told: list[Recorded]) -> None:
    with closing(held(told)) as db:
        found = overview(db, "r1")
        text = page(db, FileArtifacts(Path("/nonexistent")), "r1")
    rows = [benchmark for benchmark in found["benchmarks"] if benchmark["benchmark"] == "gsm8k"]
    assert [row["checkpoint"] for row in rows] == ["base", "student-0", "student-1"]
    assert all((row["correct"], row["n"], row["accuracy"]) == (0, N, 0.0) for row in rows), "the script knows no GSM8K"
    assert rows[0]["against_base"] is None and rows[0]["against_promoted"] is None
    for row in rows[1:]:
        assert row["against_base"]["against"] == "base"
        assert (row["against_base"]["items"], row["against_base"]["mean"]) == (N, 0.0)
        assert row["against_base"]["word"] == "no difference shown"
    gain = next(target for target in found["targets"] if target["target"].startswith("gsm8k"))
    assert (gain["value"], gain["met"], gain["measure"]) == (0.0, False, "")
    assert "Benchmarks" in text and "against the last promoted" in text


def test_the_target_table_says_what_is_not_measured_and_how_to(told: list[Recorded]) -> None:
    with closing(held(told)) as db:
        found = {target["target"]: target for target in overview(db, "r1")["targets"]}
    assert len(found) == 10
    for row in found.values():
        assert (row["value"] is None) == (row["met"] is None) == bool(row["measure"]), row
    assert "humaneval" in found["humaneval, gain over the base"]["measure"]
    cost = found["cost of an iteration ($)"]
    assert cost["value"] is None and "run.energy.power_w and run.energy.price_kwh" in cost["measure"]
    assert found["latency of simple tasks, p95 (s)"]["met"] is not None


PRICED = {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
SPENT = Spent(2, {"student": (4_000_000, 1_000_000), "teacher": (0, 0)}, hours=0.5)


@pytest.mark.parametrize(
    ("energy", "student", "cost"),
    [
        ({}, {}, None),
        ({"power_w": 100}, {}, None),
        ({"power_w": 100, "price_kwh": 0.4}, {}, 0.01),
        ({"power_w": 0, "price_kwh": 0}, {}, 0.0),
        ({"power_w": 100, "price_kwh": 0.4}, PRICED, None),
        ({"power_w": 100, "price_kwh": 0.4}, {**PRICED, "price": (0.5, 2)}, 2.01),
    ],
)
def test_a_missing_price_is_never_zero(energy: dict[str, float], student: dict[str, Any], cost: float | None) -> None:
    plan = small(energy=energy, student=student)
    row = next(one for one in target_table(RunMeasures(spent=SPENT), plan) if one["target"].startswith("cost"))
    assert row["value"] == (cost if cost is None else pytest.approx(cost))
    assert row["met"] is (None if cost is None else cost < 0.1)
    assert bool(row["measure"]) == (cost is None)
    assert ("run.student.price" in row["measure"]) == (bool(student) and "price" not in student)


@pytest.mark.parametrize(
    ("found", "target", "value", "met"),
    [
        (RunMeasures(gains={"gsm8k": 0.15}), "gsm8k", 0.15, True),
        (RunMeasures(gains={"gsm8k": 0.149}), "gsm8k", 0.149, False),
        (RunMeasures(gains={"arc_challenge": 0.15}), "arc_challenge", 0.15, False),
        (RunMeasures(tool_use=0.8), "tasks solved", 0.8, False),
        (RunMeasures(complex_s=29.0), "latency of complex", 29.0, True),
        (RunMeasures(simple_s=5.0), "latency of simple", 5.0, False),
        (RunMeasures(validation=(0.5, 0.6)), "spread", None, None),
        (RunMeasures(validation=(0.0, 0.5, 0.6, 0.6, 0.6, 0.6)), "spread", pytest.approx(0.0447, abs=1e-4), True),
        (RunMeasures(validation=(0.2, 0.5, 0.8)), "spread", pytest.approx(0.3), False),
        (RunMeasures(promoted=(0.2,)), "promotions", None, None),
        (RunMeasures(promoted=(0.2, 0.3, 0.3)), "promotions", 0, True),
        (RunMeasures(promoted=(0.2, 0.3, 0.29)), "promotions", 1, False),
    ],
)
def test_targets_are_met_at_their_limits(found: RunMeasures, target: str, value: Any, met: bool | None) -> None:
    (row,) = [one for one in target_table(found, small()) if one["target"].startswith(target)]
    assert (row["value"], row["met"]) == (value, met)
