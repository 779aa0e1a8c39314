"""How Markdown pages are made: a module gathers values, a template beside it holds the words."""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent0.report.conclusions import conclusion
from agent0.report.markdown.tables import variants_named

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent


def render(template: str, folder: Path = FOLDER, **values: Any) -> str:
    """Make the page of ``template``, which lies in ``folder``; it may import ``parts.md.jinja`` of this folder."""
    return _environment(folder).get_template(template).render(**values).strip("\n") + "\n"


@cache
def _environment(folder: Path) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # commands that make no page do without

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
