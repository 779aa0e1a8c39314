"""How Markdown pages are made: a module gathers values, a template beside it holds the words; and how shares, their
differences and rows of tables are written there."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent0.experiments.ablation_results import Average, ComparisonRow
from agent0.report.conclusions import conclusion

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent


def render(template: str, folder: Path = FOLDER, **values: Any) -> str:
    """Make the page of ``template``, which lies in ``folder``; it may import ``parts.md.jinja`` of this folder."""
    return _environment(folder).get_template(template).render(**values).strip("\n") + "\n"


@cache
def _environment(folder: Path) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - commands that make no page do without

    environment = Environment(
        loader=FileSystemLoader([folder, FOLDER]),
        autoescape=False,  # noqa: S701 - Markdown, not HTML
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        conclusion=conclusion, capital=capital, shown=_shown, code=code, pipes=pipes, variants_named=variants_named
    )
    return environment


def _shown(value: Any) -> str:
    """None is a dash; a float has three digits, or none from 1,000 on."""
    if value is None:
        return "-"
    return str(value) if not isinstance(value, float) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"


def capital(text: str) -> str:
    """Capitalise the first letter and leave the others."""
    return f"{text[0].upper()}{text[1:]}"


def code(text: str) -> str:
    """Turn the double backticks of a docstring into those of Markdown."""
    return re.sub(r"(?<!`)``(?!`)", "`", text)


def pipes(text: str) -> str:
    """Escape what would end an entry of a table."""
    return text.replace("|", "\\|")


def variants_named(row: Mapping[str, object]) -> dict[str, object]:
    """A row of a study's ``--json`` under a page's column names: ``arm`` is its variant, ``cells`` are its runs."""
    return {_COLUMNS.get(name, name): value for name, value in row.items()}


_COLUMNS = {"arm": "variant", "cells": "runs"}


def shares(row: Average) -> str:
    """A mean of shares with its interval, in percent."""
    return f"{100 * row['mean']:.1f} % ({100 * row['low']:.1f} to {100 * row['high']:.1f})"


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign; nothing is +0.0."""
    return f"{round(100 * value, 1) + 0.0:+.1f}"


def span(row: ComparisonRow) -> str:
    """Format the 95 % interval of a difference in percentage points."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "no interval"
    return f"{points(low)} to {points(high)}" if high > low else "alike on every task"


def claim(row: ComparisonRow, against: str) -> dict[str, object]:
    """The columns of a table of differences; ``against`` is how the other side is called there."""
    return {
        "variant": row["arm"],
        "against": against,
        "points": points(row["mean"]),
        "95 % interval": span(row),
        "by seed": ", ".join(map(points, row["by_seed"])),
        "p after Holm": None if row["adjusted_p"] is None else f"{row['adjusted_p']:.2g}",
        "detectable": None if row["detectable"] is None else f"{100 * row['detectable']:.1f}",
        "conclusion": conclusion(row["word"]),
    }
