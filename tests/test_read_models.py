"""What people ask the tables is answered from them as the events have it."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.runtime.progress import Progress
from agent0.errors import NotFoundError, OperationError
from agent0.events import runs, tasks
from agent0.events.alarms import ReactionDropped, ReactionFailed
from agent0.events.base import Recorded, record
from agent0.events.values import ToolCall, ToolResult, ToolState, Turn
from agent0.projections import Projector, attempts, checkpoints, evaluations, failures, rewards, tables
from agent0.projections import alarms as alarm_queries
from agent0.projections import events as event_queries
from agent0.projections import runs as run_queries
from agent0.projections import tasks as task_queries
from agent0.projections.trajectories import FORMATS, export
from tests.story import bodies, renumbered, whole_run
from tests.story_ends import cancelled_run

TABLES = tables()
STORY = whole_run(iterations=2, tasks=6, attempts=2)
STORED = bodies(STORY)


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    """Three runs: a finished one, a cancelled one, and one that is paused."""
    paused = [STORY[0].model_copy(update={"run": "r5", "id": "start-5"})]
    paused.append(record(runs.RunPaused(), run="r5", time=STORY[5].time))
    told: list[Recorded] = [*STORY, *renumbered(cancelled_run(), len(STORY))]
    told += renumbered(paused, len(told))
    held = sqlite3.connect(":memory:", isolation_level=None)
    Projector(Path("memory"), lambda _: held, TABLES, "stream").apply(bodies(told))
    yield held
    held.close()


def _scores(events: list[Recorded]) -> tuple[float | None, float | None]:
    """Test accuracy, first and last, as the tables have it after ``events``."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as held:
        Projector(Path("memory"), lambda _: held, TABLES, "stream").apply(bodies(renumbered(events)))
        found = run_queries.show_run(held, "r1")
        return found["heldout_first"], found["heldout_last"]


def test_a_training_that_was_given_up_is_no_open_request() -> None:
    asked = next(e for e in STORY if e.type == "TrainingRequested")
    at = {"failure": "f", "cause_id": asked.id, "cause_type": asked.type, "failed_handler": "train_checkpoint"}
    failed = ReactionFailed(**at, cause_seq=asked.seq, error="OperationError", message="no", deliveries=1)
    given_up = [failed, ReactionDropped(**at, reason="policy")]
    told = STORY[: asked.seq] + [record(event, run=asked.run, time=asked.time) for event in given_up]
    progress = Progress()
    for one in renumbered(told):
        progress.feed(one)
    assert progress._verdict == "a training failed"
    wanted = asked.event.checkpoint
    for until, status in ((asked.seq, "requested"), (asked.seq + 1, "failed"), (asked.seq + 2, "failed")):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as held:
            Projector(Path("memory"), lambda _: held, TABLES, "stream").apply(bodies(renumbered(told[:until])))
            assert checkpoints.show_checkpoint(held, asked.run, wanted)["status"] == status
            listed = {row["checkpoint"]: row["status"] for row in checkpoints.list_checkpoints(held, asked.run)}
            assert listed[wanted] == status
            assert checkpoints.registry(held, status=status)[0]["model"] == f"{asked.run}/{wanted}"


def test_a_run_counts_what_happened(db: sqlite3.Connection) -> None:
    seen = Counter(e.type for e in STORY)
    tests = [e.event for e in STORY if e.type == "CheckpointEvaluated" and e.event.split == "test"]
    free = [e.accuracy for e in tests if not e.forced_tool]
    shown = run_queries.show_run(db, "r1")
    assert shown["events"] == len(STORY)
    assert (shown["tasks"], shown["accepted"], shown["rejected"]) == (12, seen["TaskAccepted"], seen["TaskRejected"])
    assert (shown["attempts"], shown["tool_calls"]) == (seen["TaskAttempted"], seen["ToolCalled"])
    assert (shown["heldout_first"], shown["heldout_last"]) == (free[0], free[-1])
    before = [e for e in STORY if e.type != "CheckpointEvaluated" or not e.event.evaluation.endswith("-final")]
    assert _scores(before) == (free[0], None)
    assert shown["forced_tool"] == next(e.accuracy for e in tests if e.forced_tool)
    assert shown["wall_s"] == pytest.approx((STORY[-1].time - STORY[0].time).total_seconds(), abs=0.002)
    assert (shown["status"], shown["iteration"], shown["open_failures"]) == ("finished", 1, 0)
    assert shown["config"]["tasks"] == 6


def test_status_and_newest(db: sqlite3.Connection) -> None:
    assert {row["run"]: row["status"] for row in run_queries.list_runs(db)} == {
        "r1": "finished",
        "r9": "cancelled",
        "r5": "paused",
    }
    assert run_queries.resolve(db, "LAST") == run_queries.list_runs(db)[0]["run"]
    with pytest.raises(NotFoundError, match="no run 'r2'"):
        run_queries.show_run(db, "r2")


def test_a_run_says_what_it_waits_for_while_it_waits() -> None:
    lost, back = (next(n for n, e in enumerate(STORY) if e.type == f"Dependency{how}") for how in ("Lost", "Restored"))

    def waits_for(until: int) -> object:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as held:
            held.row_factory = sqlite3.Row
            tables = {name: TABLES[name] for name in ("runs", "alarms")}
            Projector(Path("memory"), lambda _: held, tables, "stream").apply(STORED[: until + 1])
            return run_queries.show_run(held, "r1")["waits_for"]

    assert waits_for(lost - 1) is None
    assert waits_for(lost) == "attempt_task waits for ollama: connection refused"
    assert waits_for(back) is None


def test_the_story_is_an_unbroken_chain_over_a_checkpoint(db: sqlite3.Connection) -> None:
    steps = event_queries.story(db, "r1")
    assert (steps[0]["type"], steps[-1]["type"]) == ("RunStarted", "RunFinished")
    assert "CheckpointTrained" in {step["type"] for step in steps}
    assert event_queries.unbroken(steps)
    assert not event_queries.unbroken(steps[1:])
    assert not event_queries.unbroken([*steps[:4], *steps[5:]])
    assert not event_queries.unbroken([])


def test_every_event_is_there_and_can_be_found(db: sqlite3.Connection) -> None:
    listed = event_queries.list_events(db, "r1", limit=10_000)
    assert [row["id"] for row in listed] == [e.id for e in STORY]
    assert all(row["text"] for row in listed)
    assert sum(row["events"] for row in event_queries.event_stats(db, "r1")) == len(STORY)
    later = event_queries.list_events(db, "r1", type="TaskAccepted", after=20, limit=3)
    assert [row["seq"] for row in later] == [e.seq for e in STORY if e.type == "TaskAccepted" and e.seq > 20][:3]
    shown = event_queries.show_event(db, str(STORY[0].seq))
    assert shown["body"]["data"]["profile"] == "tiny"
    assert len(shown["effects"]) == 3
    assert {row["type"] for row in event_queries.grep_events(db, "connection refus*", run="r1")} == {"DependencyLost"}
    with pytest.raises(NotFoundError):
        event_queries.show_event(db, "nowhere")


@settings(max_examples=30, deadline=None)
@given(words=st.text(max_size=20) | st.sampled_from(["a OR b", 'x"y', "NEAR(a b)", "text: a", "^a", "*", "-a", "a*"]))
def test_any_text_can_be_searched_for(words: str) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as held:
        Projector(Path("memory"), lambda _: held, {"events": TABLES["events"]}, "stream").apply(STORED[:3])
        if words.replace("\0", " ").split():
            assert isinstance(event_queries.grep_events(held, words), list)
        else:
            with pytest.raises(OperationError):
                event_queries.grep_events(held, words)


def test_tasks_attempts_and_receipts(db: sqlite3.Connection) -> None:
    shown = task_queries.show_task(db, "r1", "t0-000")
    rates = [row["correct"] for row in shown["attempts"] if row["correct"] is not None]
    assert shown["solve_rate"] == sum(rates) / len(rates)
    assert len(shown["attempts"]) == 2 == task_queries.list_tasks(db, "r1", iteration=0)[0]["attempts"]
    assert task_queries.list_tasks(db, "r1", iteration=1, status="rejected")[0]["reason"] == "malformed"
    one = attempts.show_attempt(db, "r1", "t0-000-a1")
    recorded = next(e.event for e in STORY if isinstance(e.event, tasks.TaskAttempted) and e.attempt == "t0-000-a1")
    assert [turn["content"] for turn in one["transcript"]] == [turn.content for turn in recorded.transcript]
    assert (len(one["calls"]), one["status"]) == (recorded.tool_calls, "rewarded")
    (receipt,) = rewards.explain_rewards(db, "r1", attempt="t0-000-a1")
    scored = [part for part in receipt["parts"] if part["value"] is not None]
    assert receipt["total"] == pytest.approx(sum(part["value"] * part["weight"] for part in scored))
    assert len(rewards.explain_rewards(db, "r1", task="t0-000")) == 3
    assert task_queries.patterns(db, "r1")["per_1000"] == 1000


def test_curves_failures_and_alarms(db: sqlite3.Connection) -> None:
    curve = evaluations.learning_curve(db, "r1")
    assert [point["iteration"] for point in curve] == [-1, 0, 1]
    assert all(0 <= point["validation"] <= 1 for point in curve)
    assert curve[1]["attempts"] == sum(e.type == "TaskAttempted" and e.event.iteration == 0 for e in STORY)
    assert {row["role"] for row in rewards.reward_curve(db, "r1")} == {"student", "teacher"}
    assert failures.list_failures(db) == []
    settled = failures.list_failures(db, "r1", status="")
    assert {row["status"] for row in settled} == {"retried", "dropped"}
    assert failures.show_failure(db, settled[0]["failure"][:12])["cause"]["type"] == "RewardAssigned"
    with pytest.raises(NotFoundError, match="More than one"):
        failures.show_failure(db, "")
    known = alarm_queries.list_alarms(db, status="")
    assert {row["alarm"] for row in known} == {"slow-tools", "dependency/ollama/attempt_task"}
    assert alarm_queries.list_alarms(db) == []


@pytest.mark.parametrize("format", sorted({*FORMATS} - {"trl-stepwise"}))
def test_every_export_format_keeps_its_promise(db: sqlite3.Connection, format: str) -> None:
    lines = list(export(db, "r1", format))
    assert lines
    roles = {
        "agent0": lambda x: len(x["trajectory"]["token_ids"]) == len(x["trajectory"]["logprobs"]) and x["reward_parts"],
        "trl": lambda x: _roles(x["prompt"]) <= {"system", "user"} and x["completion"][0]["role"] == "assistant",
        "trl-messages": lambda x: x["messages"][-1]["role"] == "assistant",
        "trl-preference": lambda x: x["chosen"][-1]["content"] != x["rejected"][-1]["content"],
        "trl-unpaired": lambda x: isinstance(x["label"], bool),
    }
    assert all(roles[format](line) for line in lines)


def stepwise(subgoals: tuple[int, ...], labels: tuple[bool | None, ...], answer: str | None) -> list[dict[str, object]]:
    """An attempt that wrote a text a turn and answered these subgoals, one a turn, as stepwise rows."""
    (end,) = [e for e in STORY if e.type == "TaskAttempted" and e.attempt == "t0-000-a0"]
    assert isinstance(end.event, tasks.TaskAttempted)
    of = {"task": end.task, "attempt": end.attempt}
    texts = [Turn(role="assistant", content=f"turn {n}") for n in range(len(subgoals) + 1)]
    turns = (Turn(role="assistant", content="an example"), Turn(role="user", content="?"), *texts)
    told: list[Recorded] = [e for e in STORY[: end.seq - 1] if e.type != "ToolCalled"]
    for n, subgoal in enumerate(subgoals):
        call = ToolCall(name="submit_answer", arguments={"answer": "1", "subgoal": subgoal}, raw="")
        result = ToolResult(state=ToolState.OK, output="recorded")
        called = tasks.ToolCalled(**of, turn=n, number=n, call=call, result=result)
        told.append(record(called, run="r1", time=end.time))
    changed = {"transcript": turns, "turns": len(texts), "answer": answer, "tool_calls": len(subgoals)}
    told.append(end.model_copy(update={"event": end.event.model_copy(update=changed)}))
    verdict = tasks.ResultVerified(**of, iteration=0, correct=labels[-1], verifier="exact", subgoals=labels, reason="")
    told.append(record(verdict, run="r1", time=end.time))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as held:
        Projector(Path("memory"), lambda _: held, TABLES, "stream").apply(bodies(renumbered(told)))
        return [*export(held, "r1", "trl-stepwise")]


def test_a_step_is_what_was_written_up_to_its_last_answer() -> None:
    (row,) = stepwise((1, 2), (True, False, True), "9")
    assert row["completions"] == ["turn 0", "turn 1", "turn 2"] and row["labels"] == [True, False, True]
    (again,) = stepwise((1, 1, 2), (True, True, False), "9")
    assert again["completions"] == ["turn 0\nturn 1", "turn 2", "turn 3"]
    (skipped,) = stepwise((1, 3), (True, False, False), None)
    assert skipped["completions"] == ["turn 0"]
    (undecided,) = stepwise((1, 2), (True, None, True), "9")
    assert undecided["labels"] == [True]
    assert stepwise((2, 1), (None, True, True), "9") == []


def _roles(messages: list[dict[str, str]]) -> set[str]:
    return {message["role"] for message in messages}
