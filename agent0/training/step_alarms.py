"""Alarms on the steps of a training, one function each: which steps are beyond a limit. Skipped steps have an alarm of
their own (``training_warning``), and so has a student that grows too sure (the monitor ``collapse``).

To add one, write a function with ``@step_alarm``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from agent0.events.alarms import AlarmRaised
from agent0.events.checkpoints import TrainingMeasured
from agent0.events.values import TrainingStep
from agent0.ports.training import GRADIENT_NORM
from agent0.settings import RecipeConfig

FEWEST_STEPS = 20
"""Steps before one, below which their median says little."""
STEEP = 10.0
"""Times the median gradient norm. A sound run of profile ``tiny`` reaches 9.5, all below ``GRADIENT_NORM``: what is not
even clipped has not exploded. What has is clipped, so one such step is a batch to look at, many are a lost training."""
FURTHEST_KL = 0.5
"""Nats a token between parent and model: ten times the largest ``target_kl`` at which Spinning Up's PPO stops early
(0.01 to 0.05). A run of profile ``tiny``, of few and long steps, reaches 0.15."""
MOST_CLIPPED = 0.5
"""Share of tokens: beyond it most of a minibatch teaches nothing, or less than it should. PPO's is mostly below 0.2."""


@dataclass(frozen=True)
class StepHistory:
    """``steps`` of a training, those ``before`` them of its role in the run, oldest first, and the role's recipe."""

    steps: Sequence[TrainingStep]
    before: Sequence[TrainingStep]
    recipe: RecipeConfig


@dataclass(frozen=True)
class Excess:
    """The step at ``index`` of ``StepHistory.steps`` whose ``value`` is beyond ``limit``."""

    index: int
    value: float
    limit: float


Watch = Callable[[StepHistory], Iterator[Excess]]
_watches: dict[str, tuple[Watch, str]] = {}
"""By the name of the alarm: which steps are beyond its limit, and what it says of the worst."""


def step_alarm(text: str) -> Callable[[Watch], Watch]:
    """Register a watch under its function's name. ``text`` has {value}, {limit} and {role}: what is so, and the usual
    remedy."""

    def register(watch: Watch) -> Watch:
        _watches[watch.__name__] = watch, text
        return watch

    return register


@step_alarm(
    "the gradient norm was {value:.3g}, beyond {limit:.3g} (ten times the median of the steps before, and clipped); "
    "a lower run.training.{role}.lr or a larger minibatch is the usual remedy"
)
def gradient(history: StepHistory) -> Iterator[Excess]:
    """Norms far above the median of those before, of steps of the same kind."""
    norms: dict[str, list[float]] = {"policy": [], "replay": []}
    for index, step in enumerate([*history.before, *history.steps], -len(history.before)):
        if step.gradient_norm is None:
            continue
        known = norms[step.kind]
        if index >= 0 and len(known) >= FEWEST_STEPS:
            limit = max(GRADIENT_NORM, STEEP * median(known))
            if step.gradient_norm > limit:
                yield Excess(index, step.gradient_norm, limit)
        known.append(step.gradient_norm)


@step_alarm(
    "model and parent were {value:.2g} nats a token apart, beyond {limit:g}; "
    "a lower run.training.{role}.lr, fewer epochs or a penalty (kl) is the usual remedy"
)
def parent_kl(history: StepHistory) -> Iterator[Excess]:
    """Steps of a model far from its parent."""
    for index, step in enumerate(history.steps):
        if step.parent_kl is not None and step.parent_kl > FURTHEST_KL:
            yield Excess(index, step.parent_kl, FURTHEST_KL)


@step_alarm(
    "{value:.0%} of the tokens were clipped, beyond {limit:.0%}; "
    "a lower run.training.{role}.lr or fewer epochs is the usual remedy"
)
def clipping(history: StepHistory) -> Iterator[Excess]:
    """Steps of which more than half is clipped, both sides together."""
    for index, step in enumerate(history.steps):
        share = (step.clip_below or 0.0) + (step.clip_above or 0.0)
        if share > MOST_CLIPPED:
            yield Excess(index, share, MOST_CLIPPED)


@step_alarm(
    "sampler and trainer differed by {value:.2g} nats a token, beyond {limit:g} (mismatch_limit); sample and train in "
    "one format (run.{role}.precision, train_precision), or set run.training.{role}.correction"
)
def mismatch(history: StepHistory) -> Iterator[Excess]:
    """Steps on samples that the trainer computes otherwise: before a training, only the first of them are looked at."""
    limit = history.recipe.mismatch_limit
    for index, step in enumerate(history.steps):
        if step.mismatch is not None and step.mismatch > limit:
            yield Excess(index, step.mismatch, limit)


def step_alarms(event: TrainingMeasured, history: StepHistory) -> Iterator[AlarmRaised]:
    """Raise an alarm for each watch that finds a step of ``event``; it names the worst, and says how many there are."""
    for name, (watch, text) in _watches.items():
        excesses = [*watch(history)]
        if not excesses:
            continue
        worst = max(excesses, key=lambda excess: excess.value)
        place = event.first + worst.index
        count = f" (so were {len(excesses)} of {len(event.steps)} steps)" if len(excesses) > 1 else ""
        words = text.format(value=worst.value, limit=worst.limit, role=event.role)
        yield AlarmRaised(
            alarm=f"{name.replace('_', '-')}-{event.checkpoint}",
            severity="warning",
            message=f"{event.checkpoint}, step {place}{count}: {words}",
            facts={"step": place, "value": worst.value, "limit": worst.limit, "steps": len(excesses)},
        )
