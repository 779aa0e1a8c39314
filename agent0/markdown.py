"""Tables of pages that commands write for people to read as text."""

from collections.abc import Iterable, Mapping
from typing import Any


def table(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Lines of Markdown, the first row's keys as the head, an empty line after; "Nothing." without a row."""
    held = list(rows)
    if not held:
        return ["Nothing.\n"]
    names = list(held[0])
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    return [*lines, *(f"| {' | '.join(_cell(one[name]) for name in names)} |" for one in held), ""]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
