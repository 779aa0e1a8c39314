"""``agent0 questions``: what a run would read of a file of questions, what it has asked of it, and files that a teacher
writes about documents."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agent0.assembly.models.document_questions import WrittenQuestions, write_questions
from agent0.assembly.validate.question_check import QuestionCheck, check_questions
from agent0.assembly.validate.question_ledger import question_ledger
from agent0.assembly.validate.questions import copied_words, counted_rows
from agent0.cli import console, flags, lookup
from agent0.cli.models.named_model import Model, model_flags
from agent0.cli.tasks.question_options import AnswerType, Columns, Heldout, Template, Tolerance, question_settings
from agent0.evaluation.benchmarks.rows.question_rows import Repetition

File = Annotated[Path, typer.Argument(metavar="FILE", help="Rows with questions and answers.")]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Text files: .txt, .md, .rst.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A new file of rows.")]
MOST = 20
"""Lines of a list that people see; --json has all."""


def check(
    file: File,
    heldout: Heldout = None,
    columns: Columns = "",
    tolerance: Tolerance = None,
    answer_type: AnswerType = None,
    template: Template = None,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """What a run would read of a file of questions: columns, kinds of answers, split, rows that repeat others, and ten
    rows judged by their own answers. Exit code 1 where rows must be mended: each is named with its column."""
    settings = flags.settings(
        None, pairs, **question_settings(file, heldout, columns, tolerance, answer_type, template)
    )
    result = console.run_async(lambda: check_questions(settings))
    if as_json:
        console.data(result.as_row())
    else:
        _show(result)
    if result.faults:
        raise typer.Exit(1)


def ledger(run: console.Run = "LAST", limit: console.Limit = 100, as_json: console.Json = False) -> None:
    """Which rows of its file of questions, and passages of its documents, a run asked about, how often, and how many
    attempts at each were right. Rows that it has not asked come last, as long as the file is there."""
    run_id = str(lookup.run_row(run)["run"])
    with lookup.tables() as db:
        counts = question_ledger(db, run_id)
    if counts.problem:
        console.say(f"Rows that were not asked are not known: {counts.problem}", "yellow")
    if as_json:
        console.data(counts.rows)
        return
    of, times = f" of {counts.trained}" if counts.trained else "", sum(row["asked"] for row in counts.asked)
    console.text(f"{run_id} asked {len(counts.asked)}{of} rows, {times} times in all.")
    console.table(console.limited(lambda n: counts.rows[:n], limit), False)


def write(
    folder: Folder,
    out: Out,
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Questions.")] = 60,
    split: Annotated[
        Literal["train", "validation", "test"], typer.Option(help="Which documents: a text decides for itself.")
    ] = "test",
    seed: Annotated[int | None, typer.Option(help="What passages and replies are drawn with.")] = None,
    model: Model = None,
    profile: console.Profile = None,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Let the teacher write questions about passages of documents, checked against them, into a file as `run start
    --questions` reads it. Documents of validation and test are in no training."""
    named: dict[str, Any] = {"run__documents__folder": folder, "run__seed": seed}
    settings = flags.settings(profile, pairs, **named, **dict[str, Any](model_flags(model, None, "teacher")))
    written = console.run_async(lambda: write_questions(settings, split, count, out, _report))
    if as_json:
        problems = dict(written.problems.most_common())
        console.data({"drafts": written.drafts, "questions": len(written.questions), "problems": problems})
        return
    console.text(f"{out}: {len(written.questions)} questions of {written.drafts} drafts.")
    rows = [{"drafts": number, "why not": problem} for problem, number in written.problems.most_common()]
    console.table(rows, False, title="\nOthers")


def _report(written: WrittenQuestions) -> None:
    console.say(f"  {len(written.questions)} questions of {written.drafts} drafts")


def _show(result: QuestionCheck) -> None:
    rows = result.read.rows
    kinds = ", ".join(f"{count} {kind}" for kind, count in result.kinds.items())
    unread = f"; not read: {', '.join(rows.columns.unread)}" if rows.columns.unread else ""
    sizes = ", ".join(f"{len(entries)} {split}" for split, entries in result.read.entries.items())
    console.text(f"{rows.name}: {rows.count} rows, sha256 {result.sha256[:12]}")
    console.text(f"columns: {rows.columns.title}{unread}")
    console.text(f"answers: {kinds or 'none'}{f'; {result.tolerances} with a tolerance' if result.tolerances else ''}")
    heldout = (
        f"; held out: {result.read.heldout.count} rows of {result.read.heldout.name}" if result.read.heldout else ""
    )
    console.text(f"split:   {sizes}{heldout}")
    if result.sample:
        title = f"\n{len(result.sample)} of {len(rows.tasks)} rows, judged by their own answers"
        shown = [
            {**asdict(row), "row": _short(row.location), "verdict": _verdict(row.correct)} for row in result.sample
        ]
        console.table(shown, False, ("row", "verdict", "question", "answer", "kind", "verifier", "reason"), title=title)
    earlier = "repeats an earlier row, and is asked once", "repeat an earlier row, and are asked once"
    _list_repetitions(earlier, result.read.duplicates)
    _list_repetitions(copied_words(result.read), result.read.copies)
    faults = [{"row": _short(where), "column": column, "fault": fault} for where, column, fault in result.faults]
    if faults:
        console.table(faults[:MOST], False, ("row", "column", "fault"), title=f"\n{len(faults)} to mend")
        _say_others(len(faults))


def _list_repetitions(words: tuple[str, str], repetitions: Sequence[Repetition]) -> None:
    if repetitions:
        shown = [
            {"row": _short(each.location), "repeats": _short(each.repeated), "similarity": each.similarity}
            for each in repetitions[:MOST]
        ]
        console.table(shown, False, title=f"\n{counted_rows(repetitions, *words)}")
        _say_others(len(repetitions))


def _say_others(count: int) -> None:
    if count > MOST:
        console.say(f"… and {count - MOST} more: --json has all.")


def _short(location: str) -> str:
    return location.rpartition(", ")[2]


def _verdict(correct: bool | None) -> str:
    return {True: "right", False: "wrong", None: "undecided"}[correct]
