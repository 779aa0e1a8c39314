"""The teacher proposes a task on request."""

from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.base import Event
from agent0.events.tasks import TaskProposed, TaskRequested
from agent0.events.values import QUESTIONS
from agent0.handlers import on
from agent0.ports.models import Models
from agent0.ports.storage import Artifacts, QuestionFile
from agent0.rollout.claim_check import claim
from agent0.rollout.prompts import prompt
from agent0.rollout.teacher import exploring_bias, propose
from agent0.run.lifecycle import RunState
from agent0.tasks.families import task_length
from agent0.tasks.questions import place, rows_of_iteration

REQUESTED = {"task", "iteration", "slot", "teacher", "seed"}
"""Fields of a request that its proposal repeats."""


@on(TaskRequested, in_flight=128, long=True, roles=("teacher",))
async def propose_task(
    event: TaskRequested, run: RunState, models: Models, artifacts: Artifacts, question_file: QuestionFile
) -> list[Event]:
    """Generate one proposal, or take the next row of the file of questions; text that holds no task is recorded with
    its problem, not raised."""
    if event.family == QUESTIONS:
        return [_row(event, run, question_file)]
    return [await _draft(event, run, models, artifacts)]


async def _draft(event: TaskRequested, run: RunState, models: Models, artifacts: Artifacts) -> TaskProposed:
    """What the teacher writes."""
    actor, rows = run.config.teacher, rows_of_iteration(run.config)
    instructions = prompt(actor.prompts, event.domain, "teacher", long=task_length(event.family) == "long")
    draft = await propose(
        models.open(actor),
        instructions,
        domain=event.domain,
        family=event.family,
        level=event.level,
        config=actor,
        seed=event.seed,
        adapter=event.adapter,
        group=run.run,
        task=event.task,
        unchecked=run.config.verification.unchecked != "refuse",
        bias=exploring_bias(actor, event.slot - rows, run.config.tasks - rows),
    )
    inline, stored = claim(draft.trajectory, artifacts)
    return TaskProposed(
        **event.model_dump(include=REQUESTED),
        text=draft.text,
        proposal=draft.proposal,
        problem=draft.problem,
        prompt=instructions.version,
        trajectory=inline,
        trajectory_artifact=stored,
        trajectory_problem=draft.trajectory_problem,
        capture=draft.capture,
        usage=draft.usage,
        model=draft.model,
    )


def _row(event: TaskRequested, run: RunState, file: QuestionFile) -> TaskProposed:
    """The row whose turn it is, as the proposal."""
    rows = questions(file, run.config.questions).tasks["train"]
    levels = tuple(row.level for row in rows) if run.config.curriculum.kind == "rising" else ()
    before = sum(task.family == QUESTIONS and task.slot < event.slot for task in run.tasks.values())
    epoch, index = place(run.rows_before + before, len(rows), run.config.seed, levels)
    task = rows[index]
    assert task.row is not None  # noqa: S101 - of a file
    return TaskProposed(
        **event.model_dump(include=REQUESTED),
        text=f"Row {task.row.id}, epoch {epoch}",
        proposal=task.model_copy(update={"row": task.row.model_copy(update={"epoch": epoch})}),
        prompt="",
    )
