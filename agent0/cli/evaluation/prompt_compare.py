"""``agent0 prompt compare``: prompts of a student, scored on the same items."""

import shlex
import sys
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from agent0.assembly.evaluation.benchmark_run import Plan, read_plan
from agent0.assembly.evaluation.prompt_scores import (
    PromptChoice,
    PromptScore,
    prompt_choice,
    require_different,
    score_prompts,
)
from agent0.cli import console, flags
from agent0.cli.evaluation.bench import BenchmarkReporter, located
from agent0.cli.evaluation.options import HERE, Data
from agent0.cli.models.partner import partner
from agent0.cli.tasks.question_options import AnswerType, Columns, Tolerance, question_settings
from agent0.errors import DependencyError
from agent0.evaluation.benchmark_scores import compared_with_first
from agent0.events.benchmarks import Mode
from agent0.projections.base import Row
from agent0.report.benchmark_findings import difference_row
from agent0.report.score_answers import prompts_answer
from agent0.settings import Settings

Prompts = Annotated[
    list[str], typer.Argument(metavar="PROMPT PROMPT…", help="Styles or names of `prompt list`, or files of yours.")
]
On = Annotated[str, typer.Option("--on", metavar="BENCHMARK|FILE", help="A benchmark, or a file of questions.")]


def compare(
    prompts: Prompts,
    on: On,
    data: Data = HERE,
    model: Annotated[
        str, typer.Option(help="tiny, a name of the catalogue or a server, folder, GGUF file; RUN/CHECKPOINT, RUN.")
    ] = "",
    provider: Annotated[str | None, typer.Option(help="Whose model it is: ollama, openai, transformers…")] = None,
    no_tools: Annotated[bool, typer.Option("--no-tools", help="The prompts for a student without tools.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="Items, drawn or made with the seed; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Draws items.")] = 0,
    columns: Columns = "",
    tolerance: Tolerance = None,
    answer_type: AnswerType = None,
    profile: console.Profile = None,
    set_: console.Set = None,
    plugin: console.Plugin = None,
    as_json: console.Json = False,
) -> None:
    """Compare prompts by score: a student answers the same items under each, greedily; each prompt is compared with the
    first, paired, with Holm's correction, beside calls, tokens, seconds and cost. Killed, the same command goes
    on, and no item is asked twice under a prompt."""
    named = {
        **question_settings(None, None, columns, tolerance, answer_type, None),
        "plugins": flags.plugin_paths(plugin),
    }
    settings, adapter, checkpoint = partner(model, provider, profile, flags.overrides(set_, **named))
    mode: Mode = "tools" if settings.run.student.uses_tools and not no_tools else "plain"
    plan = Plan((located(on),), data, (mode,), limit=limit, seed=seed, questions=settings.run.questions)
    plan = replace(plan, checkpoint=checkpoint or "base", adapter=adapter)
    scores = _scored(settings, plan, [prompt_choice(name) for name in prompts], as_json)
    differences = [difference_row(comparison) for comparison in compared_with_first([score.items for score in scores])]
    shown, student = [_row(score) for score in scores], settings.run.student
    answer = prompts_answer(shown, differences, student.max_tokens, settings.run.evaluation.max_truncated)
    if as_json:
        console.data({"prompts": shown, "against_first": differences, "answer": answer})
        return
    console.print_lines(answer)
    console.say(f"Each reply can be read: agent0 bench report {scores[-1].run}")


def _scored(settings: Settings, plan: Plan, choices: list[PromptChoice], quiet: bool) -> list[PromptScore]:
    """Each prompt's score; how to go on is said where that is stopped."""
    ((entry, _),) = read_plan(plan)[0].values()
    require_different(settings, choices, entry.domain, plan.modes[0])
    command, reports = shlex.join(["agent0", *sys.argv[1:]]), partial(BenchmarkReporter, quiet)
    try:
        return console.run_async(
            lambda: score_prompts(settings, plan, choices, reports, console.say, command),
            stopping=f"Stopped; nothing is lost. Go on: {command}",
        )
    except* DependencyError:
        console.say(f"What is scored is kept. Go on: {command}")
        raise


def _row(score: PromptScore) -> Row:
    names = ("benchmark", "mode", "n", "correct", "undecided", "truncated", "accuracy", "lower95", "upper95")
    return {
        "prompt": score.prompt.name,
        "run": score.run,
        **{name: getattr(score.score, name) for name in names},
        "calls": score.calls,
        "read": score.usage.prompt_tokens,
        "written": score.usage.completion_tokens,
        "seconds": score.seconds,
        "usd": score.usd,
    }
