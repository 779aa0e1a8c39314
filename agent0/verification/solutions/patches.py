"""What a student's work folder changes of a repository: the part that counts, as text, and without one of its hunks."""

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent0.tools.builtin.run_tests import PYTEST
from agent0.tools.snapshots import Files
from agent0.verification.repositories.seeded_defects import REVIEW
from agent0.verification.repositories.source_tree import is_test
from agent0.verification.solutions.repository_job import Verb

_SETTINGS = frozenset({"pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc", "noxfile.py", "Makefile"})
_SHADOWED = frozenset({*sys.stdlib_module_names, *PYTEST, "sitecustomize", "usercustomize"})
_LITTER = ("__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis")


@dataclass(frozen=True)
class Hunk:
    """Lines ``first`` to ``last`` of the new file ``path`` (from 0, ``last`` excluded), and the ``lines`` that stood in
    their place; of a file that is new or gone all of it."""

    path: str
    first: int
    last: int
    lines: tuple[bytes, ...]


def counts(verb: Verb, path: str, before: Files) -> bool:
    """Whether a change of ``path`` counts: of tests where tests are asked for, else of what decides nothing. Where it
    does not, the file stays as it was."""
    name, top = path.rpartition("/")[2], path.removeprefix("src/").partition("/")[0].removesuffix(".py")
    if any(part in _LITTER for part in path.split("/")):
        return False
    if path not in before and top in _SHADOWED:
        return False
    if verb == "test":
        return is_test(path) and name != "conftest.py"
    return path == REVIEW if verb == "review" else not is_test(path) and name not in _SETTINGS


def patched(verb: Verb, before: Files, work: Files) -> dict[str, bytes]:
    """The files of a repository with those changes of a work folder that count; a review changes none."""
    changed = [path for path in {*before, *work} if before.get(path) != work.get(path)]
    files = dict(before)
    for path in changed if verb != "review" else ():
        if counts(verb, path, before):
            files.pop(path, None)
            files |= {path: work[path]} if path in work else {}
    return files


def changed_paths(before: Files, after: Files) -> list[str]:
    """Paths of files that are new, gone or others, by name."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def unified(before: Files, after: Files) -> str:
    """The difference as text, as ``git diff`` writes it; of a file that is no text a line."""
    return "".join(_of_file(path, before.get(path), after.get(path)) for path in changed_paths(before, after))


def is_text(data: bytes) -> bool:
    """Whether a file can be shown line by line."""
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _of_file(path: str, old: bytes | None, new: bytes | None) -> str:
    names = (f"a/{path}" if old is not None else "/dev/null", f"b/{path}" if new is not None else "/dev/null")
    if not (is_text(old or b"") and is_text(new or b"")):
        return f"Binary files {names[0]} and {names[1]} differ\n"
    lines = [(data or b"").decode().splitlines(keepends=True) for data in (old, new)]
    text = difflib.unified_diff(lines[0], lines[1], *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in text)


def hunks(before: Files, after: Files) -> Iterator[Hunk]:
    """Every hunk by which ``after`` differs from ``before``."""
    for path in changed_paths(before, after):
        old, new = (files.get(path, b"").splitlines(keepends=True) for files in (before, after))
        if path not in before or path not in after:
            yield Hunk(path, 0, len(new), tuple(old))
            continue
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for kind, first, last, start, end in matcher.get_opcodes():
            if kind != "equal":
                yield Hunk(path, start, end, tuple(old[first:last]))


def without(parts: Sequence[Hunk], before: Files, after: Files) -> Mapping[str, bytes]:
    """Return the files ``after`` as they are without some of their hunks."""
    files = dict(after)
    for hunk in sorted(parts, key=lambda part: part.first, reverse=True):
        if hunk.path not in before:
            del files[hunk.path]
        else:
            lines = files.get(hunk.path, b"").splitlines(keepends=True)
            files[hunk.path] = b"".join([*lines[: hunk.first], *hunk.lines, *lines[hunk.last :]])
    return files
