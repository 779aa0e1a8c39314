"""The teacher proposes a task on request."""

from collections.abc import Sequence
from dataclasses import replace

from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.base import Event
from agent0.events.tasks import TaskProposed, TaskRequested
from agent0.events.values import DOCUMENTS, QUESTIONS
from agent0.handlers import on
from agent0.ports.models import Models
from agent0.ports.storage import Artifacts, QuestionFile
from agent0.rollout.claim_check import claim
from agent0.rollout.prompts import ABOUT_PASSAGE, ANY, Prompt, prompt
from agent0.rollout.teacher import Draft, exploring_bias, propose, propose_about
from agent0.run.lifecycle import RunState
from agent0.tasks.curriculum.sampler import row_levels
from agent0.tasks.documents import draw_passage
from agent0.tasks.families import task_length
from agent0.tasks.near_copies import near_copies
from agent0.tasks.questions import place, rows_of_iteration
from agent0.verification.repositories.mined_task import keep_repository

REQUESTED = {"task", "iteration", "slot", "teacher", "seed"}
"""Fields of a request that its proposal repeats."""


@on(TaskRequested, in_flight=128, long=True, roles=("teacher",))
async def propose_task(
    event: TaskRequested, run: RunState, models: Models, artifacts: Artifacts, question_file: QuestionFile
) -> list[Event]:
    """Generate one proposal, of a task or of a question about a passage, or take the next row of the file of questions;
    text that holds no task is recorded with its problem, not raised."""
    if event.family == QUESTIONS:
        return [_row(event, run, question_file, artifacts)]
    write = _write_about if event.family == DOCUMENTS else _write
    instructions, draft = await write(event, run, models, question_file)
    draft = _apart(draft, run, question_file)
    inline, stored = claim(draft.trajectory, artifacts)
    return [
        TaskProposed(
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
            passage=draft.passage,
        )
    ]


async def _write(event: TaskRequested, run: RunState, models: Models, file: QuestionFile) -> tuple[Prompt, Draft]:
    """What the teacher writes, and what it was asked with."""
    actor = run.config.teacher
    instructions = prompt(actor.prompts, event.domain, "teacher", long=task_length(event.family) == "long")
    return instructions, await propose(
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
        bias=_bias(event, run),
    )


async def _write_about(event: TaskRequested, run: RunState, models: Models, file: QuestionFile) -> tuple[Prompt, Draft]:
    """What the teacher writes about a passage of a document for training, which the request's seed draws."""
    actor, plan = run.config.teacher, run.config.documents
    instructions = prompt(actor.prompts, ANY, ABOUT_PASSAGE)
    passage, text = draw_passage(file.documents(plan), "train", event.seed)
    return instructions, await propose_about(
        models.open(actor),
        instructions,
        passage,
        text,
        shown=plan.shown,
        config=actor,
        seed=event.seed,
        adapter=event.adapter,
        group=run.run,
        task=event.task,
        bias=_bias(event, run),
    )


def _apart(draft: Draft, run: RunState, file: QuestionFile) -> Draft:
    """``draft`` without its task where that nearly copies a held-out row."""
    plan = run.config.questions
    if draft.proposal is None or not (plan.heldout or plan.file):
        return draft
    tasks = questions(file, plan).tasks
    heldout = [task.question for task in (*tasks["validation"], *tasks["test"])]
    copies = near_copies([draft.proposal.question], heldout)[0]
    return replace(draft, proposal=None, problem="it nearly copies a held-out row") if copies else draft


def _bias(event: TaskRequested, run: RunState) -> Sequence[tuple[str, float]]:
    rows = rows_of_iteration(run.config)
    return exploring_bias(run.config.teacher, event.slot - rows, run.config.tasks - rows)


def _row(event: TaskRequested, run: RunState, file: QuestionFile, artifacts: Artifacts) -> TaskProposed:
    """The row whose turn it is, as the proposal; files that it names are stored with the run's. Of a folder with levels
    it is one of the level that is chosen."""
    rows = questions(file, run.config.questions).tasks["train"]
    levels = tuple(row.level for row in rows) if run.config.curriculum.kind == "rising" else ()
    before = sum(task.family == QUESTIONS and task.slot < event.slot for task in run.tasks.values())
    epoch, index = place(run.rows_before + before, len(rows), run.config.seed, levels)
    if chosen := row_levels(run, sorted({row.level for row in rows if row.row and row.row.repository}), before + 1):
        rows = tuple(row for row in rows if row.level == chosen[-1])
        index = place(run.rows_before + chosen[:-1].count(chosen[-1]), len(rows), run.config.seed)[1]
    task = rows[index]
    assert task.row is not None  # noqa: S101 - of a file
    if task.row.repository:
        keep_repository(task.row.repository, file.files(run.config.questions), artifacts)
    return TaskProposed(
        **event.model_dump(include=REQUESTED),
        text=f"Row {task.row.id}, epoch {epoch}",
        proposal=task.model_copy(update={"row": task.row.model_copy(update={"epoch": epoch})}),
        prompt="",
    )
