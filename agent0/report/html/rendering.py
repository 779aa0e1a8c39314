"""How pages are made: everything inline, every text escaped, nothing fetched from anywhere."""

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from agent0.report.columns import shown_iteration
from agent0.report.conclusions import conclusion
from agent0.state.run_state import first_student

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent
NOTHING = "\N{EN DASH}"
LONGEST = 4000
"""Characters of a text by a model that are shown; the log has the rest."""


def render(template: str, **values: Any) -> str:
    """The page that ``template`` of this folder makes."""
    return with_contents(environment().get_template(template).render(**values))


@cache
def environment(*folders: Path) -> "Environment":
    """Templates of ``folders`` and of this one, every text escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - commands that make no page do without

    templates = Environment(
        loader=FileSystemLoader([*folders, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(share=share, number=number, cut=cut, points=points, p_value=p_value, conclusion=conclusion)
    templates.filters.update(iteration=shown_iteration, counted=counted, words=as_words, began=first_student)
    return templates


CONTENTS = "<!-- contents -->"
_heading = re.compile(r"<h2>(.*?)</h2>", re.DOTALL)


def with_contents(page: str) -> str:
    """Give each heading of the second level an anchor, and list them where ``CONTENTS`` stands. A text of a model is no
    heading, since it is escaped."""
    anchors: dict[str, str] = {}

    def named(heading: re.Match[str]) -> str:
        heading_text = re.sub(r"<[^>]+>", "", heading[1])
        name = re.sub(r"[^a-z0-9]+", "-", heading_text.lower()).strip("-") or "part"
        name = name if name not in anchors else f"{name}-{len(anchors)}"
        anchors[name] = heading_text
        return f'<h2 id="{name}">{heading[1]}</h2>'

    text = _heading.sub(named, page)
    links = " ".join(f'<a href="#{name}">{heading_text}</a>' for name, heading_text in anchors.items())
    return text.replace(CONTENTS, f'<nav class="contents">{links}</nav>' if anchors else "", 1)


def _shown(value: Any) -> Any:
    """None is a dash, and text is what is left of it (``visible``)."""
    if value is None:
        return NOTHING
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)


def visible(text: str) -> str:
    """``text`` without the characters that browsers obey rather than show: direction marks, controls."""
    if text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co"))


def share(value: float | None) -> str:
    """Format a share as a percentage, 0.5 as 50.0%; a dash for None."""
    return NOTHING if value is None else f"{value:.1%}"


def number(value: float | None) -> str:
    """Three digits where they say something; whole numbers from 100 on."""
    if value is None:
        return NOTHING
    return f"{value:.3f}" if isinstance(value, float) and abs(value) < 100 else f"{value:,.0f}"


def as_words(name: str | None) -> str | None:
    """A name of code as it is read: ``rolled_back`` as rolled back."""
    return name and name.replace("_", " ")


def counted(n: int | None, noun: str) -> str:
    """``n`` of what ``noun`` names, in the plural unless it is one."""
    return f"{NOTHING if n is None else f'{n:,}'} {noun}{'' if n == 1 else 's'}"


def cut(text: str | None) -> str:
    """Cut a text of a model to the length that is shown."""
    text = text or ""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def points(value: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    return NOTHING if value is None else f"{100 * value:+.1f}"


def p_value(value: float) -> str:
    """Format a p value as ``p = 0.03`` or ``p < 0.001``."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
