"""The role of others' environments: an episode is begun again by its seed, and its reward is theirs to say."""

from typing import Protocol

from agent0.errors import OperationError
from agent0.events.values import Episode


class EnvironmentFaultError(OperationError):
    """An environment answers what is no reward: no frame of its wire, no finite number, twice, or not at all."""


class Environments(Protocol):
    """Reaches environments of others at the addresses that their episodes name."""

    async def reward(self, episode: Episode, question: str, answer: str) -> float | None:
        """Begin ``episode`` anew, answer its ``question``, and return its reward, a finite number; None: it gives none.

        Raises:
            DependencyError: it cannot be reached, was lost, or asks another question than ``question``.
            EnvironmentFaultError: what it answers is no reward.
        """
        ...
