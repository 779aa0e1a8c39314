"""Searching for a recipe: which trials there are follows from what is searched, and the table is what the log says."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.assembly.ablations.hyperparameters import Search, search
from agent0.assembly.replay.retrain import Retrain, retrain
from agent0.errors import ConfigError, OperationError
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained
from agent0.experiments.hyperparameter_search import Trial, Tried, best_by_budget, outcome, space_of, trials
from agent0.report.answers import search_answer
from agent0.report.markdown.hyperparameters import page
from agent0.settings import Settings
from tests.pasts import events_of, keep, tell
from tests.terminal import agent0 as call

SPACE = space_of(["rank=4,16", "lr=1e-3,3e-3,1e-2", "run.training.student.alpha=8"])


def test_a_short_key_is_one_of_the_students_recipe() -> None:
    assert SPACE == {
        "training.student.rank": ("4", "16"),
        "training.student.lr": ("1e-3", "3e-3", "1e-2"),
        "training.student.alpha": ("8",),
    }
    assert space_of(["rank= 4 ,4,, 16"]) == {"training.student.rank": ("4", "16")}


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([], "nothing to search over"),
        (["rank"], "no values"),
        (["rank=, ,"], "no values"),
        (["rank=1", "training.student.rank=2"], "searched twice"),
        (["rang=1"], "'rang' cannot be searched over.*Known: objective, .*lr"),
        (["run.tasks=4,8"], "cannot be searched over"),
        (["training.teacher.lr=1"], "only its recipe"),
        (["enabled=true,false"], "cannot be searched over"),
        (["=4"], "cannot be searched over"),
    ],
)
def test_what_cannot_be_searched_is_refused(pairs: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        space_of(pairs)


def test_a_grid_has_every_combination_once() -> None:
    made = trials("s", SPACE)
    assert [trial.settings_text for trial in made] == [
        f"rank {rank}, lr {lr}, alpha 8" for rank in (4, 16) for lr in ("1e-3", "3e-3", "1e-2")
    ]
    assert len({trial.name for trial in made}) == 6


@given(st.integers(1, 9), st.integers(0, 1000))
def test_drawn_trials_are_of_the_grid_and_the_same_for_a_seed(number: int, seed: int) -> None:
    drawn, whole = trials("s", SPACE, number, seed), trials("s", SPACE)
    assert len(drawn) == min(number, 6) == len({trial.name for trial in drawn})
    assert all(trial in whole for trial in drawn)
    assert drawn == trials("s", SPACE, number, seed) == trials("s", SPACE, 5, seed)[:number] or number > 5


def test_a_trials_name_follows_from_its_settings_alone() -> None:
    wider = space_of(["lr=1e-3,3e-3,1e-2,1", "alpha=8", "rank=4,16,64"])
    named = {frozenset(trial.settings.items()): trial.name for trial in trials("s", wider)}
    assert all(named[frozenset(trial.settings.items())] == trial.name for trial in trials("s", SPACE))
    for name, space, told in (("a b", SPACE, "cannot be named"), ("s", space_of(many()), "1,000 are the most")):
        with pytest.raises(ConfigError, match=told):
            trials(name, space)
    assert len(trials("s", space_of(many()), 5)) == 5


def many() -> list[str]:
    return [f"{key}={','.join(map(str, range(1, 21)))}" for key in ("rank", "alpha", "epochs")]


def tried(name: str, *told: str, steps: int = 10) -> Tried:
    """One checkpoint a score."""
    scored, trained = [], []
    for iteration, outcomes in enumerate(told):
        checkpoint, right = f"student-{iteration}", outcomes.count("1")
        share = right / len(outcomes)
        base: dict[str, Any] = {"checkpoint": checkpoint, "iteration": iteration}
        counts = {"n": len(outcomes), "correct": right, "accuracy": share, "lower95": 0, "upper95": 1, "tool_use": 1}
        scored.append(
            CheckpointEvaluated.model_validate(
                {**base, **counts, "evaluation": "e", "split": "validation", "outcomes": outcomes}
            )
        )
        made = {"role": "student", "parent": "base", "adapter": None, "samples": 3, "metrics": {"steps": steps}}
        trained.append(CheckpointTrained.model_validate({**base, **made, "wall_s": 1.5}))
    return Tried(name, {"training.student.rank": name}, trained, scored)


def test_trials_are_sorted_by_validation_and_held_against_the_runs_own() -> None:
    own = tried("own", "0" * 40, "1" * 20 + "0" * 20)
    more, same, none = (tried(name, "1" * 5 + "0" * 35, text) for name, text in texts().items())
    rows = outcome(own, [same, none, more])
    assert [row["trial"] for row in rows] == ["more", "own", "same", "none"]
    found = {row["trial"]: row for row in rows}
    assert [found[name]["word"] for name in ("more", "own", "same", "none")] == [
        "improved", "", "no difference shown", "fell",
    ]  # fmt: skip
    assert found["more"]["difference"] == 0.5 and found["none"]["difference"] == -0.5
    assert found["own"]["difference"] is None and found["more"]["steps"] == 20 and found["more"]["training_s"] == 3.0
    assert all(row["low"] <= row["validation"] <= row["high"] for row in rows)


def test_an_interval_of_a_trial_agrees_with_its_p_after_correction() -> None:
    """Seven gained of forty: significant alone, not among five trials."""
    own, text = tried("own", "0" * 40), "1" * 7 + "0" * 33
    (alone,) = (row for row in outcome(own, [tried("a", text)]) if row["trial"] == "a")
    assert alone["word"] == "improved" and alone["difference_low"] > 0 and alone["adjusted_p"] < 0.05
    among = [row for row in outcome(own, [tried(name, text) for name in "abcde"]) if row["trial"] != "own"]
    assert all(row["word"] == "no difference shown" and row["adjusted_p"] > 0.05 for row in among)
    assert all(row["difference_low"] <= 0 <= row["difference_high"] for row in among)
    assert "not significant (adjusted p" in search_answer({"trials": among})[1]


def texts() -> Mapping[str, str]:
    return {"more": "1" * 40, "same": "1" * 20 + "0" * 20, "none": "0" * 40}


def test_the_best_for_a_budget_is_the_best_then_and_the_cheaper_of_equals() -> None:
    early, late = tried("early", "1100", "1100"), tried("late", "1000", "1110")
    dear = tried("dear", "1100", "1110", steps=99)
    rows = best_by_budget(tried("own", "0000"), [dear, late, early])
    assert [(row["trainings"], row["trial"], row["steps"]) for row in rows] == [(1, "early", 10), (2, "late", 20)]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_sandbox")
def test_a_search_over_the_log_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real trainings of a stored run; one that fails is named and tried again, what is finished never is."""
    held = keep(tmp_path, *tell())
    asked = Search("r1", "s", space_of(["rank=4,8"]))
    (first, second) = trials("s", asked.space)
    with monkeypatch.context() as patch:
        patch.setattr("agent0.assembly.ablations.hyperparameters.retrain", refusing(first.name))
        found = asyncio.run(search(held, asked))
    assert [one["trial"] for one in found["failed"]] == [first.name] and "rank 4): No." in page(found, "")
    assert {row["trial"] for row in found["trials"]} == {"r1", second.name}
    found = asyncio.run(search(held, asked))
    assert not found["failed"] and len(found["trials"]) == 3
    told = [events_of(held, f"exp-{trial.name}") for trial in (first, second)]
    assert all(
        {r.event.split for r in one if isinstance(r.event, CheckpointEvaluated)} == {"validation"} for one in told
    )
    said: list[str] = []
    assert asyncio.run(search(held, asked, said.append)) == found
    assert said == ["Search s: 2 trials on r1, 2 are finished."]
    text = page(found, "agent0 experiment hyperparameters LAST")
    assert text.startswith("<!-- Written by") and all(f"`{trial.name}`" in text for trial in (first, second))
    refused(tmp_path)


def refusing(name: str) -> Any:
    async def work(settings: Settings, asked: Retrain) -> Any:
        if asked.name == name:
            raise OperationError("No.")
        return await retrain(settings, asked)

    return work


def refused(home: Path) -> None:
    for words, told in (
        (("--search", "rank=none"), "rank = 'none'"),
        (("--search", "lr=0"), "lr = '0'"),
        ((), "nothing"),
    ):
        said = call("experiment", "hyperparameters", "r1", *words, home=home)
        assert said.code == 2 and told in said.err, said.err


def test_a_trial_is_told_in_words() -> None:
    assert Trial("s-1", {"training.student.lr": "0.1"}).settings_text == "lr 0.1"
