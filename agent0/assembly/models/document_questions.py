"""Part of the rim: a teacher writes a file of questions about passages of documents, outside of any run."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from agent0.assembly.log.access import open_log
from agent0.assembly.routing.billing import vendor_billing
from agent0.assembly.runtime.port_openers import open_ports
from agent0.assembly.runtime.providers import provider_of
from agent0.assembly.validate.questions import with_questions
from agent0.errors import ConfigError
from agent0.events.values import Split
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.datasets import LocalQuestions
from agent0.ports.models import Model
from agent0.ports.storage import DocumentFolder
from agent0.rollout.prompts import ABOUT_PASSAGE, ANY, prompt
from agent0.rollout.teacher import Draft, propose_about
from agent0.settings import RunConfig, Settings
from agent0.tasks.documents import draw_passage, passages_of
from agent0.tasks.near_copies import near_copies
from agent0.tasks.seeds import derive_seed

AT_ONCE = 32
"""Drafts that are asked for together."""
TRIES = 20
"""Drafts for each question that is wanted, at most."""


@dataclass
class WrittenQuestions:
    """How many drafts there were, how many questions are in the file, and why how many others are not."""

    drafts: int = 0
    questions: list[str] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)


async def write_questions(
    settings: Settings, split: Split, count: int, out: Path, report: Callable[[WrittenQuestions], None]
) -> WrittenQuestions:
    """Write ``count`` questions about passages of ``split`` of the run's documents into the new file ``out``: a row as
    soon as it is there, with its passage, so that a file that is cut short is one of fewer rows. ``report`` hears how
    far it is.

    Raises:
        ConfigError: ``out`` is there, or no document of ``split`` has a passage.
        DependencyError: the model is not here.
    """
    run = await asyncio.to_thread(with_questions, settings.run)
    folder = await asyncio.to_thread(LocalQuestions().documents, run.documents)
    if not passages_of(folder, split):
        why = f"It has {len(folder.documents)} documents; of 100 about 84 are for training, 8 for each of the others."
        raise ConfigError(f"{folder.name} has no document for {split}.", why, "Add documents, or name another --split.")
    if check := provider_of(run.teacher).check:
        check(run.teacher)
    written = WrittenQuestions()
    async with AsyncExitStack() as stack:
        billed = bool(vendor_billing(run.teacher, settings.router))
        log = await stack.enter_async_context(open_log(settings, make=True)) if billed else None
        ports = await open_ports(("models",), settings, FileArtifacts(settings.home), stack, log)
        file = stack.enter_context(_new(out))
        while len(written.questions) < count and written.drafts < TRIES * count:
            numbers = range(written.drafts, written.drafts + AT_ONCE)
            model = ports["models"].open(run.teacher)
            for draft in await asyncio.gather(*(_draft(model, run, folder, split, number) for number in numbers)):
                _take(written, *draft, file, count)
            report(written)
    return written


def _new(out: Path) -> IO[str]:
    try:
        return out.open("x", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{out} cannot be written.", f"{error.strerror}.", "Name another: --out FILE") from error


async def _draft(model: Model, run: RunConfig, folder: DocumentFolder, split: Split, number: int) -> tuple[Draft, str]:
    seed = derive_seed(run.seed, "document questions", split, number)
    passage, text = draw_passage(folder, split, seed)
    written = await propose_about(
        model,
        prompt(run.teacher.prompts, ANY, ABOUT_PASSAGE),
        passage,
        text,
        shown=run.documents.shown,
        config=run.teacher,
        seed=seed,
    )
    return written, text


def _take(written: WrittenQuestions, draft: Draft, text: str, file: IO[str], count: int) -> None:
    """Write the question of ``draft`` into ``file`` unless it is none, or nearly copies one that is there."""
    if len(written.questions) >= count:
        return
    written.drafts += 1
    task, passage = draft.proposal, draft.passage
    if task is None or task.row is None or passage is None:
        written.problems[draft.problem] += 1
        return
    if near_copies([task.question], written.questions)[0]:
        written.problems["it nearly copies another"] += 1
        return
    written.questions.append(task.question)
    shown = {"question": f"{task.row.passage}\n\n{task.question}"} if task.row.passage else {"question": task.question}
    row = {"id": task.row.id, **shown, "answer": task.row.answer, **passage.model_dump(), "passage": text}
    file.write(json.dumps({**row, "id": f"{task.row.id}/{len(written.questions)}"}, ensure_ascii=False) + "\n")
    file.flush()
