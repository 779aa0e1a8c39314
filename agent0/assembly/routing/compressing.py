"""Part of the rim: prompts made shorter as settings have it, once their loss of accuracy was measured."""

from agent0.errors import ConfigError
from agent0.routing.compression import Compression
from agent0.settings.router import CompressionSettings

MEASURE = "Measure it: agent0 router compress RUN/CHECKPOINT"


def compression_of(plan: CompressionSettings) -> Compression | None:
    """Make what shortens prompts as ``plan`` has it; None: nothing does."""
    if not plan.stages:
        return None
    if "extractive" not in plan.stages:
        return Compression(plan.longest)
    from infra.gateway.compression.ranking import bm25

    return Compression(plan.longest, bm25)


def check_compression(plan: CompressionSettings) -> None:
    """Prompts are compressed only where that was measured, and loses little enough.

    Raises:
        ConfigError: it was not, or loses more.
    """
    if not plan.stages:
        return
    what = f"router.compression.stages = {', '.join(plan.stages)} is refused."
    if plan.loss95 is None:
        raise ConfigError(what, "What it costs in accuracy was not measured.", MEASURE)
    if plan.loss95 > plan.most_loss:
        why = f"It may lose {100 * plan.loss95:.1f} points of accuracy, and most_loss is {100 * plan.most_loss:.1f}."
        raise ConfigError(what, why, "Keep more (longest), leave it off, or raise router.compression.most_loss.")
