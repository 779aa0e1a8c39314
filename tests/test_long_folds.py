"""What turns of long tasks leave: progress without an answer key, and a run's state that they do not disturb."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events import alarms, runs, tasks
from agent0.events.base import record
from agent0.rollout.attempt import AttemptProgress
from agent0.rollout.claim_check import get_progress, put_progress
from agent0.run.lifecycle import RunState, evolve
from agent0.state.run_state import AttemptState, TaskState
from tests.test_long_attempts import LONG, STORY, World, asked
from tests.test_run import facts, failing, played, sound
from tests.world import NOON, small


async def test_stored_progress_holds_no_answer_key_and_little_twice() -> None:
    world = World(STORY)
    turn = (await world.react(asked()))[-1]
    assert isinstance(turn, tasks.TurnCompleted)
    now = await get_progress(turn.progress, world.artifacts)
    assert await put_progress(now, world.artifacts) == turn.progress
    assert set(AttemptProgress.model_fields).isdisjoint({"proposal", "params", "program", "expected"})


# --- the fold ----------------------------------------------------------------------------------------------------


def working() -> RunState:
    """A run in which one attempt is asked for and not made."""
    held = TaskState(0, "math", "open", 1, proposal=LONG, accepted=True, attempts={"t0-000-a0": AttemptState(0)})
    return replace(World([]).run, phase="tasks", iteration=0, tasks={"t0-000": held})


async def test_turns_change_nothing_in_the_fold_however_often_they_come() -> None:
    state = working()
    for seq, event in enumerate(await World(STORY, {"long_factor": 5}).play(asked()), state.seq + 1):
        after = evolve(state, record(event, run="r1", time=NOON).model_copy(update={"seq": seq}))
        assert after is not None
        if isinstance(event, tasks.TurnCompleted):
            assert replace(after, seq=state.seq) == state and after.digest == state.digest
        state = after
    assert state.tasks["t0-000"].attempts["t0-000-a0"].attempted


async def test_a_turn_that_is_given_up_settles_its_attempt() -> None:
    state = working()
    dropped = alarms.ReactionDropped(
        failure="f", cause_id="c", cause_type="TurnCompleted", cause_task="t0-000", cause_attempt="t0-000-a0",
        failed_handler="continue_attempt", reason="policy",
    )  # fmt: skip
    after = evolve(state, record(dropped, run="r1", time=NOON).model_copy(update={"seq": state.seq + 1}))
    assert after is not None and after.tasks["t0-000"].resolved


# --- whole runs --------------------------------------------------------------------------------------------------

TEAM = {"tools": ("write_file", "edit_file", "read_file", "python", "rollback", "submit_answer"), "max_tokens": 512}
PLAN: dict[str, Any] = {"tasks": 4, "curriculum": {"long": 1.0, "embedder": "ngram"}, "student": TEAM}


@settings(max_examples=6, deadline=None, derandomize=True)
@given(chosen=st.lists(st.integers(0, 25), max_size=4), seed=st.integers(0, 2**32))
def test_a_run_of_long_tasks_ends_whichever_turns_are_given_up(chosen: list[int], seed: int) -> None:
    plan = small(**PLAN, max_given_up=1.0, max_untrained=0)
    told = played(plan, failing("continue_attempt", chosen) if chosen else None, seed)
    assert isinstance(told[-1].event, runs.RunFinished)
    sound(told)
    turns = Counter((r.attempt, r.event.turn) for r in told if isinstance(r.event, tasks.TurnCompleted))
    assert turns and set(turns.values()) == {1}


def test_who_finishes_first_does_not_matter_to_long_tasks() -> None:
    """Progress holds seconds, so its digest may differ; all else is the same in any order of turns."""
    apart = [[r for r in played(small(**PLAN), seed=n) if r.type != "AlarmRaised"] for n in (None, 7)]
    one, other = (facts([r for r in told if r.type != "TurnCompleted"]) for told in apart)
    assert one == other
    assert Counter(r.attempt for r in apart[0] if r.type == "TurnCompleted")
