"""Part of the rim: a checkpoint sits exams; what they come to is told as events of its run."""

import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent0.assembly import open_log, open_port, recorded
from agent0.assembly_ab import Player, player
from agent0.exams import Exam, sit
from agent0.folders import Scratch
from agent0.heldout import heldout
from agent0.settings import Settings
from agent0.student import Conditions
from events.checkpoints import StudentExamined
from handlers.evaluate_checkpoint import FORCED

if TYPE_CHECKING:
    from infra.log import Log

Tell = Callable[[StudentExamined], None]


@dataclass(frozen=True)
class Sitting:
    """Everything that exams of one student need: its conditions, and the sandbox of its verifiers."""

    player: Player
    given: Conditions
    verifier: Any


async def examine(
    settings: Settings, wanted: str, exams: Sequence[Exam], tell: Tell = lambda _: None
) -> list[StudentExamined]:
    """``wanted`` (RUN/CHECKPOINT, RUN/base or a digest) sits ``exams``, one after the other; each is an event when it
    is over.

    Raises:
        NotFoundError: no such checkpoint.
        OperationError: a teacher's.
    """
    out = []
    async with open_log(settings) as log, AsyncExitStack() as stack:
        sitting = await _seated(settings, await player(log, wanted), stack)
        for exam in exams:
            out.append(await _sat(log, sitting, exam))
            tell(out[-1])
    return out


async def _seated(settings: Settings, who: Player, stack: AsyncExitStack) -> Sitting:
    from infra.artifacts import FileArtifacts

    artifacts, ports = FileArtifacts(settings.home), {}
    for name in ("models", "sandbox", "verifier_sandbox", "tool_cache", "web"):
        ports[name] = await open_port(name, settings, artifacts)
        if close := getattr(ports[name], "close", None):
            stack.push_async_callback(close)
    plan = who.state.config
    given = Conditions(
        ports["models"].open(plan.student),
        plan.student,
        ports["sandbox"],
        Scratch(),
        seed=0,
        adapter=who.held.adapter,
        group=who.run,
        cache=ports["tool_cache"],
        policy=plan.policy,
        web=ports["web"],
    )
    return Sitting(who, given, ports["verifier_sandbox"])


async def _sat(log: "Log", sitting: Sitting, exam: Exam) -> StudentExamined:
    began, who = time.monotonic(), sitting.player
    plan = who.state.config.curriculum
    tasks = heldout(exam.split, exam.n, exam.seed, domains=plan.domains, names=plan.families)
    given = replace(sitting.given, prefill=FORCED if exam.forced_tool else "")
    found = await sit(tasks, exam, given, sitting.verifier)
    event = StudentExamined(
        exam=exam.name,
        checkpoint=who.held.id,
        split=exam.split,
        seed=exam.seed,
        attempts=exam.attempts,
        temperature=exam.temperature,
        forced_tool=exam.forced_tool,
        right=found.right,
        majority=found.majority,
        tokens=found.tokens,
        wall_s=round(time.monotonic() - began, 3),
    )
    await log.append([recorded(who.run, event)])
    return event
