"""Study files: those of the repository can be executed as they are, and what is no study is refused by name."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.ablations.study import variant_configs
from agent0.assembly.ablations.study_request import read_study
from agent0.assembly.runtime.plugins import load_plugin_file
from agent0.config.catalogue import NOTE, store_of
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.events.values import Trajectory
from agent0.experiments.ablation_runs import describe_compute, runs_of_study
from agent0.experiments.ablation_study import AblationStudy, Variant, study_of_file
from agent0.training.gate import gated, permuted
from agent0.training.scored_trajectory import ScoredTrajectory
from tests.plugin_files import forgotten

CONTROLS = Path(__file__).parents[1] / "studies" / "controls.py"
FILES = sorted((Path(__file__).parents[1] / "studies").glob("*.toml"))
WHOLE = """
question = "Does it?"
profile = "tiny"
seeds = [3, 4]
own_bases = true
plugins = ["mine.py"]
run.tasks = 7

[variants.base]

[variants.mine]
about = "with my reward"
run.rewards.weights.brevity = 0.5
run.curriculum.levels = [1, 2]
run.curriculum.kind = "uniform"
"""


def test_a_file_says_what_a_study_is() -> None:
    settings = {"rewards.weights.brevity": "0.5", "curriculum.levels": "[1, 2]", "curriculum.kind": "uniform"}
    assert study_of_file(WHOLE, "x.toml") == AblationStudy(
        "Does it?", (Variant("base"), Variant("mine", settings, "with my reward")), "tiny", (3, 4), {"tasks": "7"},
        own_bases=True, plugins=("mine.py",),
    )  # fmt: skip
    plain = study_of_file("[variants.a]\n[variants.b]", "x.toml")
    assert (plain.profile, plain.seeds, plain.own_bases) == ("tiny", (0, 1, 2, 3, 4), False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a =", "x.toml is no TOML"),
        ("arms = 3", "a study has no 'arms'.*It has question"),
        ("question = 3", "question is not a text.*'3'"),
        ("seeds = [-1]", "whole numbers from 0"),
        ("seeds = [true]", "whole numbers from 0"),
        ("own_bases = 1", "own_bases is not a true or false"),
        ("[variants]\na = 3", "variant a is not one"),
        ("[variants.a]\ntasks = 3", "settings that begin with `run.`"),
        ("[variants.a]\nabout = 3", "about is not a text"),
        ("[variants.A]", "variants of a study are not named.*A"),
        ("", "variants of a study are not named.*none"),
    ],
)
def test_what_is_no_study_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        study_of_file(text, "x.toml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name in ("none.toml", "."):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_study(tmp_path / name)
    (tmp_path / "x.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_study(tmp_path / "x.toml")
    (tmp_path / "x.toml").write_text(WHOLE)
    assert read_study(tmp_path / "x.toml").plugins == (str(tmp_path / "mine.py"),)


@pytest.fixture
def controls() -> Iterator[None]:
    """The gates that only studies use."""
    with forgotten():
        load_plugin_file(CONTROLS)
        yield


@pytest.mark.usefixtures("controls")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_study_can_be_executed(file: Path, tmp_path: Path) -> None:
    """Its settings exist, its variants differ and ask for equal attempts, its runs have names."""
    study = read_study(file)
    assert set(study.plugins) <= {str(CONTROLS)}
    plans = variant_configs(load(study.profile, env={}).run, study.settings, study.variants, tmp_path)
    searches = {variant.name: variant.search for variant in study.variants}
    assert len({searches[name] + plan.model_dump_json() for name, plan in plans.items()}) == len(study.variants)
    assert study.question
    assert describe_compute(plans).startswith("Asked of every run alike")
    assert len(runs_of_study(file.stem, plans, study.seeds)) == len(plans) * len(study.seeds)


def test_a_variant_names_a_stored_model_and_the_study_its_prompts(tmp_path: Path) -> None:
    name = "qwen2.5-coder-1.5b-instruct"
    folder = store_of(tmp_path) / name
    folder.mkdir(parents=True)
    (folder / "a.gguf").write_bytes(b"GGUF")
    (folder / NOTE).write_text(json.dumps({"file": "a.gguf", "bytes": 4, "sha256": "", "licence": "", "source": ""}))
    variants = [Variant("plain"), Variant("large", {"teacher.model": name})]
    plans = variant_configs(load("qwen", env={}).run, {"run.teacher.prompts": "programs"}, variants, tmp_path)
    assert (plans["large"].teacher.model, plans["large"].teacher.prompts) == (str(folder / "a.gguf"), "programs")
    assert plans["large"].student == plans["plain"].student


def answers(seed: int = 0) -> list[ScoredTrajectory]:
    rng = random.Random(seed)
    return [
        ScoredTrajectory(
            f"e{n}", f"t{n}", "base",
            Trajectory(token_ids=(1, 2, 3), mask=(0, 1, 1), logprobs=(-9.0, -rng.random(), -0.5)), rng.random(),
            0.5 if n % 3 else None, rng.random() < 0.3, n % 5 > 0, iteration=n % 2,
        )
        for n in range(600)
    ]  # fmt: skip


def accepted(judged: list[ScoredTrajectory]) -> set[str]:
    return {one.event_id for one in judged if one.success}


@pytest.mark.usefixtures("controls")
def test_a_leak_lets_that_share_of_wrong_answers_in() -> None:
    right = accepted(answers())
    for name, share in (("leak-10", 0.1), ("leak-30", 0.3), ("leak-all", 1.0)):
        judged = gated(answers(), name, 4)
        assert right <= accepted(judged) and judged == gated(answers()[::-1], name, 4)[::-1]
        assert (len(accepted(judged)) - len(right)) / (600 - len(right)) == pytest.approx(share, abs=0.06)
    assert 0.4 < len(accepted(gated(answers(), "coin", 4))) / 600 < 0.6


@pytest.mark.usefixtures("controls")
def test_form_alone_wrong_answers_and_permuted_verdicts_are_about_answers() -> None:
    given = answers()
    ids = {scored.event_id for scored in given if scored.answered}
    assert accepted(gated(given, "answered", 4)) == ids
    assert accepted(gated(given, "wrong", 4)) == ids - accepted(given)
    for name in ("answered", "wrong"):
        assert all(scored.reward == float(scored.success) for scored in gated(given, name, 4))
    dealt = gated(given, "permuted-answers", 4)
    assert len(accepted(dealt) & ids) == len(accepted(given) & ids) and accepted(dealt) != accepted(given)
    assert [scored for scored in dealt if not scored.answered] == [scored for scored in given if not scored.answered]


@pytest.mark.usefixtures("controls")
def test_confidence_accepts_as_many_as_were_verified_the_surest_first() -> None:
    judged = gated(answers(), "confident", 4)
    for iteration in (0, 1):
        before, after = ([one for one in them if one.iteration == iteration] for them in (answers(), judged))
        assert len(accepted(before)) == len(accepted(after)) and accepted(before) != accepted(after)
        sure = [(one.success, sum(one.trajectory.logprobs[1:])) for one in after if one.trajectory]
        assert min(log for success, log in sure if success) >= max(log for success, log in sure if not success)


@pytest.mark.usefixtures("controls")
def test_rewards_permuted_over_attempted_tasks_leave_penalties_where_they_are() -> None:
    held = answers()
    judged = gated(held, "permuted-tasks", 3)
    untried = [n for n, one in enumerate(held) if one.solve_rate is None]
    assert [judged[n] for n in untried] == [held[n] for n in untried]
    tried = [one for one in held if one.solve_rate is not None]
    assert [one for one in judged if one.solve_rate is not None] == permuted(tried, 3) != tried
    assert [replace(one, reward=None, success=False) for one in judged] == [
        replace(one, reward=None, success=False) for one in held
    ]
