"""The table of cases that every client of a server is held to, and what a Python client or a chat makes of one.

``python -m tests.client_cases URL RUN`` prints as JSON what `agent0.connect` gives, by coroutines and without, and the
commands of a chat.
"""

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import agent0
from agent0.errors import Agent0Error
from tests.handles import LONG, ChatRuns, SyncRuns

TABLE: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "client_cases.json").read_text(encoding="utf-8"))
CASES = [case for case in TABLE["errors"] if "python" not in case.get("without", {})]
SPREAD = {"metrics": "columns"}


def named(case: dict[str, Any]) -> str:
    """The id of a case: its call, and what is handed over."""
    return f"{case['call']} {json.dumps(case['with'], separators=(',', ':'))}"


def arguments(case: dict[str, Any], run: str) -> dict[str, Any]:
    """What is handed over in ``case``; ``$…`` is written in Python. ``run``: the id of the run that is over."""
    words = {"$nan": float("nan"), "$numbered": {5: 1}, "$almost": run[:-1] + "_", "$long": LONG}
    return {name: words.get(value, value) if isinstance(value, str) else value for name, value in case["with"].items()}


async def value_of(case: dict[str, Any], place: Any, run: str) -> Any:
    """What the call of ``case`` on ``place``, runs or a run, gives: plain JSON, and a run where it gives one."""
    given = arguments(case, run)
    spread = given.pop(SPREAD.get(case["call"], ""), [])
    if case["call"] == "events":
        return [[event.seq, event.type, event.task, event.id] async for event in place.events(**given)]
    value = await getattr(place, case["call"])(*spread, **given)
    if case["call"] == "runs":
        return [each.id for each in value]
    if isinstance(value, agent0.RunProgress):
        return asdict(value)
    return [*map(dict, value)] if case["call"] in ("metrics", "ledger") else value


async def outcome(case: dict[str, Any], runs: Any, run: Any) -> dict[str, Any]:
    """What ``case`` came to: what it ``gives``, or the ``error`` with its texts."""
    try:
        value = await value_of(case, runs if case["on"] == "runs" else run, run.id)
    except Agent0Error as error:
        return {"error": type(error).__name__, "texts": [error.what, error.why, error.fix]}
    return {"gives": json.loads(json.dumps(value))}


async def outcomes(runs: Any, name: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each of ``cases`` comes to."""
    run = await runs.run(name)
    return [await outcome(case, runs, run) for case in cases]


def main() -> None:
    """Print what the clients give, under the ids of the cases that each has."""
    server, name = agent0.connect(sys.argv[1]), sys.argv[2]
    for kind, runs in {"sync": SyncRuns(server), "async": server.aio, "chat": ChatRuns(server.url)}.items():
        cases = [case for case in (*CASES, *TABLE["reads"]) if kind not in case.get("without", {})]
        rows = [*zip(map(named, cases), asyncio.run(outcomes(runs, name, cases)), strict=True)]
        sys.stdout.write(json.dumps({"client": kind, "outcomes": rows}) + "\n")


if __name__ == "__main__":
    main()
