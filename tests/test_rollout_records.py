"""What an attempt asks of its model and leaves behind, field by field: requests, events, work folders, critiques,
and the tables about tool use."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agent0.chat_format import format_call
from agent0.errors import Agent0Error, ConfigError, NotFoundError, TransientError
from agent0.events.tasks import AttemptRequested, TaskAttempted, ToolCalled, TurnCompleted
from agent0.events.values import (
    Artifact,
    SelfCritique,
    Task,
    ToolCall,
    ToolResult,
    ToolState,
    ToolUse,
    Trajectory,
    Turn,
    Usage,
)
from agent0.ports.models import GenerateRequest, Generation, Sampling, ToolSpec
from agent0.rollout.attempt import AttemptProgress, WrittenTurn, generations
from agent0.rollout.attempt_events import conditions, to_events
from agent0.rollout.claim_check import INLINE, claim, claim_turns, get_progress, put_progress, redeem
from agent0.rollout.prompts import prompt, render
from agent0.rollout.student import Conditions, begin, conclude, specs_of, step
from agent0.rollout.tool_prompts import text_arguments
from agent0.rollout.workspace_store import Keeper, Scratch, StoredFolder, opened
from agent0.settings import RunConfig, StudentConfig
from agent0.state.run_state import RunState
from agent0.tasks.seeds import derive_seed
from agent0.turns.observations import plain_output
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.test_student import Playback, play

TASK = Task(question="What is 12+30?", domain="math", family="arithmetic", level=1, canonical="arithmetic 12+30")
ADAPTER = Artifact(sha256="a" * 64, size=9)
SPEC = ToolSpec("python", "Runs code.", {"properties": {"code": {"type": "string"}}, "required": ["code"]})


def told(refused: pytest.ExceptionInfo[Agent0Error]) -> tuple[str, str, str]:
    return refused.value.what, refused.value.why, refused.value.fix


class OneModel:
    """Opens one model, whoever asks."""

    def __init__(self, model: Any) -> None:
        self.model, self.asked = model, list[Any]()

    def open(self, actor: Any) -> Any:
        self.asked.append(actor)
        return self.model


REQUEST = AttemptRequested(
    task="t",
    attempt="a",
    iteration=2,
    number=3,
    proposal=TASK,
    seed=7,
    student="student-1",
    adapter=ADAPTER,
    state_sha="",
)


def test_the_conditions_of_an_attempt_are_its_runs() -> None:
    run = RunState("r", 1, RunConfig(), "")
    models, sandbox, store, web, tools = OneModel("model"), TrustingSandbox(), Scratch(), "web", {"x": "tool"}
    given = conditions(REQUEST, run, models, sandbox, "cache", store, web, tools)  # type: ignore[arg-type]
    assert models.asked == [run.config.student]
    assert {name: value for name, value in vars(given).items() if name not in ("prefill", "temperature", "start")} == {
        "model": "model", "config": run.config.student, "sandbox": sandbox, "artifacts": store, "seed": 7,
        "adapter": ADAPTER, "group": "r", "cache": "cache", "policy": run.config.policy, "web": web, "tools": tools,
        "joint": True, "task": "t", "attempt": "a", "by_files": False, "by_steps": False, "messages": "", "user": None,
    }  # fmt: skip
    assert (given.prefill, given.temperature, given.start) == ("", None, None)


def progress(**more: Any) -> AttemptProgress:
    call = ToolCall(name="python", arguments={"code": "print(40+2)"})
    done = ToolResult(state=ToolState.OK, output="42\n", wall_s=0.5)
    failed = ToolResult(state=ToolState.ERROR, output="no", wall_s=0.25)
    usage = Usage(prompt_tokens=3, completion_tokens=2, wall_s=1.0, first_s=0.5)
    one = WrittenTurn(text="x", token_ids=(5, 6), logprobs=(-1.0, -3.0), prompt_ids=(1, 2), usage=usage, model="m",
                  seed=4, capture="tokens", author="other")  # fmt: skip
    plain: dict[str, Any] = {
        "transcript": (Turn(role="user", content="q"), Turn(role="assistant", content="x", token_ids=(5, 6))),
        "prompt": "v1", "turns": 1, "calls": 1, "seconds": 2.0, "characters": 3, "written": (one,), "question": "q",
        "called": (ToolUse(turn=0, call=call, result=done), ToolUse(turn=0, call=call, result=failed, inner=True)),
        "work": ADAPTER, "errors": 2, "subgoals": ("1", None),
    }  # fmt: skip
    return AttemptProgress(**{**plain, **more})


async def test_a_turn_that_goes_on_becomes_its_calls_and_itself() -> None:
    store, now = MemoryArtifacts(), progress()
    *calls, turn = await to_events(REQUEST, now, store, already=1)
    (one,) = now.called[1:]
    assert calls == [ToolCalled(task="t", attempt="a", turn=0, number=1, call=one.call, result=one.result, inner=True)]
    assert isinstance(turn, TurnCompleted)
    assert turn.model_dump(exclude={"progress"}) == {
        "task": "t", "attempt": "a", "iteration": 2, "number": 3, "turn": 1, "student": "student-1",
        "adapter": ADAPTER.model_dump(), "proposal": TASK.model_dump(), "subgoals": ("1", None), "seed": 7,
    }  # fmt: skip
    assert await get_progress(turn.progress, store) == now and turn.progress.media == "application/json"
    assert len(await to_events(REQUEST, now, store)) == 3


async def test_an_attempt_that_ended_becomes_an_event_with_all_fields() -> None:
    critique = SelfCritique(prompt="c", question="?", probability=0.25, verdict=False)
    *_, event = await to_events(REQUEST, progress(end="answered", answer="42", critique=critique), Scratch())
    assert isinstance(event, TaskAttempted)
    turns = [Turn(role="user", content="q"), Turn(role="assistant", content="x")]
    assert event.model_dump(exclude={"signals"}) == {
        "task": "t", "attempt": "a", "iteration": 2, "number": 3, "student": "student-1", "answer": "42",
        "end": "answered", "turns": 1, "tool_calls": 2, "tool_ok": 1, "parse_errors": 2, "grounded": True,
        "transcript": tuple(turn.model_dump() for turn in turns), "transcript_artifact": None,
        "compacted": 0,
        "trajectory": {"token_ids": (1, 2, 5, 6), "mask": (0, 0, 1, 1), "logprobs": (0.0, 0.0, -1.0, -3.0)},
        "trajectory_artifact": None, "mean_logprob": -2.0, "prompt": "v1", "model": "m", "seed": 7, "wall_s": 1.5,
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "wall_s": 1.0, "first_s": 0.5},
        "subgoals": ("1", None), "work": ADAPTER.model_dump(), "computed": False, "trajectory_problem": "",
        "capture": "tokens", "seeds": (4,), "critique": critique.model_dump(), "authors": {"other": 1},
        "foreign": None,
    }  # fmt: skip
    assert event.signals == pytest.approx(
        {"mean_token": 0.13533528, "grounded": 1.0, "calls_ok": 0.5, "self_critique": 0.25}
    )
    plain = conclude(progress(end="no_answer", critique=SelfCritique(prompt="c", question="?", problem="none")))
    assert (plain.grounded, plain.answer, "self_critique" in plain.signals) == (False, None, False)
    unseeded = progress(end="length", written=(progress().written[0].model_copy(update={"seed": None}),))
    assert conclude(unseeded).seeds == ()


def test_what_is_over_the_limit_is_stored_beside_the_event() -> None:
    store = Scratch()
    small = Trajectory(token_ids=(1,), mask=(1,), logprobs=(0.0,))
    assert claim(None, store) == (None, None) and claim(small, store) == (small, None)
    large = Trajectory(token_ids=(1,) * INLINE, mask=(1,) * INLINE, logprobs=(0.0,) * INLINE)
    inline, stored = claim(large, store)
    assert inline is None and stored is not None and stored.media == "application/json"
    assert redeem(None, stored, store) == large and redeem(small, None, store) is small

    def turns(characters: int) -> tuple[Turn, ...]:
        return (Turn(role="user", content="x" * characters, token_ids=(1, 2)),)

    rest = len(json.dumps([turns(0)[0].model_copy(update={"token_ids": ()}).model_dump()]))
    kept, none = claim_turns(turns(INLINE - rest), store)
    assert none is None and kept[0].token_ids == () and len(kept[0].content) == INLINE - rest
    kept, stored = claim_turns(turns(INLINE - rest + 1), store)
    assert kept == () and stored is not None and stored.media == "application/json"
    assert json.loads(store.get(stored)) == [turns(INLINE - rest + 1)[0].model_dump() | {"token_ids": []}]


async def test_progress_is_stored_as_json() -> None:
    stored = await put_progress(progress(), store := Scratch())
    assert stored.media == "application/json" and json.loads(store.get(stored))["prompt"] == "v1"


def test_a_turn_that_was_written_is_stored_with_all_that_is_known_of_it() -> None:
    usage = Usage(prompt_tokens=1, completion_tokens=2, wall_s=3.0)
    said = Generation("x", (5, 6), (-1.0, -2.0), (1, 2), "length", usage, "m", (1, 2), "tokens", "why", 9)
    again = replace(said, prompt_ids=(1, 2, 5, 6, 7))
    now = progress(written=(), errors=1).wrote(said, 2).wrote(again, 0)
    assert generations(now) == [said, again] and (now.errors, now.turns) == (3, -1)
    assert [one.shared for one in now.written] == [0, 4] and now.written[1].prompt_ids == (7,)
    assert now.transcript[-1] == Turn(role="assistant", content="x", token_ids=(5, 6))
    apart = progress(written=()).wrote(said, 0).wrote(replace(said, prompt_ids=(1, 2, 5, 9)), 0)
    assert [one.shared for one in apart.written] == [0, 0]


# --- a turn


async def test_a_turn_is_asked_for_with_all_that_was_set() -> None:
    config = StudentConfig(max_tokens=77, temperature=0.5, top_p=0.25, tools=("python",), choices=3, max_calls=2)
    model = Playback(["\\boxed{1}"])
    given = Conditions(
        model, config, TrustingSandbox(), Scratch(), seed=7, adapter=ADAPTER, group="r", prefill="So", joint=True
    )
    words = prompt("compact", "math", "student")
    now = begin(TASK, words, config)
    ended = await step(now, given)
    (asked,) = model.asked
    assert asked == GenerateRequest(
        now.transcript, Sampling(0.5, 0.25, 77, derive_seed(7, "turn", 0)), specs_of(("python",)), ADAPTER, "So", "r",
        joint=3,
    )  # fmt: skip
    assert (ended.end, ended.answer, ended.turns) == ("answered", "1", config.max_turns - 1)
    model.asked.clear()
    await step(
        progress(written=(progress().written[0],), transcript=now.transcript),
        replace(given, temperature=0.0, joint=False),
    )
    assert (model.asked[0].prefill, model.asked[0].joint, model.asked[0].sampling.temperature) == ("", 1, 0.0)
    assert model.asked[0].sampling.seed == derive_seed(7, "turn", 1)


def test_an_attempt_begins_with_its_budgets() -> None:
    config = StudentConfig(
        max_turns=3, max_calls=2, long_factor=4, tool_seconds=5.0, tool_output=600, tools=("python",)
    )
    words = prompt("compact", "math", "student")
    now = begin(TASK, words, config)
    assert now == AttemptProgress(
        transcript=render(words, {"question": TASK.question, "domain": "math"}), prompt=words.version, turns=3, calls=2,
        seconds=5.0, characters=600, question=TASK.question,
    )  # fmt: skip
    long = begin(TASK.model_copy(update={"kind": "long", "subgoals": ("a", "b")}), words, config)
    assert (long.turns, long.calls, long.subgoals, long.seconds) == (12, 8, (None, None), 5.0)


async def test_what_is_refused_or_used_up_is_told_in_these_words() -> None:
    with pytest.raises(ConfigError) as refused:
        specs_of(("a", "b"), {"a": None})  # type: ignore[dict-item]
    assert told(refused) == ("There is no tool named b.", "The tools are: a.", "Set run.student.tools.")
    one = StudentConfig(max_tokens=200, tools=("python",), max_calls=1, tool_output=256)
    calls = format_call("python", {"code": "print('x' * 999)"}) * 2
    solved = await play(calls, "\\boxed{42}", config=one)
    shown_turns = [turn.content for turn in solved.transcript if turn.role == "tool"]
    assert shown_turns[0].endswith(
        "\n[the attempt's tool output is used up; only the beginning and end of more is shown]"
    )
    last = solved.tool_calls[-1].result
    assert (last.state, last.reason) == (ToolState.REFUSED, "the attempt's tool calls are used up")
    assert last.output == "[refused: the attempt's tool calls are used up; give your answer now]"

    class Failing(TrustingSandbox):
        async def call(self, call: Any) -> Any:
            return replace(await super().call(call), state=ToolState.SANDBOX_ERROR, stdout="", stderr="broken")

    with pytest.raises(TransientError) as failed:
        await play(format_call("python", {"code": "print(1)"}), sandbox=Failing())
    assert failed.value.what == "The sandbox did not run a tool call." and failed.value.why.startswith(
        "sandbox_error: "
    )
    unread = await play('<tool_call>{"name": 3}</tool_call>' * 17, "\\boxed{1}", config=StudentConfig())
    assert unread.transcript[-2].content == "The turn could not be read whole: 17 calls, 16 read."
    assert unread.parse_errors == 17


def test_plain_text_fills_the_one_argument_that_is_required() -> None:
    two = replace(SPEC, name="two", parameters={"required": ["a", "b"]})
    assert text_arguments((SPEC, two, replace(SPEC, name="none", parameters={}))) == {"python": "code"}
    printed = {"x = 3": "3", "x y = 3": "x y = 3", "[ 4 ]": "4", '"a"': "a", "a\n b ": "b", "x = ": "", "=3": "=3"}
    assert {text: plain_output(text) for text in printed} == printed


async def test_a_folder_is_kept_whenever_it_changed() -> None:
    store = Scratch()
    keeper = Keeper(store, None, files := {"a": b"1"})
    assert (await keeper.keep(files)).manifest is None is keeper.work and dict(await keeper.keep({"a": b"1"})) == {}
    kept = await keeper.keep({"a": b"1", "b": b"2"})
    assert dict(kept) == {"a": b"1", "b": b"2"} == await opened(kept.manifest, store) and len(kept) == 2
    assert keeper.work == kept.manifest != None  # noqa: E711 - not the first one
    await keeper.keep({})
    assert (await keeper.keep(kept)).manifest == kept.manifest == keeper.work
    assert await opened(None, store) == {} == dict(StoredFolder(None, store))
    with pytest.raises(NotFoundError) as gone:
        store.get(ADAPTER)
    assert told(gone) == ("Artifact aaaaaaaaaaaa is not of this attempt.", "", "")
    put = store.put(b"x")
    assert (put.size, put.media, store.get(put)) == (1, "application/octet-stream", b"x")
