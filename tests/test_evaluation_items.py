"""Items of an evaluation as events: what they hold, what the state knows of them, and how far an evaluation is."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.runtime.progress import Progress
from agent0.cli.runs.live import describe
from agent0.evaluation.checkpoint_score import ScoredItem
from agent0.evaluation.item_events import item_scored, items_of
from agent0.evaluation.item_rollout import ItemAttempt
from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event, Recorded, record
from agent0.events.checkpoints import (
    CheckpointEvaluated,
    EvaluationItemRequested,
    EvaluationItemScored,
    EvaluationRequested,
)
from agent0.events.values import Artifact, Conversation, ToolCall, ToolResult, ToolState, ToolUse, Turn, Usage
from agent0.rollout.attempt import AttemptResult
from agent0.rollout.claim_check import INLINE
from agent0.run.lifecycle import RunState, evolve
from agent0.run.requests import evaluation_progress
from agent0.verification.verifiers import Verdict
from tests.memory import MemoryArtifacts
from tests.test_run import full_run
from tests.world import NOON, small, started

ITEMS = ("EvaluationItemRequested", "EvaluationItemScored")


# --- an item as an event ---------------------------------------------------------------------------------------------


TEXT = st.text(max_size=30) | st.sampled_from(("</script>", "\x1b[2J", "\x00", "<think>", "\u202e"))
ROLES = st.sampled_from(("system", "user", "assistant", "tool"))
USES = st.builds(
    ToolUse,
    turn=st.integers(0, 3),
    call=st.builds(ToolCall, name=TEXT, arguments=st.dictionaries(TEXT, TEXT, max_size=2), raw=TEXT, error=TEXT),
    result=st.builds(ToolResult, state=st.sampled_from(ToolState), output=TEXT, reason=TEXT),
    inner=st.booleans(),
)
CONVERSATIONS = st.builds(
    Conversation,
    transcript=st.lists(st.builds(Turn, role=ROLES, content=TEXT, name=TEXT), max_size=5).map(tuple),
    calls=st.lists(USES, max_size=3).map(tuple),
)


def attempt(item: ScoredItem, said: Conversation) -> ItemAttempt:
    """An attempt at ``item`` of which the token ids and the work folders are known."""
    turns = tuple(turn.model_copy(update={"token_ids": (1, 2)}) for turn in said.transcript)
    folder = {"work": Artifact(sha256="f" * 64, size=1)}
    calls = [u.model_copy(update={"result": u.result.model_copy(update=folder)}) for u in said.calls]
    spent = {"answer": item.answer, "end": "no_answer", "turns": 2, "tool_ok": item.tool_ok, "parse_errors": 0}
    unread = dict.fromkeys(("trajectory", "mean_logprob", "work"))
    result = AttemptResult(
        **spent, **unread, tool_calls=tuple(calls), grounded=False, transcript=turns, trajectory_problem="",
        signals={}, usage=Usage(), model="m", prompt="v1", subgoals=(),
    )  # fmt: skip
    return ItemAttempt(item, result, Verdict(item.correct, "by hand"))


@settings(max_examples=40, deadline=None)
@given(
    st.builds(
        ScoredItem,
        task=st.text(max_size=9),
        domain=st.just("math"),
        level=st.integers(1, 4),
        question=st.text(max_size=20),
        answer=st.none() | st.text(max_size=9),
        correct=st.sampled_from((True, False, None)),
        tool_ok=st.integers(0, 4),
        tokens=st.integers(0, 999),
        seconds=st.floats(0, 1e6),
        signals=st.dictionaries(st.sampled_from(("answer", "sequence")), st.floats(0, 1)),
        within=st.none() | st.integers(0, 3),
        tries=st.integers(0, 3),
        tried=st.lists(st.none() | st.text(max_size=5), max_size=3).map(tuple),
    ),
    CONVERSATIONS,
    st.sampled_from(("", "question", "answer")),
    st.sampled_from((1, INLINE)),
)
def test_an_item_comes_back_from_its_event_which_stays_small(
    item: ScoredItem, said: Conversation, long: str, times: int
) -> None:
    item = replace(item, **{long: "9" * (INLINE + 1)}) if long else item
    if item.within is None:
        item = replace(item, tries=0, tried=())
    said = said.model_copy(update={"transcript": (*said.transcript, Turn(role="assistant", content="x" * times))})
    store = MemoryArtifacts()
    event = item_scored("base-test", 7, attempt(item, said), store)
    body = event.model_dump_json()
    assert len(body) < 2 * INLINE
    stored = EvaluationItemScored.model_validate_json(body)
    (read,) = items_of([stored], store)
    assert read == item and json.dumps(read.row(), sort_keys=True) == json.dumps(item.row(), sort_keys=True)
    kept = stored.conversation_artifact
    assert (stored.conversation if kept is None else Conversation.model_validate_json(store.get(kept))) == said
    assert (stored.turns, stored.tool_calls, stored.end) == (2, len(said.calls), "no_answer")


# --- the fold --------------------------------------------------------------------------------------------------------


def item(evaluation: str, number: int) -> EvaluationItemScored:
    facts: dict[str, Any] = {"item": str(number), "domain": "math", "level": 1, "question": "", "answer": None}
    return EvaluationItemScored(
        evaluation=evaluation, number=number, **facts, correct=False, tool_ok=0, tokens=1, seconds=0.1
    )


def asked(split: str, n: int = 6) -> EvaluationRequested:
    return EvaluationRequested(
        evaluation=f"base-{split}", checkpoint="base", iteration=-1, split=split, n=n, seed=1, state_sha=""
    )


def dropped(evaluation: str, handler: str) -> ReactionDropped:
    about = {"cause_type": "EvaluationItemRequested", "cause_task": evaluation, "cause_attempt": f"{evaluation}-1"}
    return ReactionDropped(failure="f", cause_id="c", **about, failed_handler=handler, reason="policy")


def folded(*events: Event) -> list[RunState]:
    """The states after a run's start and after each event."""
    told = [started(small()), *(record(event, run="r1", time=NOON) for event in events)]
    state: RunState | None = None
    found: list[RunState] = []
    for seq, recorded in enumerate(told, 1):
        state = evolve(state, recorded.model_copy(update={"seq": seq}))
        assert state
        found.append(state)
    return found


BASELINE = (asked("validation"), asked("test"))


@settings(max_examples=20, deadline=None)
@given(st.permutations([item(f"base-{split}", n) for split in ("validation", "test") for n in range(6)]))
def test_in_any_order_exactly_one_item_is_the_last_of_its_evaluation(items: list[Event]) -> None:
    for split in ("validation", "test"):
        last = [
            event.number
            for event, state in zip(items, folded(*BASELINE, *items)[3:], strict=True)
            if isinstance(event, EvaluationItemScored)
            and event.evaluation == f"base-{split}"
            and state.evaluations[event.evaluation].complete
        ]
        assert (
            last == [e.number for e in items if isinstance(e, EvaluationItemScored) and e.task == f"base-{split}"][-1:]
        )


def test_an_evaluation_is_given_up_with_any_of_its_items_and_only_that_one_once() -> None:
    for handler in ("evaluate_item", "evaluate_checkpoint"):
        again = [dropped("base-test", handler)] * 2
        *_, before, _, state = folded(*BASELINE, item("base-test", 0), *again, item("base-test", 1))
        assert state.pending == before.pending == {"base-validation", "base-test-forced"}
        assert set(state.evaluations) == {"base-validation"}


def test_items_leave_a_run_as_one_score_left_it() -> None:
    """Whether or not its items are told, every other event finds a state of the same digest."""
    without = [r for r in full_run() if r.type not in ITEMS]
    assert len(without) < len(full_run())
    assert digests(without) == digests(full_run())


def digests(told: list[Recorded]) -> list[str]:
    state, found = None, []
    for recorded in told:
        state = evolve(state, recorded)
        assert state
        found += [] if recorded.type in ITEMS else [state.digest]
    return found


def test_each_item_is_attempted_once_and_scored_in_set_order() -> None:
    for score in (r.event for r in full_run() if isinstance(r.event, CheckpointEvaluated)):
        numbers = [
            e.number for r in full_run() if isinstance(e := r.event, EvaluationItemScored) and e.task == score.task
        ]
        assert sorted(numbers) == [*range(score.n)]
        marks = {
            e.number: e.correct
            for r in full_run()
            if isinstance(e := r.event, EvaluationItemScored) and e.task == score.task
        }
        assert score.outcomes == "".join("?" if marks[n] is None else str(int(bool(marks[n]))) for n in sorted(marks))


# --- how far it is ---------------------------------------------------------------------------------------------------


def test_progress_counts_the_items_of_all_evaluations_of_a_phase() -> None:
    requests = (*BASELINE, asked("test").model_copy(update={"evaluation": "base-test-forced", "forced_tool": True}))
    states = folded(*requests, *(item("base-test", n) for n in range(4)))
    assert [evaluation_progress(state) for state in states] == [(0, 18)] * 4 + [(n, 18) for n in range(1, 5)]
    tasks = next(state for state in states_of(full_run()) if state.phase == "tasks")
    assert evaluation_progress(tasks) == (0, 0)


def states_of(told: list[Recorded]) -> list[RunState]:
    state, found = None, []
    for recorded in told:
        state = evolve(state, recorded)
        found += [state] if state else []
    return found


def test_a_run_that_is_watched_says_how_many_items_are_scored() -> None:
    progress, said = Progress(), []
    for recorded in full_run():
        progress.feed(recorded)
        pace = progress.pace(recorded.time)
        if recorded.type == "EvaluationItemScored" and pace:
            said.append((pace.phase, pace.done, pace.total))
            assert f"{pace.done}/{pace.total}" in describe(pace)
    assert [done for phase, done, _ in said if phase == "baseline"] == [*range(1, 19)]
    assert {total for phase, _, total in said if phase == "evaluating"} == {6}


def test_an_evaluation_with_its_items_is_one_wildcard() -> None:
    events = (asked("test"), EvaluationItemRequested(evaluation="base-test", number=3), item("base-test", 3))
    subjects = [record(event, run="r1", time=NOON).subject.split(".") for event in events]
    assert {subject[3] for subject in subjects} == {"base-test"}
    assert [subject[4] for subject in subjects] == ["-", "base-test-3", "base-test-3"]
