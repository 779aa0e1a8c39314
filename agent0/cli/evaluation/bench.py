"""Benchmarks: what there is, how a student scores, and whether two scores differ."""

import json
import secrets
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.evaluation.benchmark_run import (
    Plan,
    Progress,
    begun_plan,
    resume_command,
    run_benchmarks,
    scored_items,
)
from agent0.cli import console, flags
from agent0.cli.evaluation.bench_list import count_rows
from agent0.cli.evaluation.options import HERE, Data
from agent0.cli.models.calibrate import trained
from agent0.cli.models.named_model import model_flags, packaged_name
from agent0.config.catalogue import catalogue
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError, DependencyError, OperationError
from agent0.evaluation.benchmark_scores import NAMES, Compared, compared, grouped, level_scores, modes_compared, tally
from agent0.evaluation.benchmarks import benchmarks as known
from agent0.evaluation.benchmarks.rows.question_benchmark import is_question_file
from agent0.events.benchmarks import ItemScored
from agent0.report.answers import truncation_line
from agent0.report.benchmark_findings import difference_row, tool_effects
from agent0.report.score_answers import benchmark_answer, compared_answer
from agent0.settings import Settings


def run(
    benchmarks: Annotated[
        str,
        typer.Argument(
            help="Names, comma-separated, parts as gym:chain_sum; files, folders of tasks; all: all that are there."
        ),
    ] = "",
    data: Data = HERE,
    provider: Annotated[
        str | None, typer.Option(help="tiny, ollama, transformers…; scripted replays references.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Name of the catalogue or a server, folder, GGUF file.")] = None,
    checkpoint: Annotated[str, typer.Option(help="RUN/CHECKPOINT of a trained student, as in `run show`.")] = "",
    limit: Annotated[
        int, typer.Option(min=0, help="Items of each benchmark, drawn or made with the seed; 0: all.")
    ] = 0,
    samples: Annotated[int, typer.Option(min=1, max=64, help="Samples an item; one is greedy.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Draws items and samples.")] = 0,
    resume: Annotated[str, typer.Option(help="Id of a benchmark run to go on with; alone it is enough.")] = "",
    profile: console.Profile = None,
    set_: console.Set = None,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Score a student, with tools and without. A server that goes away is waited for; killed, it goes on with --resume:
    nothing is asked twice."""
    settings = student(provider, model, profile, set_)
    if resume and not benchmarks:
        settings, plan = console.run_async(lambda: begun_plan(settings, resume, data))
    else:
        names = _named(benchmarks, data)
        plan = Plan(names, data, samples=samples, limit=limit, seed=seed, **trained(settings, checkpoint))
        plan = replace(plan, questions=settings.run.questions)
    _print(*_run(settings, plan, resume, as_json), settings, full, as_json)


def _print(results: dict[str, Any], items: Sequence[ItemScored], settings: Settings, full: bool, as_json: bool) -> None:
    """Print what was scored: the first lines, then tables where ``full``, or all as JSON."""
    answer, levels = _answer(items, settings), _levels(items)
    if as_json:
        console.data({**results, "levels": levels, "answer": answer})
    else:
        console.print_lines(answer)
    if full and not as_json:
        show(results, levels)


def _levels(items: Sequence[ItemScored]) -> list[dict[str, object]]:
    """A row for each level of each benchmark whose rows have levels."""
    fields = ("benchmark", "mode", "n", "accuracy", "lower95", "upper95")
    return [{"level": level, **{name: getattr(score, name) for name in fields}} for level, score in level_scores(items)]


def _run(settings: Settings, plan: Plan, resume: str, quiet: bool) -> tuple[dict[str, Any], list[ItemScored]]:
    """The results file of a new run of ``plan``, or of the one to ``resume``, and what it has scored."""
    identity = resume or f"bench-{secrets.token_hex(3)}"
    command = resume_command(identity, plan.folder)
    report, begun, lines = BenchmarkReporter(quiet), bool(resume), list[str]()

    def say(line: str) -> None:
        lines.append(line)
        console.say(line)

    try:
        results = console.run_async(
            lambda: run_benchmarks(settings, plan, identity, report, begun=begun, say=say),
            stopping=f"Stopped; nothing is lost. Go on: {command}",
        )
    except* DependencyError:
        if lines:  # nothing is said before all rows are read
            console.say(f"What is scored is kept. Go on: {command}")
        raise
    items = console.run_async(lambda: scored_items(settings, identity))[0]
    console.say(
        f"Each reply can be read: agent0 trajectory list {identity} --evaluation {shlex.quote(items[0].benchmark)}"
    )
    return results, items


def _answer(items: Sequence[ItemScored], settings: Settings) -> list[str]:
    """The first lines about the items of a run under ``settings``."""
    return benchmark_answer(
        {
            "scores": [tally(part).model_dump() for part in grouped(items).values()],
            "tools_against_plain": tool_effects(items),
            "provider": settings.run.student.provider,
            "max_tokens": settings.run.student.max_tokens,
            "max_truncated": settings.run.evaluation.max_truncated,
        }
    )


MODES = ("tools", "plain")


def _named(benchmarks: str, data: Path) -> tuple[str, ...]:
    """Names of what is to be scored.

    Raises:
        ConfigError: there is none.
    """
    if benchmarks == "all":
        return tuple(name for name, entry in known().items() if any(count_rows(data, entry)))
    names = tuple(dict.fromkeys(located(name.strip()) for name in benchmarks.split(",") if name.strip()))
    if not names:
        raise ConfigError(
            "No benchmark is named.", f"There is no name in {benchmarks[:80]!r}.", "See: agent0 bench list"
        )
    return names


def located(name: str) -> str:
    """``name`` of a benchmark; of a file of questions or a folder its absolute path, which stands in the log."""
    is_folder = name.partition(":")[0] not in known() and Path(name).is_dir()
    return str(Path(name).absolute()) if is_folder or is_question_file(name) else name


EVERY_S = 5.0


class BenchmarkReporter:
    """A line on stderr every few seconds, and at the end of each benchmark, with the pace and time left.

    Items of one batch come at one moment, so until some have come for a while nothing is said of either; then the pace
    is that of the items before this one, up to when the last of them came.
    """

    def __init__(self, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet, self._clock = quiet, clock
        self._key: tuple[str, str] = ("", "")
        self._start = self._last = self._earliest = self._before = 0.0
        self._first = 0
        self._pace: float | None = None

    def __call__(self, progress: Progress) -> None:
        if (progress.benchmark, progress.mode) != self._key:
            self._key, self._first, self._pace = (progress.benchmark, progress.mode), progress.done, None
            self._start = self._last = self._clock()
        moment, ended = self._clock(), progress.done == progress.all
        self._measure(progress.done - self._first, moment, ended)
        if self._quiet or not (ended or moment - self._last >= EVERY_S):
            return
        self._last = moment
        share = f"{progress.right / progress.done:.3f}" if progress.done else "-"
        spent = f"  cost {progress.cost:.4g}" if any(progress.price) else ""
        more = "" if ended or self._pace is None else f"  {(progress.all - progress.done) / self._pace:.0f} s left"
        counts = f"{progress.benchmark:<14} {progress.mode:<6} {progress.done}/{progress.all}  right {share}"
        console.say(f"{counts}{self._took(progress)}{spent}{more}")

    def _measure(self, fresh: int, moment: float, ended: bool) -> None:
        """Set the pace, items a second of wall time, where something can be said of it."""
        if fresh == 1:
            self._earliest = moment
        elif fresh and moment - self._earliest >= EVERY_S:
            self._pace = (fresh - 1) / max(self._before - self._start, 1e-6)
        if fresh and ended:
            self._pace = fresh / max(moment - self._start, 1e-6)
        self._before = moment

    def _took(self, progress: Progress) -> str:
        if not progress.done:
            return ""
        pace = "" if self._pace is None else f"  {self._pace:.3g} items/s"
        latency = f"{progress.latency_s(0.5):.2f} s wall, 95 % {progress.latency_s(0.95):.2f} s"
        return f"{pace}  {latency}, up to {progress.at_once} at once"


def show(results: dict[str, Any], levels: Sequence[Mapping[str, object]] = ()) -> None:
    """Print a results file as a table, and levels and the scores by likelihood as others."""
    rows = [
        {
            "benchmark": name,
            "mode": mode,
            "n": results["n-samples"][name]["effective"],
            "accuracy": f"{entry[f'acc,{mode}']:.3f}",
            "cut off": entry.get(f"truncated,{mode}"),
            "95 %": f"{entry[f'acc_lower95,{mode}']:.3f} to {entry[f'acc_upper95,{mode}']:.3f}",
            "items/s": entry.get(f"items_per_s,{mode}"),
            "wall s, batched": entry.get(f"latency_p50_s,{mode}"),
            "cost": entry.get(f"cost,{mode}"),
        }
        for name, entry in results["results"].items()
        for mode in MODES
        if f"acc,{mode}" in entry
    ]
    console.table(
        rows, False, ("benchmark", "mode", "n", "accuracy", "95 %", "cut off", "items/s", "wall s, batched", "cost")
    )
    if levels:
        console.table([*levels], False, title="\nBy level")
    likely = [
        {"benchmark": name, "acc": entry["acc,likelihood"], "acc_norm": entry["acc_norm,likelihood"]}
        for name, entry in results["results"].items()
        if "acc,likelihood" in entry
    ]
    if likely:
        console.table(
            likely, False, title="\nLikeliest choice (nothing is generated: not to be compared with the above)"
        )


def compare(
    before: Annotated[str, typer.Argument(help="A benchmark run.")],
    after: Annotated[str, typer.Argument(help="Another one; the same: without tools against with tools.")],
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Paired on the items both have scored: difference, interval, exact test with Holm's correction, and the smallest
    difference that would have shown."""
    settings = flags.settings()
    left, _ = console.run_async(lambda: scored_items(settings, before))
    right, _ = console.run_async(lambda: scored_items(settings, after))
    comparisons = paired(before, left, after, right)
    if not as_json:
        console.print_lines(_cut_off({before: left, after: right}, settings.run.evaluation.max_truncated))
        console.print_lines(compared_answer([difference_row(comparison) for comparison in comparisons], before, after))
    if as_json or full:
        _compare(comparisons, as_json)


def _cut_off(runs: Mapping[str, Sequence[ItemScored]], max_truncated: float) -> list[str]:
    """What is to be said of replies of compared runs that met the limit of tokens."""
    counts = [
        (f"{run}, {name} {NAMES[mode]}", sum(item.end == "length" for item in items), len(items))
        for run, scored in runs.items()
        for (name, mode), items in grouped(scored).items()
    ]
    return list(filter(None, [truncation_line(counts, None, max_truncated)]))


def paired(before: str, left: Sequence[ItemScored], after: str, right: Sequence[ItemScored]) -> list[Compared]:
    """What ``before`` and ``after`` came to on the same items; of one run, without tools and with them.

    Raises:
        OperationError: there are no such items.
    """
    if comparisons := modes_compared(left) if before == after else compared(left, right):
        return comparisons
    scored = {name: ", ".join(map(" ".join, grouped(items))) for name, items in ((before, left), (after, right))}
    why = " ".join(f"{name[:80]} has scored {what}." for name, what in scored.items())
    what = "There are no items that both have scored." if before != after else "There is only one mode to compare."
    fix = "Score the same benchmark and mode with one --limit and --seed. See: agent0 bench runs"
    raise OperationError(what, why, fix)


def _compare(comparisons: list[Compared], as_json: bool) -> None:
    rows = [
        {
            "benchmark": comparison.benchmark,
            "mode": comparison.mode,
            "n": comparison.difference.items,
            "before": round(comparison.before, 4),
            "after": round(comparison.after, 4),
            "difference": round(comparison.difference.mean, 4),
            "lower95": round(comparison.difference.lower95, 4),
            "upper95": round(comparison.difference.upper95, 4),
            "p": float(f"{comparison.adjusted:.3g}"),
            "detectable": round(comparison.difference.detectable, 4),
            "verdict": comparison.verdict,
        }
        for comparison in comparisons
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    columns = ("benchmark", "mode", "n", "before", "after", "difference", "lower95", "upper95", "p", "detectable")
    console.table(rows, False, (*columns, "verdict"))


ONE_MODEL = {"tiny": "It is one model, packaged with Agent0.", "scripted": "It replays references."}
"""Providers that have no other model to be named, and why."""


def student(provider: str | None, model: str | None, profile: str | None, pairs: list[str] | None) -> Settings:
    """Settings with the student that flags name.

    Raises:
        ConfigError: a model is named of a provider that has just one.
    """
    settings = flags.settings(profile, pairs, plugins=None, **model_flags(model, provider, "student"))
    if model and not packaged_name(model) and (why := ONE_MODEL.get(settings.run.student.provider)):
        stored = "Name one that is stored (agent0 model list --available), or a provider: --provider transformers"
        fix = nearest(model, [*catalogue()]) or stored
        raise ConfigError(f"The provider {settings.run.student.provider} knows no model {model[:80]!r}.", why, fix)
    return settings
