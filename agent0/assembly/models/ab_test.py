"""Part of the rim: checkpoints answer new held-out tasks, two of them the same ones, or one of them several draws."""

import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from agent0.assembly.evaluation.finished_items import FinishedItems
from agent0.assembly.evaluation.rollout_ports import open_rollout_ports
from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.lineage import check_stored, checkpoint
from agent0.assembly.replay.past_states import state_at
from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.validate.replay_requirements import require_replay
from agent0.errors import OperationError
from agent0.evaluation.item_rollout import RolloutPorts
from agent0.events.checkpoints import (
    CheckpointRepeated,
    CheckpointTrained,
    EvaluationRequested,
    ModelsCompared,
)
from agent0.events.values import Split
from agent0.run.lifecycle import RunState
from agent0.settings import RunConfig, Settings
from agent0.state.run_state import BASE, Checkpoint
from agent0.stats.intervals import wilson
from agent0.stats.sequential_test import e_value, winner
from agent0.tasks.seeds import derive_seed

SPLIT: Split = "validation"
"""Where new tasks are drawn from: never from test."""
BATCH = 50
Report = Callable[[Mapping[str, float]], None]


@dataclass(frozen=True)
class Player:
    """A checkpoint with the state of its run, whose student's settings it answers with."""

    name: str
    run: str
    checkpoint: Checkpoint
    state: RunState


@dataclass
class Outcomes:
    """What both answered so far, by the identity of the task."""

    first: dict[str, bool] = field(default_factory=dict)
    second: dict[str, bool] = field(default_factory=dict)

    def counts(self) -> tuple[int, int]:
        """(tasks that only the second solved, that only the first did)."""
        pairs = [(self.first[task], self.second[task]) for task in self.first]
        return sum(b and not a for a, b in pairs), sum(a and not b for a, b in pairs)


async def compare_models(
    settings: Settings, first: str, second: str, limit: int, seed: int, report: Report = lambda _: None
) -> ModelsCompared:
    """``first`` and ``second`` (RUN/CHECKPOINT, RUN/base or a digest) answer the same tasks, ``BATCH`` at a time, until
    a test that one may look at any time tells them apart, or ``limit`` tasks are answered. The outcome is an event of
    the second one's run.

    Raises:
        NotFoundError: no such checkpoint.
        OperationError: a teacher's; or their runs ask for other families, so there are no same tasks.
        RequirementsError: something is missing that their students need.
    """
    began = time.monotonic()
    async with open_log(settings) as log:
        left, other = [await player(settings, log, name) for name in (first, second)]
        if _request_settings(left) != _request_settings(other):
            raise OperationError(
                "They come from runs of other tasks.",
                "Domains, families or run.evaluation.levels differ, so there are no tasks that both were asked for.",
            )
        for who in (left, other):
            await check_stored(log, artifact_store(settings), who.name, who.checkpoint.adapter)
        await require_replay(settings, [left.state.config, other.state.config])
        async with _answering(settings) as answer:
            outcomes = await _answered_by_both(answer, left, other, limit, seed, report)
            event = _compared(left, other, outcomes, seed, limit, time.monotonic() - began)
            await log.append([recorded(other.run, event)])
            answer.forget()
    return event


async def _answered_by_both(
    answer: "_Answers", first: Player, other: Player, limit: int, seed: int, report: Report
) -> Outcomes:
    """Ask both for the same tasks until the test tells them apart, or ``limit`` tasks are answered."""
    outcomes = Outcomes()
    for number in range(-(-limit // BATCH)):
        draw = derive_seed("ab", seed, number)
        left, right = await answer(first, draw, BATCH), await answer(other, draw, BATCH)
        new = [task for task in left if task in right and task not in outcomes.first]
        for task in new[: limit - len(outcomes.first)]:
            outcomes.first[task], outcomes.second[task] = left[task], right[task]
        gained, lost = outcomes.counts()
        report({"tasks": len(outcomes.first), "gained": gained, "lost": lost, "e_value": e_value(gained, lost)})
        if winner(gained, lost) or len(outcomes.first) >= limit:
            break
    return outcomes


def _request_settings(who: Player) -> tuple[tuple[str, ...], ...]:
    """What a player's held-out tasks are drawn from."""
    plan = who.state.config
    return plan.curriculum.domains, plan.curriculum.families, tuple(map(str, plan.evaluation.levels))


async def repeat(
    settings: Settings, name: str, repeats: int, n: int, seed: int, report: Report = lambda _: None
) -> CheckpointRepeated:
    """The checkpoint ``name`` answers ``repeats`` draws of ``n`` held-out tasks: how far its accuracy varies. An event
    of its run.

    Raises:
        NotFoundError: no such checkpoint.
        OperationError: a teacher's.
        RequirementsError: something is missing that its student needs.
    """
    began = time.monotonic()
    async with open_log(settings) as log:
        who, shares = await player(settings, log, name), []
        await check_stored(log, artifact_store(settings), who.name, who.checkpoint.adapter)
        await require_replay(settings, [who.state.config])
        async with _answering(settings) as answer:
            for number in range(repeats):
                right = await answer(who, derive_seed("repeat", seed, number), n)
                shares.append(sum(right.values()) / len(right))
                report({"draw": number + 1, "accuracy": shares[-1]})
            event = CheckpointRepeated(
                checkpoint=who.checkpoint.id,
                split=SPLIT,
                n=n,
                seed=seed,
                accuracies=tuple(round(share, 6) for share in shares),
                wall_s=round(time.monotonic() - began, 3),
            )
            await log.append([recorded(who.run, event)])
            answer.forget()
    return event


async def player(settings: Settings, log: Any, checkpoint_name: str) -> Player:
    """A student by RUN/CHECKPOINT, RUN/base or digest.

    Raises:
        NotFoundError: no such checkpoint.
        OperationError: a teacher's.
    """
    run, _, name = checkpoint_name.partition("/")
    snapshots = state_snapshots(settings, log)
    if name == BASE:
        state = await state_at(log, run, snapshots=snapshots)
        return Player(checkpoint_name, run, Checkpoint(adapter=state.promoted[0].adapter), state)
    stored = await checkpoint(log, checkpoint_name)
    trained = stored.event
    if not isinstance(trained, CheckpointTrained) or trained.role != "student":
        raise OperationError(f"{checkpoint_name} is no student's.", fix="See: agent0 model list --role student")
    base_checkpoint = Checkpoint(trained.checkpoint, trained.adapter)
    state = await state_at(log, stored.run, snapshots=snapshots)
    return Player(f"{stored.run}/{base_checkpoint.id}", stored.run, base_checkpoint, state)


@dataclass
class _Answers:
    """Asks players for held-out tasks, which are attempted as the items of a run's evaluations are. Finished items are
    kept, so that the same command goes on with the others, until the outcome is recorded."""

    ports: RolloutPorts
    kept: FinishedItems
    requests: list[tuple[EvaluationRequested, RunConfig]] = field(default_factory=list)

    async def __call__(self, player: Player, seed: int, n: int) -> dict[str, bool]:
        """Draw ``n`` tasks by ``seed`` and let ``player`` answer them: right or not, by the identity of the task."""
        request = EvaluationRequested(
            evaluation=f"{player.checkpoint.id}-{seed}",
            checkpoint=player.checkpoint.id,
            adapter=player.checkpoint.adapter,
            iteration=player.state.iteration,
            split=SPLIT,
            n=n,
            seed=seed,
            state_sha="",
        )
        single = _single(player.state)
        self.requests.append((request, single.config))
        items = await self.kept.attempt(request, single, self.ports)
        return {item.task: item.correct is True for item in items}

    def forget(self) -> None:
        """Delete what was kept: the outcome is recorded."""
        for request, config in self.requests:
            self.kept.forget(request, config)


@asynccontextmanager
async def _answering(settings: Settings) -> AsyncIterator[_Answers]:
    async with AsyncExitStack() as stack:
        ports = await open_rollout_ports(settings, artifact_store(settings), stack)
        yield _Answers(ports, FinishedItems.of(settings))


def _single(state: RunState) -> RunState:
    """One attempt an item."""
    plan = state.config.model_copy(update={"evaluation": state.config.evaluation.model_copy(update={"checked": 0})})
    return replace(state, config=plan)


def _compared(left: Player, other: Player, outcomes: Outcomes, seed: int, limit: int, wall_s: float) -> ModelsCompared:
    gained, lost = outcomes.counts()
    return ModelsCompared(
        comparison=f"ab-{secrets.token_hex(4)}",
        first=left.name,
        second=other.name,
        split=SPLIT,
        seed=seed,
        n=len(outcomes.first),
        limit=limit,
        first_correct=sum(outcomes.first.values()),
        second_correct=sum(outcomes.second.values()),
        gained=gained,
        lost=lost,
        e_value=e_value(gained, lost),
        winner=winner(gained, lost),
        first_outcomes="".join(str(int(right)) for right in outcomes.first.values()),
        second_outcomes="".join(str(int(right)) for right in outcomes.second.values()),
        wall_s=round(wall_s, 3),
    )


def comparison_rows(event: ModelsCompared) -> dict[str, str | float]:
    """Describe a comparison of two models: accuracies with 95 % intervals, counts, e-value and verdict."""
    first, second = wilson(event.first_correct, event.n), wilson(event.second_correct, event.n)
    verdicts = {"": "not told apart", "first": f"{event.first} is better", "second": f"{event.second} is better"}
    return {
        "tasks": event.n,
        "first": f"{event.first} {event.first_correct / event.n:.3f} ({first[0]:.3f} to {first[1]:.3f})",
        "second": f"{event.second} {event.second_correct / event.n:.3f} ({second[0]:.3f} to {second[1]:.3f})",
        "gained": event.gained,
        "lost": event.lost,
        "e_value": event.e_value,
        "verdict": verdicts[event.winner],
    }
