"""The values of episodes: where an environment of others begins one, and what its steps come to."""

from typing import Annotated

from pydantic import Field, JsonValue

from agent0.events.base import Value
from agent0.events.digest import NOT_EMPTY

OPENENV = "openenv"
"""The verifier that asks an environment by OpenEnv's wire."""
STEPS = "steps"
"""The domain of tasks that are episodes of steps, each a call of one of the environment's tools."""


class Episode(Value):
    """An episode of an environment of others: where it is (an address, or ``KIND:NAME`` for a process of its own), the
    ``seed`` that begins it, the field of its observation that asks (empty: all of it), and the one field of the action
    that answers."""

    url: str
    seed: int
    question: str
    action: str
    """Of one over steps, the tool that a turn without a call is: a message to a user. Empty: it has none."""
    user: Annotated[str, NOT_EMPTY] = ""
    """What a model is told that plays this user; empty: the environment's own."""
    tools: Annotated[str, NOT_EMPTY] = ""
    """Where it goes over steps, the sha256 of the tools that make them; empty: it has one step, the answer."""
    program: Annotated[str, NOT_EMPTY] = ""
    """The digest of its code, where that is a process of its own."""
    right: Annotated[float | None, NOT_EMPTY] = None
    """The reward from which on an episode is right; None: 1."""
    options: Annotated[dict[str, JsonValue], NOT_EMPTY] = Field(default_factory=dict)
    """What OpenEnv's environments are told at each reset, beside the seed."""

    @property
    def kind(self) -> str:
        """Of its environment, which names its verifier."""
        scheme = self.url.partition(":")[0]
        return OPENENV if scheme in ("http", "https") else scheme


class EpisodeStep(Value):
    """What a step of an episode came to, beside what is read of it: the ``sha256`` of the whole observation, its reward
    (None: none), and whether the episode has ended. ``fault``: why what came cannot be believed."""

    sha256: str = ""
    reward: float | None = None
    done: bool = False
    fault: str = ""

    @property
    def last(self) -> bool:
        """Whether no step follows."""
        return self.done or bool(self.fault)
