"""Part of the rim: prompts made shorter as settings have it, once their loss of accuracy was measured."""

from collections.abc import Callable

from agent0.errors import ConfigError
from agent0.infra.gateway.compression import Shortening, Store, Summaries, bm25
from agent0.ports.models import Model
from agent0.routing.compression import Compression
from agent0.settings import ActorConfig
from agent0.settings.router import CompressionSettings

MEASURE = "Measure it: agent0 router compress RUN/CHECKPOINT"


def shortening_of(
    plan: CompressionSettings,
    summarizer: ActorConfig | None,
    open: Callable[[ActorConfig], Model],
    store: Store | None = None,
    within_s: float = 60.0,
) -> Shortening:
    """Make what shortens prompts as ``plan`` has it, with summaries by ``summarizer`` that take no more than
    ``within_s`` seconds; None: without."""
    rank = bm25 if "extractive" in plan.stages else None
    if summarizer is None:
        return Shortening(Compression(plan.longest, rank))
    summaries = Summaries(open(summarizer), plan.summarizer, plan.longest, store, within_s)
    return Shortening(Compression(plan.longest, rank, summaries.of), summaries)


def check_compression(plan: CompressionSettings) -> None:
    """Prompts are compressed only where that was measured, and loses little enough.

    Raises:
        ConfigError: it was not, or loses more.
    """
    if not plan.stages:
        return
    what = f"router.compression.stages = {', '.join(plan.stages)} is refused."
    if "summary" in plan.stages and plan.measured_summarizer != plan.summarizer:
        why = f"Summaries by {plan.summarizer or 'no model'} are set, by {plan.measured_summarizer or 'none'} measured."
        raise ConfigError(what, why, f"{MEASURE} --stage summary --summarizer {plan.summarizer or 'PROVIDER/MODEL'}")
    if plan.loss95 is None:
        raise ConfigError(what, "What it costs in accuracy was not measured.", MEASURE)
    if plan.loss95 > plan.most_loss:
        why = f"It may lose {100 * plan.loss95:.1f} points of accuracy, and most_loss is {100 * plan.most_loss:.1f}."
        raise ConfigError(what, why, "Keep more (longest), leave it off, or raise router.compression.most_loss.")
