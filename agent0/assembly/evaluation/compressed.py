"""Part of the rim: what shorter prompts cost in accuracy: held-out tasks attempted with prompts as they are and with
compressed ones, paired."""

import math
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from agent0.assembly.evaluation.benchmark_run import taken_up
from agent0.assembly.evaluation.routed import Asked, Asking, Plan, began, costs_of, held_tasks, name_of, open_all
from agent0.assembly.log.access import open_log
from agent0.assembly.routing.billing import summarizer_of
from agent0.assembly.routing.compressing import shortening_of
from agent0.errors import ConfigError
from agent0.evaluation.routed.standings import Paired, WayScore, paired, standing
from agent0.infra.gateway.compression.compressing import Compressing
from agent0.settings import Settings
from agent0.settings.router import CompressionSettings
from agent0.stats.intervals import wilson

REPORT = Callable[[int, int], None]
PATIENCE_S = 3600.0
"""How long a summary may take here, where it is measured what its words cost and not how long they take."""
FEWEST = 0.9
"""Share of long outputs that must have had a summary, or else the figures are not those of summaries."""


@dataclass(frozen=True)
class Loss:
    """What compression costs: both ways, and the compressed one less the plain one. ``shorter``: the share of all
    characters of prompts that was left out. ``summaries``: prompts' outputs for which one stood; ``without``: that were
    as long, and had none."""

    run: str
    standings: tuple[WayScore, WayScore]
    paired: Paired
    shorter: float
    summaries: int = 0
    without: int = 0

    @property
    def shows_summaries(self) -> bool:
        """Whether nearly all long outputs had a summary, so that the loss is theirs."""
        return self.summaries > 0 and self.summaries >= FEWEST * (self.summaries + self.without)

    @property
    def loss95(self) -> float:
        """The most that it may lose, by the shares of tasks lost and gained with their Wilson intervals (MOVER, Zou and
        Donner 2008): not 0 where no task differs, since few tasks show little."""
        difference = self.paired.difference
        lost, gained = difference.lost / difference.items, difference.gained / difference.items
        most_lost, least_gained = (
            wilson(difference.lost, difference.items)[1],
            wilson(difference.gained, difference.items)[0],
        )
        return lost - gained + math.hypot(most_lost - lost, gained - least_gained)


async def measure_loss(
    settings: Settings, plan: Plan, how: CompressionSettings, run: str, report: REPORT = lambda done, all_: None
) -> Loss:
    """Ask what ``run`` has not asked yet in both ways, verify it, and compare.

    Raises:
        ConfigError: nothing is compressed, by a summary that costs money, or ``run`` was begun with another plan.
    """
    writer, plan = summarizer_of(how, settings.router), replace(plan, ways=("plain", "compressed"))
    if not how.stages:
        raise ConfigError("Nothing is compressed.", "", "--stage structural, or --stage extractive")
    tasks, student = held_tasks(settings, plan), settings.run.student
    stages = ", ".join(how.stages) + (f" by {how.summarizer}" if writer else "")
    about = f"compression by {stages} to {how.longest}{', long tasks' if plan.long else ''}"
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings, make=True))
        scored = await taken_up(log, run, began(settings, plan, about))
        ports = await open_all(settings, stack, log)
        model = ports["models"].open(student)
        shorten = shortening_of(how, writer, ports["models"].open, within_s=PATIENCE_S)
        shorter = Compressing(model, shorten)
        ways = [Asked("plain", model, student, plan.adapter), Asked("compressed", shorter, student, plan.adapter)]
        scored += await Asking(settings, plan, run, log, ways, ports).all(tasks, scored, report)
        await log.queue.join()
        costs = await costs_of(log, run)
    plain, small = ([item for item in scored if item.benchmark == name_of(plan, way)] for way in plan.ways)
    both = standing("plain", plain, costs), standing("compressed", small, costs)
    comparison = paired(small, plain, (both[1].cost, both[0].cost), "plain")
    share = shorter.left / shorter.read if shorter.read else 0.0
    return Loss(run, both, comparison, share, shorter.summaries, shorter.without)
