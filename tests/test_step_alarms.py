"""Each thing that goes wrong in a training's steps raises an alarm of its own, and a sound training raises none."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from agent0.events.alarms import AlarmRaised
from agent0.events.base import Recorded, record
from agent0.events.checkpoints import TrainingMeasured
from agent0.events.values import Role, TrainingStep
from agent0.handlers import handlers
from agent0.report.alarm_groups import kind_of
from agent0.run.lifecycle import RunState
from agent0.settings import RecipeConfig, RunConfig
from agent0.training.step_alarms import FEWEST_STEPS, FURTHEST_KL, STEEP, StepHistory, step_alarms
from tests.world import NOON

GOOD: dict[str, Any] = {
    "kind": "policy", "loss": -0.1, "gradient_norm": 0.2, "learning_rate": 1e-3, "tokens": 100, "entropy_estimate": 0.5,
    "parent_kl": 0.01, "clip_below": 0.1, "clip_above": 0.1, "mismatch": 0.001,
}  # fmt: skip


def step(**change: Any) -> TrainingStep:
    return TrainingStep(**GOOD | change)


def told(steps: Sequence[TrainingStep], role: Role = "student", number: int = 3, first: int = 1) -> TrainingMeasured:
    return TrainingMeasured(checkpoint=f"{role}-{number}", role=role, iteration=number, first=first, steps=tuple(steps))


def alarms(steps: Sequence[TrainingStep], before: Sequence[TrainingStep] = (), **recipe: Any) -> list[AlarmRaised]:
    return [*step_alarms(told(steps), StepHistory(steps, before, RecipeConfig(**recipe)))]


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"gradient_norm": 2.1}, "gradient", "norm was 2.1, beyond 2 (ten times the median"),
        ({"loss": 10.0}, "loss", "loss was 10, beyond 2.9 (three above the median"),
        ({"entropy_estimate": 0.0}, "entropy", "entropy was 0 nats a token, below 0.05"),
        ({"learning_rate": 50.0}, "rate", "learning rate was 50, beyond 0.1"),
        ({"learning_rate": float("nan")}, "rate", "learning rate was inf, beyond 0.1"),
        ({"parent_kl": 0.8}, "parent-kl", "0.8 nats a token apart, beyond 0.5"),
        ({"clip_below": 0.4, "clip_above": 0.2}, "clipping", "60% of the tokens were clipped"),
        ({"mismatch": 0.4}, "mismatch", "differed by 0.4 nats a token, beyond 0.3"),
    ],
)
def test_each_thing_that_goes_wrong_has_an_alarm(change: dict[str, float], kind: str, words: str) -> None:
    sound = [step() for _ in range(FEWEST_STEPS)]
    (alarm,) = alarms([*sound, step(**change), step()])
    assert (alarm.alarm, alarm.severity) == (f"{kind}-student-3", "warning")
    assert kind_of(alarm.alarm, alarm.message)[0] == kind
    assert alarm.message.startswith(f"student-3, step {FEWEST_STEPS + 1}: ") and words in alarm.message
    assert alarm.facts["steps"] == 1 and (alarm.facts["value"] > alarm.facts["limit"]) == (kind != "entropy")
    assert alarms([*sound, step(), step()]) == []


def test_the_worst_of_several_steps_is_told_with_their_number() -> None:
    (alarm,) = alarms([step(parent_kl=kl) for kl in (0.1, 0.6, 0.9, 0.7)])
    assert alarm.message.startswith("student-3, step 3 (so were 3 of 4 steps): ")
    assert alarm.facts == {"step": 3, "value": 0.9, "limit": FURTHEST_KL, "steps": 3}


def test_a_norm_is_compared_with_those_of_its_kind_once_there_are_enough() -> None:
    steep = step(gradient_norm=0.2 * STEEP + 0.1)
    few = [step() for _ in range(FEWEST_STEPS - 1)]
    assert alarms([steep], before=few) == [] and len(alarms([steep], before=[*few, step()])) == 1
    replayed = [step(kind="replay") for _ in range(FEWEST_STEPS)]
    assert alarms([steep], before=replayed) == [], "replayed successes have gradients of their own size"
    assert alarms([step()], before=[*few, step(), steep]) == [], "an earlier training had its alarm"
    small = [step(gradient_norm=0.001) for _ in range(FEWEST_STEPS)]
    assert alarms([step(gradient_norm=0.9)], before=small) == [], "it is not even clipped"


def test_a_first_training_that_breaks_needs_no_long_past() -> None:
    likelihood = {"entropy_estimate": None, "parent_kl": None}
    fine = [step(**likelihood, loss=loss) for loss in (0.3, 0.17, 0.2)]
    assert [one.alarm for one in alarms([*fine, step(**likelihood, loss=10.0)])] == ["loss-student-3"]
    assert [one.alarm for one in alarms([step(gradient_norm=364.0)])] == ["gradient-student-3"]
    assert alarms([*fine, step(kind="replay", loss=2.0)]) == [], "another kind of loss"
    assert [one.alarm for one in alarms([step(loss=50.0)], [step(loss=0.2)] * 100)] == ["loss-student-3"]
    (fallen,) = alarms([step(entropy_estimate=nats) for nats in (2.0, 1.9, 0.1, 0.0)])
    assert fallen.alarm == "entropy-student-3" and fallen.facts["value"] == 0.0 and fallen.facts["steps"] == 2


def test_what_a_training_began_with_may_be_in_an_earlier_part_and_not_in_an_earlier_training() -> None:
    sure, unsure = step(entropy_estimate=0.04), step(entropy_estimate=2.0)
    recipe = RecipeConfig()
    assert not [*step_alarms(told([sure]), StepHistory([sure], [unsure] * 3, recipe))]
    assert [*step_alarms(told([sure]), StepHistory([sure], [unsure] * 3, recipe, begun=2))]


def test_what_is_not_known_is_nothing_wrong() -> None:
    bare = TrainingStep(kind="policy", loss=None, gradient_norm=None, learning_rate=0.1, tokens=3, skipped=True)
    assert alarms([bare] * 30) == []


def test_the_limit_of_the_mismatch_is_the_recipes() -> None:
    assert alarms([step(mismatch=0.4)], mismatch_limit=0.5) == [] and alarms([step()], mismatch_limit=0.0001)


class Past:
    """A log with these events."""

    def __init__(self, events: Sequence[Recorded]) -> None:
        self._events = events

    async def read(self, run: str, types: Any = (), after: int = 0, until: int = 0) -> AsyncIterator[Recorded]:
        for recorded in self._events:
            if recorded.type in types and after < recorded.seq <= until:
                yield recorded


async def test_the_handler_looks_back_on_trainings_of_the_same_role() -> None:
    def at(seq: int, event: TrainingMeasured) -> Recorded:
        return record(event, run="r", time=NOON).model_copy(update={"seq": seq})

    sound = [step() for _ in range(FEWEST_STEPS)]
    cause = at(9, told([step(gradient_norm=9.0)], number=1))
    state = RunState("r", 9, RunConfig(), "")
    for role, count in (("student", 1), ("teacher", 0)):
        past = Past([at(5, told(sound, role, 0)), cause])  # type: ignore[arg-type]
        raised = await handlers()["watch_training"](cause, state, {"history": past})
        assert len(raised) == count
