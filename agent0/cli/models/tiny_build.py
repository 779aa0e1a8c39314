"""Makes the built-in small model."""

import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from agent0.cli import console
from agent0.cli.models.tiny import Packaged
from agent0.errors import ConfigError
from agent0.infra.tiny.build import Progress
from agent0.infra.tiny.build import build as make
from agent0.infra.tiny.courses import MIXES, Mix, read_mix

Course = Literal[Packaged, "climb_sums", "climb_addition", "climb_words"]
EVERY = 100
"""Steps between two lines of progress where the output is no terminal."""


def build(
    out: Annotated[Path, typer.Option("--out", "-o", file_okay=False, help="Folder for the model.")] = Path("tiny"),
    seed: Annotated[int, typer.Option(help="Same seed and mix on the same kind of machine: same weights.")] = 0,
    course: Annotated[
        Course,
        typer.Option(
            help="tools: to call them; search: to try again; climb, climb_sums, climb_addition, climb_words: the "
            "lowest levels of reversal, digit sums, column addition, word reversal; climb_teacher: to write "
            "such tasks; long: several steps."
        ),
    ] = "tools",
    mix: Annotated[
        Path | None, typer.Option("--mix", metavar="FILE", dir_okay=False, help="What is taught when, as JSON.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "cpu",
    as_json: console.Json = False,
) -> None:
    """Teach a model from nothing; some minutes on one core with a course's own mix."""
    taught, progress = _read(mix) if mix else MIXES[course], _quiet if as_json else _progress()
    card = make(out, seed=seed, mix=taught, progress=progress, device=device)
    shown = {**card.__dict__, "path": str(card.path)}
    console.record(shown, as_json)
    if not as_json:
        console.say(f"Use it: --set run.student.provider=transformers --set run.student.model={card.path}")


def _read(path: Path) -> Mix:
    try:
        return read_mix(path)
    except OSError as error:
        raise ConfigError(f"The mix {path} cannot be read.", f"{error.strerror}.") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        fix = 'Write {"phases": [{"steps", "lr", "lr_end", "levels", "tool", "teacher"}, …]}, like provenance.json.'
        raise ConfigError(f"{path} is no mix.", f"{type(error).__name__}: {error}.", fix) from error


def _quiet(_done: int, _total: int, _loss: float) -> None:
    pass


def _progress() -> Progress:
    began, live = time.monotonic(), sys.stderr.isatty()

    def report(done: int, total: int, loss: float) -> None:
        if done != total and done % (10 if live else EVERY):
            return
        left = (time.monotonic() - began) / done * (total - done)
        ending = "\r" if live and done != total else "\n"
        typer.echo(f"step {done}/{total}  loss {loss:.3f}  about {left:.0f} s left  ", err=True, nl=False)
        typer.echo(ending, err=True, nl=False)

    return report
