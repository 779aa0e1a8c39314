"""Part of the rim: reads the runs and experiments that are to be compared."""

from collections.abc import Sequence

from agent0.assembly.replay.stored_experiments import behind_training, experiment_id
from agent0.assembly.runtime.read_models import sound_log
from agent0.errors import ConfigError, NotFoundError, OperationError
from agent0.events.base import Recorded
from agent0.events.experiments import ExperimentFinished, ExperimentStarted
from agent0.events.runs import RunStarted
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.experiments.compare_runs import Side, side_of
from agent0.infra.log.event_log import Log
from agent0.provenance.fork_history import read_branch
from agent0.settings import Settings


async def gather(settings: Settings, names: Sequence[str]) -> list[Side]:
    """Read the runs and experiments to compare, in this order. An experiment that only assigned rewards shares its
    run's scores and cost.

    Raises:
        NotFoundError: no such run or experiment.
        OperationError: an experiment is unfinished.
    """
    async with sound_log(settings) as log:
        return [side_of(name, await _of(log, name)) for name in names]


async def gather_different(settings: Settings, names: Sequence[str]) -> list[Side]:
    """As ``gather``, of at least two different ones.

    Raises:
        ConfigError: there is nothing to compare.
    """
    if len(set(names)) < 2:
        raise ConfigError("Nothing to compare.", f"{len(set(names))} name was given.", "Name two runs or experiments.")
    return await gather(settings, names)


async def _of(log: Log, name: str) -> list[Recorded]:
    token = name if await log.last_seq(name) else experiment_id(name)
    events = [r async for r in log.read(token)]
    started = next((r.event for r in events if isinstance(r.event, ExperimentStarted)), None)
    if not events or (started is None and not any(isinstance(r.event, RunStarted) for r in events)):
        raise NotFoundError(f"There is no run or experiment {name!r}.", fix="See: agent0 experiment list")
    if started is None:
        return [r async for r in read_branch(log, token)]
    if not any(isinstance(r.event, ExperimentFinished) for r in events):
        raise OperationError(f"Experiment {name} is unfinished.", "It counts from its closing event.")
    return [*await _behind(log, started), *events]


async def _behind(log: Log, started: ExperimentStarted) -> list[Recorded]:
    """What an experiment shares with others: of a training the receipts that it went by, of any other one everything
    of its run but what it says itself."""
    if started.kind != "retrain":
        recomputed = RewardAssigned if started.kind == "rescore" else ResultVerified
        return [r async for r in read_branch(log, started.run) if not isinstance(r.event, recomputed)]
    _, token = await behind_training(log, started)
    return [r async for r in read_branch(log, token, ["RewardAssigned"])]
