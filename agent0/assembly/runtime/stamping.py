"""Part of the rim: who wrote an event, and when: the commit of the code and the clock."""

import re
import secrets
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from events.base import Event, Recorded, record
from events.budgets import PREFIX

if TYPE_CHECKING:
    pass


def recorded(run: str, event: Event) -> Recorded:
    """``event`` as a person's doing, to be appended."""
    return record(event, run=run, time=now(), code_rev=code_rev())


def new_token(title: str, otherwise: str) -> str:
    """A run token from ``title``, ``otherwise`` where nothing of it may be part of one; never one of a budget's."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or otherwise
    apart = f"{otherwise}-{slug}" if f"{slug}-".startswith(PREFIX) else slug
    return f"{apart}-{secrets.token_hex(3)}"


@cache
def code_rev() -> str:
    """Version and, in a checkout, the commit that wrote an event."""
    try:
        found = version("agent0")
    except PackageNotFoundError:
        found = "source"
    commit = _commit(Path(__file__).parents[3] / ".git")
    return f"{found}+{commit[:12]}" if commit else found


def _commit(git: Path) -> str:
    """The commit that a checkout is at, empty where there is no checkout or its ref is packed."""
    try:
        if git.is_file():  # a work tree besides the first
            git = Path(git.read_text().strip().removeprefix("gitdir: "))
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        shared = git / "commondir"
        refs = git / shared.read_text().strip() if shared.exists() else git
        return (refs / head.removeprefix("ref: ")).read_text().strip()
    except OSError:
        return ""


def now() -> datetime:
    """Return the current time in UTC, which stamps events."""
    return datetime.now(UTC)
