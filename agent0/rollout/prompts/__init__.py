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
from importlib import resources
from typing import get_args

from agent0.errors import NotFoundError
from agent0.events.values import Role, Turn

_mark = re.compile(r"^@(system|user|assistant|tool)\n", re.MULTILINE)
_placeholder = re.compile(r"\{(domain|family|level|question|tools|examples|answer)\}")

ANY = "any"
"""The folder for domains without one."""
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
    return sorted(f.name for f in resources.files(__name__).iterdir() if f.is_dir() and not f.name.startswith("_"))


def prompts() -> list[Prompt]:
    """Load all prompt files, sorted by style, domain and role."""
    folders = [(s, d.name) for s in styles() for d in (resources.files(__name__) / s).iterdir() if d.is_dir()]
    roles = sorted([*(f"{role}{suffix}" for role in get_args(Role) for suffix in ("", _LONG)), f"student{_PLAIN}"])
    by_role = [prompt(style, domain, role) for style, domain in sorted(folders) for role in roles]
    shared = [prompt(style, ANY, role) for style in styles() for role in (JUDGE, CRITIQUE)]
    return sorted([*by_role, *shared], key=lambda p: p.name)


@lru_cache(maxsize=256)
def prompt(style: str, domain: str, role: str, *, long: bool = False, tools: bool = True) -> Prompt:
    """Load one prompt, the one for ``long`` tasks or for a student without ``tools`` where asked; a process reads its
    file once.

    A domain without a file of its own gets that of the folder ``any``.

    Raises:
        NotFoundError: there is no such style or role.
    """
    role = f"{role}{_LONG}" if long else role if tools else f"{role}{_PLAIN}"
    name = f"{style}/{domain}/{role}"
    if not re.fullmatch(r"[a-z0-9_-]+(/[a-z0-9_-]+){2}", name):
        raise NotFoundError(f"No prompt is named {name[:80]}.", "Names are lower-case letters, digits, _ and -.")
    files = [resources.files(__name__) / style / folder / f"{role}.txt" for folder in (domain, ANY)]
    file = next((file for file in files if file.is_file()), None)
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
