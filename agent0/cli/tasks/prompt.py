"""Prompts: list, show, compare. A prompt's version is the hash of its text."""

import difflib
from typing import Annotated

import typer

from agent0.cli import console
from agent0.errors import ConfigError
from agent0.rollout.prompts import prompt, prompts

Name = Annotated[str, typer.Argument(metavar="NAME", help="style/domain/role, for example compact/math/student.")]


def list_(as_json: console.Json = False) -> None:
    """List every prompt with its version and its length."""
    rows = [{"prompt": p.name, "version": p.version, "characters": len(p.text)} for p in prompts()]
    console.table(rows, as_json)


def show(name: Name, as_json: console.Json = False) -> None:
    """Print the text of one prompt as models read it."""
    text, version = _text(name)
    if as_json:
        console.data({"prompt": name, "version": version, "text": text})
    else:
        console.text(text)


def diff(old: Name, new: Name, as_json: console.Json = False) -> None:
    """How two prompts differ, as a unified diff."""
    (before, _), (after, _) = _text(old), _text(new)
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm=""))
    if as_json:
        console.data({"old": old, "new": new, "same": before == after, "diff": lines})
    else:
        console.text("\n".join(lines) if lines else "They are the same.")


def _text(name: str) -> tuple[str, str]:
    parts = name.split("/")
    if len(parts) != 3:
        raise ConfigError(f"{name[:80]!r} names no prompt.", "Names read style/domain/role.", "See: agent0 prompt list")
    template = prompt(parts[0], parts[1], parts[2])
    return template.text, template.version
