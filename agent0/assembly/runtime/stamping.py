"""Part of the rim: who wrote an event, and when: the commit of the code and the clock."""

import re
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from agent0.config.distribution import installed_version
from agent0.events.base import Event, Recorded, record
from agent0.events.budgets import PREFIX

GIT_S = 5.0
"""Seconds that git has to say whether a checkout was changed."""


def recorded(run: str, event: Event) -> Recorded:
    """``event`` as a person's doing, to be appended."""
    return record(event, run=run, time=utc_now(), code_rev=code_rev())


def new_token(title: str, otherwise: str) -> str:
    """A run token from ``title``, ``otherwise`` where nothing of it may be part of one; never one of a budget's."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or otherwise
    apart = f"{otherwise}-{slug}" if f"{slug}-".startswith(PREFIX) else slug
    return f"{apart}-{secrets.token_hex(3)}"


@cache
def code_rev() -> str:
    """Version and, in a checkout, the commit that wrote an event: ``0.1.0+0f3c2d1abcde.dirty`` where files that git
    follows differ from it, ``.clean`` where none does, neither where git cannot be asked."""
    try:
        revision = installed_version()
    except PackageNotFoundError:
        revision = "source"
    root = Path(__file__).resolve().parents[3]
    commit = _commit(root / ".git")
    return f"{revision}+{commit[:12]}{_state(root)}" if commit else revision


@dataclass(frozen=True)
class CodeRevision:
    """What ``code_rev`` says, apart. ``commit`` is empty outside of a checkout; ``dirty`` None: not known."""

    version: str
    commit: str
    dirty: bool | None

    @classmethod
    def read(cls, text: str) -> "CodeRevision":
        """Of the text that an event has."""
        release, _, local = text.partition("+")
        commit, _, state = local.partition(".")
        return cls(release, commit, {"dirty": True, "clean": False}.get(state))


def _state(root: Path) -> str:
    """Whether the files of the checkout are those of its commit; empty where git does not say."""
    git = shutil.which("git")
    if git is None:
        return ""
    arguments = [git, "--no-optional-locks", "-C", str(root), "diff", "--quiet", "--no-ext-diff"]
    try:
        done = subprocess.run([*arguments, "HEAD", "--"], env={}, capture_output=True, timeout=GIT_S, check=False)  # noqa: S603 - no shell
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return {0: ".clean", 1: ".dirty"}.get(done.returncode, "")


def _commit(git: Path) -> str:
    """The commit that a checkout is at, empty where there is no checkout."""
    try:
        if git.is_file():  # a work tree besides the first
            git = Path(git.read_text().strip().removeprefix("gitdir: "))
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        shared = git / "commondir"
        refs = git / shared.read_text().strip() if shared.exists() else git
        name = head.removeprefix("ref: ")
        loose = refs / name
        return loose.read_text().strip() if loose.exists() else _packed(refs / "packed-refs", name)
    except OSError:
        return ""


def _packed(packed: Path, name: str) -> str:
    """The commit of a ref that git has packed with others."""
    lines = (line.split(" ") for line in packed.read_text().splitlines())
    return next((fields[0] for fields in lines if fields[1:] == [name]), "")


def utc_now() -> datetime:
    """Return the current time in UTC, which stamps events."""
    return datetime.now(UTC)
