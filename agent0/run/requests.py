"""What a run requests when a phase begins. Requests only: nothing here scores or selects text."""

from collections.abc import Callable
from typing import NamedTuple

from agent0.events import alarms, checkpoints, runs, tasks
from agent0.events.base import Event
from agent0.events.checkpoints import Scored
from agent0.events.values import Role
from agent0.settings import RecipeConfig
from agent0.state.run_state import Checkpoint, RunState, attempt_id, checkpoint_id, gain_id, suite_key, task_id
from agent0.tasks.curriculum import sampler
from agent0.tasks.seeds import derive_seed


def pending_ids(state: RunState) -> list[str]:
    """Ids of the evaluations, measurements or trainings that the state's phase waits for."""
    match state.phase:
        case "baseline" | "evaluating" | "final":
            return [evaluation_id(state, *evaluation) for evaluation in _evaluations(state)]
        case "measuring":
            return [gain_id(state.iteration)]
        case "training":
            return [checkpoint_id(role, state.iteration) for role in trained_roles(state)]
    return []


def trained_roles(state: RunState) -> list[Role]:
    """Roles that the schedule, and each role's own ``every``, train in the state's iteration."""
    plan = state.config.training
    roles: dict[Role, RecipeConfig] = {"student": plan.student}
    if state.config.has_teacher:
        roles["teacher"] = plan.teacher
    turns = {"joint": ("student", "teacher"), "alternate": ("student" if state.iteration % 2 else "teacher",)}
    allowed = turns.get(plan.schedule, (plan.schedule,))
    due = {role for role, recipe in roles.items() if (state.iteration + 1) % recipe.every == 0}
    return [role for role, recipe in roles.items() if recipe.enabled and role in allowed and role in due]


class _Wanted(NamedTuple):
    """An evaluation of a phase."""

    split: Scored
    forced: bool = False
    benchmark: str = ""


def _evaluations(state: RunState) -> list[_Wanted]:
    wanted_in: dict[str, list[_Wanted]] = {
        "baseline": [_Wanted("validation"), _Wanted("test"), _Wanted("test", True)],
        "evaluating": [_Wanted("validation")],
        "final": [_Wanted("test")],
    }
    allowed = (False, True) if state.config.evaluation.forced_tool else (False,)
    ours = [
        evaluation for evaluation in wanted_in[state.phase] if _size(state, evaluation) and evaluation.forced in allowed
    ]
    return [*ours, *(_Wanted("benchmark", False, name) for name in _benchmarks(state))]


def _benchmarks(state: RunState) -> tuple[str, ...]:
    """Benchmarks to score in the state's phase: not what the last student has been scored on already."""
    plan = state.config.evaluation
    if state.phase == "evaluating":
        return plan.benchmarks if (state.iteration + 1) % plan.benchmark_every == 0 else ()
    if state.phase == "final":
        scored = state.student.benchmarks
        return tuple(n for n in plan.benchmarks if suite_key(n, plan.benchmark_items, plan.seed) not in scored)
    return plan.benchmarks


def evaluation_id(state: RunState, split: str, forced: bool, benchmark: str = "") -> str:
    """The id of an evaluation, such as ``student-3-validation``, ``base-test-forced`` or ``base-benchmark-gsm8k``."""
    examined = _examined(state)
    where = "-final" if state.phase == "final" else ""
    of = f"-{benchmark.replace(':', '-')}" if benchmark else ""
    return f"{examined.id}-{split}{of}{where}{'-forced' if forced else ''}"


def _examined(state: RunState) -> Checkpoint:
    return state.candidate if state.phase == "evaluating" and state.candidate else state.student


def evaluation_progress(state: RunState) -> tuple[int, int]:
    """Count the items of the evaluations of the state's phase: (scored or given up, of how many); (0, 0) in a phase
    without any."""
    if state.phase not in ("baseline", "evaluating", "final"):
        return 0, 0
    sizes = {evaluation_id(state, *evaluation): _size(state, evaluation) for evaluation in _evaluations(state)}
    sizes |= {name: evaluation.size for name, evaluation in state.evaluations.items() if name in sizes}
    waiting = {name: n for name, n in sizes.items() if name in state.pending}
    left = sum(n - state.evaluations[name].scored if name in state.evaluations else n for name, n in waiting.items())
    return sum(sizes.values()) - left, sum(sizes.values())


def _size(state: RunState, evaluation: _Wanted) -> int:
    plan = state.config.evaluation
    sizes: dict[Scored, int] = {"test": plan.test, "validation": plan.validation, "benchmark": plan.benchmark_items}
    return sizes[evaluation.split]


def _ask_evaluations(state: RunState) -> list[Event]:
    examined = _examined(state)
    return [
        checkpoints.EvaluationRequested(
            evaluation=evaluation_id(state, *evaluation),
            checkpoint=examined.id,
            adapter=examined.adapter,
            iteration=state.iteration,
            split=evaluation.split,
            n=_size(state, evaluation),
            seed=state.config.evaluation.seed,
            forced_tool=evaluation.forced,
            state_sha=state.digest,
            benchmark=evaluation.benchmark,
        )
        for evaluation in _evaluations(state)
        if evaluation_id(state, *evaluation) in state.pending
    ]


def _ask_tasks(state: RunState) -> list[Event]:
    digest = state.digest
    return [
        tasks.TaskRequested(
            task=task_id(state.iteration, slot),
            iteration=state.iteration,
            slot=slot,
            domain=domain,
            family=family,
            level=level,
            seed=derive_seed(state.config.seed, "task", state.iteration, slot),
            teacher=state.teacher.id,
            adapter=state.teacher.adapter,
            state_sha=digest,
        )
        for slot, (domain, family, level) in enumerate(sampler.allocate(state))
        if task_id(state.iteration, slot) not in state.tasks
    ]


def attempt_requests(state: RunState, event: tasks.TaskAccepted) -> list[Event]:
    """Request the attempts at an accepted task, each with a seed of its own."""
    digest = state.digest
    return [
        tasks.AttemptRequested(
            task=event.task,
            attempt=attempt_id(event.task, number),
            iteration=event.iteration,
            number=number,
            proposal=event.proposal,
            seed=derive_seed(state.config.seed, "attempt", event.task, number),
            student=state.student.id,
            adapter=state.student.adapter,
            state_sha=digest,
        )
        for number in range(state.config.attempts)
    ]


def _ask_gain(state: RunState) -> list[Event]:
    back = max(0, state.iteration - state.config.training.student.replay_iterations)
    return [
        tasks.GainRequested(
            measurement=gain_id(state.iteration),
            iteration=state.iteration,
            student=state.student.id,
            adapter=state.student.adapter,
            after=state.starts[state.iteration],
            until=state.seq,
            replay_after=state.starts[back],
            seed=derive_seed(state.config.seed, "gain", state.iteration),
            state_sha=state.digest,
        )
    ]


def _ask_trainings(state: RunState) -> list[Event]:
    back = max(0, state.iteration - state.config.training.student.replay_iterations)
    parents: dict[Role, Checkpoint] = {"student": state.student, "teacher": state.promoted_teacher}
    plan = state.config.training
    recipes: dict[Role, RecipeConfig] = {"student": plan.student, "teacher": plan.teacher}
    return [
        checkpoints.TrainingRequested(
            checkpoint=checkpoint_id(role, state.iteration),
            role=role,
            iteration=state.iteration,
            parent=parents[role].id,
            parent_adapter=parents[role].adapter,
            after=state.starts[max(0, state.iteration + 1 - recipes[role].window)],
            until=state.seq,
            replay_after=state.starts[back],
            seed=derive_seed(state.config.seed, "train", role, state.iteration),
            state_sha=state.digest,
            parent_optimizer=parents[role].optimizer if recipes[role].optimizer_state == "continued" else None,
            earlier=_earlier(state, role, parents[role]),
        )
        for role in trained_roles(state)
        if checkpoint_id(role, state.iteration) in state.pending
    ]


def _earlier(state: RunState, role: Role, parent: Checkpoint) -> str:
    """Who of ``role`` began this iteration, where that is not ``parent``; else empty."""
    author = dict(zip(("student", "teacher"), state.authors, strict=False)).get(role, parent.id)
    return "" if author == parent.id else author


def _finish(state: RunState) -> list[Event]:
    return [
        runs.RunFinished(
            iterations=state.iteration + 1,
            tasks=state.task_count,
            attempts=state.attempt_count,
            state_sha=state.digest,
        )
    ]


REQUESTS: dict[str, Callable[[RunState], list[Event]]] = {
    "baseline": _ask_evaluations,
    "tasks": _ask_tasks,
    "measuring": _ask_gain,
    "training": _ask_trainings,
    "evaluating": _ask_evaluations,
    "judging": lambda _: [],
    "final": _ask_evaluations,
    "done": _finish,
}


def drop(event: alarms.ReactionFailed) -> Event:
    """The event that drops a failed reaction, so that the run continues without its effects."""
    return alarms.ReactionDropped(
        failure=event.failure,
        cause_id=event.cause_id,
        cause_type=event.cause_type,
        cause_task=event.cause_task,
        cause_attempt=event.cause_attempt,
        failed_handler=event.failed_handler,
        reason="policy on_failure=drop",
    )
