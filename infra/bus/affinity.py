"""Which runs a process leaves to others since these have loaded their models, where runs of several models go on.

Every few seconds the processes of a handler are asked what they have loaded, and each comes to the same division of
their slots between models (``agent0.infra.bus.shares``). It is a preference: who has nothing else to do takes whatever
waits, and so does everybody where nobody has taken anything of a run for ``BOUND_S``.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from agent0.events.runs import PRIORITY
from agent0.infra.bus.deliveries import Reaction
from agent0.infra.bus.processes import ProcessReply
from agent0.infra.bus.shares import EPSILON, WorkerSlots, divide
from agent0.infra.log.connection import apart
from agent0.infra.log.event_log import Log
from agent0.infra.log.streams import EVENTS

KEPT = 4
"""Models that count as loaded: those a process used last, as many as an engine keeps adapters."""
BOUND_S = 30.0
"""For so long a run is left to others that take nothing of it."""

ModelOf = Callable[[Reaction, Any], str]
"""(handler, state of a run) -> digest of the weights that it loads for the run; empty: it loads none."""


def loads_nothing(handler: Reaction, state: Any) -> str:
    """Say of every handler and run that nothing is loaded for it."""
    return ""


@dataclass
class Division:
    """How a handler's slots in this process are divided: ``weights`` of runs, and those ``left`` to others."""

    weights: dict[str, float]
    left: set[str] = field(default_factory=set)


class Affinity:
    """The models of one process, and what follows from them."""

    def __init__(self, log: Log, model_of: ModelOf) -> None:
        self._log, self._model_of = log, model_of
        self._used: OrderedDict[str, None] = OrderedDict()
        self._taken: dict[tuple[str, str], tuple[int, float]] = {}
        """(handler, run) -> how many messages were delivered to anybody when it was looked last, and since when."""

    def forget(self, run: str) -> None:
        """Drop what is known of a run that does not go on."""
        self._taken = {key: value for key, value in self._taken.items() if key[1] != run}

    def use(self, handler: Reaction, state: Any) -> None:
        """Note that ``handler`` works for a run of this ``state`` with its model."""
        if model := self._model_of(handler, state):
            self._used[model] = None
            self._used.move_to_end(model)
            while len(self._used) > KEPT:
                self._used.popitem(last=False)

    def loaded(self) -> list[str]:
        """Models that this process used last."""
        return list(self._used)

    def models(self, handler: Reaction, states: Mapping[str, Any]) -> dict[str, str]:
        """The model of each run; none at all where it does not matter since all runs have the same."""
        models = {run: self._model_of(handler, state) for run, state in states.items()}
        return models if len({*models.values()} - {""}) > 1 else {}

    def at_first(self, models: Mapping[str, str], priorities: Mapping[str, int]) -> Division:
        """How to begin before anybody was asked: with what is loaded."""
        return Division({**priorities}, {run for run, model in models.items() if model and model not in self._used})

    async def look(
        self,
        handler: Reaction,
        models: Mapping[str, str],
        priorities: Mapping[str, int],
        replies: Iterable[ProcessReply],
        own: str,
    ) -> Division:
        """How the slots of process ``own`` are divided, as all ``replies`` have it.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        weights = {run: priorities.get(run, PRIORITY) for run in models}
        by_model = {m: float(sum(weights[run] for run in models if models[run] == m)) for m in models.values()}
        workers = {reply.name: _worker(reply, handler, models) for reply in replies if handler.name in reply.handlers}
        slots = divide(workers.values(), by_model)[own]
        mine = {run for run in models if slots.get(models[run], 0) > EPSILON}
        standing = {run: await self._standing(handler, run) for run in models}
        busy = any(standing[run].waits for run in mine)
        left = {run for run, s in standing.items() if run not in mine and not s.stands and (busy or not s.waits)}
        scale = sum(by_model.values()) / workers[own].slots
        shares = {run: slots[models[run]] * weights[run] / by_model[models[run]] * scale for run in mine}
        return Division({**weights, **shares}, left)

    async def _standing(self, handler: Reaction, run: str) -> "_Standing":
        info = await apart(self._log.client.jsm().consumer_info(EVENTS, f"{handler.name}-{run}"))
        taken, at, key = info.delivered.consumer_seq if info.delivered else 0, monotonic(), (handler.name, run)
        before, since = self._taken.get(key, (-1, at))
        if taken != before or not (info.num_pending or info.num_ack_pending):
            since = at
        self._taken[key] = taken, since
        return _Standing(bool(info.num_pending), at - since >= BOUND_S)


@dataclass(frozen=True)
class _Standing:
    """Whether messages of a run wait, and whether it ``stands``: nobody has taken any for ``BOUND_S``."""

    waits: bool
    stands: bool


def _worker(reply: ProcessReply, handler: Reaction, models: Mapping[str, str]) -> WorkerSlots:
    lacks = {models[run] for run, of in reply.missing.items() if handler.name in of and run in models}
    return WorkerSlots(reply.name, reply.slots, frozenset(reply.models), lacks)
