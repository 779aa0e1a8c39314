"""Variants that differ in their training alone share what their untrained student did."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.ablations.ablation_run import RunPlan
from agent0.assembly.ablations.study import plan_study, run_study
from agent0.assembly.ablations.study_request import StudyRequest
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.tasks import TaskAttempted
from agent0.experiments.ablation_study import AblationStudy, Variant
from tests.pasts import events_of

SIZE = {
    **{"run.tasks": "4", "run.attempts": "2", "run.iterations": "2", "sandbox.workers": "1"},
    **{"run.evaluation.validation": "4", "run.evaluation.test": "4", "run.evaluation.forced_tool": "false"},
}
VARIANTS = (Variant("plain"), Variant("twin"), Variant("slow", {"training.student.lr": "0.0001"}))
STUDY = AblationStudy("Does a rate matter?", VARIANTS, profile="scripted", shared_start=True)
REQUEST = StudyRequest(STUDY, "rates", "scripted", (0,), SIZE)


def test_what_the_untrained_student_did_is_done_once_a_seed(tmp_path: Path) -> None:
    settings = load("scripted", {**SIZE, "home": str(tmp_path)}, {})
    results = asyncio.run(run_study(settings, REQUEST))
    assert results["complete"] and [cell["arm"] for cell in results["cells"]] == ["plain", "twin", "slow"]
    folder = tmp_path / "grids" / "rates"
    outcomes = [json.loads((folder / f"{name}-0" / "result.json").read_text()) for name in ("plain", "twin", "slow")]
    untrained = [[score for score in one["scores"] if score["iteration"] < 0] for one in outcomes]
    assert untrained[0] and untrained[0] == untrained[1] == untrained[2]
    attempts = {name: one["cost"]["attempts"] for name, one in zip(("plain", "twin", "slow"), outcomes, strict=True)}
    assert attempts["plain"] == attempts["twin"] == attempts["slow"]
    plan = RunPlan.read(folder / "twin-0")
    twin = plan.settings_in(folder / "twin-0")
    assert twin.home == folder / "plain-0"
    own = [stored.event for stored in events_of(twin, plan.ablation.run)]
    assert 0 < sum(isinstance(event, TaskAttempted) for event in own) < attempts["twin"]
    assert sum(isinstance(event, CheckpointTrained) and event.role == "student" for event in own) == 2
    plain, same = ([score["outcomes"] for score in one["scores"]] for one in outcomes[:2])
    assert plain == same, "an equal variant comes to the same"


def test_variants_that_differ_in_more_are_refused(tmp_path: Path) -> None:
    other = replace(STUDY, variants=(*VARIANTS, Variant("hot", {"student.temperature": "1.2"})))
    with pytest.raises(ConfigError, match=r"hot cannot begin where plain does.*run\.student\.temperature"):
        asyncio.run(plan_study(load("scripted", {"home": str(tmp_path)}, {}), replace(REQUEST, study=other)))
