"""Recomputes a run's rewards under other rules, from its tasks, attempts and verdicts alone.

The stored receipts are never read. Where one stands in the log, the recomputed one is folded in its place, so that
everything after it sees the recomputed state. With a run's own rules this gives its receipts to the byte.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agent0.events.base import Recorded, effect_id
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.rewards import waits_for_group
from agent0.rewards.assign import COMPLETING, PendingReward, pending_rewards
from agent0.run.lifecycle import RunState, evolve
from agent0.run.reducers import FOLDS
from agent0.settings import RewardConfig
from agent0.verification.human_review import PERSON, awaits_person, is_rewarded_verdict

HANDLER = "assign_reward"


@dataclass(frozen=True)
class RescoredReceipt:
    """A recomputed receipt: the ``number``-th effect of ``cause``. ``id`` is that of the run's own receipt."""

    id: str
    cause: Recorded
    number: int
    reward: RewardAssigned


@dataclass(frozen=True)
class RescoreFailure:
    """A receipt that could not be computed, the ``number``-th of ``cause``; every other one stands."""

    cause: Recorded
    number: int
    task: str
    attempt: str
    error: str
    message: str


@dataclass
class Rescoring:
    """A fold over one run that recomputes its receipts. ``verdicts`` replaces what was decided about an attempt."""

    policy: RewardConfig | None = None
    verdicts: Mapping[str, ResultVerified] = field(default_factory=dict)
    state: RunState | None = None
    _computed: dict[str, RewardAssigned] = field(default_factory=dict)
    _verdicts: dict[str, Recorded] = field(default_factory=dict)
    """Of attempts that the run paid one by one, and that are paid together now."""
    _early: dict[str, RewardAssigned] = field(default_factory=dict)
    """Blank ones for stored receipts of such attempts, which came before there was one to take their place."""

    def take(self, recorded: Recorded) -> list[RescoredReceipt | RescoreFailure]:
        """Fold in one event of the run; returns the receipts that it gives rise to."""
        event = recorded.event
        if isinstance(event, RewardAssigned):
            return self._stands(recorded)
        if isinstance(event, ResultVerified) and (other := self._other(event)):
            recorded = recorded.model_copy(update={"event": other.model_copy(update={"iteration": event.iteration})})
        self.state = evolve(self.state, recorded)
        if self.state is None or not isinstance(recorded.event, COMPLETING):
            return []
        return self._paid(recorded, self.state)

    def _other(self, event: ResultVerified) -> ResultVerified | None:
        """What stands for ``event``. One that only asked a person settled nothing, and stays; so does what a person
        said where the other verdict would have asked for it, too."""
        other = self.verdicts.get(event.attempt)
        if other is None or self.state is None or awaits_person(event, self.state.config):
            return None
        if not awaits_person(other, self.state.config):
            return other
        # nobody was asked, so nobody said anything: undecided, since everything after it happened all the same
        return None if event.verifier == PERSON else other.model_copy(update={"verifier": PERSON})

    def _paid(self, recorded: Recorded, state: RunState) -> list[RescoredReceipt | RescoreFailure]:
        event = recorded.event
        if (
            self._regrouped(state)
            and isinstance(event, ResultVerified)
            and is_rewarded_verdict(event, state.tasks[event.task])
        ):
            self._verdicts[event.attempt] = recorded
        out = [
            self._receipt(recorded, n, pending)
            for n, pending in enumerate(pending_rewards(recorded.event, state, self.policy))
        ]
        for each in out:
            name = effect_id(each.cause.id, HANDLER, each.number)
            blank = self._early.pop(name, None)
            reward = each.reward if isinstance(each, RescoredReceipt) else blank
            if blank is not None and reward is not None:
                self.state = state = FOLDS[RewardAssigned](state, reward)
            elif reward is not None:
                self._computed[name] = reward
        return out

    def _regrouped(self, state: RunState) -> bool:
        recorded = state.config.rewards
        return waits_for_group(self.policy or recorded) and not waits_for_group(recorded)

    def _receipt(self, recorded: Recorded, number: int, pending: PendingReward) -> RescoredReceipt | RescoreFailure:
        """Under the cause and number that it has in the run."""
        if not self._regrouped(pending.run):
            return _computed(recorded, number, pending)
        if pending.role == "student":
            return _computed(self._verdicts[pending.attempt], 0, pending)
        at = number if pending.run.phase == "measuring" else int(isinstance(recorded.event, ResultVerified))
        return _computed(recorded, at, pending)

    def _stands(self, recorded: Recorded) -> list[RescoredReceipt | RescoreFailure]:
        """A stored receipt: what was computed for it happens now, a blank one where that failed."""
        assert isinstance(recorded.event, RewardAssigned)  # noqa: S101 - the caller matched the type
        blank = recorded.event.model_copy(update={"parts": (), "total": 0.0, "facts": {}})
        reward = self._computed.pop(recorded.id, None)
        if reward is None and recorded.event.attempt in self._verdicts:
            self._early[recorded.id] = blank
            return []
        reward = reward or blank
        self.state = evolve(self.state, recorded.model_copy(update={"event": reward}))
        return []


def _computed(cause: Recorded, number: int, pending: PendingReward) -> RescoredReceipt | RescoreFailure:
    try:
        return RescoredReceipt(effect_id(cause.id, HANDLER, number), cause, number, pending.assign())
    except Exception as error:  # a reward is anybody's code: one old event must not end the rest
        message = " ".join((str(error), *getattr(error, "__notes__", ())))
        return RescoreFailure(cause, number, pending.task, pending.attempt, type(error).__name__, message[:500])


def rescore(
    events: Iterable[Recorded], policy: RewardConfig | None = None, verdicts: Mapping[str, ResultVerified] | None = None
) -> Iterator[RescoredReceipt | RescoreFailure]:
    """Recompute all receipts of a run's ``events``, in stream order, under ``policy`` (None: the run's own)."""
    fold = Rescoring(policy, verdicts or {})
    for recorded in events:
        yield from fold.take(recorded)
