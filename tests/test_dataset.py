"""What training reads of the log: each trajectory with its last reward, verdict, review and solve rate."""

import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.base import Event, Recorded, record
from agent0.events.benchmarks import TaskReviewed
from agent0.events.checkpoints import TrainingRequested
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskAttempted, TaskProposed
from agent0.events.values import Artifact, RewardPart, Task, Trajectory, Turn
from agent0.training.dataset import collect_trajectories
from tests.memory import MemoryArtifacts

NOON = datetime(2026, 1, 1, tzinfo=UTC)
TASK = Task(question="?", domain="math", family="sum", level=2, canonical="c")
WAY = Trajectory(token_ids=(1, 2), mask=(0, 1), logprobs=(0.0, -0.5))
PLAIN: dict[str, Any] = {"task": "t", "iteration": 4}
GONE = Artifact(sha256="0" * 64, size=1, media="application/json")


def asked(**changes: Any) -> TrainingRequested:
    plain = {"checkpoint": "c", "role": "student", "iteration": 4, "parent": "base", "after": 0, "until": 99}
    return TrainingRequested.model_validate(plain | {"replay_after": 0, "seed": 0, "state_sha": ""} | changes)


def proposed(task: str = "t", proposal: Task | None = TASK, **changes: Any) -> TaskProposed:
    plain = {"task": task, "iteration": 4, "slot": 0, "teacher": "taught", "text": "?", "prompt": "p"}
    return TaskProposed.model_validate(plain | {"proposal": proposal} | changes)


def attempted(name: str = "a", **changes: Any) -> TaskAttempted:
    plain = {"attempt": name, "number": 0, "student": "me", "answer": "1", "end": "answered", "turns": 1}
    plain |= {"tool_calls": 0, "tool_ok": 0, "prompt": "p", "trajectory": WAY}
    return TaskAttempted.model_validate(PLAIN | plain | changes)


def verified(correct: bool | None, name: str = "a") -> ResultVerified:
    return ResultVerified(**PLAIN, attempt=name, correct=correct, verifier="v", reason="r")


def reviewed(correct: bool | None, name: str = "a") -> TaskReviewed:
    return TaskReviewed(task="t", attempt=name, correct=correct, reviewer="p")


def rewarded(total: float, role: Any = "student", name: str = "a", **changes: Any) -> RewardAssigned:
    plain = {"attempt": name, "role": role, "set": "s", "parts": (RewardPart(name="x", value=1.0),), "total": total}
    return RewardAssigned.model_validate(PLAIN | plain | {"checkpoint": "me"} | changes)


class Past:
    """Plays ``History``: the bounds count."""

    def __init__(self, events: Sequence[Event]) -> None:
        made = [record(event, run="r", time=NOON, id=f"e{n}") for n, event in enumerate(events, 1)]
        self.events = [one.model_copy(update={"seq": n}) for n, one in enumerate(made, 1)]

    async def read(
        self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
    ) -> AsyncIterator[Recorded]:
        assert run == "r"
        for event in self.events:
            if after < event.seq <= until and event.type in types:
                yield event


async def fresh(*events: Event, **changes: Any) -> list[Any]:
    return (await collect_trajectories("r", asked(**changes), Past(events), MemoryArtifacts()))[0]


async def test_an_attempt_is_joined_with_all_that_was_said_of_it() -> None:
    rate = rewarded(0.5, "teacher", "-", facts={"solve_rate": 0.25})
    calls = tuple(Turn(role="tool", name=name, content="1") for name in ("python", "sympy"))
    talk = (Turn(role="assistant", content="x", name="no"), *calls, Turn(role="tool", name="", content="1"))
    (one,) = await fresh(proposed(), attempted(transcript=talk), verified(True), rewarded(0.75), rate)
    assert (one.event_id, one.group, one.author, one.trajectory) == ("e2", "t", "me", WAY)
    assert (one.reward, one.solve_rate, one.success) == (0.75, 0.25, True)
    assert (one.family, one.level, one.tools) == ("sum", 2, ("python", "sympy"))


async def test_what_nobody_said_is_unknown() -> None:
    (one,) = await fresh(attempted())
    assert (one.reward, one.solve_rate, one.success, one.family, one.level, one.tools) == (None, None, False, "", 0, ())
    assert (one.answered, one.cut_off) == (True, False)
    (one,) = await fresh(attempted(answer=None, end="length"))
    assert (one.answered, one.cut_off) == (False, True)
    (one,) = await fresh(proposed(proposal=None), attempted(), verified(None), rewarded(0.5, "teacher", "-"))
    assert (one.reward, one.solve_rate, one.success, one.family) == (None, None, False, "")


async def test_a_proposal_has_the_teachers_reward_and_no_other() -> None:
    told = proposed(trajectory=WAY), attempted(), verified(True), rewarded(1.0), rewarded(0.3, "teacher", "-")
    (one,) = await fresh(*told, role="teacher")
    assert (one.event_id, one.group, one.author, one.trajectory, one.reward) == ("e1", "t", "taught", WAY, 0.3)
    assert (one.success, one.tools) == (False, ())
    assert (await collect_trajectories("r", asked(role="teacher"), Past(told), MemoryArtifacts()))[1] == []


@pytest.mark.parametrize("verdict", [True, False, None])
@pytest.mark.parametrize("review", [True, False, None])
async def test_a_reviewer_outweighs_and_takes_back_a_reward_that_rests_on_the_opposite(
    verdict: bool | None, review: bool | None
) -> None:
    (one,) = await fresh(attempted(), verified(verdict), rewarded(0.75), reviewed(review))
    assert one.success is bool(verdict if review is None else review)
    contradicted = None not in (verdict, review) and verdict != review
    assert one.reward == (None if contradicted else 0.75)


async def test_a_reward_without_a_scored_part_is_unknown_and_not_zero() -> None:
    none, some = RewardPart(name="x", value=None), RewardPart(name="y", value=0.0)
    assert (await fresh(attempted(), rewarded(0.0, parts=(none, none))))[0].reward is None
    assert (await fresh(attempted(), rewarded(0.0, parts=(none, some))))[0].reward == 0.0
    assert (await fresh(attempted(), rewarded(0.0, parts=())))[0].reward is None


async def test_what_was_attempted_ahead_of_a_training_is_not_in_it() -> None:
    """A fork in the middle of one attempts those tasks again."""
    told = attempted("a"), attempted("b", iteration=5)
    assert [one.event_id for one in await fresh(*told)] == ["e1"]
    assert len(await fresh(*told, iteration=5)) == 2


@given(st.permutations("abcd"), st.integers(0, 5), st.integers(0, 5), st.integers(0, 6))
async def test_bounds_decide_what_is_read_and_ids_the_order(
    names: list[str], after: int, replay_after: int, until: int
) -> None:
    """``after`` bounds what is trained on, ``replay_after`` what may be replayed beside it; ``until`` both."""
    request = asked(after=after, replay_after=replay_after, until=until)
    found, past = await collect_trajectories("r", request, Past([attempted(name) for name in names]), MemoryArtifacts())
    seqs = {name: n for n, name in enumerate(names, 1)}
    ids = [
        [f"e{seqs[name]}" for name in "abcd" if first < seqs[name] <= until]
        for first in (after, min(after, replay_after))
    ]
    assert [[one.event_id for one in some] for some in (found, past)] == ids


async def test_long_transcripts_and_trajectories_are_read_from_the_store() -> None:
    store = MemoryArtifacts()
    turns = [{"role": "user", "content": "?", "name": "u"}, {"role": "assistant", "content": "first", "name": ""}]
    turns += [{"role": "tool", "content": "1", "name": "shell"}, {"role": "assistant", "content": "last", "name": ""}]
    turns += [{"role": "tool", "content": "2", "name": ""}]
    kept = store.put(json.dumps(turns).encode(), "application/json")
    events = proposed(), attempted("a", transcript_artifact=kept), attempted("b", transcript_artifact=GONE)
    kept_one, lost = (await collect_trajectories("r", asked(), Past(events), store))[0]
    assert (kept_one.tools, lost.tools) == (("shell",), ())
