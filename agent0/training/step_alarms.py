"""Alarms on the steps of a training, one function each: which steps are beyond a limit. Skipped steps have an alarm of
their own (``training_warning``), and so has a student that grows too sure over iterations (the monitor ``collapse``).

Limits are beyond what 1,009 sound steps reached, of profiles ``tiny``, ``qwen`` and ``openai``.

To add one, write a function with ``@step_alarm``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from agent0.events.alarms import AlarmRaised
from agent0.events.base import Event
from agent0.events.checkpoints import CheckpointTrained, TrainingMeasured
from agent0.events.values import TrainingStep
from agent0.ports.training import GRADIENT_NORM
from agent0.settings import RecipeConfig, TrainingConfig
from agent0.training.selection import left_out, training_warning

FEWEST_STEPS = 20
"""Steps before one, below which their median says little."""
STEEP = 10.0
"""Times the median gradient norm. A sound run of profile ``tiny`` reaches 9.5, all below ``GRADIENT_NORM``: what is not
even clipped has not exploded. What has is clipped, so one such step is a batch to look at, many are a lost training."""
FIRST_NORM = 100.0 * GRADIENT_NORM
"""Beyond it a norm needs no median to be compared with: sound ones reach 1.7."""
LOSS_JUMP = 3.0
"""Nats above the median of the steps before, of which there are ``FEWEST_LOSSES``: tokens twenty times less likely.
Sound ones reach 0.74."""
FEWEST_LOSSES = 3
LEAST_ENTROPY = 0.1
"""Share of the entropy with which a training began. Sound ones fall to 0.39."""
HIGHEST_RATE = 0.1
"""Adam moves a weight by about the rate a step, and the weights of an adapter are smaller than this. Sound ones reach
0.0025."""
FURTHEST_KL = 0.5
"""Nats a token between parent and model: ten times the largest ``target_kl`` at which Spinning Up's PPO stops early
(0.01 to 0.05). A run of profile ``tiny``, of few and long steps, reaches 0.15."""
MOST_CLIPPED = 0.5
"""Share of tokens: beyond it most of a minibatch teaches nothing, or less than it should. PPO's is mostly below 0.2."""


@dataclass(frozen=True)
class StepHistory:
    """``steps`` of a training, those ``before`` them of its role in the run, oldest first, of which the last ``begun``
    are of the same training, and the role's recipe."""

    steps: Sequence[TrainingStep]
    before: Sequence[TrainingStep]
    recipe: RecipeConfig
    begun: int = 0


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
    "the loss was {value:.3g}, beyond {limit:.3g} (three above the median of the steps before); "
    "a lower run.training.{role}.lr, or a warm-up (warmup), is the usual remedy"
)
def loss(history: StepHistory) -> Iterator[Excess]:
    """Losses far above the median of those before, of steps of the same kind."""
    losses: dict[str, list[float]] = {"policy": [], "replay": []}
    for index, step in enumerate([*history.before, *history.steps], -len(history.before)):
        if step.loss is None:
            continue
        earlier = losses[step.kind]
        if index >= 0 and len(earlier) >= FEWEST_LOSSES and step.loss > (limit := median(earlier) + LOSS_JUMP):
            yield Excess(index, step.loss, limit)
        earlier.append(step.loss)


@step_alarm(
    "the entropy was {value:.2g} nats a token, below {limit:.2g} (a tenth of what the training began with); "
    "a lower run.training.{role}.lr, fewer epochs or a penalty (kl) is the usual remedy"
)
def entropy(history: StepHistory) -> Iterator[Excess]:
    """Steps that are far surer of their tokens than the training's first three."""
    entropies: list[float] = []
    begun = history.before[len(history.before) - history.begun :]
    for index, step in enumerate([*begun, *history.steps], -len(begun)):
        if step.entropy_estimate is None:
            continue
        if index >= 0 and entropies and step.entropy_estimate < (limit := LEAST_ENTROPY * median(entropies[:3])):
            yield Excess(index, step.entropy_estimate, limit)
        entropies.append(step.entropy_estimate)


@step_alarm("the learning rate was {value:.3g}, beyond {limit:g}; lower run.training.{role}.lr")
def rate(history: StepHistory) -> Iterator[Excess]:
    """Rates at which no adapter learns, or that are no number."""
    for index, step in enumerate(history.steps):
        if not step.learning_rate <= HIGHEST_RATE:
            yield Excess(index, step.learning_rate if step.learning_rate > 0 else inf, HIGHEST_RATE)


@step_alarm(
    "the gradient norm was {value:.3g}, beyond {limit:.3g} (ten times the median of the steps before, or a "
    "hundred times what it is clipped to, where there are few); "
    "a lower run.training.{role}.lr or a larger minibatch is the usual remedy"
)
def gradient(history: StepHistory) -> Iterator[Excess]:
    """Norms far above the median of those before, of steps of the same kind."""
    norms: dict[str, list[float]] = {"policy": [], "replay": []}
    for index, step in enumerate([*history.before, *history.steps], -len(history.before)):
        if step.gradient_norm is None:
            continue
        earlier = norms[step.kind]
        enough = len(earlier) >= FEWEST_STEPS
        limit = max(GRADIENT_NORM, STEEP * median(earlier)) if enough else FIRST_NORM
        if index >= 0 and step.gradient_norm > limit:
            yield Excess(index, step.gradient_norm, limit)
        earlier.append(step.gradient_norm)


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


def checkpoint_alarms(event: CheckpointTrained, plan: TrainingConfig) -> Iterator[AlarmRaised]:
    """Raise an alarm where nothing was learned, or too many steps had no finite loss."""
    if event.adapter is None:
        text = f"{event.checkpoint}: nothing to learn from, {event.parent} stays ({left_out(event.skipped)})"
        yield AlarmRaised(alarm=f"no-signal-{event.checkpoint}", severity="warning", message=text)
    elif warning := training_warning(event, plan):
        yield AlarmRaised(alarm=f"not-finite-{event.checkpoint}", severity="warning", message=warning)


def training_alarms(
    events: Sequence[Event], before: Sequence[TrainingStep], plan: TrainingConfig
) -> Iterator[AlarmRaised]:
    """Raise all alarms of one training, whose ``events`` these are; ``before`` are the steps of earlier ones of its
    role, oldest first."""
    begun: list[TrainingStep] = []
    for event in events:
        if isinstance(event, CheckpointTrained):
            yield from checkpoint_alarms(event, plan)
        if not isinstance(event, TrainingMeasured):
            continue
        recipe = plan.student if event.role == "student" else plan.teacher
        yield from step_alarms(event, StepHistory(event.steps, [*before, *begun], recipe, len(begun)))
        begun += event.steps


def step_alarms(event: TrainingMeasured, history: StepHistory) -> Iterator[AlarmRaised]:
    """Raise an alarm for each watch that finds a step of ``event``; it names the worst, and says how many there are."""
    for name, (watch, text) in _watches.items():
        excesses = [*watch(history)]
        if not excesses:
            continue
        worst = max(excesses, key=lambda excess: abs(excess.value - excess.limit))
        place = event.first + worst.index
        count = f" (so were {len(excesses)} of {len(event.steps)} steps)" if len(excesses) > 1 else ""
        words = text.format(value=worst.value, limit=worst.limit, role=event.role)
        yield AlarmRaised(
            alarm=f"{name.replace('_', '-')}-{event.checkpoint}",
            severity="warning",
            message=f"{event.checkpoint}, step {place}{count}: {words}",
            facts={"step": place, "value": worst.value, "limit": worst.limit, "steps": len(excesses)},
        )
