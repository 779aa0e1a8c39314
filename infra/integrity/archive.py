"""A log outside its server: stored bodies in compressed segments, the artifacts they name, and a manifest with a digest
of each. A folder, or one file (.tar). What is half written never has the final name."""

import hashlib
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import zstandard
from pydantic import ConfigDict, FailFast, TypeAdapter, ValidationError

from agent0.errors import ConfigError, DependencyError, LogError, NotFoundError
from agent0.events.base import sha256
from agent0.events.values import Artifact
from agent0.infra.integrity.archive_place import MANIFEST, ArchivePlace, DamagedError, read
from agent0.infra.integrity.seal_journal import sync_folder
from agent0.provenance.artifact_refs import MOST_MARKS, marks, marks_at_once, may_name
from agent0.provenance.hash_chain import Seal

FORMAT = "agent0-archive/1"
EVENTS, BYTES = 5000, 16 << 20
"""Of a segment, uncompressed, at most (one event may be larger)."""
MOST = 1 << 16
"""Events of a segment that are read; more than were ever written into one."""
LARGEST_SEGMENT, LARGEST_MANIFEST = 64 << 20, 64 << 20
"""Bytes that are read: of a segment uncompressed, of a manifest."""
LARGEST_ARTIFACT, LARGEST_JSON = 4 << 30, 256 << 20
"""Bytes of an artifact; of one that may name others, which is parsed."""
_LAST = 10**12 - 1
_LINE = re.compile(rb'\{"seq":(\d{1,18}),"body":')
_FIRST = FailFast()
"""Ends at the first item that is wrong: a message for each would take more memory than they do."""
Bodies = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Segment:
    """Events from ``first`` to ``last`` in one file. ``bytes`` before compression; ``sha256`` of the file."""

    file: str
    first: int
    last: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What an archive holds. ``before`` and ``after`` are the seals' digests in front of its first event and behind its
    last one."""

    created: str
    """When the stream it comes from was made."""
    made: str
    code_rev: str
    first: int
    last: int
    before: str
    after: str
    segments: Annotated[tuple[Segment, ...], _FIRST]
    seals: Annotated[tuple[Seal, ...], _FIRST]
    runs: Annotated[tuple[str, ...], _FIRST]
    artifacts: Annotated[tuple[Artifact, ...], _FIRST]
    absent: Annotated[tuple[str, ...], _FIRST] = ()
    """Artifacts that events name and that were not there, or damaged."""
    redacted: Annotated[tuple[int, ...], _FIRST] = ()
    """Events left out to be forgotten: first and last sequence of each stretch in turn."""
    elsewhere: Annotated[tuple[int, ...], _FIRST] = ()
    """The same for events of other runs, where it is an archive of one."""
    withheld: int = 0
    """Artifacts left out with them."""
    settings: str = ""
    """Of a backup: TOML without any key."""
    format: str = FORMAT

    __pydantic_config__ = ConfigDict(extra="forbid")

    def to_json(self) -> bytes:
        """With a digest over everything else, so that it vouches for itself."""
        plain = {**asdict(self), "artifacts": [a.model_dump() for a in self.artifacts]}
        return json.dumps({**plain, "sha256": _digest(plain)}, indent=1, sort_keys=True).encode()


_FORM = TypeAdapter(Manifest)


def manifest_of(storage: ArchivePlace) -> Manifest:
    """What ``storage`` says it holds.

    Raises:
        NotFoundError: it is no archive. DamagedError: the manifest does not vouch for itself.
    """
    try:
        data = read(storage, MANIFEST, LARGEST_MANIFEST)
        if wrong := crowded(marks(data)):
            raise DamagedError(storage.path, [f"manifest.json has {wrong}"])
        raw = json.loads(data)
        stated = raw.pop("sha256")
        if raw.get("format") != FORMAT:
            why = f"It is of format {str(raw.get('format'))[:40]!r}; this Agent0 reads {FORMAT}."
            raise LogError(
                f"The archive {storage.path} cannot be read.", why, "Use the Agent0 that wrote it, or a newer one."
            )
        if stated != _digest(raw):
            raise DamagedError(storage.path, ["manifest.json does not have the digest that it states"])
        return _possible(_FORM.validate_json(json.dumps(raw), strict=True))
    except FileNotFoundError:
        raise NotFoundError(f"{storage.path} is no archive.", "It has no manifest.json.") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:200]
        raise DamagedError(storage.path, [f"manifest.json cannot be read: {where}: {first['msg']}"]) from error
    except RecursionError as error:
        raise DamagedError(storage.path, ["manifest.json cannot be read: it is nested too deeply"]) from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise DamagedError(storage.path, [f"manifest.json cannot be read: {str(error)[:300]}"]) from error


def _possible(manifest: Manifest) -> Manifest:
    """Raises ValueError where its numbers are those of no archive."""
    if not 1 <= manifest.first <= manifest.last + 1 <= min(_LAST, manifest.first + MOST * len(manifest.segments)):
        raise ValueError(f"it cannot hold events {manifest.first} to {manifest.last}")
    _require_segments(manifest)
    _require_artifacts(manifest.artifacts)
    for seqs in (manifest.redacted, manifest.elsewhere):
        if (
            len(seqs) % 2
            or list(seqs) != sorted(seqs)
            or (seqs and not manifest.first <= seqs[0] <= seqs[-1] <= manifest.last)
        ):
            raise ValueError("what was left out are no stretches of events")
    return manifest


def _require_segments(manifest: Manifest) -> None:
    due = manifest.first
    for segment in manifest.segments:
        if not due <= segment.first <= segment.last <= min(manifest.last, segment.first + MOST - 1):
            raise ValueError(f"no segment holds events {segment.first} to {segment.last}")
        if not 0 < segment.bytes <= LARGEST_SEGMENT:
            raise ValueError(f"events {segment.first} to {segment.last} cannot take {segment.bytes} bytes")
        if segment.file != _segment_name(segment.first, segment.last):
            raise ValueError(f"{segment.file[:80]!r} is no name of events {segment.first} to {segment.last}")
        due = segment.last + 1


def _require_artifacts(artifacts: tuple[Artifact, ...]) -> None:
    digests: set[str] = set()
    for artifact in artifacts:
        if artifact.sha256 in digests:
            raise ValueError(f"artifact {artifact.sha256[:12]!r} is listed twice")
        if not 0 <= artifact.size <= most_of(artifact):
            raise ValueError(
                f"artifact {artifact.sha256[:12]!r} of {artifact.size} bytes; at most {most_of(artifact)} are read"
            )
        digests.add(artifact.sha256)


def most_of(artifact: Artifact) -> int:
    """Bytes that an artifact in an archive may have."""
    return LARGEST_JSON if may_name(artifact) else LARGEST_ARTIFACT


def crowded(count: int) -> str:
    """What is wrong with JSON of ``count`` brackets and commas; empty where it is read."""
    return f"{count:,} brackets and commas, and at most {MOST_MARKS:,} are read" if count > MOST_MARKS else ""


def _segment_name(first: int, last: int) -> str:
    return f"segments/{first:012}-{last:012}.jsonl.zst"


def _digest(plain: Mapping[str, object]) -> str:
    return sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")))


def stretches(seqs: list[int]) -> tuple[int, ...]:
    """Ascending sequences as first and last of each unbroken stretch, one after the other."""
    out: list[int] = []
    for seq in seqs:
        if out and out[-1] == seq - 1:
            out[-1] = seq
        else:
            out += [seq, seq]
    return tuple(out)


# --- reading ----------------------------------------------------------------------------------------------------------


def bodies_of(storage: ArchivePlace, segment: Segment) -> tuple[Bodies, list[str]]:
    """The events of ``segment``, and what is wrong with it: they are what could be read of it."""
    where = f"{segment.file} (events {segment.first} to {segment.last})"
    try:
        packed = read(storage, segment.file, segment.bytes + (segment.bytes >> 7) + 1024)
    except FileNotFoundError:
        return [], [f"{where} is missing"]
    except DamagedError as error:
        return [], [*error.found]
    wrong = [] if hashlib.sha256(packed).hexdigest() == segment.sha256 else [f"{where} does not have its digest"]
    try:
        if zstandard.frame_content_size(packed) != segment.bytes:
            return [], [*wrong, f"{where} is not as large as the manifest says"]
        data = zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        return [], [*wrong, f"{where} cannot be unpacked: {error}"]
    bodies, more = _lines(data, segment, where)
    return bodies, wrong + more


def _lines(data: bytes, segment: Segment, where: str) -> tuple[Bodies, list[str]]:
    bodies: Bodies = []
    for number, line in enumerate(data.split(b"\n")[:-1]):
        match = _LINE.match(line)
        if not match or not line.endswith(b"}"):
            return bodies, [f"{where}: line {number + 1} is no event"]
        seq, due = int(match[1]), segment.first + number
        if seq != due:
            return bodies, [f"{where}: event {seq} stands where {due} should"]
        if wrong := crowded(marks(line)):
            return bodies, [f"{where}: event {seq} has {wrong}"]
        bodies.append((seq, line[match.end() : -1]))
    if len(bodies) != segment.last - segment.first + 1:
        return bodies, [f"{where} ends at event {bodies[-1][0] if bodies else segment.first - 1}"]
    return bodies, []


def events_of(storage: ArchivePlace, manifest: Manifest, after: int = 0, until: int = 0) -> Iterator[Bodies]:
    """Segment by segment what has after < seq <= until (0: to the end).

    Raises:
        DamagedError: a segment is not what it was.
    """
    for segment in manifest.segments:
        if segment.last <= after or (until and segment.first > until):
            continue
        bodies, wrong = bodies_of(storage, segment)
        if wrong:
            raise DamagedError(storage.path, wrong)
        yield [(seq, body) for seq, body in bodies if seq > after and not (until and seq > until)]


def artifact_name(artifact: Artifact) -> str:
    """Return the path of an artifact's content inside an archive."""
    return f"artifacts/{artifact.sha256[:2]}/{artifact.sha256[2:]}"


# --- writing ----------------------------------------------------------------------------------------------------------


@dataclass
class ArchiveWriter:
    """Writes an archive beside its final name. Close it without ``finish`` and nothing stays."""

    path: Path
    segments: list[Segment] = field(default_factory=list)
    _bodies: Bodies = field(default_factory=list)
    _size: int = 0

    def __enter__(self) -> "ArchiveWriter":
        if self.path.exists():
            raise ConfigError(f"{self.path} is there already.", fix="Name a file or folder that is not.")
        self._made = self.path.with_name(f".{self.path.name}.{uuid4().hex}")
        try:
            (self._made / "segments").mkdir(parents=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written.", f"{error.strerror}.") from error
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._made, ignore_errors=True)

    def add(self, seq: int, body: bytes) -> None:
        """One more event, right behind the last one."""
        if b"\n" in body:
            raise LogError(f"Event {seq} cannot be put into an archive.", "Its body has more than one line.")
        if self._bodies and (len(self._bodies) == EVENTS or self._size + len(body) > BYTES):
            self._cut()
        self._bodies.append((seq, body))
        self._size += len(body)

    def add_artifact(self, artifact: Artifact, data: bytes) -> None:
        """The content of an artifact.

        Raises:
            LogError: it is larger than what is read of an archive.
        """
        _require_readable(f"Artifact {artifact.sha256[:12]}", len(data), most_of(artifact))
        _require_parsed(f"Artifact {artifact.sha256[:12]}", marks_at_once(artifact, data) if may_name(artifact) else 0)
        _write(self._made / artifact_name(artifact), data)

    def close(self) -> tuple[Segment, ...]:
        """All events are there."""
        if self._bodies:
            self._cut()
        return tuple(self.segments)

    def finish(self, manifest: Manifest) -> bytes:
        """Give the archive its name; the manifest as written."""
        text = manifest.to_json()
        _require_readable("Its manifest", len(text), LARGEST_MANIFEST)
        _require_parsed("Its manifest", marks(text))
        _write(self._made / MANIFEST, text)
        if self.path.suffix == ".tar":
            self._pack()
        else:
            self._made.rename(self.path)
        sync_folder(self.path.absolute().parent)
        return text

    def _cut(self) -> None:
        first, last = self._bodies[0][0], self._bodies[-1][0]
        data = b"".join(b'{"seq":%d,"body":%b}\n' % entry for entry in self._bodies)
        packed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(data)
        name = _segment_name(first, last)
        _write(self._made / name, packed)
        self.segments.append(Segment(name, first, last, len(data), hashlib.sha256(packed).hexdigest()))
        self._bodies, self._size = [], 0

    def _pack(self) -> None:
        packed = self._made / "packed"
        with packed.open("wb") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                for path in sorted(p for p in self._made.rglob("*") if p.is_file() and p != packed):
                    tar.add(path, str(path.relative_to(self._made)))
            file.flush()
            os.fsync(file.fileno())
        packed.rename(self.path)


def _require_readable(what: str, size: int, most: int) -> None:
    if size > most:
        why = f"{what} has {size:,} bytes, and at most {most:,} are read of an archive."
        raise LogError("The archive could not be read again.", why, "Export one run at a time: --run RUN")


def _require_parsed(what: str, count: int) -> None:
    if why := crowded(count):
        fix = "Export one run at a time: --run RUN"
        raise LogError("The archive could not be read again.", f"{what} has {why} of an archive.", fix)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DependencyError(
            "disk space", f"{path}: {error.strerror}.", "Free some space, or name another place."
        ) from error
