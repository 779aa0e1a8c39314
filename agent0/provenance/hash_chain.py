"""The hash chain of the log: stored bodies are hashed in segments, and each checkpoint's digest covers the one before.

Reading along shows what was changed, removed, moved or cut off, and where.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from agent0.events.alarms import LOG, LogSealed
from agent0.events.base import effect_id

Problem = Literal[
    "changed", "swapped", "missing", "unreadable", "truncated", "seal", "replaced", "gone", "hidden", "foreign"
]

_ENDS = ("RunFinished", "RunCancelled", "RunPaused", "RunFailed", "ExperimentFinished")
"""After these nothing more may come for long, so they are sealed at once."""
_HEAD = re.compile(rb'\{"id":"[^"\\]{1,200}","type":"(\w{1,80})"')


@dataclass(frozen=True)
class LogMismatch:
    """Something that does not match in the events from ``first`` to ``last``; ``told`` describes it for users."""

    problem: Problem
    first: int
    last: int
    message: str

    @property
    def where(self) -> str:
        """The place as text: ``event 7``, or ``events 7 to 9``."""
        return f"event {self.first:,}" if self.first == self.last else f"events {self.first:,} to {self.last:,}"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(frozen=True)
class Seal:
    """A hash-chain checkpoint (``LogSealed``) with its position in the log."""

    seq: int
    first: int
    last: int
    sha256: str
    previous: str = ""
    created: str = ""


def kind_of(body: bytes) -> str:
    """The event class name in the head of a stored body; empty where none can be read."""
    head = _HEAD.match(body)
    return head[1].decode() if head else ""


def digest_of(body: bytes, kind: str = "") -> bytes:
    """The sha256 of a stored body (32 bytes); for a redacted one the digest recorded in its place."""
    if (kind or kind_of(body)) == "EventRedacted" and (kept := _data(body).get("sha256")):
        return bytes.fromhex(_digest(kept)) or bytes(32)
    return sha256(body).digest()


def segment_digest(previous: str, first: int, digests: Iterable[bytes | None]) -> str:
    """The digest of a segment from ``first`` on: over the previous checkpoint's, then each sequence (8 bytes, highest
    first) with the digest of its body."""
    rolling = sha256(previous.encode(errors="surrogatepass"))  # a stranger's may be no Unicode
    for seq, digest in enumerate(digests, first):
        rolling.update(seq.to_bytes(8, "big") + (digest or b""))
    return rolling.hexdigest()


def seal_of(seq: int, body: bytes) -> Seal | None:
    """Read a stored body as a hash-chain checkpoint; None for any other event.

    A run cannot write one: its token is not the log's.
    """
    if kind_of(body) != "LogSealed":
        return None
    raw = _raw(body)
    if raw.get("run") != LOG:
        return None
    try:
        sealed = LogSealed.model_validate(raw.get("data"))
    except ValueError:
        return None
    return Seal(seq, sealed.first, sealed.last, sealed.sha256, sealed.previous, sealed.created)


def seal_id(previous: str, first: int, created: str) -> str:
    """The id of a checkpoint, the same in every process that seals from ``first`` on."""
    return effect_id(f"{created}/{previous}", "seal_log", first)


@dataclass
class Chain:
    """Reads stored bodies in order and verifies each hash-chain checkpoint it meets.

    ``last`` is the last sequence read, ``sealed`` the last one under a checkpoint, ``digest`` what that checkpoint
    says. ``open`` are the digests of the events after ``sealed``, None where one could not be read.
    """

    last: int = 0
    digest: str = ""
    sealed: int = field(default=0, init=False)
    newest: Seal | None = None
    met: list[Seal] = field(default_factory=list)
    fresh: int = 0
    """Events after ``sealed`` that are no seals."""
    rest: int = 0
    """Where a run last came to rest, or an experiment to its end."""
    redacted: list[int] = field(default_factory=list)
    open: list[bytes | None] = field(default_factory=list)
    _adopted: dict[int, str] = field(default_factory=dict)
    _meant: list[bool] = field(default_factory=list)
    _floor: int = 0

    def __post_init__(self) -> None:
        self.sealed = self._floor = self.last

    @classmethod
    def after(cls, seal: Seal) -> "Chain":
        """Start right behind what ``seal`` covers."""
        return cls(last=seal.last, digest=seal.sha256, newest=seal)

    def feed(self, seq: int, body: bytes) -> list[LogMismatch]:
        """Read one more event; returns what is wrong with it, or with the segment that it closes."""
        differences = self.skip(seq - 1, "missing", "not in the log") if seq > self.last + 1 else []
        kind = kind_of(body)
        if kind == "LogContinued" and not self.open:
            differences += self._go_on(seq, _digest(_data(body).get("seal")))
        self.open.append(digest_of(body, kind))
        self._meant.append(kind != "LogSealed")
        self.fresh += self._meant[-1]
        self.last = seq
        if kind in _ENDS:
            self.rest = seq
        elif kind == "EventRedacted":
            self.redacted.append(seq)
        elif kind == "LogSealed" and (seal := seal_of(seq, body)):
            differences += self._meet(seal)
        return differences

    def skip(self, until: int, problem: Problem, message: str) -> list[LogMismatch]:
        """Continue behind ``until`` without having read the events before it."""
        first = self.last + 1
        self.open += [None] * (until - self.last)
        self._meant += [True] * (until - self.last)
        self.last = until
        return [LogMismatch(problem, first, until, message)]

    @property
    def wants_seal(self) -> bool:
        """Whether a run came to rest, or an experiment to its end, since the last checkpoint."""
        return self.rest > self.sealed

    def adopt(self, seal: Seal) -> None:
        """Count as sealed what ``seal`` covers, which is stored but not read yet."""
        self._adopted[seal.last] = seal.sha256
        self._cover(seal)

    def proposal(self, most: int = 0) -> LogSealed:
        """The next checkpoint over everything read since the last one, or over its first ``most`` events."""
        part = self.open[:most] if most else self.open
        first, last = self.sealed + 1, self.sealed + len(part)
        digest = segment_digest(self.digest, first, part)
        return LogSealed(first=first, last=last, sha256=digest, previous=self.digest, events=len(part))

    def close(self) -> str:
        """The digest over everything read so far: the last checkpoint's, where nothing came after what it covers."""
        return segment_digest(self.digest, self.sealed + 1, self.open) if self.open else self.digest

    def _go_on(self, seq: int, seal: str) -> list[LogMismatch]:
        """A stream that continues an archive says where that ended."""
        before, self.digest = self.digest, self.digest or seal
        message = f"it goes on from {seal[:12]}, not from {before[:12]}"
        return [LogMismatch("seal", seq, seq, message)] if before not in ("", seal) else []

    def _meet(self, seal: Seal) -> list[LogMismatch]:
        self.met.append(seal)
        if seal.last <= self._floor:  # of the time before this chain begins
            return []
        if self._adopted.pop(seal.last, None) == seal.sha256:
            self.newest = seal
            return []
        differences = self._compare(seal)
        if not self.sealed < seal.first <= seal.last < seal.seq:
            return differences  # it covers nothing that could be counted as sealed
        self._cover(seal)
        return differences

    def _compare(self, seal: Seal) -> list[LogMismatch]:
        begin = self.sealed + 1
        if not begin <= seal.first <= seal.last < seal.seq:
            why = f"the seal covers {seal.first:,} to {seal.last:,}, but {begin:,} is the next"
            return [LogMismatch("seal", seal.seq, seal.seq, why)]
        differences = []
        if seal.first > begin:
            differences.append(
                LogMismatch("seal", begin, seal.first - 1, f"the seal over them is gone; the next is {seal.seq:,}")
            )
        elif seal.previous != self.digest and (self.digest or not self._floor):
            why = f"the seal goes on from {seal.previous[:12] or 'nothing'}, not from {self.digest[:12] or 'nothing'}"
            differences.append(LogMismatch("seal", seal.seq, seal.seq, why))
        part = self.open[seal.first - begin : seal.last - self.sealed]
        if None not in part and segment_digest(seal.previous, seal.first, part) != seal.sha256:
            differences.append(
                LogMismatch("changed", seal.first, seal.last, f"they differ from the seal at {seal.seq:,}")
            )
        return differences

    def _cover(self, seal: Seal) -> None:
        count = seal.last - self.sealed
        self.fresh -= sum(self._meant[:count])
        del self.open[:count], self._meant[:count]
        self.sealed, self.digest, self.newest = seal.last, seal.sha256, seal


def localise(
    segment: LogMismatch, log_digests: Mapping[int, bytes], copy_digests: Mapping[int, bytes]
) -> list[LogMismatch]:
    """Find which events of a changed ``segment`` differ: ``log_digests`` are the log's digests, ``copy_digests`` those
    of a copy.

    Returns the segment itself where the copy does not show it.
    """
    changed = [
        seq
        for seq in range(segment.first, segment.last + 1)
        if seq in copy_digests and log_digests.get(seq) != copy_digests[seq]
    ]
    by_digest = {copy_digests[seq]: seq for seq in changed}
    differences = []
    for seq in changed:
        other = by_digest.get(log_digests.get(seq, b""), 0)
        problem: Problem = "swapped" if other else "changed"
        message = f"event {other:,} stands in its place" if other else "it differs from the copy in the tables"
        differences.append(LogMismatch(problem, seq, seq, message))
    return differences or [segment]


def compare_seals(kept: Sequence[Seal], log_seals: Mapping[int, Seal], first: int, last: int) -> list[LogMismatch]:
    """Compare checkpoints noted outside the log with what the log (from ``first`` to ``last``) has at their places."""
    out = []
    for seal in kept:
        there = log_seals.get(seal.seq)
        if seal.seq < first or there == seal:
            continue
        if seal.seq > last:
            out.append(LogMismatch("truncated", last + 1, seal.seq, f"a seal was noted at {seal.seq:,}"))
            break
        message = "it is not the seal that was noted in the data folder" if there else "the seal noted here is gone"
        out.append(LogMismatch("seal", seal.seq, seal.seq, message))
    return out


def _digest(value: object) -> str:
    """``value`` where it is a sha256 as hex digits; empty otherwise."""
    return value if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else ""


def _data(body: bytes) -> dict[str, object]:
    data = _raw(body).get("data")
    return data if isinstance(data, dict) else {}


def _raw(body: bytes) -> dict[str, object]:
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return raw if isinstance(raw, dict) else {}
