"""Traces of other frameworks: what is exported is imported with the same rewards, a foreign run is judged and rewarded
like one of ours and nothing of it is executed, and a file with one bad row leaves nothing behind."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent0.events.base import record
from agent0.events.runs import RunFinished
from agent0.events.tasks import ResultVerified, TaskAttempted
from agent0.events.values import Trajectory
from agent0.experiments.interchange.foreign_run import IMPORT, events_of
from agent0.experiments.interchange.formats import FORMATS, foreign_file
from agent0.infra.bus.run_consumers import RunConsumers
from agent0.ports.storage import Dataset
from agent0.rollout.trajectories import token_fault
from agent0.run.lifecycle import evolve
from tests.kept_open import attached
from tests.memory import MemoryArtifacts
from tests.pasts import events_of as stored_events
from tests.pasts import keep, settings_at, tell
from tests.story_gains import NOON
from tests.terminal import agent0 as call
from tests.trace_schemas import SCHEMAS
from tests.world import small, started

BOTH_WAYS = sorted(name for name, format in FORMATS.items() if format.read and format.write)
ROUND_TRIP = (
    "reward", "correct", "answer", "trajectory", "tool_calls", "tool_ok", "grounded", "canonical", "question", "end",
)  # fmt: skip
USER, REPLY = {"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": "It is \\boxed{4}."}
ROW: dict[str, Any] = {
    "example_id": 0, "prompt": [USER], "completion": [REPLY], "answer": "4", "reward": 1.0, "task": "sums",
}  # fmt: skip
STEP: dict[str, Any] = {"step_id": 2, "source": "agent", "message": "It is \\boxed{4}."}
ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.7",
    "agent": {"name": "a", "version": "1"},
    "steps": [{"step_id": 1, "source": "user", "message": "What is 2+2?"}, STEP],
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a run of ours, whose server stands; what tests import comes beside it."""
    folder = tmp_path_factory.mktemp("traces")
    keep(folder, *tell())
    with attached(folder):
        yield folder


def exported(home: Path, run: str, format: str = "jsonl") -> list[Any]:
    answer = call("trajectory", "export", run, "--format", format, home=home)
    assert answer.code == 0, answer.err
    return answer.lines


def imported(home: Path, path: Path, *words: str) -> Any:
    answer = call("trajectory", "import", str(path), *words, "--json", home=home)
    assert answer.code == 0, answer.err
    return answer.json


def rows_file(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("format", BOTH_WAYS)
def test_what_is_exported_is_valid_and_comes_back_with_the_same_rewards(
    kept: Path, tmp_path: Path, format: str
) -> None:
    documents = exported(kept, "r1", format)
    for document in documents:
        jsonschema.validate(document, SCHEMAS[format])
    result = imported(kept, rows_file(tmp_path / "theirs.jsonl", *documents))
    assert result["format"] == format and result["events"] > 0
    ours, again = exported(kept, "r1"), exported(kept, result["run"])
    assert len(ours) == len(again) == result["attempts"] and any(row["trajectory"] for row in ours)
    for before, after in zip(ours, again, strict=True):
        assert [before[name] for name in ROUND_TRIP] == [after[name] for name in ROUND_TRIP]
        parts = [{name: part[name] for name in ("name", "value")} for part in before["reward_parts"]]
        assert parts == [{name: part[name] for name in ("name", "value")} for part in after["reward_parts"]]
    judged = call("experiment", "reverify", result["run"], "--json", home=kept).json
    theirs = {row["attempt"]: row["correct"] for row in again}
    computed = {change["attempt"]: change["after"] for change in judged["changes"]}
    assert len(computed) == len(theirs) and not judged["own_settings"]
    for attempt, verdict in computed.items():
        if verdict["verifier"] in ("exact", "execution"):
            assert verdict["correct"] == theirs[attempt]


def test_tokens_of_an_openenv_trace_are_those_that_were_sampled(kept: Path) -> None:
    ours = [row["trajectory"] for row in exported(kept, "r1") if row["trajectory"]]
    traces = exported(kept, "r1", "openenv")
    assert len(traces) == len(ours)
    for trajectory, trace in zip(ours, traces, strict=True):
        jsonschema.validate(trace, SCHEMAS["openenv"])
        last = trace["turns"][-1]
        whole = last["prompt_token_ids"] + last["completion_token_ids"]
        assert whole == trajectory["token_ids"][: len(whole)]
        sampled = [id for turn in trace["turns"] for id in turn["completion_token_ids"]]
        assert sampled == [id for id, mask in zip(trajectory["token_ids"], trajectory["mask"], strict=True) if mask]
        for turn in trace["turns"]:
            assert sum(turn["loss_mask"]) == len(turn["completion_token_ids"]) == len(turn["per_token_logps"])


def test_a_pi_session_is_a_chain_of_all_messages(kept: Path) -> None:
    lines, before = exported(kept, "r1", "pi"), None
    for line in lines:
        jsonschema.validate(line, SCHEMAS["pi"])
        before = None if line["type"] == "session" else before
        assert line.get("parentId") == before
        before = line["id"] if line["type"] == "message" else None
    turns = sum(len(row["transcript"]) for row in exported(kept, "r1"))
    assert len(lines) == turns + len(exported(kept, "r1")) == len({line["id"] for line in lines})


def test_what_is_redacted_is_in_no_field_and_no_token(kept: Path) -> None:
    for format in ("jsonl", "trl", "atif", "verifiers", "openenv", "pi"):
        answer = call("trajectory", "export", "r1", "--format", format, "--redact", "(?i)[a-z]", home=kept)
        assert answer.code == 0 and "boxed" not in answer.out and bool(answer.out) == (format != "openenv")
        assert not re.search(r'token_ids": \[\d', answer.out)
    assert call("trajectory", "export", "r1", "--redact", "x*", home=kept).code == 2


CHAT = {"messages": [{"role": "system", "content": "Be brief."}, USER, REPLY]}
SCORES = {"exact": {"value": "C", "answer": "4"}, "style": {"value": 0.5, "explanation": "short"}}
SAMPLE = {"id": 7, "epoch": 1, "input": "What is 2+2?", "target": "4", "messages": [USER, REPLY], "scores": SCORES}
LOG = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "m/1"}, "samples": [SAMPLE, SAMPLE]}


NODES = [
    {"parent": None, "message": USER, "token_ids": [1, 2], "mask": [False, False]},
    {"parent": 0, "message": {**REPLY, "content": "\\boxed{5}"}, "sampled": True},
    {"parent": 0, "message": REPLY, "sampled": True, "token_ids": [3, 4, 5], "mask": [False, True, True],
     "logprobs": [-0.5, -1.0]},
]  # fmt: skip
TRACE = {
    "version": 1, "id": "t", "task": {"type": "Sums", "data": {"answer": "4"}, "key": "sums-1"}, "nodes": NODES,
    "rewards": {"right": {"score": 1.0, "weight": 0.75}, "style": {"score": 0.5, "weight": 0.5}, "late": None},
}  # fmt: skip


def test_a_graph_of_messages_is_the_path_to_its_last_one() -> None:
    (attempt,) = foreign_file(Dataset("traces", json.dumps(TRACE), "0" * 64), "").attempts
    assert (attempt.total, attempt.expected, attempt.group) == (1.0, "4", "sums-1")
    assert [(part.name, part.value, part.weight) for part in attempt.parts] == [("right", 1, 0.75), ("style", 0.5, 0.5)]
    assert attempt.trajectory == Trajectory(
        token_ids=(1, 2, 3, 4, 5), mask=(0, 0, 0, 1, 1), logprobs=(0.0, 0.0, 0.0, -0.5, -1.0)
    )
    assert attempt.losses == ("1 messages of other branches", "id") and len(attempt.transcript) == 2
    for change in ({"parent": 2}, {"parent": 7}, {"parent": -1}):
        loop = {**TRACE, "nodes": [NODES[0], NODES[1], {**NODES[2], **change}]}
        (alone,) = foreign_file(Dataset("traces", json.dumps(loop), "0" * 64), "").attempts
        assert [turn.content for turn in alone.transcript] == [REPLY["content"]]
    short = {**TRACE, "nodes": [NODES[0], {**NODES[2], "logprobs": [-0.5]}]}
    (without,) = foreign_file(Dataset("traces", json.dumps(short), "0" * 64), "").attempts
    assert without.trajectory is None and "do not fit" in without.problem


@pytest.mark.parametrize(
    ("format", "row", "rewards", "losses"),
    [
        ("trl", {"prompt": [USER], "completion": [REPLY], "reward": 1.0}, [1.0], []),
        ("trl", {"prompt": "What is 2+2?", "completion": " 4", "label": True, "source": "web"}, [None], ["source"]),
        ("openai-chat", {**CHAT, "tools": [{}], "store": {}}, [None], ["tools"]),
        ("inspect", LOG, [1.0, 1.0], ["scores.explanation"]),
    ],
)
def test_other_formats_are_known_by_their_fields(
    format: str, row: dict[str, Any], rewards: list[float | None], losses: list[str]
) -> None:
    file = foreign_file(Dataset("theirs", json.dumps(row), "0" * 64), "")
    assert file.format == format and [attempt.total for attempt in file.attempts] == rewards
    assert all(list(attempt.losses) == losses for attempt in file.attempts)
    told = events_of(file, MemoryArtifacts(), NOON, "")
    attempts = [event.event for event in told if isinstance(event.event, TaskAttempted)]
    assert [attempt.answer for attempt in attempts] == ["4"] * len(rewards)
    verdicts = [event.event.correct for event in told if isinstance(event.event, ResultVerified)]
    assert verdicts == [True if row.get("label") or total == 1 else None for total in rewards]
    assert len({event.task for event in told if event.task != "-"}) == 1


def test_calls_are_read_as_text_of_json_too() -> None:
    """As verifiers saves them."""
    called = json.dumps({"id": "c", "name": "python", "arguments": '{"code": "4"}'})
    turns = [
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {**REPLY, "role": "tool", "tool_call_id": "c"},
    ]
    row = {**ROW, "completion": [*turns, REPLY]}
    (attempt,) = foreign_file(Dataset("results.jsonl", json.dumps(row), "0" * 64), "").attempts
    (use,) = attempt.calls
    assert (use.call.name, use.call.arguments, use.result.output) == ("python", {"code": "4"}, REPLY["content"])


def test_a_file_is_one_run_however_often_it_is_imported(kept: Path, tmp_path: Path) -> None:
    other, alone = {**ROW, "completion": [{**REPLY, "content": "#### 5"}]}, {**ROW, "example_id": 1}
    path = rows_file(tmp_path / "results.jsonl", ROW, alone, other)
    first, second = imported(kept, path), imported(kept, path, "--format", "verifiers")
    assert first["run"] == second["run"] and (first["events"] > 0, second["events"]) == (True, 0)
    told = stored_events(settings_at(kept), first["run"])
    assert len(told) == first["events"] == len({event.id for event in told})
    assert {event.handler for event in told} == {"", IMPORT}
    state = None
    for event in told:
        state = evolve(state, event)
    assert state is not None and (state.status, state.phase, state.iteration) == ("finished", "tasks", 0)
    answers = [[attempt.answer for attempt in task.attempts.values()] for task in state.tasks.values()]
    assert answers == [["4", "5"], ["4"]] and all(task.resolved for task in state.tasks.values())


def test_it_is_judged_rewarded_and_shown_like_a_run_of_ours(kept: Path, tmp_path: Path) -> None:
    lie = {**ROW, "completion": [{**REPLY, "content": "\\boxed{5}"}]}
    unsure = {**ROW, "example_id": 1, "reward": 0.25, "style": 0.5, "info": {"seed": 7}}
    result = imported(kept, rows_file(tmp_path / "results.jsonl", ROW, lie, unsure))
    run, words = result["run"], ("experiment", "reverify", result["run"])
    assert result["lines"][2] == {"line": "results.jsonl, line 3", "losses": ["info.seed"]}
    judged = call(*words, "--commit", "--name", "again", "--json", home=kept)
    assert judged.code == 0 and judged.json["flips"] == {"right to wrong": 1, "undecided to right": 1}
    rescored = call("experiment", "rescore", run, "--verdicts", "again", "--json", home=kept)
    assert rescored.code == 0 and rescored.json["receipts"] == 3 and "teacher" not in rescored.json
    rows = {row["attempt"]: row for row in exported(kept, run)}
    assert [rows[name]["reward"] for name in sorted(rows)] == [1.0, 1.0, 0.25]
    parts = {part["name"]: (part["value"], part["weight"]) for part in rows["t0-001-a0"]["reward_parts"]}
    assert parts == {"reward": (0.25, 1.0), "style": (0.5, 0.0)}
    (receipt,) = call("reward", "explain", "t0-001-a0", run, "--json", home=kept).json
    assert receipt["reward_set"] == "imported-verifiers"
    assert call("run", "show", run, home=kept).code == call("run", "check", run, home=kept).code == 0
    refused = call("run", "fork", run, "--detach", home=kept)
    assert refused.code == 1 and "cannot be forked" in refused.err
    assert "never trained" in call("experiment", "retrain", run, "--name", "x", home=kept).err


def test_a_question_without_an_answer_is_judged_by_the_family_that_reads_it(kept: Path, tmp_path: Path) -> None:
    family = next(row for row in exported(kept, "r1") if row["correct"] and row["family"] != "open")
    steps = [{"step_id": 1, "source": "user", "message": family["question"]}, STEP | {"message": "I say \\boxed{x}."}]
    other = {**ATIF, "steps": [{"step_id": 1, "source": "user", "message": "How are you?"}, STEP]}
    result = imported(kept, rows_file(tmp_path / "t.jsonl", {**ATIF, "steps": steps}, other))
    judged = call("experiment", "reverify", result["run"], "--json", home=kept).json
    after = {change["family"]: change["after"]["correct"] for change in judged["changes"]}
    assert after == {family["family"]: False, "questions": None}


def test_no_process_takes_messages_of_a_foreign_run() -> None:
    """Not even where the import was cut off, so that the run does not say that it is over."""
    file = foreign_file(Dataset("results.jsonl", json.dumps(ROW), "0" * 64), "")
    told = [event for event in events_of(file, MemoryArtifacts(), NOON, "") if event.type != RunFinished.__name__]
    nothing: Any = None
    consumers = RunConsumers(nothing, nothing, nothing, (), nothing, nothing, nothing, nothing)
    for event in (started(small()), *told):
        consumers._note(event)
    assert consumers.runs() == ["r1"] and told[0].run != "r1"


def _deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


CALL = {"id": "c", "function": {"name": "f", "arguments": "{no"}}
BAD: dict[str, tuple[object, str]] = {
    "a reward that is no number": (json.dumps({**ROW, "reward": float("nan")}), "Field 'reward': nan"),
    "an endless reward": (json.dumps({**ROW, "reward": float("inf")}), "Field 'reward': inf"),
    "a metric that is no number": (json.dumps({**ROW, "style": float("nan")}), "Field 'style': nan"),
    "a reward that is a truth": ({**ROW, "reward": True}, "Field 'reward'"),
    "a reward in words": ({**ROW, "reward": "1.0"}, "Field 'reward'"),
    "a megabyte in a field": ({**ROW, "completion": [{**REPLY, "content": "x" * 1_000_000}]}, "completion.0.content"),
    "a question that no event holds": ({**ROW, "prompt": [{**USER, "content": "x" * 40_000}]}, "40,001 characters"),
    "NUL": ({**ROW, "answer": "a\0b"}, "Field 'answer': character 2 is NUL"),
    "half of a pair": (json.dumps(ROW).replace('"4"', '"\\ud800"'), "Field 'answer': it holds half"),
    "half of a pair in a name": ({**ROW, "info": {"\ud800": 1}}, "Field 'info': it holds half"),
    "another role": ({**ROW, "prompt": [{**USER, "role": "wizard"}]}, "role"),
    "a message without a role": ({**ROW, "prompt": [{"content": "2+2?"}]}, "role"),
    "endless nesting": ({**ROW, "info": {"a": _deep(100)}}, "nested more than"),
    "arguments that are none": ({**ROW, "completion": [{**REPLY, "tool_calls": [CALL]}]}, "the arguments of f"),
    "a call that is cut": ({**ROW, "completion": [{**REPLY, "tool_calls": ["{"]}]}, "tool_calls.0': Value error"),
    "a call of nothing": ({**ROW, "completion": [{**REPLY, "tool_calls": [{"id": "c"}]}]}, "names no function"),
    "no question": ({**ROW, "prompt": []}, "It asks nothing"),
    "a last line that is cut": (json.dumps(ROW)[:-20], "It is cut off"),
    "a list in the place of a row": ("[1, 2]", "no JSON object"),
    "tokens that lie": ({**ROW, "info": {"agent0": {"trajectory": {"token_ids": [1], "mask": [], "logprobs": []}}}},
                        "differ in length"),
    "a task of ours that is none": ({**ROW, "info": {"agent0": {"task": {"question": "?"}}}}, "Field 'domain'"),
}  # fmt: skip
BAD_DOCUMENTS: dict[str, tuple[object, str]] = {
    "a token below zero": ({"metrics": {"completion_token_ids": [-1]}}, "steps.1.metrics.completion_token_ids.0"),
    "a log-probability that is none": ({"metrics": {"logprobs": [None]}}, "steps.1.metrics.logprobs.0"),
    "a source that is none": ({"source": "tool"}, "steps.1.source"),
    "a step without a message": ({"message": 4}, "steps.1.message"),
    "a call without arguments": ({"tool_calls": [{"tool_call_id": "c", "function_name": "f"}]}, "arguments"),
}


@pytest.mark.parametrize("name", [*BAD, *BAD_DOCUMENTS])
def test_a_bad_row_is_named_by_file_line_and_field_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    if name in BAD:
        row, field = BAD[name]
        path = rows_file(tmp_path / "theirs.jsonl", ROW, row)
    else:
        change, field = BAD_DOCUMENTS[name]
        assert isinstance(change, dict)
        path = rows_file(tmp_path / "theirs.jsonl", ATIF, {**ATIF, "steps": [ATIF["steps"][0], {**STEP, **change}]})
    answer = call("trajectory", "import", str(path), home=tmp_path / "home")
    assert answer.code == 2 and "theirs.jsonl, line 2" in answer.err and field in answer.err, answer.err
    assert len(answer.err.strip().splitlines()) == 1 and not (tmp_path / "home").exists()


@pytest.mark.parametrize("content", ["", "Dear all,\n", json.dumps({"a": 1})])
def test_a_file_of_no_known_format_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "x").write_text(content)
    answer = call("trajectory", "import", str(tmp_path / "x"), home=tmp_path / "home")
    assert answer.code in (1, 2) and answer.err and not (tmp_path / "home").exists()


def test_hostile_text_is_data_wherever_it_is_shown(kept: Path, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x1b[31m\u202e{{7*7}}"
    row = {**ROW, "prompt": [{**USER, "content": evil}], "example_id": "x" * 5000, evil: 1.0, "task": evil}
    result = imported(kept, rows_file(tmp_path / f"{'a' * 60}.jsonl", row))
    answer = call("trajectory", "show", "t0-000-a0", result["run"], home=kept)
    assert answer.code == 0 and "\x1b" not in answer.out and "\u202e" not in answer.out
    assert record(RunFinished(iterations=1, tasks=1, attempts=1, state_sha=""), run=result["run"], time=NOON)


WHOLE = {"token_ids": (5, 6, 7, 8), "mask": (0, 1, 0, 1), "logprobs": (0.0, -0.5, 0.0, -1.0)}
BROKEN: dict[str, tuple[dict[str, Any], int, int]] = {
    "a log-probability lost": ({"logprobs": (0.0, -0.5, 0.0)}, 2, 2),
    "a mark that is none": ({"mask": (0, 2, 0, 1)}, 2, 2),
    "an id that is none": ({"token_ids": (5, -6, 7, 8)}, 2, 2),
    "a probability above one": ({"logprobs": (0.0, 0.5, 0.0, -1.0)}, 2, 2),
    "one that is no number": ({"logprobs": (0.0, float("nan"), 0.0, -1.0)}, 2, 2),
    "a prompt that has one": ({"logprobs": (-0.1, -0.5, 0.0, -1.0)}, 2, 2),
    "a prompt at its end": ({"mask": (0, 1, 0, 0), "logprobs": (0.0, -0.5, 0.0, 0.0)}, 2, 1),
    "more stretches than turns": ({}, 1, 2),
    "a token more than was counted": ({}, 2, 1),
}


@pytest.mark.parametrize("name", BROKEN)
def test_tokens_that_cannot_have_been_written_so_are_a_fault(name: str) -> None:
    change, turns, counted = BROKEN[name]
    assert token_fault(Trajectory(**WHOLE), 2, 2) == "" == token_fault(Trajectory(**WHOLE), 2, 0)
    assert token_fault(Trajectory(**{**WHOLE, **change}), turns, counted)


def test_a_run_is_checked_token_by_token(kept: Path, tmp_path: Path) -> None:
    ours = call("trajectory", "verify", "r1", "--json", home=kept)
    assert ours.code == 0 and ours.json["whole"] == ours.json["attempts"] > 0 and not ours.json["faults"]
    metrics = {"prompt_token_ids": [1], "completion_token_ids": [2], "logprobs": [0.5]}
    lie = {**ATIF, "steps": [ATIF["steps"][0], {**STEP, "metrics": metrics}]}
    theirs = imported(kept, rows_file(tmp_path / "t.jsonl", lie, ATIF))
    answer = call("trajectory", "verify", theirs["run"], "--json", home=kept)
    assert answer.code == 3 and list(answer.json["faults"]) == ["t0-000-a0"]
    assert sum(answer.json["without"].values()) == 1
