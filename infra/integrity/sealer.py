"""Seals of the log: written in the background while work goes on, and looked at before it begins."""

import asyncio
import contextlib
import fcntl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import IO

from agent0.errors import DependencyError, LogError, NotFoundError
from agent0.events.alarms import LOG, LogSealed
from agent0.events.base import Recorded
from agent0.infra.integrity.seal_journal import Journal, SealFile, Stream
from agent0.infra.log.event_log import Log, LogInfo
from agent0.infra.log.reader import GapError
from agent0.infra.log.server_folder import UNCLEAN, provisioning
from agent0.provenance.hash_chain import Chain, LogMismatch, Seal, compare_seals, digest_of, localise, seal_id, seal_of

POLL_S = 1.0
LAST_S = 5.0
"""How long the end of a process waits for its last seal."""
SUBJECT = f"a0.ev.{LOG}.-.-.{LogSealed.__name__}"

Stamp = Callable[[LogSealed], Recorded]
"""An event as a person's doing."""
Copy = Callable[[int, int], Mapping[int, bytes]]
"""Digests of the events from one sequence to another as a copy has them, by sequence."""


class BrokenLogError(LogError):
    """The log is not what it was. ``found`` has every difference."""

    def __init__(self, differences: Sequence[LogMismatch]) -> None:
        self.found = tuple(differences)
        rest = f" And {len(differences) - 1} more." if len(differences) > 1 else ""
        super().__init__(
            "The log was altered or damaged.",
            f"{str(differences[0])[:1].upper()}{str(differences[0])[1:]}.{rest}",
            "Nothing was written. `agent0 events verify` says all that is wrong. Put the store back from a copy, or "
            "bring an archive into an empty data folder: AGENT0_HOME=… agent0 events import ARCHIVE",
        )


@dataclass(frozen=True)
class Verified:
    """What a look at the whole log found."""

    first: int
    last: int
    created: str
    seals: int
    sealed: int
    """Last sequence under a seal."""
    redacted: int
    differences: tuple[LogMismatch, ...]


def _nothing(first: int, last: int) -> Mapping[int, bytes]:
    return {}


# --- looking ----------------------------------------------------------------------------------------------------------


async def check(log: Log, file: SealFile, reached: int = 0, copy: Copy = _nothing) -> None:
    """What can be seen at once: first and last sequence, creation time, the last seal, and everything after it. After
    an unclean stop of the embedded server, or where that misses events: the whole log. ``reached`` is how far tables
    have come.

    Raises:
        BrokenLogError: the log is not what it was.
    """
    recorded = file.read()
    folder = log.server.folder
    if folder and (folder / UNCLEAN).exists():
        async with provisioning(folder, "verify.lock"):
            if (folder / UNCLEAN).exists():
                require((await verify(log, recorded, (), reached, copy)).differences)
                (folder / UNCLEAN).unlink()
    info = await log.info()
    require(extent(info, recorded, reached))
    if info.lost:
        require((await verify(log, recorded, (), reached, copy)).differences)
    chain = begin(recorded)
    require([d async for d in _newest_differs(log, recorded)])
    async for difference in through(log, chain, info.last_seq):
        require([difference])
    file.note(*chain.met)


async def first_sight(log: Log) -> Journal:
    """A log that this data folder has noted nothing of is taken as it is."""
    info = await log.info()
    return Journal(streams=(Stream(info.created, max(1, info.first_seq)),))


def extent(info: LogInfo, recorded: Journal, reached: int) -> list[LogMismatch]:
    """Whether the stream is the one that is known, and as long as it was."""
    stream = recorded.stream
    if stream is None:
        return []
    first, last = max(1, info.first_seq), info.last_seq
    if info.created != stream.created:
        why = f"it is another stream: made at {info.created}, not at {stream.created}"
        return [LogMismatch("replaced", first, last, why)]
    differences = []
    if first > stream.first:
        differences.append(LogMismatch("missing", stream.first, first - 1, "the log begins behind them"))
    highest = max(recorded.newest.seq if recorded.newest else 0, stream.last, reached)
    if last < highest:
        who = "the tables have seen" if reached == highest else "the data folder has noted"
        differences.append(LogMismatch("truncated", last + 1, highest, f"the log ends before them; {who} {highest:,}"))
    return differences


async def _newest_differs(log: Log, recorded: Journal) -> AsyncIterator[LogMismatch]:
    if seal := recorded.newest:
        with contextlib.suppress(NotFoundError):
            if seal_of(seal.seq, await log.body(seal.seq)) == seal:
                return
        yield LogMismatch("seal", seal.seq, seal.seq, "the seal that was noted in the data folder is not here")


def require(differences: Sequence[LogMismatch]) -> None:
    """Require that verification found no difference.

    Raises:
        BrokenLogError: there is one.
    """
    if differences:
        raise BrokenLogError(differences)


def begin(recorded: Journal, whole: bool = False) -> Chain:
    """Right behind the newest seal that is known; at the beginning where there is none, or where ``whole``."""
    if recorded.newest and not whole:
        return Chain.after(recorded.newest)
    stream = recorded.stream or Stream("")
    return Chain(last=stream.first - 1, digest=stream.digest)


async def through(log: Log, chain: Chain, until: int) -> AsyncIterator[LogMismatch]:
    """Feed ``chain`` with everything up to ``until``, going on behind whatever cannot be read."""
    while chain.last < until:
        try:
            async with aclosing(log.read_bodies(chain.last, until)) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    for difference in (d for seq, body in chunk for d in chain.feed(seq, body)):
                        yield difference
            if chain.last < until:
                raise GapError(chain.last)
        except GapError as gap:
            for difference in await _behind(log, chain, gap, until):
                yield difference


async def _behind(log: Log, chain: Chain, gap: GapError, until: int) -> list[LogMismatch]:
    if gap.seq:
        return chain.skip(gap.seq - 1, "missing", "not in the log; its store is damaged, or it was taken out")
    readable = await _next_readable(log, chain.last + 1, until)
    return chain.skip(readable - 1, "unreadable", "the server holds it and cannot read it: its store is damaged")


async def _next_readable(log: Log, bad: int, until: int) -> int:
    """The first event after ``bad`` that can be read (``until`` + 1: none), found by steps that double, then halve."""
    step, good = 1, until + 1
    while bad + step <= until:
        if await _is_readable(log, bad + step):
            good = bad + step
            break
        bad, step = bad + step, step * 2
    while good - bad > 1:
        middle = (good + bad) // 2
        if middle <= until and await _is_readable(log, middle):
            good = middle
        else:
            bad = middle
    return good


async def _is_readable(log: Log, seq: int) -> bool:
    try:
        await log.body(seq)
    except NotFoundError:
        return False
    return True


async def verify(
    log: Log, recorded: Journal, kept: Sequence[Seal] = (), reached: int = 0, copy: Copy = _nothing
) -> Verified:
    """Read the whole log and compare it with its own seals, with those noted outside it (``recorded``, and ``kept``
    with the tables), and where a segment differs with a ``copy`` of its events, to say which."""
    info = await log.info()
    chain, differences = begin(recorded, whole=True), extent(info, recorded, reached)
    async for difference in through(log, chain, info.last_seq):
        differences += await _localised(log, difference, copy) if difference.problem == "changed" else [difference]
    if recorded.stream is not None:
        why = "it was taken out, and no archive that was imported here says so"
        differences += [
            LogMismatch("hidden", s, s, why)
            for s in chain.redacted
            if not recorded.stream.admits(s) and s not in log.asides
        ]
    met, begins = {seal.seq: seal for seal in chain.met}, max(1, info.first_seq)
    for seals in (recorded.seals, kept):
        new = compare_seals(seals, met, begins, info.last_seq)
        differences += [
            difference
            for difference in new
            if not any(other.first <= difference.first and difference.last <= other.last for other in differences)
        ]
    sealed = chain.met[-1].last if chain.met else 0
    told_all = tuple(sorted(differences, key=lambda difference: difference.first))
    return Verified(begins, info.last_seq, info.created, len(met), sealed, len(chain.redacted), told_all)


async def _localised(log: Log, segment: LogMismatch, copy: Copy) -> list[LogMismatch]:
    copied = copy(segment.first, segment.last)
    digests: dict[int, bytes] = {}
    async with aclosing(log.read_bodies(segment.first - 1, segment.last)) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            digests |= {seq: digest_of(body) for seq, body in chunk}
    return localise(segment, digests, copied)


# --- sealing ----------------------------------------------------------------------------------------------------------


class Sealer:
    """Seals what was stored: a segment every ``every`` events, and whenever a run comes to rest or an experiment to its
    end. Of several processes of one data folder one does it; of several machines, whoever is first."""

    def __init__(self, log: Log, file: SealFile, every: int, stamp: Stamp) -> None:
        self._log, self._file, self._every, self._stamp = log, file, every, stamp
        self._chain: Chain | None = None
        self._newest, self._created = 0, ""
        self._lead: IO[bytes] | None = None
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Seal until ``end``, which is better than a cancellation: one may be swallowed while the server is asked.

        Raises:
            BrokenLogError: the log was altered while it was being worked with.
        """
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._ended.wait()
                    return
            with contextlib.suppress(DependencyError):  # the log is away; it comes back
                await self.step()

    def end(self) -> None:
        """Let ``run`` come to its end."""
        self._ended.set()

    async def finish(self, within_s: float | None = LAST_S) -> None:
        """Seal what is left, and let another process lead. Gives up where the log is away, and after ``within_s``."""
        try:
            with contextlib.suppress(DependencyError, TimeoutError):
                async with asyncio.timeout(within_s):
                    await self.step(all=True)
        finally:
            if self._lead:
                self._lead.close()
                self._lead = None

    async def __aenter__(self) -> "Sealer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.finish()

    async def step(self, all: bool = False) -> None:
        """Read the new events and append a ``LogSealed`` (hash-chain checkpoint) where a segment is full; with
        ``all`` also for a part of one."""
        if not self._leads():
            return
        try:
            chain = self._chain = self._chain or await self._begin()
            await self._read(chain, await self._log.last_seq())
            if chain.fresh and (all or chain.wants_seal):
                await self._seal(chain)
        except BaseException as error:
            self._chain = None  # next time look again what there is
            if not isinstance(error, _ForestalledError):
                raise

    def _leads(self) -> bool:
        if self._lead is None:
            lock = (self._file.home / ".sealer.lock").open("ab")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                return False
            self._lead = lock
        return True

    async def _begin(self) -> Chain:
        """Behind the newest seal that is in the log, whoever wrote it."""
        self._newest, body = await self._log.newest(SUBJECT)
        self._created = (await self._log.info()).created
        seal, recorded = seal_of(self._newest, body) if self._newest else None, self._file.read()
        if seal is None:
            return begin(replace(recorded, seals=()))
        await asyncio.to_thread(self._file.note, seal)
        return Chain.after(seal)

    async def _read(self, chain: Chain, until: int) -> None:
        if chain.last >= until:
            return
        async with aclosing(self._log.read_bodies(chain.last, until)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                require([d for seq, body in chunk for d in chain.feed(seq, body)])
                while len(chain.open) >= self._every:
                    await self._seal(chain, self._every)
                await asyncio.sleep(0)

    async def _seal(self, chain: Chain, most: int = 0) -> None:
        proposed = chain.proposal(most).model_copy(update={"created": self._created})
        stamped = self._stamp(proposed).model_copy(
            update={"id": seal_id(proposed.previous, proposed.first, proposed.created)}
        )
        seq = await self._log.append_behind([stamped], self._newest, stamped.subject)
        if not seq:
            raise _ForestalledError
        seal = Seal(seq, proposed.first, proposed.last, proposed.sha256, proposed.previous, proposed.created)
        chain.adopt(seal)
        self._newest = seq
        await asyncio.to_thread(self._file.note, seal)


class _ForestalledError(Exception):
    """Another process sealed first."""
