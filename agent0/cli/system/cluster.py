"""All processes that react to the events of a log, on whatever hosts."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from agent0.api.status import consumers
from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.plugins import known_handlers
from agent0.cli import console, flags
from agent0.infra.bus.processes import ProcessReply, ask
from agent0.infra.bus.run_standing import RunStanding, run_standings
from agent0.infra.log.streams import GIVEN_UP
from agent0.infra.log.users.roles import roles_of

Row = dict[str, Any]


def status(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """Say who reacts to events, on which host and with how many slots, what waits, and how runs share the slots. All
    processes are asked; one that does not answer within a second is not there."""
    settings = flags.settings(profile, pairs)

    async def work() -> tuple[list[Row], list[ProcessReply], list[Row], list[RunStanding]]:
        async with open_log(settings) as log:
            before, replies = await consumers(settings, log), await ask(log)
            return before, replies, await consumers(settings, log), await run_standings(log, known_handlers())

    before, replies, standing, standings = console.run_async(work)
    processes, handlers = [_process(reply) for reply in replies], [_handler(row, replies) for row in standing]
    silent = _silent(before, standing, replies, settings.handlers.ack_wait_s)
    faults = [*_unattended(handlers), *silent, *_lacking(replies), *_versions(replies)]
    runs = [asdict(run) for run in standings]
    if as_json:
        console.record({"processes": processes, "handlers": handlers, "runs": runs, "faults": faults}, as_json)
        return
    console.table(processes, as_json)
    console.table(runs, as_json)
    console.table([row for row in handlers if row["waits"] or row["in_hand"] or not row["processes"]], as_json)
    for fault in faults:
        console.say(fault)


def _process(reply: ProcessReply) -> Row:
    lacks = {what for handlers in reply.missing.values() for what in handlers.values()}
    return {
        "host": reply.host,
        "pid": reply.pid,
        "does": ", ".join(roles_of(reply.handlers)),
        "slots": reply.slots,
        "models": len(reply.models),
        "in_hand": sum(reply.in_hand.values()),
        "longest": reply.longest,
        "lacks": ", ".join(sorted(lacks)),
        "waits_for": reply.waits,
        "version": reply.version,
    }


def _handler(row: Row, replies: Sequence[ProcessReply]) -> Row:
    everybodys = row["consumer"] == GIVEN_UP
    return {
        "handler": row["consumer"],
        "processes": sum(everybodys or row["consumer"] in reply.handlers for reply in replies),
        "waits": row["wait"],
        "in_hand": row["in_hand"],
        "again": row["again"],
    }


def _unattended(handlers: Sequence[Row]) -> list[str]:
    left = roles_of([row["handler"] for row in handlers if not row["processes"] and row["handler"] != GIVEN_UP])
    return [f"No process runs {', '.join(left)}: runs that need it wait."] if left else []


def _silent(before: Sequence[Row], after: Sequence[Row], replies: Sequence[ProcessReply], wait_s: float) -> list[str]:
    """Handlers with messages that no process which answers has, ``before`` they were asked and ``after``."""
    counts = {row["consumer"]: row["in_hand"] for row in before}
    lines = []
    for row in after:
        name = row["consumer"]
        left = min(row["in_hand"], counts.get(name, 0)) - sum(reply.in_hand.get(name, 0) for reply in replies)
        if left > 0 and name != GIVEN_UP:
            who = f"{left} {'message' if left == 1 else 'messages'} of {name}"
            lines.append(
                f"{who} with a process that does not answer: delivered again {wait_s:g} s after its last sign."
            )
    return lines


def _lacking(replies: Sequence[ProcessReply]) -> list[str]:
    """Runs for which all processes of a handler lack something."""
    lines: dict[tuple[str, str], list[str]] = {}
    for reply in replies:
        for run, handlers in reply.missing.items():
            for name, what in handlers.items():
                having = [r for r in replies if name in r.handlers and name not in r.missing.get(run, {})]
                names = lines.setdefault((run, what), []) if not having else []
                names += [name] if name not in names else []
    return [
        f"Run {run} waits: no process of {', '.join(roles_of(names))} has {what}."
        for (run, what), names in lines.items()
    ]


def _versions(replies: Sequence[ProcessReply]) -> list[str]:
    versions = sorted({reply.version for reply in replies})
    return [f"Processes of several versions: {', '.join(versions)}."] if len(versions) > 1 else []
