"""Part of the rim: evaluates checkpoints by evaluation protocols. Each result is an event of the checkpoint's run."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from agent0.assembly.evaluation.finished_items import FinishedItems
from agent0.assembly.evaluation.rollout_ports import open_rollout_ports
from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.ab_test import Player, player
from agent0.assembly.models.lineage import check_stored
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.validate.curriculum import check_levels
from agent0.assembly.validate.replay_requirements import require_replay
from agent0.errors import ConfigError
from agent0.evaluation.item_rollout import RolloutPorts
from agent0.evaluation.protocol import OWN_SETS, EvaluationProtocol
from agent0.evaluation.protocol_runner import AnsweredTask, FinishedTask, ProtocolResult, as_json_lines, run_protocol
from agent0.events.checkpoints import StudentExamined
from agent0.events.values import Split, Task
from agent0.infra.log.event_log import Log
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.rollout.confidence.ensembles import EnsembleScores, ensemble_scores
from agent0.rollout.student import Conditions
from agent0.rollout.tool_prompts import opening
from agent0.rollout.workspace_store import Scratch
from agent0.settings import RunConfig, Settings, StudentConfig
from agent0.tasks.splits import heldout

Report = Callable[[StudentExamined], None]
_TOOLS = ("tools", "max_turns", "max_calls")
"""What a student without tools is lent where one is forced on it."""


@dataclass(frozen=True)
class ProtocolSession:
    """What the evaluation of one student needs: its conditions, the sandbox of its verifiers, the store of its
    answers, and those that are finished."""

    player: Player
    conditions: Conditions
    verifier: Sandbox
    artifacts: Artifacts
    kept: FinishedItems

    async def answer(self, exam: EvaluationProtocol, tasks: Sequence[Task]) -> ProtocolResult:
        """Run ``exam`` on the tasks that are not finished; returns all of them."""
        conditions, at_once = self.conditions, self.player.state.config.evaluation.at_once
        if exam.forced_tool:
            conditions = replace(conditions, prefill=opening(conditions.config.form), config=_lent(conditions.config))
        with self.kept.opened(self.key(exam), FinishedTask) as (answered, add):
            return await run_protocol(tasks, exam, conditions, self.verifier, at_once, answered, add)

    def key(self, exam: EvaluationProtocol) -> str:
        """Everything that decides an answer: the model, what it is asked, and the settings of its run."""
        player = self.player
        return f"{exam} {player.name} {player.checkpoint.adapter} {player.state.config.model_dump_json()}"


async def evaluate_protocols(
    settings: Settings,
    protocols: Mapping[str, Sequence[EvaluationProtocol]],
    report: Report = lambda _: None,
) -> list[StudentExamined]:
    """Evaluate each checkpoint (RUN/CHECKPOINT, RUN/base or a digest) by its protocols, one after the other; each
    result is an event. Finished tasks are kept until then, so that the same call goes on with the others.

    Raises:
        NotFoundError: no such checkpoint.
        OperationError: a teacher's.
        ConfigError: tasks that there are not.
        RequirementsError: something is missing that a student needs.
    """
    out, ports, store = [], None, artifact_store(settings)
    async with open_log(settings) as log, AsyncExitStack() as stack:
        for name, exams in protocols.items():
            who = await player(settings, log, name)
            tasks = {exam: tasks_of(exam, who.state.config) for exam in exams}
            await check_stored(log, store, who.name, who.checkpoint.adapter)
            await require_replay(settings, [who.state.config])
            ports = ports or await open_rollout_ports(settings, store, stack)
            session = _session(who, ports, store, FinishedItems.of(settings))
            for exam in exams:
                out.append(await _evaluate(log, session, exam, tasks[exam]))
                report(out[-1])
    return out


async def evaluate_ensemble(
    settings: Settings, members: Sequence[str], exam: EvaluationProtocol, report: Report = lambda _: None
) -> EnsembleScores:
    """Evaluate each of ``members`` by one protocol, and score what their votes add.

    Raises:
        ConfigError: fewer than two different members, attempts or tasks for no vote, or a greedy protocol; else as
            ``evaluate_protocols``.
    """
    names = [*dict.fromkeys(members)]
    if len(names) < 2 or exam.attempts < len(names) or not exam.temperature:
        why = f"There are {len(names)} different members, {exam.attempts} attempts each, T={exam.temperature:g}."
        fix = "Name two checkpoints or more, with --attempts of at least as many and a temperature above 0."
        raise ConfigError("An ensemble cannot vote.", why, fix)
    events, store = (
        await evaluate_protocols(settings, {name: [exam] for name in names}, report),
        artifact_store(settings),
    )
    answers = {name: _answers(store, event) for name, event in zip(names, events, strict=True)}
    if len({tuple(each.task for each in answered) for answered in answers.values()}) > 1:
        why = "Their runs ask for other families, or scored on other sets of their own."
        raise ConfigError("The members were not asked the same tasks.", why, "Name checkpoints of runs of one profile.")
    return ensemble_scores({name: [(t.answers, t.correct) for t in tasks] for name, tasks in answers.items()})


def _answers(store: Artifacts, event: StudentExamined) -> list[AnsweredTask]:
    assert event.answers is not None  # noqa: S101 - it was just evaluated
    rows = map(json.loads, store.get(event.answers).splitlines())
    return [AnsweredTask(**{**row, "answers": tuple(row["answers"]), "correct": tuple(row["correct"])}) for row in rows]


def tasks_of(exam: EvaluationProtocol, plan: RunConfig) -> list[Task]:
    """Draw the tasks of an evaluation protocol, of the families that ``plan`` asks for.

    Raises:
        ConfigError: levels that none has, or too few tasks.
    """
    curriculum = plan.curriculum
    own_forms = _own_forms(plan) if OWN_SETS in exam.excluded else frozenset()
    check_levels("The protocol's levels", exam.levels, plan)
    try:
        return heldout(
            exam.split,
            exam.n,
            exam.seed,
            domains=curriculum.domains,
            names=curriculum.families,
            long=plan.evaluation.long,
            levels=exam.levels,
            without=own_forms,
        )
    except ValueError as error:
        raise ConfigError("The protocol's tasks cannot be drawn.", f"{error}.", "Ask for fewer.") from error


def _own_forms(plan: RunConfig) -> frozenset[str]:
    """Canonical forms of the run's own validation and test tasks."""
    scored, curriculum = plan.evaluation, plan.curriculum
    sizes: tuple[tuple[Split, int], ...] = (("validation", scored.validation), ("test", scored.test))
    return frozenset(
        task.canonical
        for split, n in sizes
        for task in heldout(split, n, scored.seed, curriculum.domains, names=curriculum.families, levels=scored.levels)
    )


def _session(who: Player, ports: RolloutPorts, artifacts: Artifacts, kept: FinishedItems) -> ProtocolSession:
    plan = who.state.config
    conditions = Conditions(
        ports.models.open(plan.student),
        plan.student,
        ports.sandbox,
        Scratch(),
        seed=0,
        adapter=who.checkpoint.adapter,
        group=who.run,
        cache=ports.tool_cache,
        policy=plan.policy,
        web=ports.web,
    )
    return ProtocolSession(who, conditions, ports.verifier_sandbox, artifacts, kept)


async def _evaluate(
    log: Log, session: ProtocolSession, exam: EvaluationProtocol, tasks: Sequence[Task]
) -> StudentExamined:
    began, who = time.monotonic(), session.player
    result = await session.answer(exam, tasks)
    event = StudentExamined(
        exam=exam.name,
        checkpoint=who.checkpoint.id,
        split=exam.split,
        seed=exam.seed,
        attempts=exam.attempts,
        temperature=exam.temperature,
        forced_tool=exam.forced_tool,
        right=result.right,
        majority=result.majority,
        tokens=result.tokens,
        wall_s=round(time.monotonic() - began, 3),
        levels=exam.levels,
        excluded=exam.excluded,
        answers=await asyncio.to_thread(session.artifacts.put, as_json_lines(result.answers), "application/jsonl"),
    )
    await log.append([recorded(who.run, event)])
    session.kept.drop(session.key(exam))
    return event


def _lent(config: StudentConfig) -> StudentConfig:
    """With the usual tools and turns where it has none: calls that are not carried out would be no control."""
    if config.tools and config.max_calls:
        return config
    usual = StudentConfig()
    return config.model_copy(update={name: getattr(usual, name) for name in _TOOLS})
