"""The role of others' environments: an episode is begun again by its seed, and its rewards are theirs to say."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from agent0.errors import OperationError
from agent0.events.episodes import Episode
from agent0.ports.models import ToolSpec

ResetOptions = Mapping[str, Sequence[JsonValue]]
"""What resets are told: of each option the values that take turns."""


class EnvironmentFaultError(OperationError):
    """An environment answers what is no step: no frame of its wire, no finite number, twice, or not at all."""


@dataclass(frozen=True)
class StepOutcome:
    """What came of a step: a text, a finite reward (None: none), whether the episode has ended. ``refused``: the
    environment read the step and did not make it; the episode goes on."""

    text: str
    reward: float | None = None
    done: bool = False
    refused: bool = False


class OpenEpisode(Protocol):
    """One episode that an environment has begun and that goes on."""

    @property
    def question(self) -> str:
        """What it asks at its begin."""
        ...

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What makes its steps; nothing where its one step is an answer."""
        ...

    async def step(self, tool: str, arguments: Mapping[str, JsonValue]) -> StepOutcome:
        """Make a step by a call of ``tool``, one of ``tools``; empty: ``arguments`` are the action itself.

        Raises:
            DependencyError: the environment was lost.
            EnvironmentFaultError: what it answers is no step.
        """
        ...


class Environments(Protocol):
    """Reaches environments of others where their episodes say they are."""

    def opened(self, episode: Episode) -> AbstractAsyncContextManager[OpenEpisode]:
        """Begin ``episode`` anew.

        Raises:
            DependencyError: it cannot be reached, was lost, or is another than when it was added.
            EnvironmentFaultError: what it answers is no begin of an episode.
        """
        ...
