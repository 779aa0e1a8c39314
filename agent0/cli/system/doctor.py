"""Looks at everything Agent0 leans on: what works, what does not, and one fix for each."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agent0.assembly.runtime.app import started
from agent0.assembly.runtime.doctor import LOOKS
from agent0.assembly.runtime.execution import execute_run
from agent0.assembly.validate.call_forms import call_forms
from agent0.assembly.validate.requirements import examine
from agent0.assembly.validate.room import Check
from agent0.cli import console, flags
from agent0.cli.layout import wrapped
from agent0.cli.models.named_model import BaseUrl, KeyEnv, Model, model_or_server, profile_of
from agent0.cli.runs.foreground import Terminal
from agent0.config.loading import load
from agent0.settings import Settings

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
BESIDE = 28
"""Columns of state and name."""
SMOKE = {"run.iterations": "1", "run.tasks": "3", "run.attempts": "2", "run.evaluation.validation": "12"}


def doctor(
    smoke: Annotated[bool, typer.Option("--smoke", help="Also carry out a small scripted run elsewhere.")] = False,
    model: Model = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    profile: console.Profile = None,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Check dependencies, log, sandbox, disk, GPU and models. Exit 5 where the profile (tiny) could not run, 2 where
    its settings could never be."""
    named = model_or_server(model, base_url, key_env)
    settings = flags.settings(profile_of(profile, base_url), pairs, plugins=None, **named)
    results = console.run_async(lambda: _examined(settings, None if as_json else _show))
    if smoke and not any(check.state == "fail" for check in results):
        results.append(_smoke())
        if not as_json:
            _show(results[-1])
    healthy = not any(check.state == "fail" for check in results)
    if as_json:
        checks = [check.__dict__ for check in results]
        console.data({"healthy": healthy, "profile": settings.profile, "checks": checks, "calls": call_forms(settings)})
    else:
        console.say(f"Profile {settings.profile} can run." if healthy else "Mend what failed, then try again.")
    if not healthy:
        raise typer.Exit(2 if _impossible(results) else 5)


async def _examined(settings: Settings, show: Callable[[Check], None] | None) -> list[Check]:
    """All checks, each shown as it is done; what is wrong with the settings once, however many looks meet it."""
    results: list[Check] = []
    async for check in examine(settings, LOOKS):
        if _impossible(results) and (check.detail, check.fix) == (results[0].detail, results[0].fix):
            continue
        results.append(check)
        if show:
            show(check)
    return results


def _impossible(results: Sequence[Check]) -> bool:
    """Whether the settings, which are looked at first, cannot hold on any machine."""
    return bool(results) and (results[0].name, results[0].state) == ("settings", "fail")


def _show(check: Check) -> None:
    fix = f"fix: {check.fix}" if check.state != "ok" and check.fix else ""
    if console.screen() is None:
        console.text("\t".join((check.state, check.name, console.one_line(check.detail, 300))))
        if fix:
            console.text(f"\t\t{fix}")
        return
    first, *more = _cut(console.one_line(check.detail, 300))
    line = Text(f"{check.state:<5}", style=COLOURS[check.state])
    line.append(f"{check.name:<22} {first}", style="default")
    console.console().print(line, soft_wrap=True)
    for text_line in [*more, *(_cut(fix) if fix else [])]:
        console.text(f"{'':<{BESIDE}}{text_line}")


def _cut(text: str) -> list[str]:
    """``text`` in lines beside the names of checks, cut between words."""
    terminal = console.screen()
    return wrapped(text, max(20, (terminal.width if terminal else console.WIDE) - BESIDE))


def _smoke() -> Check:
    with tempfile.TemporaryDirectory(prefix="agent0-doctor-") as folder:
        settings = load("scripted", {**SMOKE, "run.evaluation.test": "12", "home": str(Path(folder)), "nats.url": ""})
        begin = started(settings, "doctor")
        progress = console.run_async(lambda: execute_run(settings, begin.run, begin, Terminal(settings, quiet=True)))
        ended = progress.state.status if progress.state else "never started"
        return Check("smoke run", "ok" if ended == "finished" else "fail", f"{ended}, {progress.events} events")
