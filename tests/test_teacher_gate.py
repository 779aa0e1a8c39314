"""The teacher's gate: what it refuses and says, how often it is wrong, and who proposes and is trained afterwards."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agent0.evaluation.promotion import judge_proposals
from agent0.events.alarms import AlarmRaised, ReactionDropped
from agent0.events.base import Recorded
from agent0.events.checkpoints import TeacherJudged, TrainingRequested
from agent0.events.runs import RunFailed
from agent0.events.tasks import RewardAssigned, TaskAccepted, TaskRequested
from agent0.handlers import handlers
from agent0.infra.models.scripted import Scripted
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import RunConfig
from agent0.state.measurements import Proposals
from agent0.stats.intervals import fisher
from tests.play import play
from tests.world import Opened, TellingModel, ports, small, started

BEFORE = Proposals(64, 62, 60)


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_the_exact_test_is_fishers(n: int, m: int, data: st.DataObject) -> None:
    right, other = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    wanted = stats.fisher_exact([[right, n - right], [other, m - other]]).pvalue
    assert fisher(right, n, other, m) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(
    ("now", "promoted", "said"),
    [
        (Proposals(64, 62, 60), True, "no fall is proven"),
        (Proposals(64, 62, 51), True, "no fall is proven"),
        (Proposals(64, 62, 50), False, "a proven fall of accepted proposals"),
        (Proposals(64, 48, 48), False, "a proven fall of readable and accepted proposals"),
        (Proposals(64, 64, 64), True, "no fall is proven"),
        (Proposals(1, 0, 0), True, "no fall is proven"),
        (Proposals(0, 0, 0), True, "no proposals"),
    ],
)
def test_a_proven_fall_is_refused_and_nothing_else(now: Proposals, promoted: bool, said: str) -> None:
    found = judge_proposals(now, BEFORE, "teacher-3")
    assert found.promoted == promoted and said in found.reason and "teacher-3" in found.reason


def test_few_proposals_prove_little() -> None:
    assert judge_proposals(Proposals(12, 12, 7), Proposals(12, 12, 12), "base").promoted
    assert not judge_proposals(Proposals(12, 12, 6), Proposals(12, 12, 12), "base").promoted


def test_a_rise_is_no_fall() -> None:
    assert judge_proposals(BEFORE, Proposals(64, 20, 10), "base").promoted


def test_equals_are_seldom_refused() -> None:
    rng = random.Random(1)

    def drawn() -> Proposals:
        readable = sum(rng.random() < 0.9 for _ in range(64))
        return Proposals(64, readable, sum(rng.random() < 0.8 for _ in range(readable)))

    refused = sum(not judge_proposals(drawn(), drawn(), "base").promoted for _ in range(1000))
    assert refused < 30


class Spoiling(TellingModel):
    """The scripted model, whose trained teacher writes no task any more."""

    async def generate(self, request: Any) -> Any:
        said = await super().generate(request)
        asked = request.turns[-1].content.startswith("Ask ")
        return replace(said, text="no task at all") if request.adapter and asked else said


def world(spoiled: bool) -> dict[str, Any]:
    found = ports()
    if spoiled:
        found["models"] = Opened(Spoiling(Scripted(found["artifacts"]), found["sandbox"]))
    return found


def of(told: list[Recorded], kind: type) -> list[Any]:
    return [one.event for one in told if isinstance(one.event, kind)]


def config(**evaluation: Any) -> RunConfig:
    return small(iterations=4, tasks=12, attempts=2, evaluation={"validation": 4, "test": 0} | evaluation)


async def test_a_spoiled_teacher_goes_and_the_former_one_proposes_again() -> None:
    told = await play(started(config()), world(spoiled=True))
    verdicts = of(told, TeacherJudged)
    assert [(x.checkpoint, x.promoted, x.against, x.readable) for x in verdicts] == [
        ("teacher-0", False, "base", 0), ("teacher-2", False, "base", 0)
    ]  # fmt: skip
    assert all(x.screened == x.against_screened == 12 and "proven fall of readable" in x.reason for x in verdicts)
    parents = {x.checkpoint: x.parent for x in of(told, TrainingRequested) if x.role == "teacher"}
    assert set(parents.values()) == {"base"}
    asked = {x.iteration: x.teacher for x in of(told, TaskRequested)}
    assert asked == {0: "base", 1: "teacher-0", 2: "base", 3: "teacher-2"}  # of no task at all nothing is learned
    whose = {(x.iteration, x.checkpoint) for x in of(told, RewardAssigned) if x.role == "teacher"}
    assert whose == set(asked.items())  # each is rewarded for its own proposals, refused or not
    alarms = [x for x in of(told, AlarmRaised) if x.alarm == "rejected-teacher-0"]
    assert alarms and "was not promoted" in alarms[0].message


async def test_without_a_new_teacher_the_former_one_proposes_the_next_tasks() -> None:
    plan = config().model_copy(update={"training": config().training.model_copy(update={"schedule": "alternate"})})
    told = await play(started(plan), world(spoiled=True))
    asked = {x.iteration: x.teacher for x in of(told, TaskRequested)}
    assert asked == {0: "base", 1: "teacher-0", 2: "base", 3: "teacher-2"}


async def test_a_teacher_as_good_as_before_stays_whatever_the_order() -> None:
    rng = random.Random(3)
    told = await play(started(config()), world(spoiled=False), pick=rng.randrange)
    assert [(x.checkpoint, x.promoted, x.against) for x in of(told, TeacherJudged)] == [
        ("teacher-0", True, "base"), ("teacher-1", True, "teacher-0"), ("teacher-2", True, "teacher-1")
    ]  # fmt: skip
    parents = {x.checkpoint: x.parent for x in of(told, TrainingRequested) if x.role == "teacher"}
    assert parents == {
        "teacher-0": "base",
        "teacher-1": "teacher-0",
        "teacher-2": "teacher-1",
        "teacher-3": "teacher-2",
    }


async def test_an_open_gate_judges_no_teacher() -> None:
    told = await play(started(config(teacher_gate="open")), world(spoiled=True))
    assert not of(told, TeacherJudged)
    asked = {x.iteration: x.teacher for x in of(told, TaskRequested)}
    assert asked == {0: "base", 1: "teacher-0", 2: "teacher-0"} and of(told, RunFailed)  # two iterations without a task
    assert RunConfig().evaluation.teacher_gate == "no_worse"


async def test_a_verdict_that_was_given_up_lets_the_run_go_on() -> None:
    known = {name: one for name, one in handlers().items() if name != "judge_teacher"}
    told = await play(started(config()), world(spoiled=False), known)
    state: RunState | None = None
    for one in told:
        state = evolve(state, one)
    assert state and state.status == "running" and state.teacher_waits  # it waits, and nothing else is asked for
    cause = next(x for x in reversed(told) if isinstance(x.event, TaskAccepted))
    dropped = ReactionDropped(
        failure="f", cause_id=cause.id, cause_type=cause.type, failed_handler="judge_teacher", reason="given up"
    )
    after = evolve(state, cause.model_copy(update={"seq": len(told) + 1, "event": dropped, "task": "-"}))
    assert after and not after.teacher_waits and after.phase == "training"
    assert after.promoted_teacher.id == "teacher-0"
