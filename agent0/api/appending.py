"""How a request becomes an event, once: under the id that its Idempotency-Key has, and only while what it was decided
on still stands."""

import asyncio
import re
import uuid
from collections.abc import Sequence
from typing import Annotated

from fastapi import Header
from pydantic import BaseModel

from agent0.api.context import ApiContext
from agent0.api.problems import StaleError
from agent0.errors import ConfigError, NotFoundError, OperationError
from agent0.events.alarms import ReactionDropped, ReactionRetried
from agent0.events.base import NAMESPACE, Event, Recorded
from agent0.events.benchmarks import TaskReviewed
from agent0.events.checkpoints import CheckpointPromoted, CheckpointRolledBack
from agent0.events.runs import RunCancelled, RunPaused, RunResumed, RunStarted
from agent0.events.submissions import TaskSubmitted
from agent0.projections import position
from agent0.projections.base import Row
from agent0.projections.events import extent_of, show_event

_SUFFIX = 6
SOON, LOOK_S = 100, 0.05
"""Looks into the tables, and seconds between two."""
Again = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        pattern="^[!-~]*$",
        description="a request that comes again under it starts nothing new",
    ),
]
IfMatch = Annotated[
    str,
    Header(
        alias="If-Match",
        max_length=300,
        description="an ETag: refused with 412 where the run has an event behind what the tag stands for",
    ),
]
_TAG = re.compile(r'(?:W/)?"(\d{1,18})-([0-9a-f-]{0,12})-[^"]*"')


class Begun(BaseModel):
    """What began: its run, the event that says so, and the event's sequence, from which its stream can be read."""

    run: str
    event: str
    seq: int


async def append(
    context: ApiContext, begin: Recorded, again: str = "", if_match: str = "", more: Sequence[Recorded] = ()
) -> Begun:
    """Append ``begin`` under the id that its key has; where that is stored, it is what was asked for before. With
    ``if_match`` it is stored only where its run has no event behind what the tag stands for, however many ask at once.
    Without one ``more`` are stored with it, all or none.

    Raises:
        OperationError: the server only reads, or ``again`` was the key of another request.
        StaleError: something happened in the run.
    """
    log = context.require_log()
    if again:
        begin = _named(begin, again)
        if (earlier := _stored(context, begin)) is not None:
            return earlier
    tags = _tags(if_match)
    if not tags:
        seq, *_ = await log.append([begin, *more])
    else:
        last = await log.last_seq(begin.run)
        seq = await log.append_unchanged(begin, last) if _bears(context, tags, last) else 0
        if not seq:
            return await _first(context, begin, await log.last_seq(begin.run))
    await shown(context, seq)
    return Begun(run=begin.run, event=begin.id, seq=seq)


async def _first(context: ApiContext, begin: Recorded, last: int) -> Begun:
    """What came first was this request, sent twice at once, or another.

    Raises:
        StaleError: another.
    """
    await shown(context, last)
    if (earlier := _stored(context, begin)) is not None:
        return earlier
    raise _stale(begin.run, last)


def decided_before(context: ApiContext, run: str, kind: type[Event], again: str) -> Begun | None:
    """What was decided in ``run`` under the key ``again``, None for nothing: to decide it once more could be refused.

    Raises:
        OperationError: it was the key of another request.
    """
    row = _event(context, str(_id(again))) if again else None
    if row is None:
        return None
    if (row["run"], row["type"]) != (run, kind.__name__):
        raise _used(row)
    return Begun(run=row["run"], event=row["id"], seq=row["seq"])


def require_unchanged(context: ApiContext, run: str, if_match: str) -> None:
    """Check that nothing happened in ``run`` behind what the tag ``if_match`` stands for; empty asks for nothing.

    Raises:
        ConfigError: it is no tag of ours. StaleError: something happened.
    """
    tags = _tags(if_match)
    with context.tables() as db:
        last = extent_of(db, run)[1]
    if tags and not _bears(context, tags, last):
        raise _stale(run, last)


def _tags(if_match: str) -> list[re.Match[str]]:
    """The tags of ours in a header; none where it asks for nothing.

    Raises:
        ConfigError: it holds none of ours.
    """
    if not if_match or if_match.strip() == "*":
        return []
    tags = [match for part in if_match.split(",") if (match := _TAG.fullmatch(part.strip()))]
    if not tags:
        raise ConfigError("If-Match holds no tag of this server.", "Send the ETag of what you decide on.")
    return tags


def _bears(context: ApiContext, tags: list[re.Match[str]], last: int) -> bool:
    """Whether one of ``tags`` stands for the event ``last`` or a later one."""
    return any(int(tag[1]) >= last and _is_of_this_log(context, tag) for tag in tags)


def _stale(run: str, last: int) -> StaleError:
    return StaleError(f"Run {run} has changed.", f"Its last event is {last}.", "Look again, then decide again.")


def _is_of_this_log(context: ApiContext, tag: re.Match[str]) -> bool:
    """Whether the log has the event that ``tag`` stands for: tags of another one mean nothing."""
    row = _event(context, tag[1])
    return row is not None and str(row["id"]).endswith(tag[2])


def _event(context: ApiContext, reference: str) -> Row | None:
    try:
        with context.tables() as db:
            return show_event(db, reference)
    except NotFoundError:
        return None


async def shown(context: ApiContext, seq: int) -> None:
    """Wait a few seconds for the tables to reach ``seq``, so that a client finds there what it began."""

    def reached() -> bool:
        with context.tables() as db:
            return position(db).seq >= seq

    for _ in range(SOON):
        if await asyncio.to_thread(reached):
            return
        await asyncio.sleep(LOOK_S)


def _id(again: str) -> uuid.UUID:
    return uuid.uuid5(NAMESPACE, f"api/{again}")


def _named(begin: Recorded, again: str) -> Recorded:
    """``begin`` under the id of its key; the token of a run that it begins ends in the same."""
    id = _id(again)
    new = isinstance(begin.event, RunStarted | TaskSubmitted)
    run = f"{begin.run[:-_SUFFIX]}{id.hex[:_SUFFIX]}" if new else begin.run
    return begin.model_copy(update={"id": str(id), "run": run})


def _stored(context: ApiContext, begin: Recorded) -> Begun | None:
    """What the key began before.

    Raises:
        OperationError: something else.
    """
    row = _event(context, begin.id)
    if row is None:
        return None
    before, current = row["body"]["data"], begin.event.model_dump(mode="json")
    same = all(before.get(name) == current[name] for name in _DECIDE[type(begin.event)])
    if row["type"] != begin.type or row["run"] != begin.run or not same:
        raise _used(row)
    return Begun(run=row["run"], event=begin.id, seq=row["seq"])


def _used(row: Row) -> OperationError:
    why = f"It was that of event {row['seq']}, a {row['type']} of {row['run']}."
    return OperationError("This Idempotency-Key was used for another request.", why, "Send a new key.")


_DECIDE: dict[type[Event], tuple[str, ...]] = {
    RunStarted: ("name", "profile", "config_sha", "parent", "parent_seq"),
    TaskSubmitted: ("source", "student", "proposal", "expected"),
    RunPaused: ("reason",),
    RunResumed: ("reason",),
    RunCancelled: ("reason",),
    CheckpointPromoted: ("checkpoint", "reason"),
    CheckpointRolledBack: ("to", "reason"),
    TaskReviewed: ("attempt", "correct", "reviewer", "reason"),
    ReactionRetried: ("failure",),
    ReactionDropped: ("failure", "reason"),
}
