"""What training optimises. One file an objective: how a group of deeds becomes samples, and their loss on tensors.

Thought reads ``weigh`` and trainers read ``loss``; torch is imported where a loss is computed, never before.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent0.ports.training import Sample
from agent0.registry import Registry
from agent0.settings import RecipeConfig
from agent0.training.scored_trajectory import Deed
from events.values import Role

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Weighed:
    """One sample, the deed it is of, and the deed it is preferred to (preference pairs only)."""

    deed: Deed
    sample: Sample
    over: Deed | None = None


@dataclass(frozen=True)
class Rows:
    """Part of a minibatch. ``logprobs`` (of the model in training, at the samples' temperature), ``behaviour``,
    ``mask`` and ``reference`` (the parent's, at the same temperature) are [rows, T], the others [rows].

    ``mask`` is 0 at prompts, tool output, forced prefixes and padding; there, nothing may reach the gradient.
    ``over``: the same of what each row is preferred to.
    """

    logprobs: "Tensor"
    behaviour: "Tensor"
    mask: "Tensor"
    advantage: "Tensor"
    weight: "Tensor"
    clip_high: "Tensor"
    reference: "Tensor | None" = None
    over: "Rows | None" = None


@dataclass(frozen=True)
class Loss:
    """``loss`` is a sum over tokens, or over rows for an objective that counts these (divide by how many the whole
    step has); ``told`` are such sums for the metrics, without gradient."""

    loss: "Tensor"
    told: "Mapping[str, Tensor]" = field(default_factory=dict)


Weigh = Callable[[Sequence[Sequence[Deed]], RecipeConfig, Counter[str]], list[Weighed]]
"""(groups of usable deeds, recipe, counts of what is left out, by reason) -> samples."""
Compute = Callable[[Rows, Mapping[str, Any]], Loss]
"""(rows, recipe) -> loss."""


@dataclass(frozen=True)
class Objective:
    """A registered objective.

    ``roles``: whose deeds it can use. ``contrast``: it learns from differences inside a group, so only groups within
    the curriculum's band teach; else a single success is enough, and only what is solved too often is left out.
    ``per``: what its sums are divided by. ``tempered``: log-probabilities are taken at the sampling temperature (else
    at 1). ``reference``: it cannot do without the parent's log-probabilities; ``penalty``: ``kl`` adds to it.
    """

    name: str
    weigh: Weigh
    loss: Compute
    roles: tuple[Role, ...] = ("student", "teacher")
    contrast: bool = True
    per: Literal["token", "row"] = "token"
    tempered: bool = True
    reference: bool = False
    penalty: bool = True


_objectives = Registry[str, Objective]("objectives", __name__)


def objective(entry: Objective) -> Objective:
    """Register an objective."""
    return _objectives.add(entry.name, entry)


def objectives() -> dict[str, Objective]:
    """Every objective by name."""
    return _objectives.all()
