"""The student's thought: reason, call tools, read what they print, answer. One attempt from question to end.

Nothing here touches the world except through the model and the sandbox, and no answer is known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from agent0.answers import same
from agent0.curriculum import stream
from agent0.errors import ConfigError, TransientError
from agent0.parsing import ParsedTurn, parse_turn
from agent0.ports import GenerateRequest, Generation, Model, Sampling, Sandbox, ToolSpec
from agent0.prompts import Prompt, render
from agent0.settings import PolicyConfig, StudentConfig
from agent0.tools import call_tool, tools
from agent0.tools.cache import ToolCache
from agent0.tools.workspace import Workspace
from agent0.trajectories import assemble, mean_logprob, total_usage
from events.values import Artifact, Task, ToolCall, ToolResult, ToolState, Trajectory, Turn, Usage

End = Literal["answered", "no_answer", "turn_limit", "length", "budget"]

_NOBODYS_FAULT = (ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR)
"""States that say nothing of the student's code: the attempt is made again rather than scored."""


class Called(NamedTuple):
    """One tool call: in which assistant turn (from 0), and what came of it."""

    turn: int
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True)
class Solved:
    """How an attempt went; fields as in ``TaskAttempted``. ``trajectory_problem`` says why there is no trajectory."""

    answer: str | None
    end: End
    turns: int
    tool_calls: tuple[Called, ...]
    tool_ok: int
    parse_errors: int
    grounded: bool
    transcript: tuple[Turn, ...]
    trajectory: Trajectory | None
    trajectory_problem: str
    mean_logprob: float | None
    usage: Usage
    model: str

    @property
    def wall_s(self) -> float:
        """Seconds the model and the tools took."""
        return self.usage.wall_s + sum(called.result.wall_s for called in self.tool_calls)


@dataclass
class _Attempt:
    """What has happened so far."""

    transcript: list[Turn]
    written: list[Generation] = field(default_factory=list)
    called: list[Called] = field(default_factory=list)
    errors: int = 0
    answer: str | None = None


async def solve(
    model: Model,
    proposal: Task,
    *,
    config: StudentConfig,
    sandbox: Sandbox,
    prompt: Prompt,
    seed: int,
    adapter: Artifact | None = None,
    group: str = "",
    prefill: str = "",
    temperature: float | None = None,
    cache: ToolCache | None = None,
    policy: PolicyConfig = PolicyConfig(),  # noqa: B008 (frozen)
) -> Solved:
    """Attempt ``proposal``; only its question is read.

    Turn n draws from its own random stream, keyed (``seed``, n). ``prefill`` begins the first turn only.
    A turn that calls tools is not final: an answer beside a call was written before the call's output was known.

    Raises:
        DependencyError: model or sandbox is away.
        TransientError: the sandbox failed through no fault of the code.
    """
    specs = specs_of(config.tools) if config.max_calls else ()
    heat = config.temperature if temperature is None else temperature
    work = Workspace(
        sandbox, config.tools, policy, cache=cache, seconds=config.tool_seconds, characters=config.tool_output
    )
    now = _Attempt(list(render(prompt, {"question": proposal.question, "domain": proposal.domain})))
    end: End | None = None
    while end is None and (turn := len(now.written)) < config.max_turns:
        sampling = Sampling(heat, config.top_p, config.max_tokens, stream(seed, "turn", turn))
        forced = prefill if turn == 0 else ""
        asked = GenerateRequest(tuple(now.transcript), sampling, specs, adapter, forced, group)
        end = await _react(now, await model.generate(asked), specs, config, work)
    return _conclude(now, end or "turn_limit")


def specs_of(names: Sequence[str]) -> tuple[ToolSpec, ...]:
    """What a model is told of the tools it may call.

    Raises:
        ConfigError: there is no such tool.
    """
    known = tools()
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(
            f"There is no tool named {unknown[0]}.", f"The tools are: {', '.join(known)}.", "Set run.student.tools."
        )
    return tuple(known[name].spec for name in names)


async def _react(
    now: _Attempt,
    written: Generation,
    specs: Sequence[ToolSpec],
    config: StudentConfig,
    work: Workspace,
) -> End | None:
    """Take one turn in and run its calls; how the attempt ends, None where it goes on."""
    parsed = parse_turn(written.text, text_arguments(specs))
    now.written.append(written)
    now.transcript.append(Turn(role="assistant", content=written.text, token_ids=written.token_ids))
    now.errors += len(parsed.errors) + sum(bool(call.error) for call in parsed.calls)
    if not parsed.calls:
        now.answer = parsed.answer
        return "answered" if parsed.answer is not None else _unanswered(written)
    if _cut_off(written, parsed):
        return "length"
    room = config.max_calls - len(now.called)
    for call in parsed.calls[:room]:
        result = await call_tool(call, work)
        if result.state in _NOBODYS_FAULT:
            raise TransientError("The sandbox did not run a tool call.", f"{result.state.value}: {result.output[:200]}")
        now.called.append(Called(len(now.written) - 1, call, result))
        now.transcript.append(Turn(role="tool", name=call.name, content=result.output))
    return "budget" if len(parsed.calls) > room else None


def _unanswered(written: Generation) -> End:
    return "length" if written.finish == "length" else "no_answer"


def _cut_off(written: Generation, parsed: ParsedTurn) -> bool:
    """Whether the token limit fell inside the turn's last call."""
    return written.finish == "length" and bool(parsed.calls[-1].error)


def text_arguments(specs: Sequence[ToolSpec]) -> dict[str, str]:
    """Tool name to the argument that plain text fills: the only required one, where there is one such."""
    required = {spec.name: spec.parameters.get("required", []) for spec in specs}
    return {name: names[0] for name, names in required.items() if len(names) == 1}


def plain_output(text: str) -> str:
    """A printed value without wrapping: the last line, without ``name =``, brackets of a single item, or quotes."""
    lines = text.strip().splitlines()
    last = lines[-1].strip() if lines else ""
    name, equals, value = last.partition("=")
    if equals and name.strip().isidentifier() and not value.startswith("="):
        last = value.strip()
    if last.startswith("[") and last.endswith("]") and "," not in last:
        last = last[1:-1].strip()
    return last.strip("'\"").strip()


def _conclude(now: _Attempt, end: End) -> Solved:
    good = [c for c in now.called if c.result.state is ToolState.OK]
    trajectory, problem = assemble(now.written)
    return Solved(
        answer=now.answer,
        end=end,
        turns=len(now.written),
        tool_calls=tuple(now.called),
        tool_ok=len(good),
        parse_errors=now.errors,
        grounded=any(same(now.answer, plain_output(c.result.output)) for c in good) if now.answer else False,
        transcript=tuple(now.transcript),
        trajectory=trajectory,
        trajectory_problem=problem,
        mean_logprob=mean_logprob(now.written),
        usage=total_usage(now.written),
        model=now.written[-1].model,
    )
