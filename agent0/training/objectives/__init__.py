"""Training objectives, one file each: how groups of scored trajectories become weighted samples, and their loss on
tensors.

Selection calls ``weigh`` and trainers call ``loss``; torch is imported where a loss is computed, never before.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from agent0.events.values import Role
from agent0.ports.training import Sample
from agent0.registry import Registry
from agent0.settings import RecipeConfig
from agent0.training.scored_trajectory import ScoredTrajectory

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class WeightedSample:
    """A sample to train on, the scored trajectory it is made of, and the one it is preferred to (preference
    pairs only)."""

    scored: ScoredTrajectory
    sample: Sample
    over: ScoredTrajectory | None = None


@dataclass(frozen=True)
class MinibatchRows:
    """Part of a minibatch as tensors.

    ``logprobs`` (of the model in training, at the samples' temperature), ``behaviour``, ``mask`` and ``reference`` (the
    parent's, at the same temperature) are [rows, T], the others [rows], ``weight`` [rows, T] where tokens have weights
    of their own. ``mask`` is 0 at prompts, tool output, forced prefixes and padding; there, nothing may reach the
    gradient. ``over``: the same tensors of what each row is preferred to.
    """

    logprobs: "Tensor"
    behaviour: "Tensor"
    mask: "Tensor"
    advantage: "Tensor"
    weight: "Tensor"
    clip_high: "Tensor"
    reference: "Tensor | None" = None
    over: "MinibatchRows | None" = None


@dataclass(frozen=True)
class Loss:
    """The summed loss of some rows, and sums for the metrics without gradient.

    Sums are over tokens, or over rows for an objective that counts these; divide by how many the whole step has.
    """

    loss: "Tensor"
    metrics: "Mapping[str, Tensor]" = field(default_factory=dict)


class LossSettings(Protocol):
    """The settings of a recipe that a loss reads."""

    @property
    def clip_low(self) -> float:
        """The lower clip of the importance ratio."""

    @property
    def beta(self) -> float:
        """``beta`` of ``RecipeConfig``."""


Weigh = Callable[[Sequence[Sequence[ScoredTrajectory]], RecipeConfig, Counter[str]], list[WeightedSample]]
"""(groups of usable trajectories, recipe, counts of what is left out, by reason) -> samples."""
Compute = Callable[[MinibatchRows, LossSettings], Loss]
"""(rows, recipe) -> loss."""


@dataclass(frozen=True)
class Objective:
    """A registered training objective.

    ``roles``: whose trajectories it can use. ``contrast``: it learns from differences inside a group, so only groups
    within the curriculum's band are used; else a single success is enough, and only what is solved too often is left
    out. ``per``: what a minibatch's sum is divided by: its tokens; each attempt's part by its own tokens, then by
    attempts; attempts times the ``budget`` of one, its role's ``max_tokens``; or rows. ``clip``: the lower and upper
    clip of the importance ratio where settings name none. ``tempered``: log-probabilities are taken at the sampling
    temperature (else at 1). ``reference``: it needs the parent's log-probabilities; ``penalty``: ``kl`` adds to it.
    ``likelihood``: its loss is a likelihood of what it is given, so positions may be stretched and ``steps`` be drawn.
    ``off_policy``: trajectories of earlier checkpoints serve as well as its parent's. ``ratio``: a policy gradient,
    whose loss has the ratio of the model in training to the one that sampled.
    """

    name: str
    weigh: Weigh
    loss: Compute
    roles: tuple[Role, ...] = ("student", "teacher")
    contrast: bool = True
    per: Literal["token", "attempt", "budget", "row"] = "token"
    clip: tuple[float, float] = (0.2, 0.2)
    tempered: bool = True
    reference: bool = False
    penalty: bool = True
    likelihood: bool = False
    off_policy: bool = False
    ratio: bool = False


_objectives = Registry[str, Objective]("objectives", __name__)


def objective(entry: Objective) -> Objective:
    """Register a training objective under its name; returns it."""
    return _objectives.add(entry.name, entry)


def objectives() -> dict[str, Objective]:
    """Return every registered training objective by its name, sorted."""
    return _objectives.all()


def clips(recipe: RecipeConfig) -> tuple[float, float]:
    """The lower and the upper clip of the importance ratio: the recipe's, else those of its objective."""
    low, high = objectives()[recipe.objective].clip
    return (
        low if recipe.clip_low is None else recipe.clip_low,
        high if recipe.clip_high is None else recipe.clip_high,
    )
