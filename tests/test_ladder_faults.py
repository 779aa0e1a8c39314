"""What a climb does with bad input: told by name, and then it waits, steps back or fails; never a silent flat line."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.runtime.plugins import load_plugin_file
from agent0.assembly.validate.run_config import check_names
from agent0.errors import ConfigError
from agent0.events.alarms import AlarmRaised
from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.runs import RunFailed, RunPaused
from agent0.events.tasks import TaskRejected, TaskRequested
from agent0.infra.models.sampler import Sampler
from agent0.infra.models.scripted import END, encode
from agent0.ports.models import GenerateRequest, Generation
from agent0.run.canaries import canaries, canary_measures
from agent0.settings import RunConfig
from agent0.state.run_state import RunState
from agent0.tasks.families import Family, Params, families
from agent0.tasks.splits import split_of_task, task_of
from tests.play import play
from tests.plugin_files import forgotten
from tests.test_climb import CLIMB, ByRole, little
from tests.world import ports, started

REVERSAL = families()["reversal"]


class Reverser:
    """A student that reverses every string up to ``longest`` digits."""

    name = "reverser"

    def __init__(self, longest: int) -> None:
        self._longest = longest

    async def generate(self, request: GenerateRequest) -> Generation:
        said = re.findall(r"[0-9]+", request.turns[-1].content)[-1]
        text = f"\\boxed{{{said[::-1] if len(said) <= self._longest else '0'}}}"
        ids = (*encode(text), END)
        return Generation(text, ids, tuple(-0.5 for _ in ids), encode(said), model=self.name)

    async def close(self) -> None:
        pass


class Writer(Reverser):
    """A teacher that writes ``text`` whatever it is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def generate(self, request: GenerateRequest) -> Generation:
        return Generation(self._text, model="writer")


async def told(config: RunConfig, student: Any, teacher: Any = None) -> list[Recorded]:
    return await play(started(config), {**ports(), "models": ByRole(student, teacher or Sampler())})


def of(kind: type, events: list[Recorded]) -> list[Any]:
    return [event.event for event in events if isinstance(event.event, kind)]


def alarms(events: list[Recorded]) -> set[str]:
    return {one.alarm for one in of(AlarmRaised, events)}


# --- a verifier that disagrees with itself


def flips(seed: int = 0) -> Family:
    rng = random.Random(seed)
    return replace(REVERSAL, check=lambda _p, _a: rng.choice(("", "no")))


def lax(params: Params, answer: str) -> str:
    return "" if len(answer) == len(params["digits"]) else "its length"


def begins(params: Params, answer: str) -> str:
    return "" if answer.startswith(params["digits"][::-1]) else "how it begins"


def ends(params: Params, answer: str) -> str:
    return "" if answer and params["digits"][::-1].startswith(answer) else "how it ends"


@pytest.mark.parametrize("check", [flips().check, lax, lambda _p, _a: "no", begins, ends])
def test_a_verifier_that_cannot_be_relied_on_is_refused_before_a_run(
    check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "agent0.assembly.validate.curriculum.requested_families"
    monkeypatch.setattr(name, lambda *_, **__: {"reversal": replace(REVERSAL, check=check)})
    with pytest.raises(ConfigError, match="verifier of reversal cannot be relied on"):
        check_names(CLIMB)


async def test_one_that_fails_under_way_is_an_alarm_and_the_run_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent0.run.canaries.requested_families", lambda *_: {"reversal": flips()})
    events = await told(little(), Reverser(7))
    assert "guard-verifier" in alarms(events)
    assert of(RunPaused, events)[0].reason.startswith("guard verifier: the ladder's verifier is wrong")


@pytest.mark.parametrize("name", [name for name, entry in families().items() if entry.ladder])
def test_canaries_of_every_ladder_are_judged_rightly_and_are_half_wrong(name: str) -> None:
    found = list(canaries([families()[name]], 6, 50, "k"))
    assert Counter(one.right for one in found) == {True: 50, False: 50}
    assert not any(one.fault for one in found)
    assert found == list(canaries([families()[name]], 6, 50, "k")) != list(canaries([families()[name]], 6, 50, "l"))


# --- gates


def gate_of(**recipe: Any) -> dict[str, float]:
    plan = CLIMB.training.model_copy(update={"student": CLIMB.training.student.model_copy(update=recipe)})
    return canary_measures(RunState("r", 1, CLIMB.model_copy(update={"training": plan}), "", iteration=0))


@pytest.fixture
def controls() -> Iterator[None]:
    """The gates that only studies use."""
    with forgotten():
        load_plugin_file(Path(__file__).parents[1] / "studies" / "controls.py")
        yield


@pytest.mark.usefixtures("controls")
def test_what_a_gate_accepts_shows_on_answers_that_are_known() -> None:
    assert gate_of() == {"verifier_faults": 0.0, "gate_right": 1.0, "gate_wrong": 0.0}
    assert 0.03 <= gate_of(gate="leak-10")["gate_wrong"] < 0.2, "enough for the alarm"
    assert 0.2 < gate_of(gate="leak-30")["gate_wrong"] < 0.4 and gate_of(gate="leak-all")["gate_wrong"] == 1.0
    assert 0.3 < gate_of(gate="coin")["gate_wrong"] < 0.7 and gate_of(gate="coin")["gate_right"] < 0.7
    assert gate_of(gate="permuted")["gate_wrong"] > 0.3
    assert gate_of(gate="majority")["gate_wrong"] == 1.0, "one answer is a majority"


@pytest.mark.usefixtures("controls")
async def test_a_leak_is_an_alarm_before_anything_is_trained_on_it() -> None:
    leaky = little(training={"student": {"objective": "sft", "steps": 2, "minibatch": 4, "gate": "leak-30"}})
    events = await told(leaky, Reverser(7))
    at = next(n for n, one in enumerate(events) if isinstance(one.event, AlarmRaised))
    assert events[at].event.alarm == "guard-gate"  # type: ignore[attr-defined]
    assert events[at].event.facts["iteration"] == 0  # type: ignore[attr-defined]
    sound = {f"guard-{name}" for name in ("gate", "verifier", "supply", "headroom")}
    assert not alarms(await told(little(), Reverser(7))) & sound


# --- nothing to climb, nothing to attempt, nothing accepted


async def test_a_base_that_solves_the_ladder_is_told_and_the_run_waits() -> None:
    events = await told(little(), Reverser(99))
    assert "guard-headroom" in alarms(events)
    (paused,) = of(RunPaused, events)
    assert "the base already solves the ladder: 100% of validation" in paused.reason
    assert "guard-headroom" not in alarms(await told(little(), Reverser(7)))


@pytest.mark.parametrize("text", ["", "what is it?", "Reverse 12x4."])
async def test_a_teacher_whose_text_is_no_task_makes_the_run_wait(text: str) -> None:
    events = await told(little(), Reverser(7), Writer(text))
    assert {one.reason for one in of(TaskRejected, events)} == {"malformed"}
    assert "guard-supply" in alarms(events)
    assert of(RunPaused, events)[0].reason.startswith("guard supply: none of the teacher's 6 tasks was accepted")


async def test_a_task_whose_answer_fits_in_no_turn_is_refused_by_name() -> None:
    digits = next(text for n in range(99) if _is_train(text := f"{n:02}" + "7" * 98))
    plan = little(student={"tools": [], "max_calls": 0, "max_tokens": 64})
    events = await told(plan, Reverser(7), Writer(f"Reverse {digits}."))
    refused = of(TaskRejected, events)
    assert {one.reason for one in refused} == {"unsolvable"}
    assert "run.student.max_tokens is 64" in refused[0].detail


def _is_train(digits: str) -> bool:
    task = task_of(REVERSAL, f"Reverse {digits}.")
    return task is not None and split_of_task(task) == "train"


async def test_an_iteration_without_an_accepted_answer_is_named_and_the_next_one_steps_back() -> None:
    """It fails at the levels that its base was said to have mastered; those below are asked for next, and solved."""
    events = await told(little(), Reverser(4))
    asked = [{e.level for e in of(TaskRequested, events) if e.iteration == n} for n in range(3)]
    assert min(asked[0]) == 5 and 4 in asked[1], asked
    trained = of(CheckpointTrained, events)
    assert [one.adapter is None for one in trained] == [True, False, False]
    assert "no-signal-student-0" in alarms(events) and not of(RunFailed, events)
