"""Part of the rim: reads a run and puts its receipts beside those that other rules give."""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from time import monotonic

from agent0.assembly.replay.stored_experiments import Progress, Report
from agent0.errors import RewardError
from agent0.events.alarms import EventRedacted, ReactionDropped, ReactionFailed, ReactionRetried
from agent0.events.base import Recorded
from agent0.events.runs import RunStarted
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.experiments.receipt_diff import Receipt, ReceiptPair
from agent0.experiments.rescore import HANDLER, RescoredReceipt, RescoreFailure, Rescoring
from agent0.infra.log.event_log import Log
from agent0.provenance.fork_history import read_whole
from agent0.settings import RewardConfig

_FAILED = (ReactionFailed, ReactionRetried, ReactionDropped)
OFTEN = 2000
"""Events between two words on how far it is."""


@dataclass(frozen=True, slots=True)
class RecomputedReceipt:
    """The ``number``-th receipt that follows from the event ``cause``."""

    cause: str
    number: int
    receipt: Receipt


@dataclass
class ReceiptComparison:
    """The receipts of a run, as stored and as recomputed, both by the id of the run's own receipt."""

    before: dict[str, Receipt] = field(default_factory=dict)
    after: dict[str, RecomputedReceipt] = field(default_factory=dict)
    failures: list[RescoreFailure] = field(default_factory=list)
    given_up: set[str] = field(default_factory=set)
    read: int = 0
    redacted: int = 0
    finished: bool = False
    imported: bool = False
    """Only its attempts are rewarded: no teacher of ours asked for its tasks."""

    def pairs(self) -> list[ReceiptPair]:
        """Side by side. What was given up, or had not landed yet when a run was stopped, has no counterpart."""
        out = [ReceiptPair(self.before[id], new.receipt) for id, new in self.after.items() if id in self.before]
        out += [
            ReceiptPair(None, new.receipt)
            for id, new in self.after.items()
            if id not in self.before and self._is_due(new)
        ]
        return out + [ReceiptPair(old, None) for id, old in self.before.items() if id not in self.after]

    def committed(self) -> list[RecomputedReceipt]:
        """The recomputed receipts that an experiment writes down."""
        return [new for id, new in self.after.items() if id in self.before or self._is_due(new)]

    def check_finite(self) -> None:
        """Raises RewardError where a reward gave what is no finite number."""
        failures = [failure for failure in self.failures if failure.error == RewardError.__name__]
        if failures:
            raise RewardError(failures[0].message, f"It is the first of {len(failures):,} such rewards.")

    def take(self, stored: Recorded, recomputed: list[RescoredReceipt | RescoreFailure], run: str) -> None:
        """An event, and what was recomputed at it. What a fork's parent was rewarded for is not reported again."""
        self.read += 1
        if isinstance(stored.event, EventRedacted) and stored.event.why != "aside":
            self.redacted += 1
            self.after.pop(stored.id, None)  # a receipt that was forgotten is not reported again
        if stored.run != run:
            return
        if isinstance(stored.event, RunStarted):
            self.imported = stored.event.imported is not None
        elif isinstance(stored.event, RewardAssigned):
            self._keep(stored.id, stored.event)
        elif isinstance(stored.event, _FAILED) and stored.event.failed_handler == HANDLER:
            self.given_up.add(stored.event.cause_id)
        for each in recomputed:
            if isinstance(each, RescoreFailure):
                self.failures.append(each)
            else:
                self.after[each.id] = RecomputedReceipt(each.cause.id, each.number, Receipt.of(each.reward))

    def _keep(self, id: str, reward: RewardAssigned) -> None:
        """A stored receipt. Where it is what was computed, one copy is kept of both."""
        stored, computed = Receipt.of(reward), self.after.get(id)
        self.before[id] = computed.receipt if computed and computed.receipt == stored else stored

    def _is_due(self, receipt: RecomputedReceipt) -> bool:
        due = self.finished and receipt.cause not in self.given_up
        return due and not (self.imported and receipt.receipt.role == "teacher")


async def compared_receipts(
    log: Log,
    run: str,
    until: int,
    policy: RewardConfig | None,
    verdicts: Mapping[str, ResultVerified],
    report: Report,
) -> ReceiptComparison:
    """The receipts of ``run`` up to the event ``until`` beside those under ``policy`` (None: the run's own rules) and
    with ``verdicts`` by attempt."""
    comparison, fold, began, first = ReceiptComparison(), Rescoring(policy, verdicts), monotonic(), 0
    async with aclosing(read_whole(log, run, until)) as events:  # type: ignore[type-var]
        async for stored in events:
            comparison.take(stored, fold.take(stored), run)
            first = first or stored.seq
            if comparison.read % OFTEN == 0:
                report(Progress(stored.seq - first + 1, until - first + 1, monotonic() - began))
    comparison.finished = fold.state is not None and fold.state.status == "finished"
    report(Progress(until - first + 1, until - first + 1, monotonic() - began))
    return comparison
