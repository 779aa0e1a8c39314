"""Which run gets a free slot of a handler, and which process takes tasks of which models: functions of what is known,
without a clock.

A run's fair share of a process's slots is in proportion to its weight. Whole slots of a share come first; the fractions
of all shares go in turn, as in fair queueing: a run's turn comes again after 1/weight.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor

from agent0.events.runs import PRIORITY

FIRST = 100.0
"""The weight of what belongs to no run: ends of runs, submitted tasks, budgets."""
EPSILON = 1e-9


class Shares:
    """The slots of one handler in one process, divided between runs."""

    def __init__(self, slots: int) -> None:
        """``slots``: reactions at once."""
        self._slots = slots
        self.weights: Mapping[str, float] = {}
        """Of runs: their priorities, or what ``divide`` makes of these."""
        self._turn = 0.0
        self._turns: dict[str, float] = {}

    def weight(self, run: str) -> float:
        """The weight of ``run``, ``PRIORITY`` where nothing is known of it."""
        return self.weights.get(run, PRIORITY) if run else FIRST

    def next(self, waiting: Collection[str], running: Mapping[str, int]) -> str:
        """The run of ``waiting`` that gets a slot, where each run uses as many as ``running`` says."""
        active = {*waiting, *(run for run, count in running.items() if count)}
        total = sum(map(self.weight, active))

        def order(run: str) -> tuple[int, float, float]:
            share, count = self._slots * self.weight(run) / total, running.get(run, 0)
            return (count >= floor(share + EPSILON)) + (count >= ceil(share)), self._due(run), -self.weight(run)

        return min(waiting, key=order)

    def give(self, run: str, active: Iterable[str]) -> None:
        """Count a slot that ``run`` was given while the ``active`` runs had work."""
        self._turns[run] = self._due(run) + 1 / self.weight(run)
        self._turn = max(self._turn, min(map(self._due, {run, *active})))

    def forget(self, run: str) -> None:
        """Drop what is known of a run that nothing is taken of any more."""
        self._turns.pop(run, None)

    def _due(self, run: str) -> float:
        """When its turn is; a run that had nothing to do saves none up."""
        return max(self._turn, self._turns.get(run, 0.0))


@dataclass(frozen=True, order=True)
class WorkerSlots:
    """A process that runs a handler: its ``slots``, models that it has ``loaded`` and those that it cannot load."""

    name: str
    slots: int
    loaded: Collection[str] = ()
    lacks: Collection[str] = ()


def divide(workers: Iterable[WorkerSlots], weights: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """How many slots each worker has for each model, by worker and model: over all workers a model has its share by
    weight (of its runs together), and few load one. The model "" is of what needs none.

    Every process comes to the same from the same facts: a worker keeps what it has loaded as far as that is needed,
    then takes the model that lacks most.
    """
    crew = sorted((worker for worker in workers if worker.slots > 0), key=lambda worker: worker.name)
    capacity, total = sum(worker.slots for worker in crew), sum(weights.values())
    needs = {model: capacity * weight / total for model, weight in weights.items()}
    free = {worker.name: float(worker.slots) for worker in crew}
    slots: dict[str, dict[str, float]] = {worker.name: {} for worker in crew}

    def fill(worker: WorkerSlots, models: Collection[str]) -> None:
        own = slots[worker.name]
        while choice := [m for m in models if needs[m] > EPSILON and m not in worker.lacks]:
            model = min(choice, key=lambda m: (-needs[m], m))
            if (amount := min(needs[model], free[worker.name])) <= EPSILON:
                return
            own[model] = own.get(model, 0.0) + amount
            needs[model], free[worker.name] = needs[model] - amount, free[worker.name] - amount

    for worker in sorted(crew, key=lambda worker: len(worker.loaded)):
        fill(worker, [model for model in needs if model in worker.loaded])
    for worker in crew:
        fill(worker, [model for model in needs if model])
    for worker in crew:
        fill(worker, list(needs))
    return slots
