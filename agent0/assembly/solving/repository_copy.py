"""Part of the rim: a person's repository as a value. Nothing of it is run, followed or changed; git only lists."""

import hashlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent0.errors import ConfigError, DependencyError
from agent0.infra.storage.files import read_regular
from agent0.tools.paths import printable
from agent0.tools.snapshots import MOST_BYTES, MOST_FILES, is_inside
from agent0.verification.repositories.source_tree import LARGEST

GIT_S = 60.0
_AROUND = frozenset({".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "node_modules", "__pycache__"})
"""Folders that belong to tools, where no git says what is ignored."""
_RANGE = re.compile(r"([^\s:-][^\s:]{0,200}?)\.\.([^\s:.-][^\s:]{0,200})?")
_CAUTIOUS = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "safe.directory=*")
"""git writes no index, fetches nothing, prompts for nothing and calls no program, whoever owns the folder."""
_GONE = "it is gone"
_LINK, _MODULE = "120000", "160000"
"""git's modes of links and submodules."""


@dataclass(frozen=True)
class RepositoryCopy:
    """Regular files by path. ``left_out``: names with the reason. ``dirty``: paths that git has otherwise, or not at
    all. ``base``: the files of an earlier version, where two were named; then ``files`` are those of the later one."""

    folder: Path
    files: Mapping[str, bytes]
    left_out: Mapping[str, str] = field(default_factory=dict)
    dirty: tuple[str, ...] = ()
    base: Mapping[str, bytes] | None = None


def read_repository(folder: Path, versions: str = "") -> RepositoryCopy:
    """Read the files that git follows or does not ignore, of a folder without git all; of ``versions``, BASE..HEAD, the
    two that git has.

    Raises:
        ConfigError: there is no such folder, it is too large, or git has no such versions.
        DependencyError: git is not here, or refuses.
    """
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {folder}.", "", "Name the folder of a repository.")
    folder = folder.resolve()
    within = any((parent / ".git").exists() for parent in (folder, *folder.parents))
    if versions:
        if not within:
            raise ConfigError(f"{folder} has no versions.", "It is in no git repository.", "Leave --diff out.")
        return _of_versions(folder, versions)
    if not within or shutil.which("git") is None:
        return _copied(folder, dict(_walked(folder)))
    modes = _index(folder)
    names = _git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")
    reasons = {os.fsdecode(name): _reason(folder, os.fsdecode(name)) for name in names if name}
    submodules = {name: "it is a submodule" for name, (mode, _) in modes.items() if mode == _MODULE}
    copy = _copied(folder, {**reasons, **submodules})
    staged = _git(folder, "diff-index", "--cached", "--name-only", "--relative", "-z", "HEAD", "--", optional=True)
    dirty = {os.fsdecode(name) for name in staged.split(b"\0") if name}
    dirty |= {name for name, reason in reasons.items() if reason == _GONE}
    dirty |= {path for path, data in copy.files.items() if _blob(data, modes.get(path, ("", ""))[1]) is None}
    return RepositoryCopy(folder, copy.files, copy.left_out, tuple(sorted(dirty - set(submodules))))


def _blob(data: bytes, identity: str) -> str | None:
    """``identity`` where it is git's of ``data``; None where it is another's, or none."""
    kind = hashlib.sha256 if len(identity) == 64 else hashlib.sha1
    digest = kind(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    return identity if digest == identity else None


def _index(folder: Path) -> dict[str, tuple[str, str]]:
    """(mode, identity) of each file that git follows."""
    entries = {}
    for line in _git(folder, "ls-files", "-z", "--stage").split(b"\0"):
        head, _, name = line.partition(b"\t")
        if name:
            mode, identity, _ = head.decode().split(" ")
            entries[os.fsdecode(name)] = mode, identity
    return entries


def _walked(folder: Path) -> Iterator[tuple[str, str]]:
    """(path, why it is left out) of each file below a folder; no link is followed."""
    for above, folders, names in os.walk(folder):
        linked = [name for name in folders if Path(above, name).is_symlink()]
        folders[:] = sorted(
            name
            for name in folders
            if name not in _AROUND and name not in linked and not Path(above, name, "pyvenv.cfg").exists()
        )
        for name in sorted([*names, *linked]):
            path = os.path.relpath(os.path.join(above, name), folder)  # noqa: PTH118 - names may be no text
            yield path, _reason(folder, path)


def _reason(folder: Path, name: str) -> str:
    """Why a file is left out of the copy; empty where it is not."""
    if not is_inside(name.rstrip("/")) or printable(name) != name:
        return "its name is no path of printable text"
    try:
        status = os.lstat(folder / name)
    except OSError:
        return _GONE
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if not stat.S_ISREG(status.st_mode):
        return "it is another repository" if stat.S_ISDIR(status.st_mode) else "it is no regular file"
    return f"it has more than {LARGEST >> 20} MiB" if status.st_size > LARGEST else ""


def _copied(folder: Path, reasons: Mapping[str, str]) -> RepositoryCopy:
    """Read what has no reason to be left out."""
    names = [name for name, reason in reasons.items() if not reason]
    if len(names) > MOST_FILES:
        raise _too_large(folder, f"{len(names):,} files")
    files, size = {}, 0
    for name in sorted(names):
        try:
            files[name] = read_regular(folder / name, LARGEST)
        except OSError as error:
            raise DependencyError(f"The file {folder / name}", f"{error.strerror}.", "Make it readable.") from error
        size += len(files[name])
        if size > MOST_BYTES:
            raise _too_large(folder, f"more than {MOST_BYTES >> 20} MiB")
    left_out = {printable(name): reason for name, reason in reasons.items() if reason and reason != _GONE}
    return RepositoryCopy(folder, files, left_out)


def _too_large(folder: Path, size: str) -> ConfigError:
    why = f"It has {size}; {MOST_FILES:,} files and {MOST_BYTES >> 20} MiB are the most."
    return ConfigError(f"{folder} is too large.", why, "Name a part of it that has its own tests.")


def _of_versions(folder: Path, versions: str) -> RepositoryCopy:
    match = _RANGE.fullmatch(versions)
    if match is None:
        raise ConfigError(f"{versions[:80]!r} names no two versions.", "", "Write --diff BASE..HEAD.")
    base, head = (_commit(folder, name) for name in (match[1], match[2] or "HEAD"))
    (before, _), (after, left_out) = (_tree(folder, commit) for commit in (base, head))
    if before == after:
        raise ConfigError(f"{versions[:80]} changes nothing in {folder}.", "", "Name two versions that differ.")
    return RepositoryCopy(folder, after, left_out, base=before)


def _commit(folder: Path, name: str) -> str:
    text = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", optional=True)
    if not re.fullmatch(rb"[0-9a-f]{40,64}\n", text):
        raise ConfigError(f"{folder} has no version {name[:80]!r}.", "", "See: git log --oneline")
    return text.decode().strip()


def _tree(folder: Path, commit: str) -> tuple[dict[str, bytes], dict[str, str]]:
    """The regular files of a commit below ``folder``, and what is left out."""
    blobs, left_out, total = {}, {}, 0
    for line in _git(folder, "ls-tree", "-r", "-z", "-l", commit).split(b"\0"):
        head, _, raw = line.partition(b"\t")
        if not raw:
            continue
        (mode, _, identity, size), name = head.decode().split(), os.fsdecode(raw)
        kinds = {_LINK: "it is a link", _MODULE: "it is a submodule"}
        plain = is_inside(name) and printable(name) == name
        reason = kinds.get(mode, "" if plain else "its name is no path of printable text")
        if not reason and int(size) > LARGEST:
            reason = f"it has more than {LARGEST >> 20} MiB"
        if reason:
            left_out[printable(name)] = reason
            continue
        blobs[name], total = identity, total + int(size)
    if len(blobs) > MOST_FILES or total > MOST_BYTES:
        raise _too_large(folder, f"{len(blobs):,} files and {total >> 20} MiB")
    data = _git(folder, "cat-file", "--batch", lines="".join(f"{blob}\n" for blob in blobs.values()).encode())
    files, at = {}, 0
    for name in blobs:
        end = data.index(b"\n", at)
        length = int(data[at:end].rpartition(b" ")[2])
        files[name], at = data[end + 1 : end + 1 + length], end + length + 2
    return files, left_out


def _git(folder: Path, *arguments: str, optional: bool = False, lines: bytes = b"") -> bytes:
    """What git prints; nothing where it fails and the answer is ``optional``. Programs that a repository's own settings
    name are not called.

    Raises:
        DependencyError: it is not here, refuses, or takes too long.
    """
    settings = [part for pair in _SETTINGS for part in ("-c", pair)]
    command = [shutil.which("git") or "git", *settings, *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            command,
            cwd=folder,
            env=_CAUTIOUS,
            input=lines,
            capture_output=True,
            timeout=GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DependencyError("git", f"It cannot list {folder}: {type(error).__name__}.") from error
    if done.returncode and not optional:
        lines_ = done.stderr.decode(errors="replace").strip().splitlines()
        raise DependencyError("git", f"It refuses {folder}: {lines_[0][:200] if lines_ else done.returncode}")
    return b"" if done.returncode else done.stdout
