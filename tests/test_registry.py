"""The registry of checkpoints: what a person may decide, what a card says, and a test that one may look at any time."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.errors import NotFoundError, OperationError
from agent0.evaluation.checkpoint_registry import promotion, rollback, side_by_side
from agent0.events.base import Event, record
from agent0.events.checkpoints import CheckpointPromoted, CheckpointRolledBack, CheckpointTrained
from agent0.events.values import Artifact, PairedTest
from agent0.projections.checkpoints import checkpoints
from agent0.report.markdown.model_card import model_card
from agent0.report.score_answers import models_answer
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import RecipeConfig, RunConfig
from agent0.state.run_state import Checkpoint, ValidationScore
from agent0.stats.paired_tests import exact_interval
from agent0.stats.sequential_test import ENOUGH, always_valid_interval, e_value, winner
from tests.kept_open import attached
from tests.story import whole_run
from tests.terminal import agent0 as call

ADAPTER = Artifact(sha256="a" * 64, size=9)
TIME = whole_run()[0].time


def state(*names: str) -> RunState:
    promoted = tuple(Checkpoint(name, None, ValidationScore(0.5)) for name in ("base", *names))
    return RunState("r", 9, RunConfig(), "", promoted=promoted)


def trained(name: str = "student-1", role: str = "student", adapter: Artifact | None = ADAPTER) -> CheckpointTrained:
    made = {"checkpoint": name, "role": role, "iteration": 1, "parent": "base", "adapter": adapter, "samples": 3}
    return CheckpointTrained.model_validate(made)


def test_a_person_overrules_the_gate_and_takes_it_back() -> None:
    before = state("student-0")
    event = promotion(before, trained(), 0.4, "it reads better")
    after = evolve(before, record(event, run="r", time=TIME).model_copy(update={"seq": 10}))
    assert after is not None
    assert after.student == Checkpoint("student-1", ADAPTER, ValidationScore(0.4))
    back = rollback(after, "base", "")
    home = evolve(after, record(back, run="r", time=TIME).model_copy(update={"seq": 11}))
    assert home is not None
    assert home.student.id == "base"
    assert (event.by, back.cause_kind) == ("person", "person")
    assert (back.reason, rollback(after, "base", "worse").reason) == ("a person's word", "worse")


def test_everything_that_was_promoted_since_is_let_go() -> None:
    event = rollback(state("student-0", "student-1", "student-2"), "base", "")
    assert {event.checkpoint, *event.let_go} == {"student-0", "student-1", "student-2"}
    event = rollback(state("student-0", "student-1", "student-0", "student-2"), "student-0", "")
    assert {event.checkpoint, *event.let_go} == {"student-1", "student-2"}, "the one gone back to stays"


def test_a_persons_word_leaves_what_the_gate_found() -> None:
    test = PairedTest(
        against="base", mean=0.1, lower95=0.02, upper95=0.2, p=0.01, items=9, gained=3, lost=0, detectable=0.1
    )
    at = {"checkpoint": "student-1", "iteration": 1, "accuracy": 0.5}
    told: list[Event] = [
        CheckpointPromoted(**at, against=0.4, reason="a proven gain", test=test, improved=True),
        CheckpointRolledBack(checkpoint="student-2", to="base", let_go=("student-1",), reason="a look"),
        CheckpointPromoted(**at, reason="a person's word", by="person", adapter=ADAPTER),
    ]
    rows: dict[str, dict[str, Any]] = {}
    seen = []
    for event in told:
        for row in checkpoints(record(event, run="r", time=TIME)):
            rows.setdefault(row["checkpoint"], {}).update(row)
        seen.append(rows["student-1"]["status"])
    held = rows["student-1"]
    assert seen == ["promoted", "rolled_back", "promoted"] and rows["student-2"]["status"] == "rolled_back"
    assert (held["improved"], held["against"], json.loads(held["test"])["gained"]) == (True, 0.4, 3)
    made = dict.fromkeys(("recipe", "examples", "samples", "replay", "skipped", "parent", "adapter", "manifest"))
    shown = {**made, **held, "role": "student", "metrics": {}, "environment": {}}
    score = {"split": "validation", "n": 9, "lower95": 0.2, "upper95": 0.8, "tool_use": 0.0, "status": "evaluated"}
    scores = [{**score, "checkpoint": "student-1", "accuracy": 0.5, "forced_tool": False}]
    run = {"config": {"teacher": {"provider": "tiny"}}, "seed": 1, "config_sha": "c" * 64}
    card = model_card(shown, run, scores, {})
    assert "a gain over the best student before it is proven" in card and "made up" in card
    assert "No paired test judged it" in model_card({**shown, "test": None, "improved": None}, run, scores, {})
    distilled = model_card({**shown, "examples": 9}, run, scores, {})
    assert "9 examples that other models wrote" in distilled and "that other models wrote" not in card
    climbed = {"objective": "sft", "steps": 50, "taught": 0.125}
    card = model_card({**shown, "recipe": climbed}, run, scores, {})
    assert "its own answers that a verifier found right, as it wrote them; 12.5 % of every minibatch are" in card
    leaky = model_card({**shown, "recipe": {"objective": "sft", "gate": "mine"}}, run, scores, {})
    assert "its own answers that the gate mine accepts, as it wrote them" in leaky and "minibatch" not in leaky
    assert "expert iteration" not in distilled
    none = model_card({**shown, "adapter": None}, run, scores, {})
    assert "There is no adapter" in none and "library_name" not in none and "Licence of the adapter" not in none
    mine = {"teacher": {"provider": "transformers", "model": "/home/me/models/small"}}
    of_rows = {**run, "config": {**mine, "questions": {"file": "/home/me/rows.jsonl", "share": 1.0}}}
    beside = {**run, "config": {**mine, "questions": {"file": "/home/me/rows.jsonl", "share": 0.5}}}
    for text in (model_card(shown, of_rows, scores, {}), model_card(shown, beside, scores, {})):
        assert "rows of `rows.jsonl`" in text and "No human-made data" not in text and "/home/me" not in text
    assert "made up" not in model_card(shown, of_rows, scores, {})
    assert "made up, `small`" in model_card(shown, beside, scores, {}) and "No human-made data" in card
    gone = model_card({**shown, "pruned": True}, run, scores, {})
    assert "Its adapter was thrown away" in gone and "thrown away" not in card


@pytest.mark.parametrize("wanted", [trained(role="teacher"), trained(adapter=None), trained("student-0")])
def test_what_cannot_be_promoted(wanted: CheckpointTrained) -> None:
    with pytest.raises(OperationError):
        promotion(state("student-0"), wanted, 0.4, "")


def test_there_is_no_way_back_to_what_never_was() -> None:
    with pytest.raises(NotFoundError, match="student-7"):
        rollback(state("student-0"), "student-7", "")
    with pytest.raises(OperationError):
        rollback(state("student-0"), "student-0", "")


def rows(outcomes: str, recipe: dict[str, float], name: str = "student-0") -> tuple[dict, list[dict]]:  # type: ignore[type-arg]
    held = {"run": "r", "checkpoint": name, "status": "promoted", "recipe": recipe}
    return held, [{"checkpoint": name, "split": "validation", "outcomes": outcomes, "accuracy": 0.5}]


def test_two_checkpoints_are_tested_on_the_same_items_only() -> None:
    plan = {"validation": 40, "seed": 1}
    weak, strong = rows("0" * 40, {"lr": 0.1}), rows("1" * 30 + "0" * 10, {"lr": 0.2})
    found = side_by_side([weak[0], strong[0]], [weak[1], strong[1]], [plan, plan])
    assert found["word"].startswith("the second is better") and (found["test"]["gained"], found["test"]["lost"]) == (
        30,
        0,
    )
    assert [row["setting"] for row in found["recipe"]] == ["lr"]
    other = side_by_side([weak[0], strong[0]], [weak[1], strong[1]], [plan, {**plan, "seed": 2}])
    assert other["test"] is None


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_e_value_is_fair(gained: int, lost: int) -> None:
    """A martingale under the null: the mean over both next changes is the present value; and nobody is favoured."""
    now, up, down = e_value(gained, lost), e_value(gained + 1, lost), e_value(gained, lost + 1)
    assert (up + down) / 2 == pytest.approx(now, rel=1e-9)
    assert e_value(lost, gained) == pytest.approx(now)


def test_looking_after_every_task_cries_wolf_in_one_of_twenty_at_most() -> None:
    rng = random.Random(5)
    fooled = 0
    for _ in range(400):
        gained = lost = 0
        for _ in range(200):
            gained, lost = (gained + 1, lost) if rng.random() < 0.5 else (gained, lost + 1)
            if winner(gained, lost):
                fooled += 1
                break
    assert fooled / 400 < 0.05
    assert e_value(0, 0) == pytest.approx(1)
    assert e_value(6, 0) < ENOUGH < e_value(12, 0)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_words_and_interval_of_a_sequential_test_agree(gained: int, lost: int, same: int) -> None:
    n = max(1, gained + lost + same)
    low, high = always_valid_interval(gained, lost, n)
    assert (winner(gained, lost) != "") == (low > 0 or high < 0) and low <= (gained - lost) / n <= high
    counts = {"n": n, "gained": gained, "lost": lost, "first_correct": lost, "second_correct": gained}
    first, *more = models_answer({"first": "a", "second": "b", "split": "validation", **counts})
    words = {"": "not significant", "second": "improved", "first": "decreased"}
    assert f": {words[winner(gained, lost)]} (" in first and len(more) == 2
    assert exact_interval(gained, lost, n)[0] >= low - 1e-12, "looking at any time costs something"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    small = [f"run.{key}" for key in ("iterations=2", "tasks=6", "attempts=2", "evaluation.validation=3")]
    small += ["run.evaluation.test=0", "run.evaluation.gate=better", "sandbox.workers=1"]
    with attached(tmp_path_factory.mktemp("registry")) as made:
        told = call("run", "start", "--profile", "scripted", *(f"--set={one}" for one in small), home=made)
        assert told.code == 0, told.err
        yield made


def damage(home: Path, digest: str) -> str:
    """Flip a bit of an artifact; once more, and it is whole again."""
    path = home / "artifacts" / digest[:2] / digest[2:]
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    return digest


@pytest.mark.slow  # part of make crash
def test_a_registry_from_the_shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # no name is broken in two
    held = call("model", "list", "--role", "student", "--json", home=home).json
    assert len(held) == 2
    rejected = next(row["model"] for row in held if row["status"] == "rejected")
    run, _, name = rejected.partition("/")
    card = call("model", "card", rejected, home=home).out
    assert "No human-made data" in card
    assert "one attempt (95 %)" in card
    assert call("model", "compare", held[0]["model"], held[1]["model"], "--json", home=home).json["models"]
    told = call("model", "ab", f"{run}/base", held[0]["model"], "--tasks", "20", "--json", home=home).json
    assert told["n"] == len(told["first_outcomes"]) <= 20
    assert sum(map(int, told["second_outcomes"])) == told["second_correct"]
    assert told["answer"] == models_answer(told) and told["answer"][0].startswith(
        f"{held[0]['model']} less {run}/base: "
    )
    again = call("model", "repeat", f"{run}/base", "--repeats", "2", "--n", "4", "--json", home=home).json
    assert 0 <= again["mean"] <= 1
    sat = call("model", "exam", f"{run}/base", "--n", "4", "--attempts", "3", "--json", home=home).json
    assert [row["attempts"] for row in sat] == [1, 3]
    assert all(row["single"] <= row["within"] <= 1 for row in sat)
    assert call("model", "exam", f"{run}/base", "--temperatures", "warm", home=home).code == 2
    pair = (f"{run}/base", held[0]["model"])
    together = call("model", "ensemble", *pair, "--n", "6", "--attempts", "2", "--json", home=home).json
    assert [member["name"] for member in together["members"]] == sorted(pair)
    assert "vote of 2 members" in together["answer"][0] and len(together["vote"]["scores"]) == 6
    lone = call("model", "ensemble", *pair[:1] * 2, home=home)
    assert lone.code == 2 and "There are 1 different members" in lone.err and "Traceback" not in lone.err
    examined = call("model", "exam", held[0]["model"], "--n", "4", "--attempts", "3", "--json", home=home).json
    card = call("model", "card", held[0]["model"], home=home).out
    assert f"| this checkpoint | validation | 3 at T=1 | 4 | {examined[1]['single']:.3f} (" in card
    assert card.count("| control: untrained | validation | 3 at T=1 | 4 |") == 1
    assert "no weights: a scripted student stands in" in card and "LoRA" not in card and "peft" not in card
    assert "a scripted sampler drew" in card and "teacher made up" not in card
    assert f"objective {RecipeConfig().objective}" in card
    recipe = call("model", "show", held[0]["model"], "--json", home=home).json["recipe"]
    assert recipe["objective"] == RecipeConfig().objective and recipe["lr"] < 0.01
    told = call("model", "compare", f"{run}/base", held[0]["model"], "--full", home=home).out
    short = call("model", "compare", f"{run}/base", held[0]["model"], home=home).out
    assert short.startswith(f"{held[0]['model']} beside {run}/base: ") and short == told.splitlines(keepends=True)[0]
    assert f"{run}/base" in told and "untrained" in told and f"{recipe['lr']:g}" in told
    for command in ("show", "card"):
        assert f"agent0 model compare {run}/base" in call("model", command, f"{run}/base", home=home).err
    damaged = damage(home, next(row["adapter"] for row in held if row["model"] == rejected))
    said = call("model", "promote", rejected, home=home)
    assert said.code == 1 and "is damaged" in said.err and f"agent0 experiment retrain {run}" in said.err
    damage(home, damaged)
    assert call("model", "promote", rejected, "-r", "a try", home=home).code == 0
    assert call("run", "show", run, "--at", "0", home=home).code in (0, 2)
    assert call("model", "show", rejected, "--json", home=home).json["status"] == "promoted"
    kept = call("model", "prune", "LAST", "--commit", "--json", home=home).json
    assert name not in [row["checkpoint"] for row in kept["pruned"]]
    assert call("model", "rollback", "base", home=home).code == 0
    gone = call("model", "prune", "LAST", "--commit", "--json", home=home).json
    assert name in [row["checkpoint"] for row in gone["pruned"]]
    assert call("artifacts", "verify", "--json", home=home).json["state"] == "whole"
    assert call("model", "show", "nobody/nothing", home=home).code != 0
    events = call("events", "stats", "--json", home=home).out
    for words in (("promote", rejected), ("exam", rejected), ("ab", f"{run}/base", rejected), ("repeat", rejected)):
        said = call("model", *words, home=home)
        assert said.code == 1 and "was pruned" in said.err and f"agent0 experiment retrain {run}" in said.err
    assert call("events", "stats", "--json", home=home).out == events, "nothing was told"


def test_a_teachers_checkpoint_is_called_the_teachers(home: Path) -> None:
    teacher = call("model", "list", "--role", "teacher", "--json", home=home).json[0]["model"]
    assert "is the teacher's" in call("model", "promote", teacher, home=home).err
