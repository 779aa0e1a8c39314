"""Experiments that compare arms over seeds, as data: one file each. To add one, copy a file of this folder: its command
is there, `agent0 experiment NAME`, and the engine carries it.

Arms differ in settings alone. Every cell (an arm with a seed) is a run of its own; all score the same held-out items.
"""

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent0.evaluation.protocol import Exam, ExamSet
from agent0.registry import Registry

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")
"""Of a grid and of an arm: both are part of run tokens and of folders."""


@dataclass(frozen=True)
class Arm:
    """A name, the settings of a run (dotted keys below ``run``) that make it, and what it stands for."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    about: str = ""


@dataclass(frozen=True)
class Grid:
    """An experiment. The first arm is what the others are measured against.

    ``measures`` are names of ``agent0.experiments.ablation_results.MEASURES``, the first one leads; ``controls`` of
    ``agent0.experiments.ablation_results.CONTROLS``,
    which need no training. ``settings`` hold for every arm, where the person who asks does not say otherwise.

    ``exams`` are sat by the student that each cell ends with, ``base_exams`` by the untrained base, once a seed (in the
    cell of the first arm); ``sets`` are what both are of. ``course``: where the student is the packaged model of that
    course, each seed has a base of its own, taught the same from that seed. ``notes`` stand on its page: what
    a reader must know of how its tasks and seeds came to be.
    """

    name: str
    question: str
    arms: tuple[Arm, ...]
    profile: str = "tiny"
    seeds: tuple[int, ...] = (0, 1, 2)
    measures: tuple[str, ...] = ("test", "validation")
    controls: tuple[str, ...] = ("untrained", "forced_tool")
    settings: Mapping[str, str] = field(default_factory=dict)
    sets: tuple[ExamSet, ...] = ()
    exams: tuple[Exam, ...] = ()
    base_exams: tuple[Exam, ...] = ()
    course: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        wrong = [name for name in (self.name, *names) if not NAME.fullmatch(name)]
        if wrong or len(set(names)) != len(names) or not names:
            raise ValueError(f"grid {self.name}: arms need names of their own, of small letters, digits and '-'")


_grids = Registry[str, Grid]("grids", __name__, same=operator.is_)


def grid(entry: Grid) -> Grid:
    """Register ``entry``. Raises ValueError where the name is taken."""
    return _grids.add(entry.name, entry)


def grids() -> dict[str, Grid]:
    """All by name, sorted."""
    return _grids.all()
