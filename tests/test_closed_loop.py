"""The loop closed with two vLLM servers: adapters are swapped in while one iteration trains and the next is attempted,
and where one server dies no token is lost, nor learned from in another's name."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.experiments import DatasetSelected
from agent0.events.tasks import AttemptRequested, TaskAttempted
from agent0.events.values import Artifact
from agent0.infra.models.openai.several import OpenAIServers, opened
from agent0.infra.models.transformers import BASE
from agent0.ports.models import GenerateRequest, Generation
from agent0.ports.training import TrainingResult, TrainJob
from agent0.settings import ActorConfig
from agent0.state.run_state import BASE as FIRST
from tests.adapters import adapter
from tests.clocked import Clocked, Server
from tests.memory import MemoryArtifacts
from tests.openai_server import OpenAIStandIn, actor, serving
from tests.play import play
from tests.world import ports, small, started

PLAN: dict[str, Any] = {
    "training": {
        "schedule": "student",
        "steps_off_policy": 1,
        "student": {"minibatch": 4, "replay_steps": 2, "objective": "sft", "gate": "answered"},
    },
    "evaluation": {"validation": 2, "test": 2, "forced_tool": False, "gate": "open"},
}


class Opened:
    """The student on two servers, the teacher scripted. The first server dies behind so many of its turns."""

    def __init__(self, student: OpenAIServers, other: Any, dying: OpenAIStandIn, turns: int) -> None:
        self._student, self._other, self.name = student, other, student.name
        self._dying, self._turns = dying, turns

    def open(self, which: ActorConfig) -> Any:
        return self if which.provider == "openai" else self._other.open(which)

    async def generate(self, request: GenerateRequest) -> Generation:
        self._turns -= 1
        if not self._turns:
            self._dying.faults[:] = ["broken", *["closed"] * 10_000]
        return await self._student.generate(request)


class Trainers:
    """Trains adapters of real files with drawn weights; keeps the jobs."""

    def __init__(self, artifacts: MemoryArtifacts) -> None:
        self._artifacts, self.jobs = artifacts, list[TrainJob]()

    def open(self, _: ActorConfig) -> "Trainers":
        return self

    async def train(self, job: TrainJob) -> TrainingResult:
        self.jobs.append(job)
        return TrainingResult(self._artifacts.put(adapter(BASE, seed=len(self.jobs))), {})


def closed_loop(folder: Path, turns: int) -> tuple[list[Recorded], list[OpenAIStandIn], Trainers]:
    world = ports()
    artifacts = world["artifacts"]
    with ExitStack() as stack:
        servers = [stack.enter_context(serving()) for _ in range(2)]
        for server in servers:
            server.updating = True
        student = actor("", base_url=",".join(f"{server.url}/v1" for server in servers), max_turns=1)
        config = small(iterations=3, tasks=3, attempts=4, student=student.model_dump(), **PLAN)

        async def work() -> list[Recorded]:
            model = opened(student, artifacts, shared=folder)
            assert isinstance(model, OpenAIServers)
            models = Opened(model, world["models"], servers[0], turns)
            try:
                return await play(started(config), world | {"models": models, "trainers": trainers})
            finally:
                await model.close()

        trainers = Trainers(artifacts)
        return asyncio.run(work()), servers, trainers


def adapters_of(events: Sequence[Recorded]) -> dict[str, Artifact | None]:
    trained = (one.event for one in events if isinstance(one.event, CheckpointTrained))
    return {FIRST: None} | {one.checkpoint: one.adapter for one in trained}


def test_no_token_is_lost_or_learned_in_anothers_name_where_a_server_dies(tmp_path: Path) -> None:
    events, servers, trainers = closed_loop(tmp_path, 18)
    assert events[-1].type == "RunFinished"
    asked = [one.event.attempt for one in events if isinstance(one.event, AttemptRequested)]
    attempts = [one.event for one in events if isinstance(one.event, TaskAttempted)]
    assert sorted(asked) == sorted(one.attempt for one in attempts) and len(asked) > 20
    adapters, writer = adapters_of(events), servers[1]
    asked_of = [body for server in servers for path, body in server.asked if path == "/v1/completions"]
    for attempt in attempts:
        path, by = attempt.trajectory, adapters[attempt.student]
        assert path and len(path.token_ids) == len(path.logprobs) == len(path.mask)
        first, model = path.mask.index(1), f"agent0-{by.sha256}" if by else "student"
        prompt, written = [*path.token_ids[:first]], [*path.token_ids[first:]]
        digest = writer.adapters[model][1] if by else ""
        seeds = [body["seed"] for body in asked_of if (body["prompt"], body["model"]) == (prompt, model)]
        drawn = [writer.draw(prompt, seed, 48, digest).ids for seed in seeds]
        assert written in drawn, "another checkpoint wrote it than the log says"
    counts = [sum(body.get("max_tokens") == 48 for _, body in server.asked) for server in servers]
    assert min(counts) > 5 and len(adapters) == 4
    trained = [one.event for one in events if isinstance(one.event, CheckpointTrained)]
    tokens = [sum(sum(one.trajectory.mask) for one in (*job.samples, *job.replay)) for job in trainers.jobs]
    assert any(job.replay for job in trainers.jobs)
    assert [sum(one.authors.values()) for one in trained] == tokens
    assert any(len(one.authors) and {*one.authors} != {one.parent} for one in trained), "nobody was behind"
    assert all(sum(sample.stale for sample in job.samples) for job in trainers.jobs[1:])
    assert len([one for one in events if isinstance(one.event, DatasetSelected)]) == len(trained)


@pytest.mark.parametrize("dies_s", [None, 60.0])
def test_what_trains_and_what_writes_share_the_time(dies_s: float | None) -> None:
    """By a clock that is counted, with a call of 6 s, and a training as long as its iteration's calls."""
    seconds = {}
    for steps in (0, 1):
        plan = PLAN | {"training": PLAN["training"] | {"steps_off_policy": steps}}
        config = small(iterations=8, tasks=4, attempts=2, **plan)
        servers = [Server(2), Server(2) if dies_s is None else Server(2, dies_s)]
        clocked = Clocked(call_s=6.0, training_s=18.0, servers=servers)
        events = asyncio.run(clocked.play(started(config), ports()))
        assert events[-1].type == "RunFinished"
        seconds[steps] = clocked.time_s
        asked = [one.event.attempt for one in events if isinstance(one.event, AttemptRequested)]
        assert sorted(asked) == sorted(one.event.attempt for one in events if isinstance(one.event, TaskAttempted))
        assert dies_s is None or servers[1].calls < servers[0].calls
    assert seconds[1] < (0.7 if dies_s is None else 0.9) * seconds[0], seconds
