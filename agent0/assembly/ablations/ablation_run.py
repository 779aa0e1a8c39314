"""Part of the rim: one cell of a grid, a run in a data folder of its own, carried by a process of its own."""

import asyncio
import fcntl
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from agent0.assembly.runtime.app import App, open_app, run_handlers, started
from agent0.assembly.runtime.progress import OVER, Progress, told
from agent0.assembly.runtime.read_models import catch_up
from agent0.assembly.runtime.stamping import now, recorded
from agent0.assembly.validate.sandbox_speed import fitted
from agent0.config.loading import load
from agent0.errors import NotFoundError, OperationError
from agent0.evaluation.protocol import Exam
from agent0.experiments.ablation_cells import Cell
from agent0.experiments.ablation_results import Outcome, outcome_of, plain, read
from agent0.settings import RunConfig, Settings
from agent0.state.run_state import BASE
from events.base import Event
from events.checkpoints import StudentExamined
from events.runs import RunPaused, RunResumed

if TYPE_CHECKING:
    from infra.log.event_log import Log

PLAN, RUN, RESULT = "cell.json", "run.json", "result.json"
"""What a cell is, what its run came to before exams, what all of it came to."""
LOOK_S = 0.2
"""How often a process looks whether the one before it has left the cell."""
Tell = Callable[[str, float | None], None]
"""(what is new, seconds left where that can be told)."""


@dataclass(frozen=True)
class Plan:
    """What a cell is, as its folder says. ``settings`` are those that do not belong to the run, by dotted key;
    ``exams`` are sat by the student that the run ends with, ``base_exams`` by the base."""

    cell: Cell
    profile: str
    settings: Mapping[str, str]
    exams: tuple[Exam, ...] = ()
    base_exams: tuple[Exam, ...] = ()

    def write(self, folder: Path) -> None:
        """Whole or not at all."""
        from infra.log.server_folder import write

        cell = {"arm": self.cell.arm, "seed": self.cell.seed, "run": self.cell.run}
        config = self.cell.config.model_dump(mode="json")
        held = {**cell, "profile": self.profile, "settings": dict(self.settings), "config": config}
        held |= {name: [asdict(exam) for exam in getattr(self, name)] for name in ("exams", "base_exams")}
        write(folder / PLAN, json.dumps(held, indent=1))

    @classmethod
    def read(cls, folder: Path) -> "Plan":
        """Raises NotFoundError where there is none that can be read."""
        try:
            held = json.loads((folder / PLAN).read_text(encoding="utf-8"))
            cell = Cell(held["arm"], held["seed"], held["run"], RunConfig.recorded(held["config"]))
            return cls(cell, held["profile"], held["settings"], *(_exams(held, n) for n in ("exams", "base_exams")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            fix = "Move that folder away: the cell is begun again."
            raise NotFoundError(f"{folder} is no cell of a grid.", f"{type(error).__name__}: {error}.", fix) from error

    def held(self, folder: Path) -> Settings:
        """Everything that its process needs: its own data folder with its own embedded log."""
        given = load(self.profile, self.settings)
        nats = given.nats.model_copy(update={"url": ""})
        return given.model_copy(update={"home": folder.resolve(), "run": self.cell.config, "nats": nats})


def _exams(held: Mapping[str, Any], name: str) -> tuple[Exam, ...]:
    lists = ("levels", "excluded")
    return tuple(Exam(**{**one, **{key: tuple(one.get(key, ())) for key in lists}}) for one in held.get(name, ()))


def result(folder: Path) -> Outcome | None:
    """What the cell of ``folder`` came to; None where it is not finished."""
    return _told(folder / RESULT)


def _told(file: Path) -> Outcome | None:
    try:
        return read(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


async def carry_cell(folder: Path, tell: Tell) -> None:
    """Begin the cell's run or go on with it, to its end, then sit its exams; then write down what it came to. Two
    processes never do so at once: the later one waits for the other to end.

    Raises:
        OperationError: the run was paused or cancelled.
    """
    from infra.log.server_folder import write

    plan = Plan.read(folder)
    held = plan.held(folder)
    async with _alone(folder):
        found = _told(folder / RUN) or await _run(held, plan, tell)
        write(folder / RUN, json.dumps(plain(found)))
        found = replace(found, exams=tuple(await _examined(held, plan, found.student, tell)))
        write(folder / RESULT, json.dumps(plain(found)))


async def _run(held: Settings, plan: Plan, tell: Tell) -> Outcome:
    async with open_app(held) as world:
        await _begin(world, plan.cell, tell)
        run = asyncio.create_task(run_handlers(world))
        follow = asyncio.create_task(_followed(world.log, plan.cell.run, tell))
        try:
            await asyncio.wait((run, follow), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (run, follow):
                task.cancel()
            ends = await asyncio.gather(run, follow, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end
        await catch_up(held, world.log)
        return await _outcome(world.log, plan.cell)


async def _examined(held: Settings, plan: Plan, student: str, tell: Tell) -> list[StudentExamined]:
    """What the base and the student came to. An exam that was sat is not sat again."""
    from agent0.assembly.models.protocol import examine

    sitting = {BASE: plan.base_exams}
    sitting[student] = tuple(dict.fromkeys((*sitting.get(student, ()), *plan.exams)))
    asked = {f"{plan.cell.run}/{name}": exams for name, exams in sitting.items() if exams}

    def said(event: StudentExamined) -> None:
        tell(f"{event.checkpoint} sat {event.exam} ({len(event.right)} tasks) in {event.wall_s:.0f} s", None)

    return await examine(held, asked, said, once=True) if asked else []


@asynccontextmanager
async def _alone(folder: Path) -> AsyncIterator[None]:
    with (folder / "cell.lock").open("ab") as lock:
        while not _locked(lock):
            await asyncio.sleep(LOOK_S)
        yield


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _begin(world: App, cell: Cell, tell: Tell) -> None:
    """Its first event, where there is none; a run that was paused goes on."""
    last: Event | None = None
    async for one in world.log.read(cell.run, ("RunStarted", "RunPaused", "RunResumed")):
        last = one.event
    if last is None:
        begin = started(world.settings, cell.run).model_copy(update={"run": cell.run})
        begin, notice = fitted(world, begin)
        await world.log.append([begin.model_copy(update={"time": now()})])
        if notice:
            tell(notice, None)
    elif isinstance(last, RunPaused):
        await world.log.append([recorded(cell.run, RunResumed(reason="its grid goes on"))])


async def _followed(log: "Log", run: str, tell: Tell) -> None:
    """Until the run is over.

    Raises:
        OperationError: it was paused meanwhile.
    """
    progress, begin = Progress(), await log.last_seq(run)
    async with aclosing(log.tail(0, run)) as events:  # type: ignore[type-var]
        async for one in events:
            made = progress.feed(one)
            if made and progress.state:
                tell(told(made, progress.state.config.iterations), made.left_s)
            if progress.over:
                return
            if isinstance(one.event, RunPaused) and one.seq > begin:
                raise OperationError(f"Run {run} was paused.", f"Reason: {one.event.reason or 'none given'}.")


async def _outcome(log: "Log", cell: Cell) -> Outcome:
    events = [one async for one in log.read(cell.run)]
    progress = Progress()
    for one in events:
        progress.feed(one)
    state = progress.state
    if state is None or state.status not in OVER or state.status == "cancelled":
        status = state.status if state else "unknown"
        raise OperationError(f"Run {cell.run} is {status}.", "Only a finished run counts.", "Move its folder away.")
    return outcome_of(cell.arm, cell.seed, state.student.id, state.config.iterations, events)


def line(text: str, left_s: float | None) -> str:
    """What a cell's process tells the one that started it."""
    return json.dumps({"text": text, "left_s": left_s})


def heard(told: bytes) -> tuple[str, float | None]:
    """The same, read; ("", None) where it is nothing that a cell says."""
    try:
        held: Any = json.loads(told)
        return str(held["text"]), held["left_s"]
    except (ValueError, KeyError, TypeError):
        return "", None
