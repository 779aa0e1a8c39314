"""Parts of Markdown pages: tables, charts, shares and their differences."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from agent0.report.conclusions import conclusion


def table(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Lines of Markdown, the first row's keys as the head, an empty line after; "Nothing." without a row."""
    held = list(rows)
    if not held:
        return ["Nothing.\n"]
    names = list(held[0])
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    return [*lines, *(f"| {' | '.join(_cell(one[name]) for name in names)} |" for one in held), ""]


def variants_named(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a study's ``--json`` under a page's column names: ``arm`` is its variant, ``cells`` are its runs."""
    return {_COLUMNS.get(name, name): value for name, value in row.items()}


_COLUMNS = {"arm": "variant", "cells": "runs"}


def folded(text: str) -> str:
    """Markdown in which each section (``## Title``) is a ``<details>`` block under its title, closed at first."""
    before, *sections = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    blocks = (
        f"<details>\n<summary>{escape(title)}</summary>\n\n{body.strip()}\n\n</details>\n\n"
        for title, body in zip(sections[::2], sections[1::2], strict=True)
    )
    return (before + "".join(blocks)).rstrip("\n") + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return str(value) if not isinstance(value, float) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"


def picture(file: str, words: str) -> list[str]:
    """Make the Markdown of a chart; no line without a file."""
    return [f"![{words}]({file})\n"] if file else []


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
