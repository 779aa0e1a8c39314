"""A run's history with other rewards, or without some of its tasks: what an experiment trains on."""

from collections.abc import AsyncIterator, Mapping, Sequence

from agent0.events.base import Recorded
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.ports.storage import History

ReceiptKey = tuple[str, str, str]
"""(task, attempt, role) of a receipt; a teacher's attempt is ``-``."""


class Substituted:
    """Implements ``agent0.ports.storage.History``: everything stays in place, receipts and verdicts are an
    experiment's, and purged tasks never happened."""

    def __init__(
        self,
        history: History,
        rewards: Mapping[ReceiptKey, RewardAssigned],
        verdicts: Mapping[str, ResultVerified],
        purged: frozenset[str] = frozenset(),
    ) -> None:
        self._history, self._rewards, self._verdicts, self._purged = history, rewards, verdicts, purged

    async def read(
        self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
    ) -> AsyncIterator[Recorded]:
        """As ``History.read``. With other rewards, a receipt that has no other is left out: unscored is not zero."""
        async for recorded in self._history.read(run, types, after, until):
            if recorded.task in self._purged:
                continue
            substituted = self._substituted(recorded)
            if substituted is not None:
                yield substituted

    def _substituted(self, recorded: Recorded) -> Recorded | None:
        event = recorded.event
        if isinstance(event, RewardAssigned) and self._rewards:
            other = self._rewards.get((event.task, event.attempt, event.role))
            return None if other is None else recorded.model_copy(update={"event": other})
        if isinstance(event, ResultVerified) and event.attempt in self._verdicts:
            return recorded.model_copy(update={"event": self._verdicts[event.attempt]})
        return recorded
