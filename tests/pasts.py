"""A finished run of several kinds of tasks in a data folder, told without a process: what experiments look back on."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.events import tasks
from agent0.events.base import Event, Recorded, sha256
from agent0.handlers import Handler, handlers
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.models import GenerateRequest, Generation
from agent0.run.lifecycle import RunState
from agent0.settings import ActorConfig, JudgeConfig, RunConfig, Settings
from agent0.tasks.families import families
from agent0.verification.panel import combine_votes
from agent0.verification.panel.opinion import CHECK
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.play import finished, play
from tests.world import Opened, ports, small, started

RULES = {
    "unchecked": "panel",
    "agreeing": 2,
    "agreement": 0.51,
    "judge": {"provider": "scripted", "prompts": "full"},
}
PLAN = {"iterations": 2, "tasks": 6, "attempts": 3, "verification": RULES}
WANTED = {(verifier, said) for verifier in ("exact", "execution", "panel") for said in (True, False)}


class _Judge:
    """Says what it likes about an answer, the same each time."""

    name = "judge"

    async def generate(self, request: GenerateRequest) -> Generation:
        drawn = int(sha256(request.turns[-1].content)[:8], 16) % 4
        return Generation(f"verdict: {('right', 'right', 'wrong', 'unsure')[drawn]}")


class _Models(Opened):
    def open(self, actor: ActorConfig | str) -> Any:
        return _Judge() if isinstance(actor, JudgeConfig) else super().open(actor)


class _Mixed(Handler):
    """Of three proposals one is a family's, one brings a checking program, and one only a panel can judge."""

    async def __call__(self, cause: Recorded, run: RunState | None, world: Mapping[str, Any]) -> list[Event]:
        (told,) = await handlers()["propose_task"](cause, run, world)
        assert isinstance(told, tasks.TaskProposed)
        family = families().get(told.proposal.family) if told.proposal else None
        if told.proposal is None or family is None or told.slot % 3 == 0:
            return [told]
        answer = family.solve(told.proposal.params)
        changed = {"family": "open", "program": f"print({answer!r})" if told.slot % 3 == 1 else ""}
        return [told.model_copy(update={"proposal": told.proposal.model_copy(update=changed)})]


@cache
def tell() -> tuple[list[Recorded], MemoryArtifacts]:
    """The events of such a run, ``r1``, and what they name: the first in which verifiers of every kind say yes and no,
    and a judge made an answer right."""
    for seed in range(18, 54):  # the first will do, as long as models and families draw what they draw
        told, artifacts = _tell(small(**PLAN, seed=seed))
        verdicts = [r.event for r in told if isinstance(r.event, tasks.ResultVerified)]
        kinds = {(event.verifier, event.correct) for event in verdicts}
        if kinds >= WANTED and any(event.correct and judged(event) for event in verdicts):
            return told, artifacts
    raise AssertionError("no such run")


def judged(event: tasks.ResultVerified) -> bool:
    """Whether the verdict would be another one without the judge."""
    return combine_votes(event.votes) != combine_votes([vote for vote in event.votes if vote.check != CHECK])


def _tell(config: RunConfig) -> tuple[list[Recorded], MemoryArtifacts]:
    known = handlers()
    world = ports() | {"verifier_sandbox": TrustingSandbox()}
    world["models"] = _Models(world["models"].open(""))
    chosen = known | {"propose_task": _Mixed(**known["propose_task"].__dict__)}
    return finished(play(started(config), world, chosen)), world["artifacts"]


def settings_at(folder: Path) -> Settings:
    return load("scripted", {"home": str(folder), "sandbox.workers": "1"}, {})


def keep(folder: Path, told: Sequence[Recorded], artifacts: MemoryArtifacts) -> Settings:
    """Those events in a log of their own, under the numbers that they have."""
    held = settings_at(folder)
    store = FileArtifacts(held.home)
    for data in artifacts.held.values():
        store.put(data)

    async def append() -> None:
        async with open_log(held, make=True) as log:
            assert await log.append(told) == [one.seq for one in told]

    asyncio.run(append())
    return held


def events_of(held: Settings, run: str) -> list[Recorded]:
    async def read() -> list[Recorded]:
        async with open_log(held, "reader") as log:
            return [one async for one in log.read(run)]

    return asyncio.run(read())
