"""Part of the rim: a run's rewards computed again under other rules, from its log alone, and written down under a token
of their own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from agent0.assembly.log.access import open_log
from agent0.assembly.replay.receipts import ReceiptComparison, compared_receipts
from agent0.assembly.replay.stored_experiments import (
    Report,
    append_new,
    begun_as,
    experiment_id,
    extent,
    named,
    start_of_run,
    verdicts_of_source,
)
from agent0.assembly.runtime.plugins import check_plugins
from agent0.assembly.runtime.read_models import sound_log
from agent0.assembly.validate.rewards import amended_rules
from agent0.events.experiments import ExperimentFinished, ExperimentStarted, RecomputeFailed
from agent0.events.tasks import ResultVerified
from agent0.experiments.experiment_events import check_same, events_digest, experiment_event_id, numbers, start_of
from agent0.experiments.receipt_diff import summary
from agent0.experiments.rescore import RescoreFailure
from agent0.infra.log.event_log import Log
from agent0.settings import RewardConfig, RunConfig, Settings


@dataclass(frozen=True)
class Rescore:
    """What is asked: rewards of ``run`` under ``policy`` (None: its own) with ``changes`` (dotted key below
    ``run.rewards`` -> text), verdicts of an earlier experiment instead of the run's where one is named, or those of
    persons (``REVIEWS``)."""

    run: str
    name: str
    policy: RewardConfig | None
    verdicts: str = ""
    commit: bool = False
    changes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RescorePlan:
    """A ``Rescore`` with all that follows from the run: ``start`` names the run and how far it is read, ``policy`` has
    the changes in it, ``verdicts`` are by attempt."""

    experiment: str
    start: ExperimentStarted
    policy: RewardConfig | None
    verdicts: Mapping[str, ResultVerified]
    commit: bool


async def rescore_run(settings: Settings, request: Rescore, report: Report = lambda _: None) -> dict[str, object]:
    """Recompute the rewards of ``request.run``, compare them with its own, and store them where ``commit`` is set.

    Raises:
        NotFoundError: no such run, or no such experiment's verdicts.
        OperationError: an experiment of this name asked something else.
        ConfigError: rules that cannot be, or the run's own rules need a plugin that is not loaded.
        RewardError: a reward gives what is no finite number.
    """
    async with open_log(settings) if request.commit else sound_log(settings) as log:
        plan = await _planned(log, request, settings.run.plugins)
        start = plan.start
        comparison = await compared_receipts(log, start.run, start.until, plan.policy, plan.verdicts, report)
        comparison.check_finite()
        outcome = _outcome(plan, comparison)
        if plan.commit:
            await _commit(log, plan, comparison, outcome)
    return outcome


async def _planned(log: Log, request: Rescore, plugins: Mapping[str, str]) -> RescorePlan:
    """``request`` resolved against the log; nothing is read after this but the run's events."""
    experiment = experiment_id(request.name)
    begun = await begun_as(log, experiment)
    start_event = await start_of_run(log, request.run)
    until = await extent(log, request.run, begun)
    verdicts = await verdicts_of_source(log, request.run, request.verdicts)
    config, policy = RunConfig.recorded(start_event.config), request.policy
    if request.changes:
        policy = amended_rules(policy or config.rewards, request.changes)
    elif policy is None:
        check_plugins(config.plugins, request.run)
    rules = {**(policy or config.rewards).model_dump(mode="json"), "verdicts": request.verdicts}
    rules |= {"plugins": dict(plugins)} if plugins else {}
    start = start_of("rescore", request.name, request.run, until, rules)
    if request.commit:
        check_same(experiment, begun, start)
    return RescorePlan(experiment, start, policy, verdicts, request.commit)


def _outcome(plan: RescorePlan, comparison: ReceiptComparison) -> dict[str, object]:
    first = next(iter(comparison.failures), None)
    return {
        "experiment": plan.experiment,
        "run": plan.start.run,
        "until": plan.start.until,
        "events": comparison.read,
        **summary(comparison.pairs()),
        "failed": len(comparison.failures),
        "first_failure": f"{first.error}: {first.message}" if first else "",
        "redacted": comparison.redacted,
        "imported": comparison.imported,
        "committed": False,
    }


async def _commit(log: Log, plan: RescorePlan, comparison: ReceiptComparison, outcome: dict[str, object]) -> None:
    """Write what is not written yet; the closing event comes last, and what stands before it counts only with it."""
    rewards, name = comparison.committed(), plan.experiment
    end = ExperimentFinished(
        kind="rescore",
        events=len(rewards),
        failed=len(comparison.failures),
        sha256=events_digest(each.receipt.reward for each in rewards),
        summary=numbers(outcome),
    )
    first, last = (
        named(name, plan.start, experiment_event_id(name, "start", 0)),
        named(name, end, experiment_event_id(name, "end", 0)),
    )
    assigned = (named(name, e.receipt.reward, experiment_event_id(name, e.cause, e.number), e.cause) for e in rewards)
    failed = (
        named(name, _failed(e), experiment_event_id(name, e.cause.id, 99 + e.number), e.cause.id)
        for e in comparison.failures
    )
    stored_ids = {r.id async for r in log.read(name)}
    await append_new(log, chain([first], assigned, failed, [last]), stored_ids)
    outcome["committed"] = True


def _failed(failure: RescoreFailure) -> RecomputeFailed:
    cause = failure.cause
    return RecomputeFailed(
        task=failure.task,
        attempt=failure.attempt,
        cause_id=cause.id,
        cause_seq=cause.seq,
        what="reward",
        error=failure.error,
        message=failure.message,
    )
