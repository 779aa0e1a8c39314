"""A folder of documents that the user names: its text files, read whole, and why others are left out. Links are not
followed, so nothing outside it is read; hidden folders are left alone."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from agent0.errors import ConfigError, DependencyError
from agent0.infra.storage.files import read_regular, whole_file
from agent0.ports.storage import Document, DocumentFolder
from agent0.settings import DocumentsConfig

ENDINGS = (".txt", ".md", ".rst")
LARGEST, LARGEST_FOLDER = 16 << 20, 128 << 20
"""Bytes of a document, and of all of them."""
MOST = 20_000
"""Entries of a folder that are looked at."""
NAMED = 5
"""Documents that an error names."""
_binary = re.compile(r"[\0-\x08\x0e-\x1f\x7f-\x9f]")
_WIDE = (b"\xff\xfe", b"\xfe\xff")


def read_documents(folder: Path) -> DocumentFolder:
    """Read the text files below ``folder``, UTF-8, UTF-16 with its mark, or Latin-1; of equal ones the first.

    Raises:
        DependencyError: it is not there.
        ConfigError: it has no document, more than ``MOST`` entries, or more than ``LARGEST_FOLDER`` bytes of text.
    """
    if not folder.is_dir():
        raise DependencyError(f"The folder of documents {folder}", "It is not there.", "Name another: --documents")
    documents: dict[str, Document] = {}
    left_out: list[tuple[str, str]] = []
    size = 0
    for number, path in enumerate(_files(folder)):
        name = path.relative_to(folder).as_posix().encode(errors="replace").decode()
        document = _document(path, name) if number < MOST else _raise_large(folder, f"more than {MOST:,} files")
        if isinstance(document, str):
            left_out.append((name, document))
        elif same := documents.get(document.sha256):
            left_out.append((name, f"it is {same.name}"))
        else:
            documents[document.sha256] = document
            size += len(document.text)
        if size > LARGEST_FOLDER:
            _raise_large(folder, f"more than {LARGEST_FOLDER >> 20} MiB of text")
    if not documents:
        named = "".join(f" {name}: {why}." for name, why in left_out[:NAMED])
        why = f"{len(left_out)} files are left out.{named}" if left_out else "It is empty."
        raise ConfigError(f"{folder} has no documents.", why, f"Put text files into it: {', '.join(ENDINGS)}")
    ordered = tuple(documents.values())
    return DocumentFolder(folder.name, ordered, tuple(left_out), hashlib.sha256(_manifest(ordered)).hexdigest())


def require_same(folder: DocumentFolder, plan: DocumentsConfig, home: Path | None) -> None:
    """Check that ``folder`` is that of ``plan``; ``home`` keeps the digests of each file (``keep_manifest``).

    Raises:
        DependencyError: it is not; the documents that changed are named where that is known.
    """
    if plan.sha256 in ("", folder.sha256):
        return
    before = _kept(home, plan.sha256)
    after = {document.name: document.sha256 for document in folder.documents}
    changes = [
        f"{name} {'is gone' if name not in after else 'is new' if name not in before else 'has changed'}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    others = f", and {len(changes) - NAMED} more" if len(changes) > NAMED else ""
    digests = f"its sha256 is {folder.sha256[:12]}, that of the run's {plan.sha256[:12]}"
    why = f"{', '.join(changes[:NAMED])}{others}: {digests}." if before else f"It has changed: {digests}."
    fix = "Put the documents back that the run began with, or begin another run."
    raise DependencyError(f"The folder of documents {plan.folder}", why, fix)


def keep_manifest(folder: DocumentFolder, home: Path) -> None:
    """Write below ``home`` which documents ``folder`` has, so that one that changes can be named."""
    path = _path(home, folder.sha256)
    if not path.is_file():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(path) as fresh:
            fresh.write_bytes(_manifest(folder.documents))


def _raise_large(folder: Path, why: str) -> str:
    raise ConfigError(f"{folder} is too large.", f"It has {why}.", "Name a folder in it.")


def _files(folder: Path) -> Iterator[Path]:
    """Whatever is no folder, by path; hidden folders are left alone."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from (Path(place) / name for name in sorted([*names, *links]))


def _document(path: Path, name: str) -> Document | str:
    """The document at ``path``, or why it is left out."""
    if path.is_symlink():
        return "it is a link"
    if path.suffix.lower() not in ENDINGS or path.name.startswith("."):
        return f"its name does not end in {', '.join(ENDINGS)}"
    try:
        data = read_regular(path, LARGEST)
    except OSError as error:
        return error.strerror or str(error)
    text = _decoded(data)
    if text is None or _binary.search(text):
        return "it is no text"
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Document(name, text, hashlib.sha256(data).hexdigest()) if text.strip() else "it is empty"


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode("utf-16" if data.startswith(_WIDE) else "utf-8-sig")
    except UnicodeDecodeError:
        return None if data.startswith(_WIDE) else data.decode("latin-1")


def _manifest(documents: tuple[Document, ...]) -> bytes:
    return "".join(f"{document.sha256} {document.name}\n" for document in documents).encode()


def _path(home: Path, sha256: str) -> Path:
    return home / "questions" / f"documents-{sha256[:12]}.txt"


def _kept(home: Path | None, sha256: str) -> dict[str, str]:
    """Name -> digest of the documents of the folder with digest ``sha256``; empty where that is not known."""
    try:
        lines = _path(home, sha256).read_text(encoding="utf-8").splitlines() if home else []
    except (OSError, ValueError):
        return {}
    return {name: digest for digest, _, name in (line.partition(" ") for line in lines)}
