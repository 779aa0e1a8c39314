"""``agent0 model train``: a language model by its name, one iteration of training, and what that did on a benchmark."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.evaluation.benchmark_run import Plan, read_plan
from agent0.assembly.evaluation.prompt_scores import PromptChoice, score_prompts
from agent0.assembly.log.access import open_log
from agent0.assembly.replay.forks import before_training, fork
from agent0.assembly.runtime.app import started
from agent0.assembly.runtime.execution import prepared
from agent0.cli import console, flags, lookup
from agent0.cli.evaluation.fetch import fetch
from agent0.cli.evaluation.options import HERE
from agent0.cli.models.named_model import BOTH, model_flags
from agent0.cli.models.stored import get
from agent0.cli.runs.foreground import follow_to_end
from agent0.events.base import Recorded
from agent0.projections.checkpoints import list_checkpoints, show_checkpoint
from agent0.projections.evaluations import list_evaluations
from agent0.report.answers import BenchmarkOutcome, training_lines
from agent0.settings import Settings
from agent0.training.selection import left_out

PROFILE, PROVIDER, BENCHMARK = "qwen", "transformers", "gsm8k"
SIZES = {"run.iterations": 1, "run.tasks": 16, "run.evaluation.validation": 16, "run.evaluation.test": 0}
"""Of a training that ends within a quarter of an hour; the others are the profile's."""
ONE_PROGRAM = {
    "run.student.prompts": "programs",
    "run.student.program_answers": True,
    "run.student.max_turns": 1,
    "run.student.max_calls": 1,
    "run.student.max_tokens": 220,
}
"""How the student answers: with one program, as the 0.5B scores best with its tool (docs/results/real-models.md)."""
IN_WORDS = {"prompts": "full", "max_tokens": 400}
"""The student that reasons in words: below 400 tokens four of ten answers of the 0.5B are cut off."""


def train(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `agent0 model list --available` has it.")],
    data: Annotated[
        Path | None,
        typer.Option(envvar="AGENT0_BENCHMARKS", help="Folder with GSM8K's rows; without one they are fetched."),
    ] = None,
    items: Annotated[int, typer.Option(min=1, help="Rows of GSM8K that are scored before and after.")] = 60,
    pairs: console.Set = None,
) -> None:
    """Get a model, train it for one iteration on tasks that it wrote itself, and say what that did on GSM8K, beside
    what its best prompt reaches untrained and what form alone teaches, and what may not be claimed."""
    _get(name)
    folder = data or _fetched()
    options = [f"{key}={value}" for key, value in {**SIZES, **ONE_PROGRAM}.items()]
    options += [f"run.evaluation.benchmarks={BENCHMARK}", f"run.evaluation.benchmark_items={items}"]
    models = model_flags(name, PROVIDER, *BOTH)
    chosen = flags.settings(PROFILE, [*options, *(pairs or [])], plugins=None, benchmarks__folder=folder, **models)
    settings = console.run_async(lambda: prepared(chosen, None, here=True))
    plain = _untrained_without_tools(settings, folder)
    begin = started(settings, name)
    news = f"Run {begin.run}: {name}, one iteration, data in {settings.home}"
    follow_to_end(settings, begin.run, begin, news, with_handlers=True, as_json=False)
    untrained, trained, learned = _outcomes(settings, begin.run)
    form = _form_alone(settings, begin.run) if trained else None
    lines = training_lines("GSM8K", [untrained, plain], trained, learned, form)
    console.text("")
    console.print_lines(lines)


def _get(name: str) -> None:
    get(name, "", False)


def _fetched() -> Path:
    fetch(BENCHMARK, HERE, "", False, False)
    return HERE


def _untrained_without_tools(settings: Settings, folder: Path) -> BenchmarkOutcome:
    """The untrained student that reasons in words: the other prompt that there is."""
    rules = settings.run.evaluation
    student = settings.run.student.model_copy(update=IN_WORDS)
    in_words = settings.model_copy(update={"run": settings.run.model_copy(update={"student": student})})
    plan = Plan((BENCHMARK,), folder, ("plain",), limit=rules.benchmark_items, seed=rules.seed)
    choice = PromptChoice("in words", student.prompts)
    work = partial(score_prompts, in_words, plan, [choice], lambda: lambda _: None, console.say, "")
    (scored,) = console.run_async(work)
    right = {item.item: item.correct for item in scored.items}
    rows = read_plan(plan)[0][BENCHMARK][1]
    return BenchmarkOutcome(choice.name, "".join(str(int(bool(right.get(row.id)))) for row in rows))


def _form_alone(settings: Settings, run: str) -> BenchmarkOutcome | None:
    """What the same attempts teach where every answer is accepted, right or wrong: a fork from before the training."""
    changes = {"training.student.gate": "answered"}

    async def begun() -> Recorded:
        async with open_log(settings) as log:
            return await fork(settings, log, run, await before_training(log, run), changes, f"{run}-form")

    begin = console.run_async(begun)
    news = f"Run {begin.run}: the same attempts, every answer accepted"
    follow_to_end(settings, begin.run, begin, news, with_handlers=True, as_json=False)
    _, trained, _ = _outcomes(settings, begin.run)
    return replace(trained, student="form alone") if trained else None


def _outcomes(settings: Settings, run: str) -> tuple[BenchmarkOutcome, BenchmarkOutcome | None, str]:
    """The benchmark before and after, and what was learned in words."""

    def outcome(row: dict[str, Any], student: str) -> BenchmarkOutcome:
        return BenchmarkOutcome(student, row["outcomes"] or "", row["tool_use"])

    with lookup.tables(settings) as db:
        scores = [row for row in list_evaluations(db, run) if row["benchmark"] and row["status"] == "evaluated"]
        trained = [row for row in list_checkpoints(db, run) if row["role"] == "student"]
        checkpoint = show_checkpoint(db, run, trained[-1]["checkpoint"]) if trained else None
    before = outcome(scores[0], "with its tool") if scores else BenchmarkOutcome("with its tool", "")
    if checkpoint is None or not checkpoint["adapter"]:
        return before, None, f"{left_out(checkpoint['skipped'] or {}) if checkpoint else 'no training was due'}."
    after = next((row for row in scores if row["checkpoint"] == checkpoint["checkpoint"]), None)
    learned = f"It was trained on {checkpoint['samples']:,} answers to its own tasks."
    return before, outcome(after, f"{run}/{checkpoint['checkpoint']}") if after else None, learned
