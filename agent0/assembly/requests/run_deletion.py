"""Part of the rim: runs that are hidden, tagged and deleted, with what a deletion frees.

A deleted run keeps its events, so that every seal verifies; what its events alone name is thrown away.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_check import Named, named_by_run
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.export import export
from agent0.assembly.runtime.read_models import reading
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.errors import ConfigError, OperationError
from agent0.events.base import Recorded
from agent0.events.runs import RunDeleted, RunLabelled
from agent0.events.values import Artifact
from agent0.infra.log.event_log import Log
from agent0.projections.base import Row
from agent0.projections.runs import list_runs, show_run
from agent0.settings import Settings

OVER = ("finished", "cancelled", "failed")
ALL = 1_000_000
_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3}

LONGEST_TAG = 100
LONGEST_NOTE = 2000
"""Characters of a tag and of a note: lists show both."""


@dataclass(frozen=True)
class Deletion:
    """What deleting ``run`` throws away; ``users`` are the runs that need it, so that it is refused."""

    run: str
    artifacts: tuple[Artifact, ...]
    users: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """What it frees."""
        return sum(artifact.size for artifact in self.artifacts)

    def row(self) -> dict[str, object]:
        """As people and programs read it."""
        return {"run": self.run, "artifacts": len(self.artifacts), "bytes": self.bytes, "users": list(self.users)}


def labelled(
    row: Row, by: str, hidden: bool | None = None, tags: Sequence[str] | None = None, note: str | None = None
) -> Recorded:
    """The event that hides the run of ``row`` or shows it, and gives it ``tags`` and a ``note``; None leaves it as it
    is.

    Raises:
        ConfigError: a tag is empty or too long, or the note is too long.
    """
    if any(not 0 < len(tag.strip()) <= LONGEST_TAG for tag in tags or ()):
        raise ConfigError(f"A tag has 1 to {LONGEST_TAG} characters.", "Lists show it beside the run's name.")
    if len(note or "") > LONGEST_NOTE:
        why = f"It has {len(note or ''):,}."
        raise ConfigError(f"A note has at most {LONGEST_NOTE:,} characters.", why, "Put the rest into a file.")
    event = RunLabelled(
        hidden=bool(row["hidden"]) if hidden is None else hidden,
        tags=tuple(tags_of(row) if tags is None else dict.fromkeys(tags)),
        by=by,
        note=row["note"] or "" if note is None else note,
    )
    return recorded(str(row["run"]), event)


def tags_of(row: Row) -> list[str]:
    """Return the tags in a row of the table of runs, as a list."""
    return list(json.loads(row["tags"])) if row["tags"] else []


async def deletions(settings: Settings, log: Log, runs: Sequence[str]) -> list[Deletion]:
    """What deleting each of ``runs`` by itself throws away, and who needs it."""
    store = artifact_store(settings)
    by_run = await named_by_run(settings, log, store)
    return [_deletion(run, by_run, {artifact.sha256: artifact for artifact, _ in store.stored()}) for run in runs]


def _deletion(run: str, by_run: Mapping[str, Named], stored: Mapping[str, Artifact]) -> Deletion:
    artifacts = by_run.get(run, Named())
    others = {name: named for name, named in by_run.items() if name != run and not named.deleted}
    kept = {digest for named in others.values() for digest in (*named.named, *named.mentioned)}
    users = [
        name
        for name, named in others.items()
        if named.parent == run or artifacts.trained & (named.used - named.trained)
    ]
    alone = tuple(stored[digest] for digest in sorted(artifacts.named.keys() - kept) if digest in stored)
    return Deletion(run, alone, tuple(sorted(users)))


async def delete_run(settings: Settings, log: Log, run: str, by: str, reason: str = "", archive: str = "") -> Deletion:
    """Delete ``run``: the event first, then what it alone names. Killed between, `agent0 artifacts gc` goes on.

    Raises:
        NotFoundError: no such run. OperationError: it is not over or deleted already, or others need it.
    """
    with reading(settings) as db:
        row = show_run(db, run)
    require_over(row)
    [deletion] = await deletions(settings, log, [str(row["run"])])
    if deletion.users:
        why = f"{', '.join(deletion.users)} began from it, or uses a checkpoint of it."
        raise OperationError(
            f"Run {run} is not deleted.", why, "Delete those first, or hide it: agent0 run hide " + run
        )
    count, size = len(deletion.artifacts), deletion.bytes
    event = RunDeleted(artifacts=count, bytes=size, archive=archive, by=by, reason=reason)
    await log.append([recorded(deletion.run, event)])
    store, time_s = artifact_store(settings), time.time()
    for artifact in deletion.artifacts:
        store.remove(artifact, time_s)
    return deletion


def require_over(row: Row) -> None:
    """Require that the run of ``row`` is over.

    Raises:
        OperationError: it is not, or is deleted.
    """
    if row["status"] not in OVER:
        fix = "" if row["status"] == "deleted" else f"First: agent0 run cancel {row['run']}"
        raise OperationError(f"Run {row['run']} is {row['status']}.", f"Only one that is {', '.join(OVER)} is.", fix)


async def archive_run(settings: Settings, run: str, path: Path, by: str, reason: str = "") -> dict[str, object]:
    """Write ``run`` to an archive, read it back whole, and delete it; errors as ``delete_run`` and ``export``."""
    with reading(settings) as db:
        row = show_run(db, run)
    require_over(row)
    async with open_log(settings) as log:
        [deletion] = await deletions(settings, log, [str(row["run"])])
    if not deletion.users:
        await export(settings, path, str(row["run"]))
    async with open_log(settings) as log:
        return (await delete_run(settings, log, str(row["run"]), by, reason, str(path))).row() | {"archive": str(path)}


@dataclass(frozen=True)
class RunSelection:
    """Which runs are pruned: over for ``older_s``, freeing at least ``larger`` bytes, with the tag ``tag``."""

    older_s: float = 0.0
    larger: int = 0
    tag: str = ""

    @classmethod
    def of(cls, age: str, size: str, tag: str) -> "RunSelection":
        """Read an age as ``30d``, a size as ``500MB``.

        Raises:
            ConfigError: one is none.
        """
        return cls(_amount(age, _SECONDS, "age"), int(_amount(size, _BYTES, "size")), tag)


async def select_runs(settings: Settings, log: Log, selection: RunSelection, at: str) -> list[Deletion]:
    """What would be deleted by ``selection``, the largest first; with those that others need. ``at``: ISO 8601."""
    moment = datetime.fromisoformat(at)
    with reading(settings) as db:
        rows = [row for row in list_runs(db, ALL, hidden=True) if row["status"] in OVER]
    old = [
        str(row["run"])
        for row in rows
        if (moment - datetime.fromisoformat(row["ended_at"] or row["updated"])).total_seconds() >= selection.older_s
        and (not selection.tag or selection.tag in tags_of(row))
    ]
    large = [deletion for deletion in await deletions(settings, log, old) if deletion.bytes >= selection.larger]
    return sorted(large, key=lambda deletion: (-deletion.bytes, deletion.run))


async def prune_runs(
    settings: Settings, log: Log, selection: RunSelection, by: str, reason: str = "", *, commit: bool
) -> list[Deletion]:
    """What was deleted, or without ``commit`` would be; behind it what others need."""
    chosen = await select_runs(settings, log, selection, utc_now().isoformat())
    if not commit:
        return chosen
    deleted: list[Deletion] = []
    while free := [deletion for deletion in chosen if not deletion.users]:  # a fork goes before what it began from
        for deletion in free:
            deleted.append(await delete_run(settings, log, deletion.run, by, reason))
        gone = {deletion.run for deletion in deleted}
        chosen = [
            deletion
            for deletion in await select_runs(settings, log, selection, utc_now().isoformat())
            if deletion.run not in gone
        ]
    return [*deleted, *chosen]


def _amount(text: str, units: dict[str, int], what: str) -> float:
    """A number and its unit.

    Raises:
        ConfigError: it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2] not in units:
        allowed = ", ".join(unit or "no unit" for unit in units)
        raise ConfigError(f"The {what} {text[:40]!r} is no amount.", fix=f"Write a number with a unit: {allowed}.")
    return float(match[1]) * units[match[2]]
