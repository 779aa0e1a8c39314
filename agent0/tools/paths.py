"""Checks file names in a work folder as a model writes them, and explains mistakes so that it can correct them."""

import difflib
from fnmatch import fnmatchcase

from agent0.events.values import ToolResult, ToolState
from agent0.settings import PolicyConfig
from agent0.tools.snapshots import MOST_BYTES, MOST_FILES, Files, is_inside, kept

_SHOWN = 30
"""Files that a message lists."""


def plain(path: str) -> str:
    """Normalise ``path``: without ``./`` in front, or ``/app/`` as programs name it, and ``/`` behind; empty for the
    folder itself."""
    if f"{path}/".startswith("/app/"):
        path = path.removeprefix("/app").lstrip("/")
    while path.startswith("./"):
        path = path[2:]
    return "" if path == "." else path.rstrip("/")


def printable(name: str) -> str:
    """A file's name as text that can be shown and stored, whatever bytes it has."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in name)


def misnamed(path: str) -> str:
    """Why ``path`` names no file inside a work folder, empty where it does."""
    if not path:
        return "path: that is the work folder itself. Name a file in it, like data/a.txt"
    if is_inside(path) and printable(path) == path:
        return ""
    return (
        f"path: {printable(path[:80])!r} is no path inside the work folder. Write it like data/a.txt, without .. or /"
    )


def missing(path: str, files: Files) -> str:
    """Why there is no file ``path``, with those there are; empty where it is."""
    if path in files:
        return ""
    if not path:
        return f"{misnamed(path)}. {listed(path, files)}"
    return misnamed(path) or f"path: there is no file {path[:200]}. {listed(path, files)}"


def listed(path: str, files: Files) -> str:
    """Describe the files that exist where ``path`` does not."""
    if not files:
        return "The work folder is empty."
    names = [printable(name) for name in sorted(files)]
    near = difflib.get_close_matches(path[:100], [name for name in names[:300] if len(name) <= 100], n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{hint}The files are: {', '.join(name[:80] for name in names[:_SHOWN])}{more}."


def unwritable(path: str, files: Files, policy: PolicyConfig) -> str:
    """Why a tool may not write ``path``, empty where it may."""
    if problem := misnamed(path):
        return problem
    if not any(fnmatchcase(path, pattern) for pattern in policy.paths):
        return f"path: {path} may not be written. What may: {', '.join(policy.paths) or 'nothing'}"
    above = next((name for name in files if path.startswith(f"{name}/")), "")
    if above:
        return f"path: {above} is a file, so nothing can be below it. Choose another folder."
    below = next((name for name in files if name.startswith(f"{path}/")), "")
    return f"path: {path} is a folder, with {printable(below)} in it. Choose another name." if below else ""


def overfull(files: Files) -> str:
    """Why a work folder cannot hold ``files``, empty where it can."""
    if not kept(files)[1]:
        return ""
    return f"The work folder would hold more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB. Remove something first."


def mistaken(text: str) -> ToolResult:
    """Make the result of a call whose mistake the model can correct."""
    return ToolResult(state=ToolState.ERROR, output=text)
