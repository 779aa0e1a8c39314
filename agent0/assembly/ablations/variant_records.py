"""Part of the rim: what a variant that is no run of the loop asks and records. Every attempt is an event, so that none
is repeated."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from agent0.assembly.evaluation.server_wait import ServerWait
from agent0.assembly.runtime.stamping import recorded
from agent0.evaluation.item_events import item_scored
from agent0.evaluation.item_rollout import ItemAttempt, RolloutPorts
from agent0.events.base import Event, Recorded, effect_id
from agent0.events.checkpoints import CheckpointEvaluated, EvaluationItemScored
from agent0.events.experiments import PromptCandidateScored
from agent0.events.values import Usage
from agent0.experiments.ablation_runs import AblationRun
from agent0.infra.log.event_log import Log
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.run.lifecycle import RunState
from agent0.settings import RunConfig, Settings


@dataclass
class VariantRecords:
    """The records of one variant with one seed while a process executes it. ``attempts`` are by evaluation and item;
    ``usage`` is that since the last candidate was recorded."""

    settings: Settings
    ablation: AblationRun
    log: Log
    artifacts: FileArtifacts
    ports: RolloutPorts
    report: Callable[[str, float | None], None]
    attempts: dict[tuple[str, int], EvaluationItemScored] = field(default_factory=dict)
    scores: dict[str, CheckpointEvaluated] = field(default_factory=dict)
    candidates: list[PromptCandidateScored] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        limit_s = self.ablation.config.give_up_after
        go_on = "the command of the study"
        self.wait = ServerWait(
            lambda text: self.report(text, None), self.ablation.run, go_on, answered=False, give_up_after_s=limit_s
        )

    @property
    def config(self) -> RunConfig:
        """The settings that the variant would have as a run."""
        return self.ablation.config

    async def read(self) -> None:
        """Take in the attempts, scores and candidates that are recorded already."""
        async for event in self.log.read(self.ablation.run):
            self._note(event)

    async def record(self, event: Event, *key: object) -> None:
        """Append ``event`` under the id that ``key`` gives it, whenever it is recorded."""
        stored = recorded(self.ablation.run, event)
        stored = stored.model_copy(update={"id": effect_id(self.ablation.run, "/".join(map(str, key)), 0)})
        await self.log.append([stored])
        self._note(stored)

    def _note(self, stored: Recorded) -> None:
        self.times.append(stored.time)
        match stored.event:
            case EvaluationItemScored() as item:
                self.attempts[item.evaluation, item.number] = item
            case CheckpointEvaluated() as score:
                self.scores[score.evaluation] = score
            case PromptCandidateScored() as candidate:
                self.candidates.append(candidate)

    async def attempted(
        self, evaluation: str, numbers: Sequence[int], attempt: Callable[[int], Coroutine[Any, Any, ItemAttempt]]
    ) -> list[EvaluationItemScored]:
        """The items ``numbers`` of ``evaluation`` in order; those that are not recorded are attempted, as many at once
        as ``run.evaluation.at_once`` says. Errors are those of ``attempt``."""
        room = asyncio.Semaphore(self.config.evaluation.at_once)

        async def make(number: int) -> None:
            async with room:
                result = await self.wait.through(partial(attempt, number))
            self.count(result.result.usage)
            await self.record(item_scored(evaluation, number, result, self.artifacts), evaluation, number)

        async with asyncio.TaskGroup() as group:
            for number in (number for number in numbers if (evaluation, number) not in self.attempts):
                group.create_task(make(number))
        return [self.attempts[evaluation, number] for number in numbers]

    def count(self, usage: Usage) -> None:
        """Add ``usage`` to that of the candidate which is recorded next."""
        self.usage = Usage(
            prompt_tokens=self.usage.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens + usage.completion_tokens,
            wall_s=self.usage.wall_s + usage.wall_s,
        )

    def state(self, config: RunConfig) -> RunState:
        """The state of a run of ``config`` that attempts are made in."""
        return RunState(run=self.ablation.run, seq=0, config=config, config_sha="")
