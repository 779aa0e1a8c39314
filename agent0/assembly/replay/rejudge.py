"""Part of the rim: the stored answers of a run's evaluations, judged again in a fresh sandbox."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import TypedDict

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.port_openers import open_port
from agent0.errors import NotFoundError
from agent0.events.checkpoints import CheckpointEvaluated, StudentExamined
from agent0.events.values import Artifact
from agent0.experiments.stored_verdicts import differences, stored
from agent0.infra.log.event_log import Log
from agent0.settings import Settings

_Row = dict[str, str | int | None]


@dataclass(frozen=True)
class _Told:
    """An evaluation whose answers may be stored; ``how``: the protocol, for people."""

    checkpoint: str
    how: str
    tasks: int
    answers: Artifact | None


class Rejudged(TypedDict):
    """A row for each evaluation (``checkpoint``, ``evaluation``, ``tasks``, and how many stored ``answers`` ``differ``:
    None where none is stored), and one for each verdict that differs."""

    evaluations: list[_Row]
    differences: list[_Row]


async def rejudge(settings: Settings, name: str) -> Rejudged:
    """Every evaluation of ``name`` (RUN or RUN/CHECKPOINT): how many answers were judged again, and which verdicts
    differ. Nothing is written.

    Raises:
        NotFoundError: nothing of it was evaluated, or stored answers are not here.
        LogError: stored answers are damaged or unreadable.
    """
    run, _, checkpoint = name.partition("/")
    store = artifact_store(settings)
    result: Rejudged = {"evaluations": [], "differences": []}
    async with open_log(settings) as log, AsyncExitStack() as stack:
        evaluations = [
            evaluation for evaluation in await _evaluations(log, run) if checkpoint in ("", evaluation.checkpoint)
        ]
        if not evaluations:
            raise NotFoundError(f"Nothing of {name} was evaluated.", fix=f"See: agent0 run show {run}")
        sandbox = await open_port("verifier_sandbox", settings, store)
        if close := getattr(sandbox, "close", None):
            stack.push_async_callback(close)
        for evaluation in evaluations:
            row: _Row = {"checkpoint": evaluation.checkpoint, "evaluation": evaluation.how, "tasks": evaluation.tasks}
            if evaluation.answers is None:
                result["evaluations"].append({**row, "answers": None, "differ": None})
                continue
            answered = stored(await asyncio.to_thread(store.get, evaluation.answers))
            new = [{**row, **asdict(each)} for each in await differences(answered, sandbox)]
            result["differences"] += new
            count = sum(len(each.answers) for each in answered)
            result["evaluations"].append({**row, "answers": count, "differ": len(new)})
    return result


async def _evaluations(log: Log, run: str) -> list[_Told]:
    out = []
    async for recorded in log.read(run, ("StudentExamined", "CheckpointEvaluated")):
        match recorded.event:
            case StudentExamined() as event:
                how = f"{event.exam}, {event.split}, seed {event.seed}"
                out.append(_Told(event.checkpoint, how, len(event.right), event.answers))
            case CheckpointEvaluated(benchmark="") as event:
                out.append(_Told(event.checkpoint, event.evaluation, event.n, event.items))
    return out
