"""Part of the rim: work folders between the artifact store and the real file system. Names in them were chosen by code
that nobody has read, so nothing is followed and nothing is ever written over."""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.read_models import reading
from agent0.errors import ConfigError, NotFoundError, OperationError
from agent0.events.values import Artifact
from agent0.ports.storage import Artifacts
from agent0.projections.runs import resolve
from agent0.projections.tool_calls import snapshot_after
from agent0.settings import Settings
from agent0.tools.snapshots import MOST_BYTES, MOST_FILES, Files, difference, entries, is_inside, load

EMPTY = "empty"
"""The word for the folder without files, which has no manifest."""
LEAST_PREFIX = 8
LONGEST_DIFF = 65_536
"""Bytes of a file whose lines are compared."""

_digest = re.compile(r"[0-9a-f]{8,64}")
_call = re.compile(r"([A-Za-z0-9_-]{1,64})#(\d{1,9}(?:\.\d{1,9})?)")


def find(settings: Settings, reference: str, run: str = "LAST") -> Artifact | None:
    """The manifest that a person means by ``reference``: a digest, a beginning of one, ``ATTEMPT#CALL`` of ``run``, or
    ``empty``. Calls are counted as the student counts them, from 1; a plan's steps are 3.1, 3.2; 0 is the start. None:
    the empty folder.

    Raises:
        ConfigError: it is none of these.
        NotFoundError: there is no such call, or no stored manifest begins like that, or more than one does.
    """
    call = _call.fullmatch(reference)
    digest = _of_call(settings, call[1], call[2], run) if call else reference
    if digest in ("", EMPTY):
        return None
    if not _digest.fullmatch(digest):
        fix = f"Give {LEAST_PREFIX} to 64 hexadecimal digits, ATTEMPT#CALL, or the word {EMPTY}."
        raise ConfigError(f"{reference[:80]!r} names no work folder.", fix=fix)
    store = artifact_store(settings)
    artifacts = [
        artifact
        for artifact in _beginning(settings.home / "artifacts", digest)
        if _manifest(artifact, store) is not None
    ]
    if len(artifacts) != 1:
        what = f"{'No' if not artifacts else 'More than one'} stored work folder begins with {digest!r}."
        raise NotFoundError(what, fix="`agent0 sandbox snapshots` lists those of a run.")
    return artifacts[0]


def _of_call(settings: Settings, attempt: str, call: str, run: str) -> str:
    with reading(settings) as db:
        return snapshot_after(db, resolve(db, run), attempt, call)


def _beginning(root: Path, digest: str) -> Iterator[Artifact]:
    for path in sorted((root / digest[:2]).glob(f"{digest[2:]}*")):
        if re.fullmatch(r"[0-9a-f]{62}", path.name):
            yield Artifact(sha256=digest[:2] + path.name, size=path.stat().st_size)


def _manifest(artifact: Artifact, store: Artifacts) -> dict[str, Artifact] | None:
    """Its entries; None where it is something else."""
    try:
        content = entries(artifact, store)
    except (ValueError, TypeError, AttributeError):
        return None
    fits = all(is_inside(name) and re.fullmatch("[0-9a-f]{64}", entry.sha256) for name, entry in content.items())
    return content if fits and len(content) <= MOST_FILES else None


def content(settings: Settings, manifest: Artifact | None) -> dict[str, bytes]:
    """Every file of a stored folder.

    Raises:
        NotFoundError, LogError: a file of it is missing or damaged.
    """
    return load(manifest, artifact_store(settings))


def compare(
    settings: Settings, before: Artifact | None, after: Artifact | None, *, text: bool = False
) -> list[dict[str, object]]:
    """What changed from one stored folder to another, in name order: path, kind, sizes; ``text`` adds ``diff`` with the
    lines of small text files."""
    return changes(artifact_store(settings), before, after, text=text)


def changes(
    store: Artifacts, before: Artifact | None, after: Artifact | None, *, text: bool = False
) -> list[dict[str, object]]:
    """List the files that differ between two folders in ``store``."""
    old, new = entries(before, store), entries(after, store)
    return [
        {**vars(change), **({"diff": _lines(change.path, old, new, store)} if text else {})}
        for change in difference(old, new)
    ]


def _lines(path: str, old: Mapping[str, Artifact], new: Mapping[str, Artifact], store: Artifacts) -> str | None:
    """A unified diff; None where one of the two is too long or no text."""
    texts = []
    for artifact in (old.get(path), new.get(path)):
        if artifact is not None and artifact.size > LONGEST_DIFF:
            return None
        try:
            texts.append((store.get(artifact) if artifact else b"").decode().splitlines())
        except UnicodeDecodeError:
            return None
    return "\n".join(difflib.unified_diff(texts[0], texts[1], f"a/{path}", f"b/{path}", lineterm=""))


def read(folder: Path) -> dict[str, bytes]:
    """A real folder as a value. Links are not followed.

    Raises:
        ConfigError: no folder, or one that holds something else than files, or too much.
    """
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {folder}.")
    out: dict[str, bytes] = {}
    left = MOST_BYTES
    for path in _files(folder):
        left -= path.stat().st_size
        if left < 0 or len(out) == MOST_FILES:
            why = f"It takes {MOST_FILES} files and {MOST_BYTES >> 20} MiB."
            raise ConfigError(f"{folder} does not fit into a work folder.", why)
        name = str(path.relative_to(folder))
        if not is_inside(name):
            raise ConfigError(
                f"{name[:80]!r} in {folder} cannot be in a work folder.", "Its name is no text, or too long."
            )
        out[name] = path.read_bytes()
    return out


def _files(folder: Path) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        else:
            raise ConfigError(
                f"{entry.path} is no plain file.", "Links and the like cannot be laid into a work folder."
            )


def write(files: Files, folder: Path) -> None:
    """Lay ``files`` into ``folder``, which is made, or empty.

    Raises:
        OperationError: there is something in it, it is no folder, or a name cannot be had here.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise OperationError(f"{folder} cannot be written into.", f"{error.strerror}.", "Name a new folder.") from error
    try:
        if os.listdir(root):  # noqa: PTH208 - the folder that was opened, whatever lies at its path by now
            raise OperationError(f"{folder} is not empty.", "Nothing is ever written over.", "Name a new folder.")
        for name, data in files.items():
            _write_one(root, name, data)
    finally:
        os.close(root)


def _write_one(root: int, name: str, data: bytes) -> None:
    """Each folder on the way is opened by the one before it, so that a link put there meanwhile leads nowhere."""
    *parents, last = name.split("/")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    opened: list[int] = []
    try:
        if not is_inside(name):
            raise OSError(0, "it leads out of the folder")
        at = root
        for part in parents:
            if not _has_folder(at, part):
                os.mkdir(part, 0o700, dir_fd=at)
            at = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            opened.append(at)
        with os.fdopen(os.open(last, flags, 0o600, dir_fd=at), "wb") as file:
            file.write(data)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no name of a file here"
        raise OperationError(f"The file {name[:80]!r} cannot be written.", f"{reason}.") from error
    finally:
        for fd in opened:
            os.close(fd)


def _has_folder(at: int, part: str) -> bool:
    try:
        os.stat(part, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
