"""``agent0 bench baseline``: where a student stands, on every suite that is there, as one page."""

import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.evaluation.benchmark_run import Plan, Progress, read_plan, run_benchmarks
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.port_openers import open_port
from agent0.assembly.runtime.stamping import utc_now
from agent0.cli import console, lookup
from agent0.cli.evaluation.bench import student
from agent0.cli.evaluation.options import HERE, Data, written
from agent0.config.distribution import installed_version
from agent0.errors import Agent0Error, NotFoundError
from agent0.evaluation.benchmarks import benchmarks
from agent0.report.benchmark_findings import bench_findings
from agent0.report.markdown.baseline import baseline_page
from agent0.report.score_answers import benchmark_answer
from agent0.settings import Settings
from agent0.verification.labelled_pairs import decide_pairs, decoded, read_pairs, summary

PAIRS = ("verifier_pairs.jsonl", "code_verifier_pairs.jsonl")
PAGE = "docs/results/baseline.md"


def baseline(
    provider: Annotated[str | None, typer.Option(help="tiny, ollama, transformers…")] = None,
    model: Annotated[str | None, typer.Option(help="Model name or folder.")] = None,
    data: Data = HERE,
    suites: Annotated[str, typer.Option(help="Names, comma-separated; all: every one that is there.")] = "all",
    limit: Annotated[int, typer.Option(min=0, help="Items of each suite, drawn with the seed; 0: all.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Draws the items.")] = 0,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="Where to write; '-': standard output.")
    ] = PAGE,
    resume: Annotated[str, typer.Option(help="Id of the benchmark run of a baseline that was cut off.")] = "",
    profile: console.Profile = None,
    set_: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Score a student on every suite that is there and on our own held-out tasks, with tools and without; measure the
    verifiers on labelled pairs; list what to mend first. All of it becomes one page."""
    settings = student(provider, model, profile, set_)
    plan, skipped = _plan(suites, data, limit, seed)
    identity = resume or f"baseline-{secrets.token_hex(3)}"
    scores = _scored(settings, plan, identity, bool(resume))
    verified = console.run_async(lambda: _verified(settings, data))
    command = _command(provider, model, suites, limit, seed, profile, set_ or [])
    text = baseline_page(scores, verified, skipped, {"command": command, **_model_facts(settings)})
    if out == "-":
        typer.echo(text, nl=False)
        return
    path = _written(text, out)
    shown = {"path": str(path), "run": identity, "scores": scores["scores"], "domains": scores["domains"]}
    answer = benchmark_answer(scores)
    if as_json:
        console.data({**shown, "verifiers": verified, "skipped": skipped, "answer": answer})
        return
    console.print_lines(answer)
    console.text(path)


def _written(text: str, out: str) -> Path:
    return written(text, out, PAGE)


def _plan(suites: str, folder: Path, limit: int, seed: int) -> tuple[Plan, dict[str, str]]:
    """Everything that can be scored here, and why the rest cannot.

    Raises:
        NotFoundError: nothing can.
    """
    names = (
        list(benchmarks()) if suites == "all" else list(dict.fromkeys(filter(None, map(str.strip, suites.split(",")))))
    )
    skipped: dict[str, str] = {}
    for name in names:
        try:
            read_plan(Plan((name,), folder, limit=limit, seed=seed))
        except Agent0Error as error:
            if suites != "all":
                raise
            skipped[name] = error.why if isinstance(error, NotFoundError) else str(error)
    scorable = tuple(name for name in names if name not in skipped)
    if not scorable:
        raise NotFoundError(
            "There is no suite to score.", f"{folder} has no rows of any.", "Name another: --data FOLDER"
        )
    return Plan(scorable, folder, limit=limit, seed=seed), skipped


def _scored(settings: Settings, plan: Plan, identity: str, begun: bool) -> dict[str, Any]:
    console.run_async(lambda: run_benchmarks(settings, plan, identity, _report, begun=begun, say=console.say))
    with lookup.tables() as db:
        return bench_findings(db, artifact_store(settings), identity, {}, settings.run.evaluation.max_truncated)


def _report(progress: Progress) -> None:
    if progress.done == progress.all:
        console.say(f"{progress.benchmark:<16} {progress.mode:<6} {progress.right}/{progress.all} right")


async def _verified(settings: Settings, folder: Path) -> dict[str, Any]:
    """Summaries by file, of the pairs that are there."""
    there = [folder / name for name in PAIRS if (folder / name).is_file()]
    if not there:
        return {}
    sandbox = await open_port("verifier_sandbox", settings, artifact_store(settings))
    at_once = max(1, settings.sandbox.workers // 2) * settings.sandbox.calls
    try:
        summaries = {}
        for path in there:
            rows = read_pairs(decoded(path.read_bytes(), str(path)), str(path))
            summaries[path.name] = summary(await decide_pairs(rows, sandbox, at_once))
            console.say(
                f"{path.name}: {summaries[path.name]['accuracy']:.3f} of {summaries[path.name]['n']} decided right"
            )
        return summaries
    finally:
        await sandbox.close()


def _command(
    provider: str | None, model: str | None, suites: str, limit: int, seed: int, profile: str | None, pairs: list[str]
) -> str:
    """The command as it would be given again; where the rows lie is everybody's own affair."""
    values = {"--profile": profile, "--provider": provider, "--model": model, "--limit": limit, "--seed": seed}
    options = [f"{flag} {value}" for flag, value in values.items() if value is not None]
    named = [] if suites == "all" else [f"--suites {suites}"]
    return " ".join(["agent0 bench baseline --data FOLDER", *options, *named, *(f"--set {pair}" for pair in pairs)])


def _model_facts(settings: Settings) -> dict[str, str]:
    student = settings.run.student
    name = f"{student.provider} {student.model}".strip()
    return {"date": f"{utc_now():%Y-%m-%d}", "student": f"the student `{name}`", "version": installed_version()}
