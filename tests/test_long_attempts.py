"""Long tasks turn by turn: a restart between any two turns changes nothing that is told, and costs one turn."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.chat_format import format_call
from agent0.errors import DependencyError, NotFoundError, TransientError
from agent0.events import tasks
from agent0.events.base import Event, record
from agent0.events.values import Artifact, Task, ToolState, Turn
from agent0.handlers import handlers
from agent0.ports.models import GenerateRequest, Generation
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.ports.storage import Artifacts
from agent0.rollout.attempt import AttemptProgress, generations
from agent0.rollout.attempt_events import to_events
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, begin, solve, step
from agent0.rollout.workspace_store import Scratch
from agent0.run.lifecycle import RunState, evolve
from agent0.tools import tools
from agent0.tools.cache import ToolCache
from agent0.tools.snapshots import load
from tests.memory import MemoryArtifacts
from tests.test_student import Playback
from tests.world import NOON, Opened, small, started

TOOLS = ("python", "write_file", "rollback", "plan", "submit_answer")
LONG = Task(
    question="First, keep a. Then, keep b. Finally, add them.",
    domain="math",
    family="open",
    level=1,
    canonical="keep a b",
    kind="long",
    subgoals=("keep a", "keep b", "add them"),
)
STUDENT = {"tools": TOOLS, "max_turns": 2, "max_calls": 2, "long_factor": 4, "max_tokens": 500}
LAST = "\\boxed{5}"


class Drawer:
    """``put NAME TEXT`` keeps a file, ``cat NAME`` prints one; anything else fails."""

    def __init__(self) -> None:
        self.calls = 0

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls += 1
        word, _, rest = call.code.partition(" ")
        name, _, text = rest.partition(" ")
        files, out, state = dict(call.files), "", ToolState.OK
        if word == "put":
            files[name] = text.encode()
        elif word == "cat" and name in files:
            out = files[name].decode()
        else:
            state = ToolState.ERROR
        return SandboxResult(state, 0, out, "", 0.25, 0.1, 1.0, "none", "drawer", files, output_bytes=len(out))

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class World:
    """Everything that a turn meets; ``fresh`` is the same after a restart: only what was stored is left."""

    texts: Sequence[str]
    config: dict[str, Any] = field(default_factory=dict)
    artifacts: Artifacts = field(default_factory=MemoryArtifacts)

    @property
    def run(self) -> RunState:
        state = evolve(None, started(small(student={**STUDENT, **self.config})).model_copy(update={"seq": 1}))
        assert state is not None
        return state

    @property
    def ports(self) -> dict[str, Any]:
        return {
            "artifacts": self.artifacts,
            "sandbox": Drawer(),
            "tool_cache": ToolCache(),
            "models": Opened(Playback(self.texts)),
            "web": None,
            "tools": tools(),
            "environments": None,
        }

    async def react(self, event: Event, **ports: Any) -> list[Event]:
        name = "attempt_task" if isinstance(event, tasks.AttemptRequested) else "continue_attempt"
        cause = record(event, run="r1", time=NOON)
        return await handlers()[name](cause, self.run, {**self.ports, **ports})

    async def play(self, event: Event) -> list[Event]:
        """Turn by turn, each in a world of its own."""
        out = await self.react(event)
        while isinstance(out[-1], tasks.TurnCompleted):
            out += await self.react(out[-1])
        return out

    async def attempt(self) -> tasks.TaskAttempted:
        """What is told at the end."""
        last = (await self.play(asked()))[-1]
        assert isinstance(last, tasks.TaskAttempted)
        return last


def asked(task: Task = LONG) -> tasks.AttemptRequested:
    at = {"task": "t0-000", "attempt": "t0-000-a0", "iteration": 0, "number": 0}
    return tasks.AttemptRequested(**at, proposal=task, seed=11, student="base", state_sha="x")  # type: ignore[arg-type]


def call(name: str, **arguments: Any) -> str:
    return format_call(name, arguments)


def put(name: str, text: str) -> str:
    return call("python", code=f"put {name} {text}")


def submit(answer: str, subgoal: int = 0) -> str:
    return call("submit_answer", answer=answer, subgoal=subgoal)


STORY = [
    put("a", "2"),
    put("a", "spoiled"),
    call("rollback", call=1) + call("python", code="cat a"),
    submit("2", 1) + put("b", "3"),
    submit("3", 2),
    submit("5", 3),
]
"""Six turns with files kept between them, a mistake undone, each step answered."""


async def test_six_turns_with_files_a_rollback_and_subgoals() -> None:
    world = World(STORY, {"long_factor": 5})
    out = await world.play(asked())
    calls = [event for event in out if isinstance(event, tasks.ToolCalled)]
    turns = [event for event in out if isinstance(event, tasks.TurnCompleted)]
    last = out[-1]
    assert isinstance(last, tasks.TaskAttempted)
    assert (last.answer, last.end, last.turns, last.subgoals) == ("5", "answered", 6, ("2", "3", "5"))
    assert [turn.turn for turn in turns] == [1, 2, 3, 4, 5]
    assert [turn.subgoals for turn in turns][-1] == ("2", "3", None)
    assert [c.number for c in calls] == list(range(len(calls))) and last.tool_calls == len(calls) == 8
    assert [c.turn for c in calls] == [0, 1, 2, 2, 3, 3, 4, 5]
    first, spoiled, back, *_ = (c.result.work for c in calls)
    assert first == back != spoiled and calls[3].result.output == "2"
    assert load(last.work, world.artifacts) == {"a": b"2", "b": b"3"}
    assert (calls[-1].result.files, calls[-1].result.file_bytes) == (2, 2)
    assert (last.tool_ok, last.grounded) == (5, False)
    assert last.trajectory and len(last.trajectory.token_ids) == len(last.trajectory.logprobs)


async def test_the_start_is_that_of_the_attempt_and_not_of_a_turn() -> None:
    out = await World([put("a", "1"), put("b", "2"), call("rollback", call=0), LAST]).play(asked())
    works = [event.result.work for event in out if isinstance(event, tasks.ToolCalled)]
    assert works[0] and works[1] and works[2] is None and getattr(out[-1], "work", "") is None


TEXTS = st.sampled_from(
    [
        "thinking",
        "<tool_call>oops</tool_call>",
        put("a", "1"),
        put("b", "x" * 50) + call("python", code="cat a"),
        call("python", code="fail"),
        call("python", code="cat b") * 3,
        call("rollback", call=0),
        call("rollback", call=2) + put("c", "2"),
        call("plan", steps=[{"tool": "python", "args": {"code": "cat a"}, "save_as": "a"}]),
        call(
            "plan",
            steps=[
                {"tool": "python", "args": {"code": "put a 7"}},
                {"tool": "python", "args": {"code": "cat a"}, "save_as": "a"},
                {"tool": "submit_answer", "args": {"answer": "{{a}}", "subgoal": 1}},
            ],
        ),
        submit("4", 1),
        submit("4", 9),
        call("nothing", x=1),
        put("a", "1") * 20,
    ]
)


@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=7),
    budgets=st.fixed_dictionaries({"tool_seconds": st.sampled_from([1.0, 60.0]), "max_calls": st.integers(1, 3)}),
    output=st.sampled_from([256, 65_536]),
)
async def test_turn_by_turn_is_the_same_as_in_one_go(texts: list[str], budgets: dict[str, Any], output: int) -> None:
    """Down to budgets, folders, token ids and the parts of plans."""
    texts = [*texts, LAST]
    world = World(texts, {**budgets, "tool_output": output})
    out = await world.play(asked())
    given = Conditions(Playback(texts), world.run.config.student, Drawer(), world.artifacts, seed=11, cache=ToolCache())
    words = prompt("compact", "math", "student", long=True)
    now = begin(LONG, words, given.config)
    while now.end is None:
        now = await step(now, given)
    whole = await to_events(asked(), now, world.artifacts)
    apart = [event for event in out if not isinstance(event, tasks.TurnCompleted)]
    assert [_content(event) for event in apart] == [_content(event) for event in whole]
    assert [event.turn for event in out if isinstance(event, tasks.TurnCompleted)] == list(range(1, len(now.written)))
    assert (await solve(LONG, words, replace(given, cache=ToolCache(), artifacts=Scratch()))).answer == now.answer


def _content(event: Event) -> dict[str, Any]:
    """Which process had a result in its cache is no fact about the attempt."""
    told = event.model_dump()
    if isinstance(event, tasks.ToolCalled):
        told["result"].pop("cached")
    return told


@settings(max_examples=25, deadline=None)
@given(
    contexts=st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=6), st.booleans()), min_size=1, max_size=6),
)
def test_progress_is_stored_whole_and_growing_contexts_once(contexts: list[tuple[list[int], bool]]) -> None:
    now = AttemptProgress(
        transcript=(Turn(role="user", content="?"),), prompt="v", turns=9, calls=9, seconds=1.5, characters=9
    )
    written: list[Generation] = []
    seen: tuple[int, ...] = ()
    for more, grows in contexts:
        seen = (*(seen if grows else ()), *more)
        written.append(Generation("t", (7, 8), (-0.5, float("-inf")), seen, "stop", model="m"))
        now = now.wrote(written[-1], 1)
        seen = (*seen, 7, 8)
    again = AttemptProgress.model_validate_json(now.model_dump_json())
    assert again == now
    assert generations(again) == written
    if all(grows for _, grows in contexts):
        assert sum(len(one.prompt_ids) for one in now.written) == sum(len(more) for more, _ in contexts)


@pytest.mark.parametrize(
    ("texts", "end", "turns", "made"),
    [
        (["<tool_call>oops</tool_call>"] * 9, "turn_limit", 8, 8),
        ([put("a", "1") * 5, put("a", "1") * 5, put("b", "2")], "budget", 3, 8),
        (["hm"], "no_answer", 1, 0),
    ],
)
async def test_a_long_task_has_its_limits_times_the_factor(texts: list[str], end: str, turns: int, made: int) -> None:
    out = await World(texts).play(asked())
    last = out[-1]
    assert isinstance(last, tasks.TaskAttempted)
    assert (last.end, last.turns, last.answer) == (end, turns, None)
    called = [e for e in out if isinstance(e, tasks.ToolCalled)]
    assert sum(e.result.state is not ToolState.REFUSED for e in called) == made


async def test_a_short_task_is_told_at_its_end_only() -> None:
    short = LONG.model_copy(update={"kind": "short", "subgoals": ()})
    out = await World([put("a", "2"), LAST]).play(asked(short))
    assert Counter(type(event).__name__ for event in out) == {"ToolCalled": 1, "TaskAttempted": 1}


async def test_a_turn_that_is_made_again_is_the_same() -> None:
    """Whoever was killed in the middle of it left nothing that the next would notice."""
    world = World(STORY)
    out = await world.react(asked())
    while isinstance(turn := out[-1], tasks.TurnCompleted):

        class Killed(Drawer):
            async def call(self, call: SandboxCall) -> SandboxResult:
                raise asyncio.CancelledError

        if any("python" in text for text in STORY[turn.turn : turn.turn + 1]):
            with pytest.raises(asyncio.CancelledError):
                await world.react(turn, sandbox=Killed())
        first, again = await world.react(turn), await world.react(turn)
        assert [_content(e) for e in first] == [_content(e) for e in again]
        out = again
    assert isinstance(out[-1], tasks.TaskAttempted)


async def test_each_step_of_a_plan_is_told_with_the_folder_it_left() -> None:
    steps = [{"tool": "python", "args": {"code": f"put f{n} {n}"}} for n in range(3)]
    world = World([call("plan", steps=steps), LAST])
    calls = [e for e in await world.play(asked()) if isinstance(e, tasks.ToolCalled)]
    assert [(c.call.name, c.inner, c.number) for c in calls] == [
        ("python", True, 0), ("python", True, 1), ("python", True, 2), ("plan", False, 3),
    ]  # fmt: skip
    folders = [sorted(load(c.result.work, world.artifacts)) for c in calls]
    assert folders == [["f0"], ["f0", "f1"], ["f0", "f1", "f2"], ["f0", "f1", "f2"]]
    assert calls[2].result.work == calls[3].result.work


class Counting(MemoryArtifacts):
    """Counts what is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: list[str] = []

    def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
        self.puts.append(media)
        return super().put(data, media)


async def test_a_folder_is_stored_only_when_it_changed() -> None:
    artifacts = Counting()
    look = call("python", code="cat a")
    short = LONG.model_copy(update={"kind": "short", "subgoals": ()})
    world = World([put("a", "2") + look, look + look + look, LAST], {"max_calls": 9, "max_turns": 9}, artifacts)
    calls = [e for e in await world.play(asked(short)) if isinstance(e, tasks.ToolCalled)]
    assert len({c.result.work for c in calls}) == 1 and len(calls) == 5
    assert sum("manifest" in media for media in artifacts.puts) == 1
    await World([look, LAST], {}, artifacts := Counting()).play(asked(short))
    assert artifacts.puts == []


async def test_a_full_disk_is_waited_for_and_a_lost_progress_is_said() -> None:
    class Full(MemoryArtifacts):
        def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
            raise DependencyError("artifact store", "No space left on device.")

    world = World(STORY)
    with pytest.raises(DependencyError, match="No space"):
        await world.react(asked(), artifacts=Full())
    turn = (await world.react(asked()))[-1]
    with pytest.raises(NotFoundError, match="No artifact"):
        await world.react(turn, artifacts=MemoryArtifacts())


@pytest.mark.parametrize("state", [ToolState.BUSY, ToolState.SANDBOX_ERROR, ToolState.CANCELLED])
async def test_a_failing_sandbox_inside_a_plan_is_nobodys_fault_either(state: ToolState) -> None:
    class Broken(Drawer):
        async def call(self, call: SandboxCall) -> SandboxResult:
            return SandboxResult(state, None, "", "", 0.0, 0.0, 0.0, "none", "broken")

    with pytest.raises(TransientError):
        text = call("plan", steps=[{"tool": "python", "args": {"code": "x"}}])
        await World([text]).react(asked(), sandbox=Broken())


async def test_a_turn_that_cannot_be_read_is_told_to_the_student() -> None:
    last = await World(["x" * 40_000, put("a", "1") * 17, "\\boxed{1}"], {"max_calls": 9}).attempt()
    told = [turn.content for turn in last.transcript if turn.role == "tool" and not turn.name]
    assert ["cut at 32768 characters" in told[0], "17 calls, 16 read" in told[1]] == [True, True]
    assert (last.answer, last.parse_errors, len(told)) == ("1", 2, 2)


async def test_used_up_budgets_are_told_to_the_student() -> None:
    last = await World([put("a", "1") * 9, LAST]).attempt()
    assert last.answer == "5"
    told = [turn.content for turn in last.transcript if turn.role == "tool"]
    assert ["used up" in text for text in told] == [False] * 8 + [True]
    late = await World([call("python", code="cat a"), put("a", "1"), LAST], {"tool_seconds": 0.2}).attempt()
    assert "tool time is used up" in [turn.content for turn in late.transcript if turn.role == "tool"][1]
    much = [put("a", "y" * 200), call("python", code="cat a"), call("python", code="cat a"), LAST]
    wordy = await World(much, {"tool_output": 256}).attempt()
    told = [turn.content for turn in wordy.transcript if turn.role == "tool"]
    assert ["tool output is used up" in text for text in told] == [False, False, True]


async def test_a_boxed_answer_answers_the_last_subgoal_too() -> None:
    last = await World([submit("2", 1), LAST]).attempt()
    assert (last.answer, last.subgoals, last.tool_ok) == ("5", ("2", None, "5"), 0)


async def test_no_call_follows_a_submitted_answer() -> None:
    last = await World([put("a", "1") + submit("9") + put("b", "2")]).attempt()
    assert (last.answer, last.end, last.tool_calls, last.tool_ok) == ("9", "answered", 2, 1)


async def test_the_next_turn_is_asked_as_the_last_one_was_left() -> None:
    """The model sees the sampled ids of every turn before, whichever process sampled them."""
    requests: list[GenerateRequest] = []

    class Seeing(Playback):
        async def generate(self, request: GenerateRequest) -> Generation:
            requests.append(request)
            return await super().generate(request)

    world = World(STORY, {"long_factor": 5})
    event: Event = asked()
    while isinstance(event, tasks.AttemptRequested | tasks.TurnCompleted):
        event = (await world.react(event, models=Opened(Seeing(STORY))))[-1]
    for before, after in pairwise(requests):
        assert after.turns[: len(before.turns)] == before.turns
        assert after.turns[len(before.turns)].token_ids
    assert len({request.sampling.seed for request in requests}) == len(requests) == 6
