"""Whom to kill -9, when, and what must hold afterwards: for tests, and for ``python -m benchmarks.crash``."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.read_models import live_path
from agent0.errors import NotFoundError, OperationError
from agent0.events.base import Event, Recorded
from agent0.events.checkpoints import EvaluationRequested
from agent0.infra.storage import sqlite
from agent0.projections import position
from tests.patience import PATIENCE_S, until
from tests.play import play
from tests.processes import KINDS, Crew
from tests.world import ports

BROKER = "broker"
ROLES = (*KINDS, BROKER)

ASKED = {
    "teacher": ("TaskRequested",),
    "student": ("AttemptRequested", "EvaluationItemRequested"),
    "verifier": ("TaskAttempted",),
    "rewarder": ("ResultVerified",),
    "trainer": ("TrainingRequested",),
}
"""What a role always answers: between the two it is in the middle of something. It is killed at each kind in turn; the
other roles are killed at any time."""

ATTEMPTED = ("TaskAttempted", "EvaluationItemScored")
"""What a finished rollout is: of a task, or of a held-out item."""

SPREAD_S = {"verifier": 0.03, "rewarder": 0.02, "runner": 0.05}
"""How long after it got something to do a role is killed, at most: those that compute nothing are done sooner."""

LATENCY = "latency=0.2"
SIZES = {
    "RUN__TEACHER__MODEL": LATENCY,
    "RUN__STUDENT__MODEL": LATENCY,
    "RUN__ATTEMPTS": "3",
    "RUN__EVALUATION__VALIDATION": "3",
    "RUN__EVALUATION__TEST": "3",
    "HANDLERS__ACK_WAIT_S": "1",
    "HANDLERS__IN_FLIGHT": "3",
    "HANDLERS__MAX_DELIVER": "1000",
    "HANDLERS__COMMIT_MS": "10",
    "SANDBOX__CGROUP": "never",
}
"""Three things at a time, a model that takes a while and a moment between an answer and its storing, so that there is
a middle to be killed in; no delivery is the last; a sandbox is soon there."""

SHIPPED = {name: size for name, size in SIZES.items() if name.startswith("RUN__")} | {"SANDBOX__WORKERS": "2"}
"""The same run under handlers and sandboxes as they are shipped."""

VOLATILE = {
    "wall_s": "a clock",
    "seconds": "a clock",
    "cpu_s": "a clock",
    "latency_p50_s": "a clock",
    "latency_p95_s": "a clock",
    "peak_mem_mib": "measured",
    "cached": "the cache is each process's own",
    "position": "a place in the stream",
    "after": "a place in the stream",
    "until": "a place in the stream",
    "replay_after": "a place in the stream",
    "manifest": "an artifact that holds event ids",
    "dataset": "a digest of event ids",
    "items": "an artifact that holds seconds",
}
"""Fields that may differ between two tellings of one run, and why; all others are equal."""

MACHINES = {
    "backend": "which sandbox ran it",
    "tier": "how memory was limited",
    "usage": "seconds of the model",
    "output_bytes": "counted by the sandbox",
}
"""Fields in which a run in memory differs, too."""

OPERATIONS = ("DependencyLost", "DependencyRestored", "AlarmRaised", "AlarmResolved", "ReactionTried")


def payloads(told: Sequence[Recorded], volatile: Mapping[str, str] = VOLATILE) -> Counter[str]:
    """What was said of whom, without the ``volatile`` fields."""

    def stable(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: stable(inner) for key, inner in sorted(value.items()) if key not in volatile}
        return [stable(inner) for inner in value] if isinstance(value, list) else value

    return Counter(f"{r.type} {r.task} {r.attempt} {stable(r.event.model_dump(mode='json'))}" for r in told)


def facts(told: Sequence[Recorded]) -> Counter[str]:
    """What a run says of itself: neither what its machines cost nor what befell them."""
    return payloads([r for r in told if r.type not in OPERATIONS], {**VOLATILE, **MACHINES})


def handlers_of(role: str) -> set[str]:
    """Whose answers are its own; of the broker: everybody's."""
    return {name for kind in KINDS if role in (kind, BROKER) for name in KINDS[kind][2:]}


class Watch:
    """What the log says while the run goes on, and when it was heard."""

    def __init__(self) -> None:
        self.told: list[Recorded] = []
        self.heard: dict[str, float] = {}
        self.owed: dict[str, set[str]] = {kind: set() for asked in ASKED.values() for kind in asked}
        """What was asked, by class, and not yet answered."""
        self.answers: Counter[str] = Counter()
        self.ending = self.over = False
        """Only the last evaluation is left; nothing is."""
        self.trouble: BaseException | None = None
        self._news = asyncio.Condition()

    async def tell(self, trouble: BaseException) -> None:
        """Whoever waits need not wait any longer."""
        self.trouble = trouble
        async with self._news:
            self._news.notify_all()

    async def hear(self, recorded: Recorded) -> None:
        """One event more."""
        self.told.append(recorded)
        self.heard.setdefault(recorded.id, time.time())
        for role, asked in ASKED.items():
            if recorded.type in asked:
                self.owed[recorded.type].add(recorded.id)
            if recorded.handler in handlers_of(role):
                self.answers[role] += 1
                for kind in asked:
                    self.owed[kind].discard(recorded.cause)
        self.ending = self.ending or _is_last(recorded.event)
        self.over = self.over or recorded.type == "RunFinished"
        async with self._news:
            self._news.notify_all()

    async def until(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until ``holds``, or until the run is over. So long a silence is an error."""
        async with self._news:
            while not (self.over or holds()):
                if self.trouble:
                    raise self.trouble
                try:
                    async with asyncio.timeout(patience_s):
                        await self._news.wait()
                except TimeoutError:
                    last = [f"{r.seq} {r.type}" for r in self.told[-5:]]
                    raise AssertionError(f"waited {patience_s:.0f} s for {what}, after {last}") from None

    def at_work(self, role: str, turn: int, since: int) -> bool:
        """It did something since it was started, when there were ``since`` answers (events), and has more to do. Near
        the end nobody waits for a better moment."""
        if role not in ASKED:
            return len(self.told) > since or self.ending
        kinds = ASKED[role]
        return self.ending or (self.answers[role] > since and bool(self.owed[kinds[turn % len(kinds)]]))

    def done(self, role: str) -> int:
        """What ``at_work`` compares with later."""
        return self.answers[role] if role in ASKED else len(self.told)


def _is_last(event: Event) -> bool:
    return isinstance(event, EvaluationRequested) and event.split == "test" and event.iteration > 0


@asynccontextmanager
async def watching(crew: Crew, run: str) -> AsyncIterator[Watch]:
    """Hear all of ``run``, and start again what could not start because the log was away."""
    watch = Watch()
    tasks = [asyncio.create_task(_noted(watch, work)) for work in (_listen(crew, run, watch), _revive(crew))]
    try:
        yield watch
        if watch.trouble:
            raise watch.trouble
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _listen(crew: Crew, run: str, watch: Watch) -> None:
    async with open_log(crew.settings, "reader") as log:
        async for recorded in log.tail(0, run):
            await watch.hear(recorded)


async def _revive(crew: Crew) -> None:
    while True:
        crew.revive()
        await asyncio.sleep(0.05)


async def _noted(watch: Watch, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception as error:
        await watch.tell(error)


@dataclass
class Kill:
    """One kill -9. ``behind``: of the projector, whether it had not yet seen all; ``back_s``: until it had."""

    role: str
    at: float
    seq: int = 0
    behind: bool = False
    back_s: float | None = None


async def harass(crew: Crew, watch: Watch, role: str, kills: int, rng: random.Random) -> list[Kill]:
    """Kill ``role`` so often, in the middle of its work as long as there is any; the last moment is drawn."""
    made: list[Kill] = []
    since = -1 if role in ASKED else 1  # the first time anything to do is enough, but a run's beginning is nothing yet
    while len(made) < kills:
        await watch.until(lambda: watch.at_work(role, len(made), since), f"{role} to be at work")  # noqa: B023 - awaited here
        await asyncio.sleep(rng.uniform(0, SPREAD_S.get(role, 0.15)))
        kill = Kill(role, time.time(), watch.told[-1].seq)
        if role == BROKER:
            await until(crew.kill_server, "a server to kill")
        else:
            crew.kill(role)
            kill.behind = role == "projector" and _seen(crew) < kill.seq
            crew.start(role)
        made.append(kill)
        since = watch.done(role)
        if role == "projector":
            await until(lambda: _seen(crew) >= kill.seq, "the tables to catch up")  # noqa: B023 - awaited here
            kill.back_s = time.time() - kill.at
    return made


def _seen(crew: Crew) -> int:
    """How far the tables have come."""
    try:
        with sqlite.reading(live_path(crew.settings)) as db:
            return position(db).seq
    except (NotFoundError, OperationError, TypeError):  # not made yet, or half
        return 0


@dataclass(frozen=True)
class Past:
    """What the log holds of a run that was harassed, compared with what was heard of it meanwhile and with the same run
    in memory, where nobody is killed."""

    told: Sequence[Recorded]
    heard: Sequence[Recorded]
    at: Mapping[str, float]
    undisturbed: Sequence[Recorded]

    @property
    def finished(self) -> bool:
        """Whether the run ended as runs do."""
        return any(r.type == "RunFinished" for r in self.told)

    @property
    def lost(self) -> list[Recorded]:
        """What had been stored, and is gone."""
        ids = {r.id for r in self.told}
        return [r for r in self.heard if r.id not in ids]

    @property
    def lost_attempts(self) -> int:
        """Finished attempts that a run without kills has and this one has not."""
        return (_attempts(self.undisturbed) - _attempts(self.told)).total()

    @property
    def duplicates(self) -> list[Recorded]:
        """What is stored though it had been already: under the same id, or another attempt of the same name."""
        seen, named, out = set[str](), Counter[tuple[str, str]](), list[Recorded]()
        wanted = _attempts(self.undisturbed)
        for r in self.told:
            named += _attempts([r])
            if r.id in seen or (r.type in ATTEMPTED and named[r.task, r.attempt] > wanted[r.task, r.attempt]):
                out.append(r)
            seen.add(r.id)
        return out

    @property
    def same(self) -> bool:
        """Whether it says what the run in memory says."""
        return facts(self.told) == facts(self.undisturbed)

    def recovery(self, kill: Kill) -> tuple[bool, float | None]:
        """Whether ``kill`` came in the middle of work, and the seconds until the first of that work was answered."""
        if kill.role == "projector":
            return kill.behind, kill.back_s
        redone = [self.at[r.id] for r in self._answers[kill.role] if self._open(r, kill)]
        return bool(redone), min(redone) - kill.at if redone else None

    def _open(self, answer: Recorded, kill: Kill) -> bool:
        """Whether it answers what had been asked before the kill, and was made (of the broker: heard) only after."""
        made = self.at.get(answer.id, 0) - 0.05 if kill.role == BROKER else answer.time.timestamp()
        return answer.id in self.at and self.at.get(answer.cause, kill.at) < kill.at < made

    @cached_property
    def _answers(self) -> dict[str, list[Recorded]]:
        return {role: [r for r in self.told if r.handler in handlers_of(role)] for role in ROLES}


async def past_of(crew: Crew, run: str, watch: Watch) -> Past:
    """To be asked once ``run`` is over."""
    told = await crew.facts(run)
    return Past(told, watch.told, watch.heard, await play(told[0], ports()))


def _attempts(told: Iterable[Recorded]) -> Counter[tuple[str, str]]:
    return Counter((r.task, r.attempt) for r in told if r.type in ATTEMPTED)


async def crash(crew: Crew, watch: Watch, kills: Mapping[str, int], seed: str) -> list[Kill]:
    """Kill each role so often, all of them at once, and wait for the run's end."""
    async with asyncio.TaskGroup() as group:
        work = [harass(crew, watch, role, often, random.Random(f"{seed} {role}")) for role, often in kills.items()]
        tasks = [group.create_task(one) for one in work]
    await watch.until(lambda: False, "the run to be finished")
    return sorted((kill for task in tasks for kill in task.result()), key=lambda kill: kill.at)
