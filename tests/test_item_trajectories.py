"""Items of evaluations are read as attempts are: listed, shown, searched and exported, and never as training data."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.assembly.api.trajectories import transcript_of
from agent0.errors import ConfigError, NotFoundError
from agent0.events.base import TOKEN, Recorded
from agent0.events.benchmarks import ItemScored
from agent0.events.checkpoints import EvaluationItemScored
from agent0.events.values import Artifact
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.projections.attempts import show_attempt
from agent0.projections.evaluation_items import evaluated_run, list_items
from agent0.projections.events import grep_events
from agent0.projections.tool_calls import list_calls
from agent0.projections.trajectories import FORMATS, export
from agent0.settings import Settings
from tests.api.served import stored
from tests.story import benchmark_run, whole_run
from tests.story_conversation import CONVERSATION
from tests.story_hostile import hostile_words
from tests.terminal import agent0
from tests.test_report import told

CALL = {"tool": "python", "arguments": {"code": "print(1)"}, "state": "ok", "output": "1", "call": "1", "turn": 0}


def everything() -> list[Recorded]:
    events = whole_run(iterations=2)
    return events + benchmark_run(len(events))


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    with closing(told(everything())) as tables:
        yield tables


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("hostile"), [hostile_words(one) for one in everything()])


def scored() -> list[Recorded]:
    return [one for one in everything() if isinstance(one.event, EvaluationItemScored | ItemScored)]


def test_every_scored_item_is_listed_and_its_conversation_is_read_back(db: sqlite3.Connection) -> None:
    for one in scored():
        item: Any = one.event
        name = item.evaluation if isinstance(item, EvaluationItemScored) else item.benchmark
        assert one.attempt in [row["attempt"] for row in list_items(db, one.run, name)]
        row = show_attempt(db, one.run, one.attempt)
        assert row["transcript"] == [turn.model_dump(mode="json") for turn in CONVERSATION.transcript]
        assert [{key: call[key] for key in CALL} for call in row["calls"]] == [CALL]
        assert (row["evaluation"], row["answer"], row["end"]) == (name, item.answer, "answered")
        (verdict,) = row["verdicts"]
        assert verdict["reason"] == "told" and verdict["got"] == item.answer
        assert row["correct"] == item.correct and row["reward"] is None


def test_a_long_conversation_is_read_from_its_artifact(tmp_path: Path) -> None:
    kept = FileArtifacts(tmp_path).put(CONVERSATION.model_dump_json().encode(), "application/json")
    one = next(one for one in scored() if isinstance(one.event, EvaluationItemScored))
    event = one.event.model_copy(update={"conversation": None, "conversation_artifact": kept})
    with closing(told([one.model_copy(update={"event": event, "seq": 1})])) as db:
        row = show_attempt(db, one.run, one.attempt)
        assert row["transcript"] == row["calls"] == []
        turns = transcript_of(Settings(home=tmp_path), row)
        (line,) = export(db, one.run, artifacts=FileArtifacts(tmp_path), evaluation=event.evaluation)
    assert [turn["content"] for turn in turns] == [turn.content for turn in CONVERSATION.transcript]
    assert [call["output"] for call in row["calls"]] == ["1"]
    assert [turn["content"] for turn in line["transcript"]] == [turn["content"] for turn in turns]


def test_a_missing_artifact_is_told(tmp_path: Path) -> None:
    one = next(one for one in scored() if isinstance(one.event, EvaluationItemScored))
    gone = {"conversation": None, "conversation_artifact": Artifact(sha256="0" * 64, size=9)}
    with closing(told([one.model_copy(update={"event": one.event.model_copy(update=gone), "seq": 1})])) as db:
        row = show_attempt(db, one.run, one.attempt)
    with pytest.raises(NotFoundError, match="000000000000"):
        transcript_of(Settings(home=tmp_path), row)


def test_an_evaluation_is_named_by_its_id_a_split_a_checkpoint_or_a_benchmark(db: sqlite3.Connection) -> None:
    def listed(name: str, **more: Any) -> set[str]:
        return {row["evaluation"] for row in list_items(db, "r1", name, **more)}

    assert listed("base-test") == {"base-test"}
    assert {"base-validation", "student-0-validation"} <= listed("validation")
    assert all(name.startswith("student-0") for name in listed("student-0"))
    assert {row["correct"] for row in list_items(db, "r1", "validation", correct=False)} == {0}
    assert {row["correct"] for row in list_items(db, "r1", "validation", correct=True)} == {1}
    assert len(list_items(db, "bench-1", "gsm8k")) == 4 and evaluated_run(db, "bench-1") == "bench-1"
    for name in ("base-tests", "", "%", "tests' OR 1=1 --", "\x00"):
        with pytest.raises(NotFoundError, match="has no evaluation"):
            list_items(db, "r1", name)


def test_a_fork_shows_what_its_parent_had_scored_before_it() -> None:
    events = whole_run(iterations=2)
    items = [event for event in events if isinstance(event.event, EvaluationItemScored)]
    first, *_, last = items
    begun = events[0].event.model_copy(update={"parent": "r1", "parent_seq": first.seq})
    fork = events[0].model_copy(update={"id": "fork", "run": "r2", "event": begun, "seq": len(events) + 1})
    with closing(told([*events, fork])) as db:
        (row,) = list_items(db, "r2", "base-validation")
        assert (row["run"], row["attempt"]) == ("r1", first.attempt)
        assert (
            show_attempt(db, "r2", first.attempt)["transcript"] == show_attempt(db, "r1", first.attempt)["transcript"]
        )
        with pytest.raises(NotFoundError, match="no attempt"):
            show_attempt(db, "r2", last.attempt)


@given(st.integers(1, 7))
def test_pages_join_up_to_the_whole_list(db: sqlite3.Connection, limit: int) -> None:
    whole = [row["attempt"] for row in list_items(db, "r1", "validation")]
    seen: list[str] = []
    while rows := list_items(db, "r1", "validation", limit=limit, after=seen[-1] if seen else ""):
        seen += [row["attempt"] for row in rows]
    assert seen == whole and len(whole) == len(set(whole)) > 2


NAMES = st.text(max_size=90) | st.from_regex(r"[a-z0-9]{1,9}([/:_-][a-z0-9]{1,12}){0,3}", fullmatch=True)


@given(st.lists(NAMES, min_size=1, max_size=9, unique=True), NAMES)
def test_items_of_a_benchmark_have_names_of_their_own(items: list[str], benchmark: str) -> None:
    at: dict[str, Any] = {"mode": "plain", "answer": None, "correct": None, "reason": "", "end": "length"}
    tokens = [ItemScored(benchmark=benchmark, item=item, sample=n, **at) for item in items for n in (0, 12)]
    assert all(TOKEN.fullmatch(token.attempt) and TOKEN.fullmatch(token.task) for token in tokens)
    assert len({token.attempt for token in tokens}) == len(tokens)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_held_out_leaves_only_when_it_is_asked_for_and_never_as_training_data(
    db: sqlite3.Connection, format: str
) -> None:
    items = {one.attempt for one in scored()}
    assert not any(line.get("attempt") in items or line.get("held_out") for line in export(db, "r1", format))
    if format == "agent0":
        lines = list(export(db, "r1", format, evaluation="test"))
        assert lines and all(line["held_out"] and line["attempt"] in items for line in lines)
        assert json.loads(json.dumps(lines)) == lines and all(line["transcript"] for line in lines)
    else:
        with pytest.raises(ConfigError, match="never trained on"):
            export(db, "r1", format, evaluation="test")


def test_what_was_said_is_found_by_its_words(db: sqlite3.Connection) -> None:
    found = {row["attempt"] for row in grep_events(db, "item find boxed")}
    assert "base-test-0" in found and list_calls(db, "r1", "base-test-0") == []


@pytest.mark.parametrize(
    "command",
    [
        ("list", "r1", "--evaluation", "base-test"),
        ("list", "bench-1", "--evaluation", "gsm8k"),
        ("show", "base-test-0", "r1"),
        ("show", "gsm8k-plain-1-0", "bench-1"),
        ("export", "r1", "--evaluation", "student-0"),
    ],
)
def test_hostile_conversations_stay_text_in_a_terminal(home: Path, command: tuple[str, ...]) -> None:
    shown = agent0("trajectory", *command, home=home)
    assert shown.code == 0 and shown.out.strip(), shown.err
    assert not set("\x00\x1b\u202e") & set(shown.out)
    if command[0] == "show":
        assert "<script>" in shown.out and "assistant, turn 2" in shown.out
        assert "Nothing." not in shown.err
        assert agent0("trajectory", *command, "--json", home=home).json["attempt"] == command[1]


def test_a_task_and_an_evaluation_are_not_asked_for_together(home: Path) -> None:
    refused = agent0("trajectory", "list", "r1", "--evaluation", "base-test", "--task", "t0-000", home=home)
    assert refused.code != 0 and "evaluation" in refused.err
    refused = agent0("trajectory", "export", "r1", "--evaluation", "base-test", "--format", "trl", home=home)
    assert refused.code != 0 and "never trained on" in refused.err
