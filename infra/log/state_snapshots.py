"""States of runs that are kept beside the log, so that a process need not fold a long run from its beginning.

Never trusted over the log: a part counts only where the event that it stands at is stored as it was, the code is the
same that folded it, and the digest of its state is the one that the log recorded when that state was decided on.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent0.errors import Agent0Error, LogError, NotFoundError, sentence
from agent0.events.base import Recorded, decode, sha256
from agent0.events.runs import RunStarted
from agent0.infra.log.event_log import Log
from agent0.infra.storage.state_files import BadPartError, Part, StateFiles
from agent0.settings import RunConfig
from agent0.state.run_state import RunState
from agent0.state.snapshot import from_text, to_text


class _OutdatedError(BadPartError):
    """A sound part of something else than what is read now."""


@dataclass(frozen=True)
class Snapshot:
    """A run's state just after event ``seq``, and the parts that led to it, oldest first."""

    state: RunState
    parts: tuple[Part, ...]
    sha: str
    """sha256 of the last part."""

    @property
    def seq(self) -> int:
        """The position."""
        return self.parts[-1].seq


@dataclass(frozen=True)
class Kept:
    """What a view gathered since the part before: as in ``Part``."""

    done: Mapping[str, list[str]]
    notes: Sequence[Recorded]
    after: int
    before: str


class Snapshots:
    """The snapshots of one log's runs in a data folder, of one ``version`` of the fold, every so many events."""

    def __init__(self, log: Log, files: StateFiles, version: str, every: int) -> None:
        self.every = every
        self._log, self._files, self._version = log, files, version

    async def newest(self, run: str, until: int = 0) -> Snapshot | None:
        """The newest snapshot of ``run`` that the log bears out, at or before ``until`` (0: its end).

        One that it does not is named in the process's log, and the one before is tried.

        Raises:
            LogError, DependencyError: the log cannot be read.
        """
        positions = await asyncio.to_thread(self._files.positions, run)
        created = (await self._log.info()).created if positions else ""
        for seq in (position for position in positions if position <= (until or position)):
            try:
                parts, sha = await asyncio.to_thread(self._chain, run, seq, created)
                return Snapshot(await self._proven(parts[-1]), parts, sha)
            except _OutdatedError as error:  # as after every update: nothing is wrong
                logging.getLogger(__name__).info("The snapshot of %s at event %s is not used: %s.", run, seq, error)
            except (ValueError, OSError, NotFoundError) as error:
                _warn(f"The snapshot of {run} at event {seq} is not used: {error}")
        return None

    async def keep(self, state: RunState, proof: Recorded, kept: Kept) -> str:
        """Write ``state``, whose digest the event ``proof`` holds; the sha256 of the part.

        Raises:
            ValueError: the digest is another: other code folded it. OSError, Agent0Error: it cannot be written.
        """
        body, info = await self._log.body(state.seq), await self._log.info()
        origin = self._origin(info.created, state.seq)
        writing = asyncio.ensure_future(asyncio.to_thread(self._write, state, proof, kept, sha256(body), origin))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing])  # a thread cannot be stopped: who closes the view finds the file written
            raise

    # --- files, in a thread ---------------------------------------------------------------------------------------

    def _write(self, state: RunState, proof: Recorded, kept: Kept, body: str, origin: str) -> str:
        recorded = getattr(proof.event, "state_sha", "")
        if recorded != state.digest:
            raise ValueError(f"event {proof.seq} recorded another state of event {state.seq} than is folded now")
        part = Part(
            run=state.run,
            version=self._version,
            log=origin,
            seq=state.seq,
            body=body,
            proof=proof.seq,
            state_sha=recorded,
            state=to_text(state),
            done=kept.done,
            notes=[(note.seq, note.to_json().decode()) for note in kept.notes],
            after=kept.after,
            before=kept.before,
        )
        return self._files.save(part)

    def _chain(self, run: str, seq: int, created: str) -> tuple[tuple[Part, ...], str]:
        """The part at ``seq`` and all before it; of those only what was done and noted."""
        last, digest = self._files.load(run, seq)
        parts, part = [last], last
        while True:
            if part.version != self._version:
                raise _OutdatedError("other code folded it")
            if part.log != self._origin(created, part.seq):
                raise _OutdatedError("it is of another log, or a message was set aside since")
            if not part.after:
                return tuple(reversed(parts)), digest
            if not part.after < part.seq:
                raise BadPartError("its parts are out of order")
            expected = part.before
            part, actual = self._files.load(run, part.after)
            if actual != expected:
                raise BadPartError(f"the part before it, at event {part.seq}, is another one")
            parts.append(replace(part, state=""))

    def _origin(self, created: str, seq: int) -> str:
        aside = [f"{at}={exclusion.id}" for at, exclusion in sorted(self._log.asides.items()) if at <= seq]
        return sha256("\n".join([created, *aside]))

    # --- against the log ------------------------------------------------------------------------------------------

    async def _proven(self, part: Part) -> RunState:
        """The state in ``part``, where the log says that this was its digest."""
        body, proof = await self._log.body(part.seq), await self._log.message(part.proof)
        if sha256(body) != part.body:
            raise BadPartError(f"event {part.seq} is another one now")
        cause = decode(body, part.seq)
        recorded = getattr(proof.event, "state_sha", "")
        if (proof.run, proof.cause, recorded) != (part.run, cause.id, part.state_sha):
            raise BadPartError(f"event {part.proof} does not say what the state was")
        begun = await _start(self._log, part.run)
        state = from_text(part.state, RunConfig.recorded(begun.config, begun.servers))
        if (state.run, state.seq, state.config_sha) != (part.run, part.seq, begun.config_sha):
            raise BadPartError("its state is of something else")
        if state.digest != recorded:
            raise BadPartError(f"its state's digest is not the one that event {part.proof} recorded")
        return state


async def _start(log: Log, run: str) -> RunStarted:
    async for stored in log.read(run, ["RunStarted"]):
        if isinstance(stored.event, RunStarted):
            return stored.event
    raise LogError(f"Run {run} has no beginning.", fix="Run `agent0 events verify`.")


class SnapshotWriter:
    """Writes the snapshots of one run while its view folds: after enough events, where the log says what the state was.

    Which events they stand at follows from the log alone, so that processes that follow one run write the same files.
    """

    def __init__(self, snapshots: Snapshots, snapshot: Snapshot | None, recent: int) -> None:
        self._snapshots, self._recent = snapshots, recent
        self._after, self._before = (snapshot.seq, snapshot.sha) if snapshot else (0, "")
        self._count = 0
        self._done: dict[tuple[str, str], int] = {}
        self._notes: list[Recorded] = []
        self._causes: dict[str, int] = {}

    def forget(self, key: tuple[str, str]) -> None:
        """A person asked for this reaction again."""
        self._done.pop(key, None)

    async def take(self, recorded: Recorded, states: Mapping[int, RunState | None], *, noted: bool) -> None:
        """Gather what ``recorded`` adds; ``states`` has those of the events before it."""
        if recorded.cause and recorded.handler:
            self._done[recorded.cause, recorded.handler] = recorded.seq
        if noted:
            self._notes.append(recorded)
        self._count += 1
        if self._count >= self._snapshots.every:
            self._causes[recorded.id] = recorded.seq
            at = self._causes.get(recorded.cause, 0) if getattr(recorded.event, "state_sha", "") else 0
            if state := states.get(at):
                await self._keep(state, recorded)
            elif len(self._causes) > self._recent:
                self._causes.clear()

    async def _keep(self, state: RunState, proof: Recorded) -> None:
        done: dict[str, list[str]] = {}
        for (cause, handler), seq in self._done.items():
            if seq <= state.seq:
                done.setdefault(handler, []).append(cause)
        notes = [note for note in self._notes if note.seq <= state.seq]
        self._count = sum(seq > state.seq for seq in self._causes.values())
        self._causes.clear()
        try:
            sha = await self._snapshots.keep(state, proof, Kept(done, notes, self._after, self._before))
        except (ValueError, OSError, Agent0Error) as error:
            _warn(f"No snapshot of {state.run} at event {state.seq}: {error}")
            return
        self._after, self._before = state.seq, sha
        self._done = {key: seq for key, seq in self._done.items() if seq > state.seq}
        self._notes = [note for note in self._notes if note.seq > state.seq]


def _warn(text: str) -> None:
    logging.getLogger(__name__).warning("%s Nothing is lost: it is folded from the log.", sentence(text))
