"""Values on Markdown pages: shares, their differences, rows of tables."""

from collections.abc import Mapping
from typing import Any

from agent0.report.conclusions import conclusion


def variants_named(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a study's ``--json`` under a page's column names: ``arm`` is its variant, ``cells`` are its runs."""
    return {_COLUMNS.get(name, name): value for name, value in row.items()}


_COLUMNS = {"arm": "variant", "cells": "runs"}


def shares(row: Mapping[str, Any]) -> str:
    """A mean of shares with its interval, in percent."""
    return f"{100 * row['mean']:.1f} % ({100 * row['low']:.1f} to {100 * row['high']:.1f})"


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign; nothing is +0.0."""
    return f"{round(100 * value, 1) + 0.0:+.1f}"


def span(row: Mapping[str, Any]) -> str:
    """Format the 95 % interval of a difference in percentage points."""
    if row["low"] is None:
        return "no interval"
    return f"{points(row['low'])} to {points(row['high'])}" if row["high"] > row["low"] else "alike on every task"


def claim(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table of differences (``agent0.experiments.ablation_results.claim_rows``)."""
    return {
        "variant": row["arm"],
        "against": row["against"],
        "points": points(row["mean"]),
        "95 % interval": span(row),
        "by seed": ", ".join(map(points, row["by_seed"])),
        "p after Holm": None if row["adjusted_p"] is None else f"{row['adjusted_p']:.2g}",
        "detectable": None if row["detectable"] is None else f"{100 * row['detectable']:.1f}",
        "conclusion": conclusion(row["word"]),
    }
