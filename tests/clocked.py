"""A whole run on a clock of its own: seconds of model servers and trainers are counted, not waited for.

A server answers ``slots`` calls at once; calls go to the one with the fewest. One that ends takes its calls with it,
and they are made again on the others. The handlers, their order and what they return are those of any run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf, isfinite
from typing import Any

from agent0.events.base import Recorded
from agent0.handlers import handlers
from agent0.provenance.fork_history import Branches
from agent0.run.lifecycle import RunState, evolve
from tests.play import EPOCH, Played, Reaction, _going, _owed, _react

TRAINER = "train_checkpoint"
CALLERS = {"attempt_task", "evaluate_item", "propose_task"}


@dataclass
class Server:
    """A server that answers ``slots`` calls at once and ends at ``dies_s``; ``busy`` has those by number."""

    slots: int
    dies_s: float = inf
    busy: dict[int, Reaction] = field(default_factory=dict)
    calls: int = 0


class Clocked:
    """A run on ``servers`` where a call takes ``call_s`` and a training ``training_s``; ``time_s`` is the clock, and
    ``repeated`` counts calls that were made again."""

    def __init__(self, call_s: float, training_s: float, servers: Sequence[Server]) -> None:
        self._call_s, self._training_s, self._servers = call_s, training_s, servers
        self.time_s, self.repeated = 0.0, 0
        self._calls, self._trainings, self._training = list[Reaction](), list[Reaction](), -1
        self._due, self._numbers = list[tuple[float, int, Reaction | None]](), count()

    async def play(self, started: Recorded, ports: Mapping[str, Any]) -> list[Recorded]:
        """As ``tests.play.play``; ``time_s`` is then when the run was over."""
        played = Played()
        state: RunState | None = None
        ports = {"history": Branches(played), **ports}
        for server in self._servers:
            self._later(server.dies_s, None)
        new = [started]
        while True:
            for recorded in new:
                stored = recorded.model_copy(update={"seq": len(played.recorded) + 1})
                played.recorded.append(stored)
                state = evolve(state, stored)
                for reaction in _owed(stored, state, handlers()):
                    self._take(reaction)
            self._begin()
            if not self._due or not _going(state):
                return played.recorded
            reaction = self._next()
            new = await _react(reaction, ports, lambda: EPOCH) if reaction else []

    def _later(self, time_s: float, reaction: Reaction | None) -> int:
        number = next(self._numbers)
        if isfinite(time_s):
            heappush(self._due, (time_s, number, reaction))
        return number

    def _take(self, reaction: Reaction) -> None:
        """Line up for a server or the trainer what needs it; the rest takes no time."""
        if reaction.handler.name == TRAINER:
            self._trainings.append(reaction)
        elif _calls(reaction):
            self._calls.append(reaction)
        else:
            self._later(self.time_s, reaction)

    def _begin(self) -> None:
        """Begin what a server, or the trainer, is free for."""
        if self._trainings and self._training < 0:
            self._training = self._later(self.time_s + self._training_s, self._trainings.pop(0))
        while self._calls and (free := [one for one in self._alive() if len(one.busy) < one.slots]):
            server, reaction = min(free, key=lambda one: len(one.busy)), self._calls.pop(0)
            server.busy[self._later(self.time_s + self._call_s, reaction)] = reaction
            server.calls += 1

    def _next(self) -> Reaction | None:
        """What ends next; None: a server, or a call that a server took with it."""
        self.time_s, number, reaction = heappop(self._due)
        if reaction is None:
            for server in self._servers:
                if server not in self._alive():
                    self._calls[:0], self.repeated = server.busy.values(), self.repeated + len(server.busy)
                    server.busy.clear()
        elif number == self._training:
            self._training = -1
        elif _calls(reaction):
            holders = [server for server in self._servers if server.busy.pop(number, None)]
            return reaction if holders else None
        return reaction

    def _alive(self) -> list[Server]:
        return [server for server in self._servers if server.dies_s > self.time_s]


def _calls(reaction: Reaction) -> bool:
    """Whether a model is called; who scores an evaluation after its last item calls none."""
    if reaction.handler.name != "evaluate_item" or reaction.cause.type == "EvaluationItemRequested":
        return reaction.handler.name in CALLERS
    run = reaction.run
    evaluation = run.evaluations.get(getattr(reaction.cause.event, "evaluation", ""))
    return bool(evaluation) and run.config.evaluation.at_once + evaluation.scored - 1 < evaluation.size
