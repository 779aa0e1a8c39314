"""The tools of an episode: each call is a step of it, and what all came to is the record that a verdict is about."""

from collections.abc import Sequence
from typing import Any

from agent0.errors import DependencyError
from agent0.events.base import Value, sha256
from agent0.events.digest import digest_of
from agent0.events.episodes import Episode, EpisodeStep
from agent0.events.values import ToolResult, ToolState, ToolUse
from agent0.ports.environments import EnvironmentFaultError, OpenEpisode
from agent0.ports.models import ToolSpec
from agent0.tools.definition import VALUES, AnyArguments, ExternalTool, Tool
from agent0.tools.results import shorten
from agent0.tools.untrusted import visible
from agent0.tools.workspace import Workspace

MOST_CHARACTERS = 131_072
"""Of the steps that a record keeps; more cannot be made again."""


class MadeStep(Value):
    """A step as it was made: tool, arguments, and what it came to."""

    tool: str
    arguments: dict[str, Any]
    step: EpisodeStep


class EpisodeRecord(Value):
    """An episode's steps with their sum of rewards, None where no step had one. ``steps`` is empty where they are too
    long to keep."""

    reward: float | None
    done: bool
    fault: str = ""
    steps: tuple[MadeStep, ...] = ()


def record_of(called: Sequence[ToolUse]) -> str | None:
    """The record of the steps among an attempt's calls, as the text of its answer; None where there is no step."""
    steps = [
        MadeStep(tool=use.call.name, arguments=use.call.arguments, step=use.result.step)
        for use in called
        if use.result.step
    ]
    if not steps:
        return None
    rewards, last = [use.step.reward for use in steps if use.step.reward is not None], steps[-1].step
    record = EpisodeRecord(reward=sum(rewards) if rewards else None, done=last.done, fault=last.fault)
    whole = record.model_copy(update={"steps": tuple(steps)}).model_dump_json()
    return whole if len(whole) <= MOST_CHARACTERS else record.model_dump_json()


def tools_digest(specs: Sequence[ToolSpec]) -> str:
    """The sha256 of what a model reads of an episode's tools; empty where there are none."""
    return digest_of([[spec.name, spec.description, spec.parameters] for spec in specs]) if specs else ""


def check_begun(session: OpenEpisode, episode: Episode, question: str) -> None:
    """Refuse an episode that is not the one that was added.

    Raises:
        DependencyError: it asks something else, or has other tools.
    """
    same = session.question == question
    if not same or (episode.tools and tools_digest(session.tools) != episode.tools):
        what = "has other tools" if same else f"asks another question at seed {episode.seed}"
        why = f"It {what} than when it was added."
        raise DependencyError(f"The environment at {episode.url}", why, "Start it as it was; a run goes on by itself.")


def episode_tools(session: OpenEpisode) -> dict[str, Tool]:
    """The tools of ``session`` as those of an attempt, by name."""
    return {spec.name: _tool(session, spec) for spec in session.tools}


def _tool(session: OpenEpisode, spec: ToolSpec) -> Tool:
    async def run(work: Workspace, /, **arguments: Any) -> ToolResult:
        return await make_step(session, spec.name, arguments)

    foreign = ExternalTool(spec.description, spec.parameters, lambda _: [])  # the environment judges them itself
    return Tool(spec.name, run, AnyArguments, pure=False, states=VALUES, untrusted=True, foreign=foreign)


async def make_step(session: OpenEpisode, tool: str, arguments: dict[str, Any]) -> ToolResult:
    """Make one step; what cannot be believed is a result that says so, and no step follows.

    Raises:
        DependencyError: the environment was lost.
    """
    try:
        outcome = await session.step(tool, arguments)
    except EnvironmentFaultError as error:
        why = error.why[:300]
        output = "[the environment cannot be believed]"
        return ToolResult(state=ToolState.ERROR, output=output, reason=why, step=EpisodeStep(fault=why))
    return ToolResult(
        state=ToolState.ERROR if outcome.refused else ToolState.OK,
        output=shorten(visible(outcome.text)),
        output_bytes=len(outcome.text.encode(errors="replace")),
        step=EpisodeStep(sha256=sha256(outcome.text), reward=outcome.reward, done=outcome.done),
    )
