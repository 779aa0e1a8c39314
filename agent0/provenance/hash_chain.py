"""The log's own evidence: stored bodies are hashed in segments, each seal's digest covers the one before it, and who
reads along notices what was changed, taken out, put elsewhere or cut off, and where."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from events.alarms import LOG, LogSealed
from events.base import effect_id

Problem = Literal[
    "changed", "swapped", "missing", "unreadable", "truncated", "seal", "replaced", "gone", "hidden", "foreign"
]

_ENDS = ("RunFinished", "RunCancelled", "RunPaused", "ExperimentFinished")
"""After these nothing more may come for long, so they are sealed at once."""
_HEAD = re.compile(rb'\{"id":"[^"\\]{1,200}","type":"(\w{1,80})"')


@dataclass(frozen=True)
class Difference:
    """Something that is not as it was: in the events from ``first`` to ``last``. ``told`` says what, for people."""

    problem: Problem
    first: int
    last: int
    told: str

    @property
    def where(self) -> str:
        """``event 7``, or ``events 7 to 9``."""
        return f"event {self.first:,}" if self.first == self.last else f"events {self.first:,} to {self.last:,}"

    def __str__(self) -> str:
        return f"{self.where}: {self.told}"


@dataclass(frozen=True)
class Seal:
    """A ``LogSealed`` and where it stands."""

    seq: int
    first: int
    last: int
    sha256: str
    previous: str = ""
    created: str = ""


def kind_of(body: bytes) -> str:
    """Class name in the head of a stored body; empty where there is none to be seen."""
    found = _HEAD.match(body)
    return found[1].decode() if found else ""


def digest_of(body: bytes, kind: str = "") -> bytes:
    """sha256 of a stored body (32 bytes); of one that was taken out, the digest that stands in its place."""
    if (kind or kind_of(body)) == "EventRedacted" and (kept := _data(body).get("sha256")):
        return bytes.fromhex(_digest(kept)) or bytes(32)
    return sha256(body).digest()


def segment_digest(previous: str, first: int, digests: Iterable[bytes | None]) -> str:
    """What a seal says of the events from ``first`` on: a digest over the previous seal's, then each sequence (8 bytes,
    highest first) with the digest of its body."""
    rolling = sha256(previous.encode(errors="surrogatepass"))  # a stranger's may be no Unicode
    for seq, digest in enumerate(digests, first):
        rolling.update(seq.to_bytes(8, "big") + (digest or b""))
    return rolling.hexdigest()


def seal_of(seq: int, body: bytes) -> Seal | None:
    """The seal that a stored body is; None for any other event. A run cannot seal: its token is not the log's."""
    if kind_of(body) != "LogSealed":
        return None
    raw = _raw(body)
    if raw.get("run") != LOG:
        return None
    try:
        told = LogSealed.model_validate(raw.get("data"))
    except ValueError:
        return None
    return Seal(seq, told.first, told.last, told.sha256, told.previous, told.created)


def seal_id(previous: str, first: int, created: str) -> str:
    """Every process that seals from ``first`` on names its seal alike."""
    return effect_id(f"{created}/{previous}", "seal_log", first)


@dataclass
class Chain:
    """Reads stored bodies in order and checks each seal that it meets against what it read.

    ``last`` is the last sequence read, ``sealed`` the last one under a seal, ``digest`` what that seal says. ``open``
    are the digests of the events after ``sealed``, None where one could not be read.
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
        """Goes on right behind what ``seal`` covers."""
        return cls(last=seal.last, digest=seal.sha256, newest=seal)

    def feed(self, seq: int, body: bytes) -> list[Difference]:
        """Read one more event; what is wrong with it, or with the segment it seals."""
        found = self.skip(seq - 1, "missing", "not in the log") if seq > self.last + 1 else []
        kind = kind_of(body)
        if kind == "LogContinued" and not self.open:
            found += self._go_on(seq, _digest(_data(body).get("seal")))
        self.open.append(digest_of(body, kind))
        self._meant.append(kind != "LogSealed")
        self.fresh += self._meant[-1]
        self.last = seq
        if kind in _ENDS:
            self.rest = seq
        elif kind == "EventRedacted":
            self.redacted.append(seq)
        elif kind == "LogSealed" and (seal := seal_of(seq, body)):
            found += self._meet(seal)
        return found

    def skip(self, until: int, problem: Problem, told: str) -> list[Difference]:
        """Go on behind ``until`` without having read what is before it."""
        first = self.last + 1
        self.open += [None] * (until - self.last)
        self._meant += [True] * (until - self.last)
        self.last = until
        return [Difference(problem, first, until, told)]

    @property
    def due(self) -> bool:
        """Whether a run came to rest, or an experiment to its end, since the last seal."""
        return self.rest > self.sealed

    def adopt(self, seal: Seal) -> None:
        """Count as sealed what ``seal``, which is stored but not read yet, covers."""
        self._adopted[seal.last] = seal.sha256
        self._cover(seal)

    def proposal(self, most: int = 0) -> LogSealed:
        """The next seal over everything read since the last one, or over its first ``most`` events."""
        part = self.open[:most] if most else self.open
        first, last = self.sealed + 1, self.sealed + len(part)
        digest = segment_digest(self.digest, first, part)
        return LogSealed(first=first, last=last, sha256=digest, previous=self.digest, events=len(part))

    def close(self) -> str:
        """The digest over everything read so far: the last seal's, where nothing came after what it covers."""
        return segment_digest(self.digest, self.sealed + 1, self.open) if self.open else self.digest

    def _go_on(self, seq: int, seal: str) -> list[Difference]:
        """A stream that continues an archive says where that ended."""
        before, self.digest = self.digest, self.digest or seal
        told = f"it goes on from {seal[:12]}, not from {before[:12]}"
        return [Difference("seal", seq, seq, told)] if before not in ("", seal) else []

    def _meet(self, seal: Seal) -> list[Difference]:
        self.met.append(seal)
        if seal.last <= self._floor:  # of the time before this chain begins
            return []
        if self._adopted.pop(seal.last, None) == seal.sha256:
            self.newest = seal
            return []
        found = self._compare(seal)
        if not self.sealed < seal.first <= seal.last < seal.seq:
            return found  # it covers nothing that could be counted as sealed
        self._cover(seal)
        return found

    def _compare(self, seal: Seal) -> list[Difference]:
        begin = self.sealed + 1
        if not begin <= seal.first <= seal.last < seal.seq:
            why = f"the seal covers {seal.first:,} to {seal.last:,}, but {begin:,} is the next"
            return [Difference("seal", seal.seq, seal.seq, why)]
        found = []
        if seal.first > begin:
            found.append(
                Difference("seal", begin, seal.first - 1, f"the seal over them is gone; the next is {seal.seq:,}")
            )
        elif seal.previous != self.digest and (self.digest or not self._floor):
            why = f"the seal goes on from {seal.previous[:12] or 'nothing'}, not from {self.digest[:12] or 'nothing'}"
            found.append(Difference("seal", seal.seq, seal.seq, why))
        part = self.open[seal.first - begin : seal.last - self.sealed]
        if None not in part and segment_digest(seal.previous, seal.first, part) != seal.sha256:
            found.append(Difference("changed", seal.first, seal.last, f"they differ from the seal at {seal.seq:,}"))
        return found

    def _cover(self, seal: Seal) -> None:
        count = seal.last - self.sealed
        self.fresh -= sum(self._meant[:count])
        del self.open[:count], self._meant[:count]
        self.sealed, self.digest, self.newest = seal.last, seal.sha256, seal


def localise(segment: Difference, held: Mapping[int, bytes], known: Mapping[int, bytes]) -> list[Difference]:
    """Which events of a changed ``segment`` they are: ``held`` are the log's digests, ``known`` those of a copy. The
    segment itself where the copy does not tell."""
    changed = [seq for seq in range(segment.first, segment.last + 1) if seq in known and held.get(seq) != known[seq]]
    by_digest = {known[seq]: seq for seq in changed}
    found = []
    for seq in changed:
        other = by_digest.get(held.get(seq, b""), 0)
        problem: Problem = "swapped" if other else "changed"
        told = f"event {other:,} stands in its place" if other else "it differs from the copy in the tables"
        found.append(Difference(problem, seq, seq, told))
    return found or [segment]


def compare_seals(kept: Sequence[Seal], found: Mapping[int, Seal], first: int, last: int) -> list[Difference]:
    """Seals that were noted outside the log, and what the log (from ``first`` to ``last``) says at their places."""
    out = []
    for seal in kept:
        there = found.get(seal.seq)
        if seal.seq < first or there == seal:
            continue
        if seal.seq > last:
            out.append(Difference("truncated", last + 1, seal.seq, f"a seal was noted at {seal.seq:,}"))
            break
        told = "it is not the seal that was noted in the data folder" if there else "the seal noted here is gone"
        out.append(Difference("seal", seal.seq, seal.seq, told))
    return out


def _digest(value: Any) -> str:
    """``value`` where it is a sha256 as hex digits; empty otherwise."""
    return value if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else ""


def _data(body: bytes) -> dict[str, Any]:
    data = _raw(body).get("data")
    return data if isinstance(data, dict) else {}


def _raw(body: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return raw if isinstance(raw, dict) else {}
