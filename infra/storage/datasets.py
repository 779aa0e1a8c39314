"""Files of rows in a folder that the user names: found by name, read whole as text, known by digest. What a file is
(packed, Parquet, UTF-16) is recognised by its first bytes, CSV by its name."""

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent0.errors import ConfigError, DependencyError, NotFoundError, RequirementsError
from agent0.infra.storage.documents import read_documents, require_same
from agent0.infra.storage.eval_archive import eval_log
from agent0.infra.storage.files import read_regular
from agent0.infra.storage.mined_tasks import MinedFiles, is_mined, read_mined_tasks
from agent0.infra.storage.row_formats import arrow_rows, csv_rows, parquet_rows, saved_files
from agent0.ports.storage import FILE_MARK, Artifacts, BenchmarkFiles, Dataset, DocumentFolder, QuestionFile
from agent0.settings import DocumentsConfig, QuestionsConfig

LARGEST = 512 << 20
"""Bytes of a file, unpacked."""


class BenchmarkFolder(BenchmarkFiles):
    """The files of ``folder``, each read once; none where it is None."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._held: dict[str, Dataset] = {}

    def find(self, names: Sequence[str], benchmark: str, parts: Sequence[str] = ()) -> Dataset:
        """As ``BenchmarkFiles.find``."""
        if self._folder is None:
            fix = "Name the folder of its rows: benchmarks.folder, or AGENT0_BENCHMARKS"
            raise RequirementsError(f"No folder with rows of {benchmark} is named.", fix=fix)
        if benchmark not in self._held:
            self._held[benchmark] = find(self._folder, names, benchmark, parts)
        return self._held[benchmark]


class LocalQuestions(QuestionFile):
    """Files of questions and folders of documents on this machine. What was read with the digest that a run names is
    not read again. ``home``: where it is kept which documents a folder had."""

    def __init__(self, home: Path | None = None) -> None:
        self._read: dict[tuple[str, str], Dataset] = {}
        self._folders: dict[tuple[str, str], DocumentFolder] = {}
        self._files: dict[tuple[str, str], MinedFiles] = {}
        self._home = home

    def read(self, plan: QuestionsConfig) -> Dataset:
        """As ``QuestionFile.read``."""
        key = plan.file, plan.sha256
        if key not in self._read:
            require_questions(plan)
            path = Path(plan.file)
            rows = load(path)
            if plan.sha256 not in ("", rows.sha256):
                why = f"It has changed: its sha256 is {rows.sha256[:12]}, that of the run's {plan.sha256[:12]}."
                fix = "Put the file back that the run began with, or begin another run."
                raise DependencyError(f"The file of questions {path}", why, fix)
            if not plan.sha256:
                return rows
            self._read[key] = rows
        return self._read[key]

    def files(self, plan: QuestionsConfig) -> Artifacts:
        """As ``QuestionFile.files``."""
        key = plan.file, plan.heldout
        if key not in self._files:
            require_questions(plan)
            self._files[key] = MinedFiles([Path(name) for name in key if name])
        return self._files[key]

    def documents(self, plan: DocumentsConfig) -> DocumentFolder:
        """As ``QuestionFile.documents``."""
        key = plan.folder, plan.sha256
        if key not in self._folders:
            folder = read_documents(Path(plan.folder))
            require_same(folder, plan, self._home)
            if not plan.sha256:
                return folder
            self._folders[key] = folder
        return self._folders[key]


def require_questions(plan: QuestionsConfig, documents: DocumentsConfig | None = None) -> None:
    """Raises DependencyError where a file that ``plan`` names, or the folder of ``documents``, is not there."""
    named = [("file of questions", name) for name in (plan.file, plan.heldout)]
    for what, name in [*named, ("folder of documents", documents.folder if documents else "")]:
        if name and not Path(name).exists():
            raise DependencyError(f"The {what} {name}", "It is not there.", "Put it there, or name another one.")


def find(folder: Path, names: Sequence[str], what: str, parts: Sequence[str] = ()) -> Dataset:
    """Read the first of ``names``, or of files of the name ``what``, that is in ``folder``: as JSON lines, JSON or
    Parquet, packed by gzip or not; where none is, all of ``parts`` that are there, or in its folder ``what``.
    ``folder`` may be the file itself.

    Raises:
        NotFoundError: none is.
        ConfigError: it cannot be read. RequirementsError: it is Parquet, whose reader is not installed.
    """
    if folder.is_file():
        return load(folder)
    for path in _candidates(folder, names, what):
        if path.is_file():
            return load(path)
    if files := [file for part in sorted(parts) if (file := _part(folder, part, what))]:
        return _joined([load(file) for file in files], what)
    fix = f"Name their folder with --data or benchmarks.folder, or get them with: agent0 bench fetch {what}"
    also = f", or files as {parts[0]}" if parts else ""
    raise NotFoundError(f"No rows of {what} in {folder}.", f"Looked for: {', '.join(names)}{also}.", fix)


def _part(folder: Path, name: str, what: str) -> Path | None:
    places = (path for directory in (folder, folder / what) for path in _candidates(directory, (name,), ""))
    return next((path for path in places if path.is_file()), None)


def _joined(files: Sequence[Dataset], name: str) -> Dataset:
    """Several files as one, each below its name."""
    text = "".join(f"{FILE_MARK}{file.name}\n{file.text}" for file in files)
    digests = "".join(f"{file.name} {file.sha256}\n" for file in files)
    return Dataset(f"{name}, {len(files)} files", text, hashlib.sha256(digests.encode()).hexdigest())


def _candidates(folder: Path, names: Sequence[str], what: str) -> Iterator[Path]:
    for name in (*names, *([f"{what}.jsonl"] if what else [])):
        stem = name.removesuffix(".jsonl").removesuffix(".json")
        for ending in (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet"):
            yield folder / f"{stem}{ending}"


def load(path: Path) -> Dataset:
    """Read a whole file as text, a folder that Hugging Face's ``save_to_disk`` wrote, or one of mined tasks; what is no
    JSON becomes it.

    Raises:
        ConfigError: too large, damaged, or no text.
        RequirementsError: it is Parquet or such a folder, whose reader is not installed.
    """
    try:
        if path.is_dir():
            return read_mined_tasks(path) if is_mined(path) else _saved(path)
        data = read_regular(path, LARGEST)
        return Dataset(path.name, _text(data, path.name), hashlib.sha256(data).hexdigest())
    except ImportError as error:
        fix = "make setup EXTRAS=data. Or: pip install pyarrow"
        raise RequirementsError(f"{path.name} is read by pyarrow.", "Not installed: pyarrow.", fix) from error
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as error:
        fix = "It must be UTF-8 text (JSON, CSV), Parquet or a log of Inspect, or that packed by gzip."
        raise ConfigError(f"{path} cannot be read.", f"{error}.", fix) from error


def _saved(folder: Path) -> Dataset:
    """A saved data set, known by the digests of its files."""
    files = saved_files(folder)
    if sum(path.stat().st_size for path in files) > LARGEST:
        raise ValueError(f"more than {LARGEST >> 20} MiB")
    contents = [read_regular(path, LARGEST) for path in files]
    digests = "".join(
        f"{path.name} {hashlib.sha256(data).hexdigest()}\n" for path, data in zip(files, contents, strict=True)
    )
    return Dataset(folder.name, arrow_rows(contents), hashlib.sha256(digests.encode()).hexdigest())


def _text(data: bytes, name: str) -> str:
    if data.startswith(_GZIP):
        return _text(_unpacked(data), name)
    if data.startswith(_ZIP):
        return eval_log(data, LARGEST)
    if data.startswith(_PARQUET):
        return parquet_rows(data, LARGEST)
    text = data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig")
    return csv_rows(text, LARGEST) if name.lower().removesuffix(".gz").endswith((".csv", ".tsv")) else text


_GZIP, _ZIP, _PARQUET, _UTF16 = b"\x1f\x8b", b"PK\x03\x04", b"PAR1", (b"\xff\xfe", b"\xfe\xff")


def _unpacked(data: bytes) -> bytes:
    """All members of a gzip file, at most ``LARGEST`` bytes of them."""
    plain = b""
    while data:
        unpacker = zlib.decompressobj(wbits=31)
        plain += unpacker.decompress(data, LARGEST - len(plain) + 1)
        if len(plain) > LARGEST:
            raise ValueError(f"more than {LARGEST >> 20} MiB unpacked")
        if not unpacker.eof:
            raise EOFError("it ends in the middle")
        data = unpacker.unused_data.lstrip(b"\0")  # padding of tape blocks, which gzip itself allows
    return plain
