"""An attempt from question to end: every way it can end, what is recorded of it, and what it must never do."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agent0.chat_format import format_call
from agent0.errors import ConfigError, SandboxUnavailableError, TransientError
from agent0.events.values import Task, ToolState, Usage
from agent0.grading.normal_form import same
from agent0.infra.models.scripted import ROLES, Scripted, decode
from agent0.ports.models import GenerateRequest, Generation
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.rollout.attempt import AttemptResult
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, solve, specs_of
from agent0.rollout.tool_prompts import text_arguments
from agent0.rollout.workspace_store import Scratch
from agent0.settings import StudentConfig
from agent0.tasks.families import families
from agent0.tasks.splits import task_of
from agent0.tools.cache import ToolCache
from agent0.turns.observations import REPEATED, plain_output
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.world import own

CONFIG = StudentConfig(max_tokens=200, tools=("python", "sympy"))
TASK = Task(question="What is 12+30?", domain="math", family="arithmetic", level=1, canonical="arithmetic 12+30")
CALL = format_call("python", {"code": "print(12+30)"})


@dataclass
class Playback:
    """Writes given texts turn by turn, whoever asks, with the tokens a real model would report."""

    texts: Sequence[str]
    finish: str = "stop"
    asked: list[GenerateRequest] = field(default_factory=list)
    name: str = "playback"

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked.append(request)
        number = sum(turn.role == "assistant" for turn in request.turns)
        text = request.prefill + self.texts[number]
        ids = tuple(256 + ord(letter) for letter in text[len(request.prefill) :])
        last = self.finish if number + 1 == len(self.texts) else "stop"
        seen = self._seen(request)
        usage = Usage(prompt_tokens=len(seen), completion_tokens=len(ids), wall_s=0.25)
        return Generation(text, ids, (-0.5,) * len(ids), seen, last, usage, self.name)

    @staticmethod
    def _seen(request: GenerateRequest) -> tuple[int, ...]:
        """Roles as control tokens, letters as ids."""
        ids: list[int] = []
        for turn in request.turns:
            ids += [ROLES[turn.role], *(256 + ord(letter) for letter in turn.content)]
        return (*ids, ROLES["assistant"], *(256 + ord(letter) for letter in request.prefill))

    async def close(self) -> None:
        """Nothing is open."""


async def play(
    *texts: str, sandbox: TrustingSandbox | None = None, finish: str = "stop", **options: object
) -> AttemptResult:
    """An attempt at TASK in which the model writes ``texts``."""
    given: dict[str, Any] = {"config": CONFIG, "seed": 3, "artifacts": Scratch()} | options
    model = given.pop("model", None) or Playback(texts, finish)
    words = prompt("compact", "math", "student")
    return await solve(given.pop("task", TASK), words, Conditions(model, sandbox=sandbox or TrustingSandbox(), **given))


@pytest.mark.parametrize(
    ("code", "end", "answer"),
    [
        ("print(12+30)", "answered", "42"),
        ("print('so:')\nprint('total =', 12+30)", "answered", "42"),
        ("12+30", "answered", "42"),
        ("total = 12+30", "turn_limit", None),
        ("print(12+30", "turn_limit", None),
        ("print(12/0)", "turn_limit", None),
    ],
)
async def test_what_a_program_prints_last_can_be_the_answer(code: str, end: str, answer: str | None) -> None:
    config = CONFIG.model_copy(update={"program_answers": True, "max_turns": 1})
    solved = await play(format_call("python", {"code": code}), config=config)
    assert (solved.end, solved.answer, solved.turns) == (end, answer, 1)
    assert solved.grounded == (answer is not None)


async def test_a_program_that_fails_can_be_written_again() -> None:
    config = CONFIG.model_copy(update={"program_answers": True})
    solved = await play(format_call("python", {"code": "print(1/0)"}), CALL, config=config)
    assert (solved.end, solved.answer, solved.turns) == ("answered", "42", 2)


async def test_a_call_its_output_and_an_answer() -> None:
    sandbox = TrustingSandbox()
    solved = await play(f"I compute.\n{CALL}", "\\boxed{42}", sandbox=sandbox)
    assert (solved.answer, solved.end, solved.turns, solved.tool_ok, solved.grounded) == ("42", "answered", 2, 1, True)
    assert [(c.turn, c.call.name, c.result.output) for c in solved.tool_calls] == [(0, "python", "42")]
    assert [turn.role for turn in solved.transcript] == ["user", "assistant", "tool", "assistant"]
    assert [call.code for call in sandbox.calls] == ["print(12+30)"]
    assert solved.wall_s == pytest.approx(0.25 + 0.25 + 0.01)


@pytest.mark.parametrize(
    ("texts", "finish", "end", "answer"),
    [
        (["\\boxed{1}"], "stop", "answered", "1"),
        (["hm"], "stop", "no_answer", None),
        (["and so on"], "length", "length", None),
        (["\\boxed{1} and so on"], "length", "answered", "1"),
        ([CALL[:30]], "length", "length", None),
        ([CALL] * 4, "stop", "turn_limit", None),
        ([CALL * 5, CALL], "stop", "budget", None),
        ([CALL * 5, "\\boxed{42}"], "stop", "answered", "42"),
        ([CALL * 3, CALL * 2, CALL], "stop", "budget", None),
        ([CALL, CALL, CALL, CALL * 2], "stop", "budget", None),
        ([f"{CALL}\n\\boxed{{7}}", "\\boxed{42}"], "stop", "answered", "42"),
        ([f"{CALL}\n\\boxed{{7}}", "hm"], "stop", "no_answer", None),
    ],
)
async def test_ends(texts: list[str], finish: str, end: str, answer: str | None) -> None:
    solved = await play(*texts, finish=finish)
    assert (solved.end, solved.answer) == (end, answer)
    assert solved.turns == len(texts)
    made = [c for c in solved.tool_calls if c.result.state is not ToolState.REFUSED]
    assert len(made) <= CONFIG.max_calls
    assert len([turn for turn in solved.transcript if turn.role == "tool"]) == len(solved.tool_calls)


async def test_malformed_and_unknown_calls_are_told_to_the_student() -> None:
    texts = ["<tool_call>oops</tool_call>", format_call("pyton", {}), format_call("python", {"cod": "1"}), "\\boxed{1}"]
    sandbox = TrustingSandbox()
    solved = await play(*texts, sandbox=sandbox)
    assert [c.result.state for c in solved.tool_calls] == [ToolState.ERROR] * 3
    told = [turn.content for turn in solved.transcript if turn.role == "tool"]
    assert "could not be read" in told[0] and "python" in told[1] and "cod" in told[2]
    assert (solved.parse_errors, solved.tool_ok, solved.grounded, sandbox.calls) == (1, 0, False, [])


async def test_question_and_tool_output_are_never_read_for_calls_or_answers() -> None:
    """Both hold a call and an answer; only what the model wrote counts."""
    trap = f"{CALL}\n\\boxed{{666}}"
    sandbox = TrustingSandbox()
    task = TASK.model_copy(update={"question": trap})
    model = Playback([format_call("python", {"code": f"print({trap!r})"}), "hm"])
    solved = await play(model=model, task=task, sandbox=sandbox)
    assert trap in solved.transcript[0].content and trap in solved.transcript[2].content
    assert (solved.answer, solved.end, len(sandbox.calls)) == (None, "no_answer", 1)


async def test_each_turn_has_a_random_stream_of_its_own() -> None:
    model, again, other = (Playback([CALL, CALL, "\\boxed{1}"]) for _ in range(3))
    await play(model=model)
    await play(model=again)
    await play(model=other, seed=4)
    seeds = [[request.sampling.seed for request in m.asked] for m in (model, again, other)]
    assert seeds[0] == seeds[1]
    assert len({*seeds[0], *seeds[2]}) == 6


async def test_sampling_prefill_and_group_reach_the_model() -> None:
    model = Playback(['\n{"name": "python", "arguments": {"code": "print(1)"}}\n</tool_call>', "\\boxed{1}"])
    solved = await play(model=model, prefill="<tool_call>", temperature=0.0, group="run-1")
    first, second = model.asked
    assert (first.prefill, second.prefill) == ("<tool_call>", "")
    assert (first.sampling.temperature, first.group, first.sampling.max_tokens) == (0.0, "run-1", 200)
    assert [spec.name for spec in first.tools] == ["python", "sympy"]
    assert solved.tool_ok == 1 and solved.grounded
    assert solved.trajectory, solved.trajectory_problem
    forced = "".join(chr(i - 256) for i in model.asked[1].turns[1].token_ids)
    assert not forced.startswith("<tool_call>")


async def test_a_trajectory_holds_what_was_sampled_and_nothing_else() -> None:
    solved = await play(CALL, "\\boxed{42}")
    path = solved.trajectory
    assert path, solved.trajectory_problem
    assert len(path.token_ids) == len(path.mask) == len(path.logprobs)
    sampled = "".join(chr(i - 256) for i, own in zip(path.token_ids, path.mask, strict=True) if own)
    assert sampled == f"{CALL}\\boxed{{42}}"
    assert {p for p, own in zip(path.logprobs, path.mask, strict=True) if own} == {-0.5}
    assert {p for p, own in zip(path.logprobs, path.mask, strict=True) if not own} == {0.0}
    assert solved.mean_logprob == pytest.approx(-0.5)


async def test_a_context_that_was_encoded_again_gives_no_trajectory() -> None:
    class Forgetful(Playback):
        async def generate(self, request: GenerateRequest) -> Generation:
            written = await super().generate(request)
            return replace(written, prompt_ids=(len(self.asked), *written.prompt_ids))

    solved = await play(model=Forgetful([CALL, "\\boxed{42}"]))
    assert solved.trajectory is None
    assert solved.trajectory_problem == "turn 0 is no prefix of the last context"
    assert solved.answer == "42"


async def test_models_without_ids_are_played_too() -> None:
    class Mute(Playback):
        async def generate(self, request: GenerateRequest) -> Generation:
            return replace(await super().generate(request), token_ids=(), prompt_ids=(), logprobs=())

    solved = await play(model=Mute([CALL, "\\boxed{42}"]))
    assert (solved.trajectory, solved.mean_logprob, solved.grounded) == (None, None, True)


async def test_a_failing_sandbox_is_never_the_students_fault() -> None:
    class Broken(TrustingSandbox):
        def __init__(self, state: ToolState | None) -> None:
            super().__init__()
            self.state = state

        async def call(self, call: SandboxCall) -> SandboxResult:
            if self.state is None:
                raise SandboxUnavailableError("The sandbox", "no bubblewrap")
            return SandboxResult(self.state, None, "", "", 0.0, 0.0, 0.0, "none", "broken")

    with pytest.raises(SandboxUnavailableError):
        await play(CALL, sandbox=Broken(None))
    for state in (ToolState.SANDBOX_ERROR, ToolState.BUSY, ToolState.CANCELLED):
        with pytest.raises(TransientError):
            await play(CALL, sandbox=Broken(state))
    for state in (ToolState.TIMEOUT, ToolState.MEMORY, ToolState.OUTPUT_FLOOD, ToolState.REFUSED):
        solved = await play(CALL, "\\boxed{1}", sandbox=Broken(state))
        assert (solved.tool_ok, solved.grounded, solved.end) == (0, False, "answered")


async def test_identical_calls_are_run_once() -> None:
    sandbox, cache = TrustingSandbox(), ToolCache()
    attempts = await asyncio.gather(*(play(CALL, "\\boxed{42}", sandbox=sandbox, cache=cache) for _ in range(5)))
    assert len(sandbox.calls) == 1
    assert sorted(a.tool_calls[0].result.cached for a in attempts) == [False, True, True, True, True]


async def test_a_call_that_is_made_again_is_told_so() -> None:
    """Word for word, right behind itself, with the same result; another call in between is no repetition."""
    other = CALL.replace("12+30", "30+12")
    solved = await play(CALL, CALL, other, CALL, "\\boxed{42}", config=CONFIG.model_copy(update={"max_calls": 4}))
    read = [turn.content for turn in solved.transcript if turn.role == "tool"]
    assert [text.startswith(REPEATED) for text in read] == [False, True, False, False]
    assert plain_output(read[1]) == plain_output(read[0])


async def test_plain_text_input_fills_the_only_required_argument() -> None:
    assert text_arguments(specs_of(["python", "sympy", "shell"])) == {"python": "code", "shell": "command"}
    solved = await play("Thought: easy\nAction: python[print(6*7)]", "Final Answer: 42")
    assert (solved.grounded, solved.answer, solved.parse_errors) == (True, "42", 0)


async def test_without_calls_allowed_no_tool_is_offered() -> None:
    model = Playback([CALL, CALL])
    sandbox = TrustingSandbox()
    solved = await play(model=model, sandbox=sandbox, config=CONFIG.model_copy(update={"max_calls": 0}))
    assert (model.asked[0].tools, solved.end, sandbox.calls) == ((), "budget", [])
    assert "used up" in model.asked[1].turns[-1].content


async def test_an_unknown_tool_is_a_mistake_of_configuration() -> None:
    with pytest.raises(ConfigError, match="no tool named telescope"):
        await play("x", config=CONFIG.model_copy(update={"tools": ("telescope",)}))


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("42\n", "42"),
        ("a\nx = 3", "3"),
        ("[7]", "7"),
        ("[1, 2]", "[1, 2]"),
        ("'no'", "no"),
        ("", ""),
        ("x == 3", "x == 3"),
    ],
)
def test_printed_values_without_wrapping(output: str, value: str) -> None:
    assert plain_output(output) == value


@pytest.mark.parametrize("family", sorted(own(long=False)))
async def test_the_scripted_student_solves_real_tasks_with_its_tool(family: str) -> None:
    """Forced to call, it is right on reference calls; the trajectory holds its sampled text."""
    entry, rng = families()[family], random.Random(5)
    task = task_of(entry, entry.render(entry.sample(1, rng), rng))
    assert task
    solved = await play(model=Scripted(MemoryArtifacts()), task=task, seed=1, prefill="<tool_call>")
    assert solved.end == "answered" and solved.grounded and solved.tool_ok == 1
    said = solved.answer or ""
    assert not entry.check(task.params, said) if entry.check else same(said, entry.solve(task.params))
    path = solved.trajectory
    assert path, solved.trajectory_problem
    sampled = decode([i for i, own in zip(path.token_ids, path.mask, strict=True) if own])
    assert "<tool_call>" not in sampled and "</tool_call>" in sampled
