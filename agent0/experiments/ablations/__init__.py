"""Ablation studies: experiments that compare variants over seeds, as data, one file each. To add one, copy a file of
this folder: its command is there, `agent0 experiment NAME`, and the engine carries it.

Variants differ in settings alone. Every ablation run (a variant with a seed) is a run of its own; all score the same
held-out items.
"""

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent0.experiments.ladder_aims import LadderAim
from agent0.registry import Registry

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")
"""Of a grid and of an arm: both are part of run tokens and of folders."""
MARGIN: Mapping[str, str] = {"evaluation.margin": "0.05"}
"""The gate of the studies on profile ``tiny``: with it their commands make their pages."""


@dataclass(frozen=True)
class Variant:
    """One variant of a study: a name, the settings that make it (dotted keys below ``run``), and what it stands for."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    about: str = ""


@dataclass(frozen=True)
class AblationStudy:
    """An ablation study. The first variant is compared with each other one; where it is a ``baseline``, each other one
    is compared with it.

    ``measures`` are names of ``agent0.experiments.ablation_results.MEASURES``, the first one leads; ``controls`` of
    ``agent0.experiments.ablation_results.CONTROLS``, which need no training. ``settings`` hold for every variant,
    unless the user says otherwise.

    ``course``: where the student is the packaged model of that course, each seed has a base of its own, taught the same
    from that seed. ``notes`` stand on its page: what a reader must know of how its tasks and seeds came to be.
    ``ladder``: how high each run's students stand is shown, too (``agent0.experiments.ladder_rows``), and whether
    ``aims`` were reached.
    """

    name: str
    question: str
    variants: tuple[Variant, ...]
    profile: str = "tiny"
    seeds: tuple[int, ...] = (0, 1, 2)
    measures: tuple[str, ...] = ("test", "validation")
    controls: tuple[str, ...] = ("untrained", "forced_tool")
    settings: Mapping[str, str] = field(default_factory=dict)
    course: str = ""
    notes: tuple[str, ...] = ()
    ladder: bool = False
    baseline: bool = False
    aims: tuple[LadderAim, ...] = ()

    def __post_init__(self) -> None:
        names = [variant.name for variant in self.variants]
        wrong = [name for name in (self.name, *names) if not NAME.fullmatch(name)]
        if wrong or len(set(names)) != len(names) or not names:
            raise ValueError(f"grid {self.name}: arms need names of their own, of small letters, digits and '-'")


_studies = Registry[str, AblationStudy]("grids", __name__, same=operator.is_)


def ablation_study(entry: AblationStudy) -> AblationStudy:
    """Register an ablation study under its name; returns it.

    Raises:
        ValueError: another study has this name.
    """
    return _studies.add(entry.name, entry)


def ablation_studies() -> dict[str, AblationStudy]:
    """Return every registered ablation study by its name, sorted by name."""
    return _studies.all()
