"""Examples of what a base was taught, kept in a file beside its weights: a run replays them, so that what a student
learns does not displace what it knew."""

import json
from collections.abc import Iterable
from pathlib import Path

from agent0.errors import DependencyError
from agent0.events.values import Turn
from agent0.ports.training import TrainingExample

FILE = "taught.jsonl"
"""A conversation a line: a list of [role, content]."""


def write(folder: Path, examples: Iterable[tuple[Turn, ...]]) -> int:
    """Keep ``examples``, conversations that a base was taught, in its ``folder``; returns how many there are."""
    lines = [json.dumps([[turn.role, turn.content] for turn in turns]) for turns in examples]
    (folder / FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def read(folder: Path) -> tuple[TrainingExample, ...]:
    """Read the examples that are kept beside the weights in ``folder``.

    Raises:
        DependencyError: there are none, or they cannot be read.
    """
    try:
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
        conversations = [
            tuple(Turn(role=role, content=content) for role, content in json.loads(line)) for line in lines
        ]
    except (OSError, ValueError, TypeError) as error:
        why = f"{type(error).__name__} in {folder / FILE}: {error}"[:300]
        fix = "Set run.training.student.taught to 0, or name a base that `agent0 tiny build --course climb` made."
        raise DependencyError("What the base was taught", why, fix) from error
    return tuple(TrainingExample(turns) for turns in conversations)
