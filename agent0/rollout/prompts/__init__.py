"""Prompts are text files: one per style, domain and role, and another for long tasks. Their version is the hash of
their content.

A line ``@system``, ``@user``, ``@assistant`` or ``@tool`` starts a turn; a file without one is a single user turn.
``{name}`` is a placeholder; filled-in text is never parsed again, so a question cannot forge turns or placeholders.
A plugin adds prompts with ``@agent0.prompt_text("STYLE/DOMAIN/ROLE")`` on a function that returns the text. A text
with ``{question}`` in the place of a style is the student's prompt itself.
"""

import hashlib
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from agent0.errors import NotFoundError
from agent0.events.values import Turn
from agent0.registry import Registry, TakenError
from agent0.rollout.prompts.own_text import PLACEHOLDER, is_text, turns_of

_name = re.compile(r"[a-z0-9_-]+(/[a-z0-9_-]+){2}")

ANY = "any"
"""The folder for domains without one."""
FULL = "full"
"""The style that has every prompt."""
OWN = "own"
"""The style of a prompt that is given by its text."""
_LONG, _PLAIN = "_long", "_plain"
JUDGE = "judge"
"""The role of a model that is asked whether an answer is right. One prompt of a style is enough: it is in ``any``."""
JUDGE_ROW = "judge_row"
"""The role of a judge that compares an answer with that of a row of a file, in ``any`` too."""
READER = "reader"
"""The role of a judge that writes a function from its docstring, in ``any`` too."""
ABOUT_PASSAGE = "teacher_documents"
"""The role of a teacher that writes a question about a passage of a document, in ``any`` too."""
CRITIQUE = "self_critique"
"""The question that a student is asked about its own answer, in ``any`` too. It follows the attempt's own turns."""


Write = Callable[[], str]
_added = Registry[str, Write]("prompts", same=operator.is_)
"""Prompts of plugins: style/domain/role -> what returns the text."""


@dataclass(frozen=True)
class Prompt:
    """A prompt's text and version (first 12 hex digits of its sha256).

    ``role`` is that of its file: ``student_long`` is what the student reads of long tasks, ``student_plain`` what it
    reads where it has no tools.
    """

    style: str
    domain: str
    role: str
    text: str
    version: str

    @property
    def name(self) -> str:
        """``style/domain/role``."""
        return f"{self.style}/{self.domain}/{self.role}"


def prompt_text(name: str) -> Callable[[Write], Write]:
    """Decorate a function that returns the text of the prompt ``name``, ``STYLE/DOMAIN/ROLE``.

    Raises:
        ValueError: no such name can be.
        TakenError: there is a prompt of this name.
    """
    if not _name.fullmatch(name):
        raise ValueError(f"{name!r} is no STYLE/DOMAIN/ROLE of lower-case letters, digits, _ and -.")
    if _file_text(name) is not None:
        raise TakenError(f"two prompts are named {name}")
    return _added.adding(name, lambda function: function)


def styles() -> list[str]:
    """List the prompt styles: folders of this package, and those of plugins."""
    folders = {f.name for f in files(__name__).iterdir() if f.is_dir() and not f.name.startswith("_")}
    return sorted(folders | {name.partition("/")[0] for name in _added.all()})


def prompts() -> list[Prompt]:
    """Load every prompt that has a text of its own, sorted by name."""
    folders = [style for style in files(__name__).iterdir() if style.is_dir()]
    paths = [
        f"{style.name}/{domain.name}/{file.name}"
        for style in folders
        for domain in style.iterdir()
        if domain.is_dir()
        for file in domain.iterdir()
    ]
    names = {path.removesuffix(".txt") for path in paths if path.endswith(".txt")} | set(_added.all())
    return [prompt(*name.split("/")) for name in sorted(names)]


def prompt(style: str, domain: str, role: str, *, long: bool = False, tools: bool = True) -> Prompt:
    """Load one prompt, the one for ``long`` tasks or for a student without ``tools`` where asked.

    A domain without a text of its own gets that of the domain ``any``, a style without one that of style ``full``. A
    ``style`` that is a text is the student's prompt; other roles then get those of style ``full``.

    Raises:
        NotFoundError: there is no such style or role.
    """
    if is_text(style) and role == "student":
        return _of_text(OWN, domain, role, style)
    style = FULL if is_text(style) else style
    role = f"{role}{_LONG}" if long else role if tools else f"{role}{_PLAIN}"
    name = f"{style}/{domain}/{role}"
    if not _name.fullmatch(name):
        raise NotFoundError(f"No prompt is named {name[:80]}.", "Names are lower-case letters, digits, _ and -.")
    folders = [(each, folder) for each in (style, FULL) for folder in (domain, ANY)] if style in styles() else []
    texts = (_text(f"{each}/{folder}/{role}") for each, folder in folders)
    text = next((text for text in texts if text is not None), None)
    if text is None:
        raise NotFoundError(f"No prompt is named {name}.", f"Styles: {', '.join(styles())}.", "See: agent0 prompt list")
    return _of_text(style, domain, role, text)


def _of_text(style: str, domain: str, role: str, text: str) -> Prompt:
    return Prompt(style, domain, role, text, hashlib.sha256(text.encode()).hexdigest()[:12])


def _text(name: str) -> str | None:
    added = _added.all().get(name)
    return added() if added else _file_text(name)


@lru_cache(maxsize=256)
def _file_text(name: str) -> str | None:
    """A process reads each file once."""
    file = files(__name__) / f"{name}.txt"
    return file.read_text(encoding="utf-8") if file.is_file() else None


def render(prompt: Prompt, values: Mapping[str, object]) -> tuple[Turn, ...]:
    """Fill ``values`` into the prompt's turns; a placeholder without a value stays as it is."""

    def fill(match: re.Match[str]) -> str:
        return str(values.get(match[1], match[0]))

    return tuple(
        Turn.model_validate({"role": role, "content": PLACEHOLDER.sub(fill, text)})
        for role, text in turns_of(prompt.text)
    )
