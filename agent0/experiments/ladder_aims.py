"""Aims of a study on a ladder, set before it was executed: leads that hold on every seed (or on average), or do not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

BASE = "base"
"""What an aim compares with: the untrained student of the same run."""
NAMES = {
    "height": "T",
    "added": "S",
    "taught_change": "accuracy at taught levels",
    "readable": "readable share of the texts",
    "different_texts": "share of different texts",
    "digit_entropy": "bits a digit",
    "half_solved": "share of half-solved tasks",
    "half_solved_run": "share of half-solved tasks, over the whole run,",
}
"""T: the highest level of which half is solved; S: the accuracies of all test levels added up."""
WRITTEN = ("readable", "different_texts", "digit_entropy", "half_solved", "half_solved_run")
"""Measures of what the teacher of a variant wrote, most of them in the end: compared with nothing."""
LEADS = ("taught_change", "base_solved", *WRITTEN)
"""Measures that are taken as they are: they compare with the base already, or with nothing. ``base_solved``: of fresh
tasks at T, those that the base solves within 32 samples."""


@dataclass(frozen=True)
class LadderAim:
    """An aim: the lead of ``variant`` over ``than`` (another variant of the same seed, or ``BASE``) in ``measure``, or
    the measure itself, of what its teacher wrote.

    The lead is a difference in levels, or a quotient where ``ratio``; it is to lie within ``least`` and ``most`` on
    every seed; where ``mean``, their mean over seeds is to.
    """

    variant: str
    than: str
    measure: Literal[
        "height", "added", "taught_change", "base_solved",
        "readable", "different_texts", "digit_entropy", "half_solved", "half_solved_run",
    ]  # fmt: skip
    least: float = float("-inf")
    most: float = float("inf")
    ratio: bool = False
    mean: bool = False

    def title(self) -> str:
        """Write the aim as an inequality: ``T of ours at least 1.5 times that of base``."""
        return f"{self._inequality()}, on average" if self.mean else self._inequality()

    def holds(self, leads: Sequence[float]) -> bool:
        """Whether ``leads``, one a seed, reach the aim."""
        asked = [sum(leads) / len(leads)] if self.mean else leads
        return all(self.least <= lead <= self.most for lead in asked)

    def _inequality(self) -> str:
        bounds = [f"at least {self.least:g}"] if self.least > float("-inf") else []
        bounds += [f"at most {self.most:g}"] if self.most < float("inf") else []
        if self.measure == "base_solved":
            return f"fresh tasks at T of {self.variant} that {self.than} solves in 32 samples: {' and '.join(bounds)}"
        if self.measure in WRITTEN:
            return f"{NAMES[self.measure]} of {self.variant} {' and '.join(bounds)}"
        unit = "times that of" if self.ratio else "over"
        return f"{NAMES[self.measure]} of {self.variant} {' and '.join(bounds)} {unit} {self.than}"


def aim_rows(aims: Iterable[LadderAim], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Check ``aims`` against the rows of ``ladder_rows``: one row for each aim that some seed can be asked about, with
    its leads by seed and on how many seeds they lie within its bounds. An aim is ``reached`` where all do, or where
    their mean does."""
    held = {(row["arm"], row["seed"]): row for row in rows}
    seeds = sorted({row["seed"] for row in rows})
    found = []
    for aim in aims:
        leads = [lead for seed in seeds if (lead := _lead(aim, held, seed)) is not None]
        kept = sum(aim.least <= lead <= aim.most for lead in leads)
        if leads:
            of = {"aim": aim.title(), "by_seed": leads, "seeds": len(leads)}
            found.append(of | {"kept": kept, "reached": aim.holds(leads)})
    return found


def _lead(aim: LadderAim, held: Mapping[tuple[str, int], Mapping[str, Any]], seed: int) -> float | None:
    own = held.get((aim.variant, seed))
    other = own if aim.than == BASE else held.get((aim.than, seed))
    if own is None or other is None:
        return None
    if aim.measure in LEADS:
        return own.get(aim.measure)
    after, before = own[aim.measure], other[f"{aim.measure}_untrained" if aim.than == BASE else aim.measure]
    if after is None or before is None or (aim.ratio and not before):
        return None
    return round(float(after / before if aim.ratio else after - before), 2)
