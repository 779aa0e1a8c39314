"""What the page of a study on a ladder says first: how high its students stand, and which aims they reach."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent0.experiments.ladder_aims import BASE
from agent0.stats.across_seeds import mean_of, tested

Row = Mapping[str, Any]
LEVELS = "levels"
"""Key of the chart of accuracy by level."""


def answer(found: Row) -> list[str]:
    """The answer in at most five lines: the heights of the first variant, its sum beside every other variant's, the
    aims."""
    first = next(iter(found["about"]))
    rows = _complete(found, first)
    if not rows:
        return ["Nothing was measured: no run of the first variant is finished."]
    said = [_heights(first, rows), *_sums(found, first)]
    return [*said, *_aims(found["aims"])]


def table(found: Row) -> list[Row]:
    """One row for each variant: T and S of its students by seed, and their lead over the untrained ones."""
    return [_row(BASE, _complete(found, next(iter(found["about"]))), "_untrained")] + [
        _row(arm, rows, "") for arm in found["about"] if (rows := _complete(found, arm))
    ]


def aims(found: Row) -> list[Row]:
    """One row for each aim: its leads by seed, and on how many seeds it is reached."""
    return [
        {
            "aim, on every seed or on average": one["aim"],
            "by seed": ", ".join(f"{lead:+.2f}" for lead in one["by_seed"]),
            "seeds": f"{one['kept']} of {one['seeds']}",
            "reached": "yes" if one["reached"] else "no",
        }
        for one in found["aims"]
    ]


def _complete(found: Row, arm: str) -> list[Row]:
    return [row for row in found["ladder"] if row["arm"] == arm and row["height"] is not None]


def _heights(first: str, rows: Sequence[Row]) -> str:
    by_seed = ", ".join(f"{row['height_untrained']} to {row['height']}" for row in rows)
    return (
        f"**Highest level of which half is solved (T), greedy, on fresh tasks:** {first} climbs from {by_seed} "
        f"(seeds {', '.join(str(row['seed']) for row in rows)})."
    )


def _sums(found: Row, first: str) -> Iterator[str]:
    own = {row["seed"]: row for row in _complete(found, first)}
    gains = [row["added"] - row["added_untrained"] for row in own.values()]
    parts = [f"its base {_difference(gains)}"]
    for arm in found["about"]:
        other = {row["seed"]: row for row in _complete(found, arm)}
        if leads := [own[seed]["added"] - other[seed]["added"] for seed in own if seed in other and arm != first]:
            parts.append(f"{arm} {_difference(leads)}")
    yield f"**Accuracies added up over levels (S), {first} less:** {'; '.join(parts)}."


def _difference(leads: Sequence[float]) -> str:
    """The mean difference with its 95 % t interval and p over seeds, not corrected for the number of variants."""
    told = tested(leads)
    if told.low is None or told.high is None:
        return f"{leads[0]:+.1f} (one seed)"
    p = "" if told.p is None else f", p {told.p:.2g}"
    return f"{sum(leads) / len(leads):+.1f} ({told.low:+.1f} to {told.high:+.1f}{p})"


def _aims(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    missed = [f"{row['aim']} ({row['kept']} of {row['seeds']} seeds)" for row in rows if not row["reached"]]
    rest = f"; not reached: {'; '.join(missed)}" if missed else ""
    yield f"**Aims:** {len(rows) - len(missed)} of {len(rows)} are reached{rest}."


def _row(arm: str, rows: Sequence[Row], ending: str) -> Row:
    sums = [row[f"added{ending}"] for row in rows]
    over = mean_of(sums)
    told = "-" if over.low is None else f"{over.low:.1f} to {over.high:.1f}"
    return {
        "variant": arm,
        "T by seed": ", ".join(str(row[f"height{ending}"]) for row in rows),
        "S by seed": ", ".join(f"{one:.1f}" for one in sums),
        "S, mean": f"{over.value:.1f}",
        "95 % interval": told,
    }
