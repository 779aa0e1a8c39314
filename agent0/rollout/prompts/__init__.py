"""Prompts are text files: one per style, domain and role, and another for long tasks. Their version is the hash of
their content.

A line ``@system``, ``@user``, ``@assistant`` or ``@tool`` starts a turn; a file without one is a single user turn.
``{name}`` is a placeholder; filled-in text is never parsed again, so a question cannot forge turns or placeholders.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from agent0.errors import NotFoundError
from agent0.events.values import Turn

_mark = re.compile(r"^@(system|user|assistant|tool)\n", re.MULTILINE)
_placeholder = re.compile(r"\{(domain|family|level|question|tools|examples|answer)\}")

ANY = "any"
"""The folder for domains without one."""
FULL = "full"
"""The style that has every prompt."""
_LONG, _PLAIN = "_long", "_plain"
JUDGE = "judge"
"""The role of a model that is asked whether an answer is right. One prompt of a style is enough: it is in ``any``."""
CRITIQUE = "self_critique"
"""The question that a student is asked about its own answer, in ``any`` too. It follows the attempt's own turns."""


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


def styles() -> list[str]:
    """List the prompt styles: folders of this package."""
    return sorted(f.name for f in files(__name__).iterdir() if f.is_dir() and not f.name.startswith("_"))


def prompts() -> list[Prompt]:
    """Load every prompt that has a file of its own, sorted by name."""
    texts = files(__name__)
    folders = [
        f"{style}/{domain.name}" for style in styles() for domain in (texts / style).iterdir() if domain.is_dir()
    ]
    names = [f"{folder}/{file.name}" for folder in folders for file in (texts / folder).iterdir()]
    return [prompt(*name.removesuffix(".txt").split("/")) for name in sorted(names) if name.endswith(".txt")]


@lru_cache(maxsize=256)
def prompt(style: str, domain: str, role: str, *, long: bool = False, tools: bool = True) -> Prompt:
    """Load one prompt, the one for ``long`` tasks or for a student without ``tools`` where asked; a process reads its
    file once.

    A domain without a file of its own gets that of the folder ``any``, a style without one that of style ``full``.

    Raises:
        NotFoundError: there is no such style or role.
    """
    role = f"{role}{_LONG}" if long else role if tools else f"{role}{_PLAIN}"
    name = f"{style}/{domain}/{role}"
    if not re.fullmatch(r"[a-z0-9_-]+(/[a-z0-9_-]+){2}", name):
        raise NotFoundError(f"No prompt is named {name[:80]}.", "Names are lower-case letters, digits, _ and -.")
    folders = [f"{each}/{folder}" for each in (style, FULL) for folder in (domain, ANY)] if style in styles() else []
    candidates = (files(__name__) / folder / f"{role}.txt" for folder in folders)
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is None:
        raise NotFoundError(f"No prompt is named {name}.", f"Styles: {', '.join(styles())}.", "See: agent0 prompt list")
    text = file.read_text(encoding="utf-8")
    return Prompt(style, domain, role, text, hashlib.sha256(text.encode()).hexdigest()[:12])


def render(prompt: Prompt, values: Mapping[str, object]) -> tuple[Turn, ...]:
    """Fill ``values`` into the prompt's turns; a placeholder without a value stays as it is."""

    def fill(match: re.Match[str]) -> str:
        return str(values.get(match[1], match[0]))

    _, *parts = _mark.split(prompt.text if _mark.match(prompt.text) else f"@user\n{prompt.text}")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return tuple(
        Turn.model_validate({"role": role, "content": _placeholder.sub(fill, text.removesuffix("\n"))})
        for role, text in pairs
    )
