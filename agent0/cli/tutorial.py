"""``agent0 tutorial``: a newcomer's walk through one run with scripted answers, in a folder of its own."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agent0.cli import console
from agent0.errors import OperationError


@dataclass(frozen=True)
class TutorialStep:
    """A text of the tutorial, and the command that shows what it says."""

    text: str
    command: tuple[str, ...]


STEPS = (
    TutorialStep(
        "A run: a teacher proposes tasks, a student attempts them with tools, a verifier judges, rewards are assigned, "
        "both are trained, and held-out tasks say what came of it. Here the answers are scripted, so it takes seconds. "
        "Iterations count from 0; `untrained` stands before them.",
        ("run", "start", "--profile", "scripted", "--name", "first"),
    ),
    TutorialStep(
        "The same conclusion, at any time. A run is named by its id, a unique beginning of it, its name, LAST, LAST~1.",
        ("run", "show", "first"),
    ),
    TutorialStep(
        "The tasks, with the share of attempts that solved each. Those solved sometimes teach most.",
        ("task", "list", "first", "--limit", "6"),
    ),
    TutorialStep(
        "One attempt, turn by turn: tool calls, the verdict, the reward.", ("trajectory", "show", "t0-000-a3", "first")
    ),
    TutorialStep(
        "Why did the teacher get this reward for that task? Every part with its inputs and its weight.",
        ("reward", "explain", "t0-000", "first"),
    ),
    TutorialStep(
        "All of it is in one log of events; tables are computed from it, and you can ask them in SQL.",
        (
            "projections",
            "query",
            "SELECT family, count(*) AS tasks, avg(solve_rate) AS solved FROM tasks GROUP BY family",
        ),
    ),
    TutorialStep(
        "The past can be asked again: what would other rewards have assigned? No model is called, nothing is written.",
        ("experiment", "rescore", "first", "--rewards", "paper"),
    ),
    TutorialStep(
        "And it can go on otherwise: a fork shares the past up to an event, here the beginning of iteration 1, and "
        "continues under another setting.",
        ("run", "fork", "first", "--at", "iteration:1", "--set", "run.training.student.lr=0.001", "--name", "other"),
    ),
    TutorialStep("Both, side by side on the same held-out tasks.", ("experiment", "compare", "first", "other")),
)
END = (
    "That was it. Next: `agent0 run start --profile climb` trains a small model for real (minutes); `agent0 --help` "
    "has every command by the question it answers; docs/guide/first-run.md reads the results."
)
Execute = Callable[[Sequence[str], Path], int]


def tutorial(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not wait for Enter between steps.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="A data folder to keep; empty: one that is removed at the end."),
    ] = None,
) -> None:
    """Walk through a whole run in two minutes: nine commands, each explained, carried out and shown. Needs no model and
    leaves your data alone."""
    waits = not yes and sys.stdin.isatty()
    if folder:
        walk(folder, execute, waits=waits)
        return
    with tempfile.TemporaryDirectory(prefix="agent0-tutorial-") as folder_name:
        walk(Path(folder_name), execute, waits=waits)


def walk(home: Path, run: Execute, *, waits: bool) -> None:
    """Take every step, with its data in ``home``.

    Raises:
        OperationError: a command did not end well.
    """
    for number, step in enumerate(STEPS, 1):
        console.print_lines(["", f"{number}/{len(STEPS)}  {step.text}", ""])
        shown = " ".join(f'"{part}"' if " " in part else part for part in step.command)
        if waits and typer.prompt(f"$ agent0 {shown}   [Enter, or q]", "", show_default=False).strip() == "q":
            return
        if not waits:
            console.text(f"$ agent0 {shown}")
        if run(step.command, home):
            raise OperationError(f"Step {number} did not end well.", "What it said is above.", "See: agent0 doctor")
    console.print_lines(["", END])


def execute(command: Sequence[str], home: Path) -> int:
    """Carry a command out in a process of its own, and return its exit code."""
    sys.stdout.flush()
    arguments = [sys.executable, "-m", "agent0", *command]
    return subprocess.run(arguments, env=console.environment(home)).returncode  # noqa: S603 - words of this file
