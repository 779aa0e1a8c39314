"""Variants over seeds: names follow from what is asked, tables are what arithmetic says, a killed study goes on, and
what cannot be is refused before anything is begun."""

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.ablations.ablation_run import RunPlan, execute_ablation_run
from agent0.assembly.ablations.study import run_study, variant_configs
from agent0.assembly.ablations.study_request import StudyRequest
from agent0.config.loading import load
from agent0.errors import ConfigError, OperationError
from agent0.events.checkpoints import CheckpointEvaluated
from agent0.experiments.ablation_results import (
    CONTROLS,
    ONE_SEED,
    RunOutcome,
    as_json,
    claim_rows,
    comparison_rows,
    curves,
    from_json,
    paired,
    variant_rows,
)
from agent0.experiments.ablation_runs import AblationRun, describe_compute, requested_compute, runs_of_study
from agent0.experiments.ablation_study import AblationStudy, Variant
from agent0.infra.log.nats_server import Server
from agent0.report.html.benchmark_page import ablation_page
from agent0.report.markdown.ablation import page
from agent0.settings import RunConfig
from agent0.stats import across_seeds
from tests.terminal import agent0 as call

PLAIN = RunConfig()
THREE = ({"a": PLAIN, "b": PLAIN}, (0, 1, 2))


# --- names, and what is the same in all cells


def test_names_follow_from_grid_arm_and_seed() -> None:
    made = runs_of_study("try", *THREE)
    assert [cell.run for cell in made] == ["try-a-0", "try-b-0", "try-a-1", "try-b-1", "try-a-2", "try-b-2"]
    assert made == runs_of_study("try", *THREE)
    assert {cell.run: cell.config for cell in made}["try-b-2"] == PLAIN.model_copy(update={"seed": 2})
    more = runs_of_study("try", THREE[0] | {"c": PLAIN}, (2, 0, 7))
    assert {cell.run for cell in made if cell.seed != 1} <= {cell.run for cell in more}


def test_unequal_compute_is_said() -> None:
    told = describe_compute({"a": PLAIN, "b": PLAIN.model_copy(update={"tasks": 2 * PLAIN.tasks})})
    assert told.startswith("NOT equal") and f"{2 * requested_compute(PLAIN)['in_all']:,} attempts" in told


def test_as_many_attempts_on_fewer_tasks_are_said_to_be_spread_differently() -> None:
    fewer = PLAIN.model_copy(update={"tasks": PLAIN.tasks // 2, "attempts": 2 * PLAIN.attempts})
    told = describe_compute({"a": PLAIN, "b": fewer, "c": PLAIN})
    assert PLAIN.tasks % 2 == 0 and told.startswith("Asked of every run alike")
    assert f"differently spread: b {fewer.tasks} tasks with {fewer.attempts} attempts each." in told


# --- bad input


@pytest.mark.parametrize(
    ("name", "plans", "numbers", "told"),
    [
        ("try", THREE[0], (), "no seed"),
        ("try", THREE[0], (1, 1), "named twice"),
        ("../x", THREE[0], (1,), "cannot be named"),
        ("", THREE[0], (1,), "cannot be named"),
        ("x" * 30, {"y" * 40: PLAIN}, (1,), "too long"),
        ("try", {"a": PLAIN, "b": RunConfig.model_validate({"evaluation": {"test": 7}})}, (1,), "b scores otherwise"),
        ("try", {"a": RunConfig(on_failure="wait")}, (1,), "would wait for a person"),
        ("try", {"a": RunConfig.model_validate({"verification": {"undecided": "ask"}})}, (1,), "undecided says so"),
    ],
)
def test_cells_that_cannot_be_are_refused(
    name: str, plans: Mapping[str, RunConfig], numbers: Sequence[int], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        runs_of_study(name, plans, numbers)


def test_gates_are_compared_though_they_are_settings_of_evaluation() -> None:
    """They decide who is promoted, and leave the held-out items and how they are scored as they are."""
    gates = ({}, {"margin": 0.05}, {"gate": "open", "calibration": 1}, {"benchmark_gate": True, "teacher_gate": "open"})
    plans = {f"gate-{n}": RunConfig.model_validate({"evaluation": gate}) for n, gate in enumerate(gates)}
    assert [run.config for run in runs_of_study("try", plans, (0,))] == list(plans.values())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"training.schedul": "joint"}, r"variant odd is not possible: There is no setting .*training\.schedul"),
        ({"training.schedule": "never"}, "variant odd is not possible: run.training.schedule = 'never'"),
        ({"curriculum.embedder": "none"}, "variant odd is not possible"),
        ({"home": "/tmp"}, "variant odd is not possible"),
    ],
)
def test_an_arm_that_cannot_be_is_named(settings: Mapping[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        variant_configs(PLAIN, {}, (Variant("fine"), Variant("odd", settings)), Path())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--seeds", ""), "There is no seed"),
        (("--only", "joint,both"), "no variant 'both'"),
        (("-s", "run.training.schedule=joint"), "run.training.schedule has no effect"),
        (("-s", "run.seed=4"), "Seeds are named by --seeds"),
        (("--name", "A B"), "cannot be named"),
        (("--variant", "odd:student.provider=x"), "not possible"),
    ],
)
def test_the_command_refuses_before_it_begins(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    file = Path(__file__).parents[1] / "studies" / "schedule.toml"
    said = call("experiment", "ablation", str(file), "--profile", "scripted", *words, home=tmp_path)
    assert said.code == 2 and told in said.err, said.err
    assert not (tmp_path / "grids").exists()


# --- arithmetic


def test_students_distribution_is_that_of_the_tables() -> None:
    for degrees, wanted in ((1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)):
        assert across_seeds.quantile(0.975, degrees) == pytest.approx(wanted, abs=5e-4)
        assert across_seeds.share_below(wanted, degrees) == pytest.approx(0.975, abs=1e-4)
        assert across_seeds.share_below(-wanted, degrees) == pytest.approx(0.025, abs=1e-4)
    found = across_seeds.tested([0.1, 0.2, 0.3])  # t = 0.2 / (0.1 / sqrt 3) = 3.4641 with 2 degrees
    assert found.p == pytest.approx(0.0742, abs=1e-4)
    assert (found.low, found.high) == (pytest.approx(-0.0484, abs=1e-4), pytest.approx(0.4484, abs=1e-4))
    assert (
        across_seeds.tested([0.0, 0.0]).p == 1.0
        and across_seeds.tested([0.1, 0.1]).p == across_seeds.tested([0.3 - 0.2, 0.1]).p == 0.5
    )
    for equal in ([0.4] * 2, [0.4] * 5, [0.4] * 6):  # the interval says what p says
        found = across_seeds.tested(equal)
        assert (
            found.p == 2.0 ** (1 - len(equal))
            and (found.low == 0.0) is (found.p >= 0.05)
            and found.high == pytest.approx(0.4)
        )
    assert across_seeds.tested([0.4]) == across_seeds.SeedTest(None, None, None, None)


def scored(
    outcomes: str, *, split: str = "test", iteration: int = 0, name: str = "", **more: Any
) -> CheckpointEvaluated:
    checkpoint = name or ("base" if iteration < 0 else f"student-{iteration}")
    right = outcomes.count("1")
    told = {"n": len(outcomes), "correct": right, "accuracy": right / len(outcomes), "lower95": 0, "upper95": 1}
    return CheckpointEvaluated.model_validate(
        {"evaluation": "e", "checkpoint": checkpoint, "iteration": iteration, "split": split, "outcomes": outcomes}
        | {"tool_use": 0, **told, **more}
    )


def cell(arm: str, seed: int, before: str, after: str) -> RunOutcome:
    scores = (
        scored(before, iteration=-1),
        scored("0" * len(before), iteration=-1, forced_tool=True),
        scored(before, split="validation", iteration=-1),
        scored(after, split="validation", iteration=0),
        scored(before, split="validation", iteration=2, name="refused"),
        scored(after, iteration=0),
    )
    return RunOutcome(arm, seed, f"g-{arm}-{seed}", "student-0", 3, scores, {"wall_s": 1.0})


def led(*outcomes: RunOutcome) -> list[dict[str, Any]]:
    """Variants less the first, on the test split."""
    return [row for row in comparison_rows(outcomes) if row["measure"] == "test" and row["against"] not in CONTROLS]


def test_a_claim_holds_over_items_and_over_seeds() -> None:
    """By hand: b solves 20, 24 and 22 of 40 tasks that a does not, and never the other way round."""
    a = [cell("a", seed, "0" * 60, "1" * 20 + "0" * 40) for seed in range(3)]
    b = [cell("b", seed, "0" * 60, "1" * (20 + more) + "0" * (40 - more)) for seed, more in enumerate((20, 24, 22))]
    (row,) = led(*a, *b)
    assert (row["arm"], row["against"]) == ("b", "a")
    assert row["by_seed"] == pytest.approx([20 / 60, 24 / 60, 22 / 60])
    assert row["mean"] == pytest.approx(22 / 60) and row["seeds"] == 3 and row["items"] == 60
    assert row["p_items"] == pytest.approx(2 * 0.5**24)  # 24 tasks gained by some seed, none lost
    t = (22 / 60) / ((2 / 60) / 3**0.5)  # standard deviation of 20, 24, 22 is 2
    assert row["p_seeds"] == pytest.approx(2 * (1 - across_seeds.share_below(t, 2)))
    assert row["p"] == row["adjusted_p"] == max(row["p_items"], row["p_seeds"]) and row["word"] == "improved"
    (other,) = led(*b, *a)
    assert other["word"] == "fell" and other["mean"] == pytest.approx(-row["mean"])
    mean = next(one for one in variant_rows(b) if (one["measure"], one["student"]) == ("test", "trained"))
    assert mean["mean"] == pytest.approx(42 / 60) and mean["low"] < 40 / 60 and mean["high"] > 44 / 60


def test_seeds_that_disagree_and_a_single_seed_claim_nothing() -> None:
    """Every task is gained by two seeds of three: sure over items, and not over seeds."""
    a = [cell("a", seed, "0" * 40, "0" * 40 if seed else "1" * 20 + "0" * 20) for seed in range(3)]
    b = [cell("b", seed, "0" * 40, "1" * 40 if seed else "0" * 40) for seed in range(3)]
    (row,) = led(*a, *b)
    assert row["p_items"] < 0.001 < 0.05 < row["p_seeds"] == row["p"] and row["word"] == "no difference shown"
    (alone,) = led(a[1], b[1])
    assert alone["word"] == ONE_SEED and alone["mean"] == 1.0 and alone["adjusted_p"] is None and alone["low"] is None


def test_an_arm_is_no_better_where_its_items_and_their_mean_disagree() -> None:
    """Eighty tasks a little worse and twenty solved at last, with every seed: the test sees a loss, the mean a gain."""
    before: dict[int, dict[int, float]] = {
        seed: {place: 0.5 * (place < 80) for place in range(100)} for seed in range(6)
    }
    after = {seed: {place: 0.49 if place < 80 else 1.0 for place in range(100)} for seed in range(6)}
    (row,) = claim_rows("test", [("b", "a", before, after)])
    assert row["low"] < 0 < row["mean"] and row["adjusted_p"] < 0.05 and row["word"] == "no difference shown"


def test_arms_are_held_against_their_controls_and_holm_runs_over_arms() -> None:
    held = [cell(arm, seed, "1000", "1100") for arm in "abc" for seed in range(3)]
    rows = comparison_rows(held)
    asked = [(row["measure"], row["arm"], row["against"]) for row in rows]
    assert [one for one in asked if one[0] == "test"] == [
        *(("test", arm, "a") for arm in "bc"),
        *(("test", arm, who) for who in ("untrained", "forced_tool") for arm in "abc"),
    ]
    assert ("validation", "a", "untrained") in asked and ("validation", "a", "forced_tool") not in asked
    means = {(row["against"], row["mean"]) for row in rows}
    assert means == {("a", 0.0), ("untrained", 0.25), ("forced_tool", 0.5)}
    assert all(row["adjusted_p"] >= row["p"] for row in rows)


def test_the_curve_stands_still_where_nobody_was_trained() -> None:
    held = [cell("a", seed, "1000", "1100") for seed in range(2)]
    points = {row["iteration"]: row["mean"] for row in curves(held)["a"]}
    assert points == {-1: 0.25, 0: 0.5, 1: 0.5, 2: 0.25}


sides = st.lists(st.lists(st.integers(0, 1), min_size=5, max_size=5), min_size=2, max_size=4)


@settings(max_examples=8)
@given(sides, st.randoms(use_true_random=False))
def test_turning_a_comparison_round_turns_its_sign(rows: list[list[int]], draw: random.Random) -> None:
    before = {seed: dict(enumerate(map(float, row))) for seed, row in enumerate(rows)}
    after = {seed: dict(enumerate(draw.sample(list(map(float, row)), 5))) for seed, row in enumerate(rows)}
    one, other = paired(before, after), paired(after, before)
    assert one and other
    assert one["mean"] == pytest.approx(-other["mean"]) and one["p"] == pytest.approx(other["p"])
    assert one["low"] <= one["mean"] <= one["high"] and 0 <= one["p"] <= 1
    assert one["mean"] == pytest.approx(fmean(fmean(after[s].values()) - fmean(before[s].values()) for s in before))
    assert paired(before, {}) is None and paired({0: {}}, {0: {}}) is None


def test_what_a_cell_came_to_is_read_back() -> None:
    one = cell("a", 3, "10", "11")
    assert from_json(json.loads(json.dumps(as_json(one)))) == one
    for wrong in ({}, {"scores": 3}, {"scores": [{}]}, {**as_json(one), "more": 1}):
        with pytest.raises(ValueError):
            from_json(wrong)


# --- a grid that is killed


SMALL = {
    **{"run.tasks": "6", "run.attempts": "3", "run.iterations": "1", "sandbox.workers": "1"},
    **{"run.evaluation.validation": "8", "run.evaluation.test": "8", "run.evaluation.forced_tool": "false"},
}
TWINS = AblationStudy(
    "Are <equal> variants equal?", (Variant("left"), Variant("right"), Variant("third")), profile="scripted"
)
"""Equal settings: the cell that was killed must come to what the other came to."""
ASKED = StudyRequest(TWINS, "twins", "scripted", (0,), SMALL)
SCRIPT = """
import asyncio, sys
from agent0.assembly.ablations.study import run_study
from tests.test_grids import ASKED, settings_at
asyncio.run(run_study(settings_at(sys.argv[1]), ASKED, lambda text: print(text, flush=True)))
"""


def settings_at(home: str | Path) -> Any:
    return load("scripted", {**SMALL, "home": str(home)}, {})


@pytest.mark.slow  # part of make crash
def test_a_killed_grid_goes_on_and_a_failed_cell_stops_nobody(tmp_path: Path) -> None:
    held, folder = settings_at(tmp_path), tmp_path / "grids" / "twins"
    for arm in ("left", "third"):
        (folder / f"{arm}-0").mkdir(parents=True)
    RunPlan(AblationRun("left", 0, "twins-left-0", held.run), "scripted", {"sandbox.workers": "1"}).write(
        folder / "left-0"
    )
    asyncio.run(execute_ablation_run(folder / "left-0", lambda text, left_s: None))
    (folder / "third-0" / "nats").write_text("in the way of the log")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any(line.startswith("right-0  untrained") for line in process.stdout), "it never came so far"
        process.send_signal(signal.SIGKILL)
    kept = (folder / "left-0" / "result.json").read_bytes()
    assert kept and not (folder / "right-0" / "result.json").exists()
    said: list[str] = []
    found = asyncio.run(run_study(held, ASKED, said.append))
    assert (folder / "left-0" / "result.json").read_bytes() == kept
    left, right = found["cells"]
    unlike = ("arm", "run", "wall_s")
    assert {k: v for k, v in left.items() if k not in unlike} == {k: v for k, v in right.items() if k not in unlike}
    outcomes = [json.loads((folder / f"{arm}-0" / "result.json").read_text())["scores"] for arm in ("left", "right")]
    assert [one["outcomes"] for one in outcomes[0]] == [one["outcomes"] for one in outcomes[1]]
    assert [one["cell"] for one in found["failed"]] == ["third-0"] and not found["complete"]
    assert "third-0 failed" in "".join(said) and "The rest goes on" in "".join(said)
    assert not any(Server(held.nats, folder / f"{arm}-0" / "nats").pid for arm in ("left", "right"))
    shown = ablation_page(found)
    assert "third-0 failed" in shown and "Are &lt;equal&gt; variants equal?" in shown and "http://" not in shown
    text = page(found, {}, str(tmp_path / "twins.md"))
    assert "Does third beat left? Unknown" in text and str(tmp_path) not in text
    refused(held)


def refused(held: Any) -> None:
    """Another question under the same name."""
    other = replace(ASKED, typed=SMALL | {"run.tasks": "7"})
    with pytest.raises(OperationError, match=r"left-0 of study twins has other settings.*other settings: tasks"):
        asyncio.run(run_study(load("scripted", {**other.typed, "home": str(held.home)}, {}), other))
