"""What passes between a model and its worker process. Nothing heavy is imported here: the parent reads these."""

from dataclasses import dataclass, field
from typing import Literal

from agent0.events.values import Turn
from agent0.ports.models import Sampling, ToolSpec


@dataclass(frozen=True)
class TurnRequest:
    """One assistant turn to generate: a ``GenerateRequest`` without the fields that only the parent process needs."""

    turns: tuple[Turn, ...]
    sampling: Sampling
    tools: tuple[ToolSpec, ...] = ()
    prefill: str = ""
    margins: bool = False


@dataclass
class Written:
    """What was written. ``error`` says why nothing was, where the turns could not be encoded."""

    prompt: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    finish: Literal["stop", "length"] = "length"
    text: str = ""
    wall_s: float = 0.0
    error: str = ""
