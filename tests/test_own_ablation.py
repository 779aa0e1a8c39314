"""Variants of a user's own: as typed, each compared with the first, their cost told before anything is begun."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.ablations.ablation_run import RESULT, RunPlan
from agent0.assembly.ablations.study import plan_study
from agent0.assembly.ablations.study_request import request_of
from agent0.assembly.api.studies import Study
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.experiments.ablation_results import as_json, comparison_rows, variant_rows
from agent0.experiments.ablation_runs import AblationRun, study_of, variant_of
from agent0.experiments.ablation_study import Variant, study_of_file
from agent0.infra.log.server_folder import write
from agent0.report.html.benchmark_page import ablation_page
from agent0.report.markdown.ablation import answers, page
from agent0.settings import RunConfig
from tests.terminal import agent0 as call
from tests.test_grids import cell

BASE, MINE = variant_of("base:"), variant_of("mine:run.rewards.weights.token_cost=0.2")
GIVEN = {"plugins": '["/somewhere/my_reward.py"]', "run.tasks": "3"}
COMMAND = request_of(study_of([BASE, MINE]), GIVEN, variants=[BASE, MINE], seeds="0,1,2").command


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("a:", {}),
        ("a:run.tasks=3,run.attempts=2", {"run.tasks": "3", "run.attempts": "2"}),
        ("a:curriculum.families=lists,modular,tasks=3", {"curriculum.families": "lists,modular", "tasks": "3"}),
        ("a:student.model=x=y", {"student.model": "x=y"}),
    ],
)
def test_a_variant_is_read_as_it_is_typed(text: str, settings: dict[str, str]) -> None:
    assert variant_of(text) == Variant("a", settings)


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["mine"], "no variant.*colon"),
        (["Mine:"], "no variant.*small letters"),
        (["mine:tasks"], "has no '='"),
        (["mine:tasks=1"], "Two variants are needed.*Given: mine"),
        ([], "Two variants are needed.*Given: none"),
        (["mine:", "mine:tasks=1"], "Two variants.*mine, mine"),
        (["base:", "mine:"], "Variants base and mine have the same settings"),
    ],
)
def test_what_cannot_be_compared_is_refused(texts: list[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why):
        study_of([variant_of(one) for one in texts])
    words = [word for one in texts for word in ("--variant", one)]
    assert call("experiment", "ablation", *words, home=tmp_path).code == 2 and not [*tmp_path.iterdir()]


def test_variants_are_added_to_those_of_a_file() -> None:
    study = study_of_file('profile = "climb"\n[variants.ours]\n[variants.odd]\nrun.tasks = 3', "x.toml")
    assert study_of([MINE], study) == replace(study, variants=(*study.variants, MINE))


def results(*others: str) -> dict[str, Any]:
    """What a study came to: every other variant solves 20 to 24 of 60 tasks that the baseline does not."""
    held = [cell("base", seed, "0" * 60, "1" * 20 + "0" * 40) for seed in range(3)]
    held += [cell(name, s, "0" * 60, "1" * (40 + s) + "0" * (20 - s)) for name in others for s in range(3)]
    variants = {"base": {}} | {name: dict(MINE.settings) for name in others}
    return {
        "grid": "g", "question": "?", "command": list(COMMAND), "profile": "tiny", "seeds": [0, 1, 2],
        "own_bases": False, "given": {}, "effort": "", "about": dict.fromkeys(variants, ""), "settings": variants,
        "folder": "f", "complete": True, "failed": [], "measures": ["test"], "arms": variant_rows(held),
        "against": comparison_rows(held), "curves": {}, "cost": [], "cells": [],
    }  # fmt: skip


def test_each_variant_is_compared_with_the_first_and_answered_in_a_line() -> None:
    found = results("mine", "other")
    pairs = [
        (row["arm"], row["against"], row["mean"] > 0)
        for row in found["against"]
        if (row["measure"], row["against"]) == ("test", "base")
    ]
    assert pairs == [("mine", "base", True), ("other", "base", True)]
    (first, second) = answers(found)
    assert first.startswith("**Does mine beat base? Yes.** mine less base, in points: test accuracy +35.0")
    assert second.startswith("**Does other beat base? Yes.**")


def test_its_pages_have_the_answer_and_the_command_that_writes_them() -> None:
    found = results("mine")
    text = page(found, {}, "mine.md")
    assert "\n- **Does mine beat base? Yes.**" in text and "Each variant less base" in text
    command = (
        "agent0 experiment ablation --variant base: --variant mine:run.rewards.weights.token_cost=0.2 --seeds 0,1,2 "
        "--plugin my_reward.py --set run.tasks=3 --jobs 2 --write mine.md"
    )
    assert command in text and "somewhere" not in text
    assert "Does mine beat base? Yes." in ablation_page(found)


def test_in_python_a_study_answers_in_a_line_and_shows_its_means(tmp_path: Path) -> None:
    study = Study(results("mine"))
    assert repr(study).startswith("Does mine beat base? Yes. mine less base") and "\n" not in repr(study)
    assert {row["arm"] for row in study.means()} == {"base", "mine"} and study.differences()[0]["arm"] == "mine"
    assert "Does mine beat base? Yes." in study.page(tmp_path / "page.html").read_text()
    assert "<table>" in study._repr_html_() and study.complete


async def test_the_cost_is_told_from_finished_runs_before_anything_begins(tmp_path: Path) -> None:
    held = load("scripted", {"home": str(tmp_path)}, {})
    request = request_of(study_of([BASE, MINE]), {}, profile="scripted", seeds="0-4", jobs=2)
    assert request.name == "base-mine-scripted"
    plan = await plan_study(held, request)
    asked = held.run.iterations * held.run.tasks * held.run.attempts
    assert (plan["runs"], plan["done"], plan["attempts"], plan["seconds"]) == (10, 0, 10 * asked, None)
    assert "shows with the first" in plan["cost"] and not [*tmp_path.iterdir()]
    _finish(tmp_path, "other", held.run, asked * 0.5)
    plan = await plan_study(held, request)
    assert plan["seconds"] == pytest.approx(10 * asked * 0.5 / 2) and "10 runs, 2 at a time" in plan["cost"]
    _finish(tmp_path, "base-mine-scripted", held.run, asked * 0.5)
    plan = await plan_study(held, request)
    assert (plan["done"], plan["attempts"]) == (1, 9 * asked)


def _finish(home: Path, study: str, config: RunConfig, wall_s: float) -> None:
    """As if the run of the baseline with seed 0 had been executed there."""
    folder = home / "grids" / study / "base-0"
    folder.mkdir(parents=True)
    RunPlan(AblationRun("base", 0, f"{study}-base-0", config), "scripted", {}).write(folder)
    done = replace(cell("base", 0, "0", "1"), cost={"wall_s": wall_s})
    write(folder / RESULT, json.dumps(as_json(done)))
