"""What an ablation study came to, as ``--json`` prints it."""

from typing import TypedDict

from agent0.experiments.ablation_results import ComparisonRow, CurvePoint, VariantRow
from agent0.experiments.ladder_rows import LadderRow, LeadRow, LevelRow


class LadderResults(TypedDict, total=False):
    """What a study on a ladder reports besides; ``mastered`` is the highest level that the bases were taught."""

    mastered: int
    ladder: list[LadderRow]
    ladder_leads: list[LeadRow]
    ladder_levels: list[LevelRow]


class StudyResults(LadderResults):
    """The results of all finished runs. ``about`` and ``settings`` are by variant, the first of which the others are
    compared with; ``given`` are settings that the user typed; ``measures`` are splits and benchmarks, the leading one
    first; ``failed`` names runs that could not be finished, and why."""

    grid: str
    question: str
    command: list[str]
    profile: str
    seeds: list[int]
    own_bases: bool
    given: dict[str, str]
    """Settings typed for this study, by dotted key; the published name of the field."""
    effort: str
    about: dict[str, str]
    settings: dict[str, dict[str, str]]
    folder: str
    complete: bool
    failed: list[dict[str, str]]
    measures: list[str]
    arms: list[VariantRow]
    against: list[ComparisonRow]
    curves: dict[str, list[CurvePoint]]
    cost: list[dict[str, str | float]]
    cells: list[dict[str, str | float | None]]
