"""``agent0 bench controls``: what a student reaches on a folder of tasks by more attempts, or under another prompt."""

import shlex
import sys
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from agent0.assembly.evaluation.benchmark_run import Plan
from agent0.assembly.evaluation.control_scores import score_controls
from agent0.assembly.evaluation.prompt_scores import prompt_choice
from agent0.cli import console
from agent0.cli.evaluation.bench import BenchmarkReporter, located, student
from agent0.cli.evaluation.options import HERE, Data
from agent0.cli.models.calibrate import trained
from agent0.errors import DependencyError
from agent0.evaluation.benchmark_scores import Control, compared_with_first, tally
from agent0.projections.base import Row
from agent0.report.benchmark_findings import difference_row
from agent0.report.score_answers import controls_answer

COLUMNS = ("control", "attempts", "accuracy", "95 %", "less greedy", "written", "read")


def controls(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder of mined or generated tasks.")],
    samples: Annotated[int, typer.Option("--samples", "-n", min=2, max=64, help="Attempts; majority needs 3.")] = 4,
    prompt: Annotated[
        list[str] | None, typer.Option(help="A style or name of `prompt list`, or a file; may be repeated.")
    ] = None,
    data: Data = HERE,
    provider: Annotated[str | None, typer.Option(help="tiny, ollama, transformers…")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the catalogue or a server, folder, GGUF file.")] = None,
    checkpoint: Annotated[str, typer.Option(help="RUN/CHECKPOINT of a trained student, as in `run show`.")] = "",
    limit: Annotated[int, typer.Option(min=0, help="Tasks, drawn with the seed; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Draws tasks and samples.")] = 0,
    profile: console.Profile = None,
    set_: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Score a student greedily beside controls that need no training: majority and best of several samples, the best
    chosen by the tests in the work folder and never by hidden ones; self-refine, which reads its own change and what
    those tests say; and other prompts. Killed, the same command goes on, and nothing is asked twice."""
    settings = student(provider, model, profile, set_)
    plan = Plan((located(folder),), data, ("tools",), samples=samples, limit=limit, seed=seed)
    plan = replace(plan, questions=settings.run.questions, **trained(settings, checkpoint))
    choices, command = [prompt_choice(name) for name in prompt or ()], shlex.join(["agent0", *sys.argv[1:]])
    reports = partial(BenchmarkReporter, as_json)
    try:
        scores = console.run_async(
            lambda: score_controls(settings, plan, choices, reports, console.say, command),
            stopping=f"Stopped; nothing is lost. Go on: {command}",
        )
    except* DependencyError:
        console.say(f"What is scored is kept. Go on: {command}")
        raise
    rows, equal = _rows(scores), _equal(scores, samples)
    answer = controls_answer(rows, equal, settings.run.student.provider)
    if as_json:
        console.data({"controls": rows, "at_equal_attempts": equal, "answer": answer})
        return
    console.print_lines(answer)
    console.table([{**row, **_shown(row)} for row in rows], False, COLUMNS)


def _rows(scores: list[Control]) -> list[Row]:
    """Each control with its score, the tokens of all its attempts, and its difference from the first."""
    differences = [None, *map(difference_row, compared_with_first([score.items for score in scores]))]
    names = ("benchmark", "n", "correct", "undecided", "accuracy", "lower95", "upper95")
    return [
        {
            "control": score.name,
            "attempts": score.attempts,
            **{name: getattr(tally(score.items), name) for name in names},
            "read": score.usage.prompt_tokens,
            "written": score.usage.completion_tokens,
            "difference": difference,
        }
        for score, difference in zip(scores, differences, strict=True)
    ]


def _equal(scores: list[Control], attempts: int) -> list[Row]:
    """The controls of ``attempts`` attempts, each compared with the first of them."""
    first, *others = [score for score in scores if score.attempts == attempts]
    compared = compared_with_first([first.items, *(score.items for score in others)])
    named = zip(others, compared, strict=True)
    return [
        {"control": score.name, "less": first.name, "attempts": attempts, **difference_row(each)}
        for score, each in named
    ]


def _shown(row: Row) -> Row:
    difference = row["difference"]
    return {
        "accuracy": f"{row['accuracy']:.3f}",
        "95 %": f"{row['lower95']:.3f} to {row['upper95']:.3f}",
        "less greedy": difference
        and f"{100 * difference['mean']:+.1f} ({100 * difference['lower95']:+.1f} to "
        f"{100 * difference['upper95']:+.1f})",
    }
