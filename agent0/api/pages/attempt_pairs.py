"""Two attempts side by side, turn by turn: of a group, of two runs, or of two checkpoints that were asked one task."""

import re
import secrets
import sqlite3
from itertools import zip_longest
from typing import Any

from agent0.api.admission.keys import Key
from agent0.api.context import ApiContext
from agent0.api.pages.readings import own_turns
from agent0.api.v1.runs import whole_attempt
from agent0.api.v1.tasks import TaskRequest, submit_task
from agent0.events.submissions import PREFIX
from agent0.projections.runs import resolve
from agent0.projections.submissions import show_submission

Row = dict[str, Any]
_ATTEMPT = re.compile(r"-a\d+$")


def names_attempt(name: str) -> bool:
    """Whether ``name`` is RUN/ATTEMPT or a submitted task."""
    return name.startswith(PREFIX) or ("/" in name and bool(_ATTEMPT.search(name)))


def pair_data(context: ApiContext, db: sqlite3.Connection, left: str, right: str) -> Row:
    """Two attempts with their own turns aligned. ``sides`` name their pages; ``attempt`` is None of a submitted task
    that is not solved yet, and ``waits`` then the event behind which it will be.

    Raises:
        NotFoundError: there is no such attempt.
    """
    sides = [_side(context, db, name) for name in (left, right)]
    own = [own_turns(one["attempt"]["transcript"]) if one["attempt"] else [] for one in sides]
    turns = [{"left": one, "right": other, "same": _said(one) == _said(other)} for one, other in zip_longest(*own)]
    return {"left": left, "right": right, "sides": sides, "turns": turns}


def _side(context: ApiContext, db: sqlite3.Connection, name: str) -> Row:
    if name.startswith(PREFIX):
        row = show_submission(db, name)
        model, waits = f"{row['source']}/{row['student']}", row["submitted_seq"]
        found = whole_attempt(context, db, name, row["attempt"]) if row["solution"] else None
        over = found is not None or row["status"] in ("failed", "dropped")
        held = {"place": ["tasks", name], "question": row["question"], "waits": 0 if over else waits}
        return {"name": name, "model": model, "status": row["status"], "attempt": found, **held}
    of, _, attempt = name.partition("/")
    run = resolve(db, of)
    found = whole_attempt(context, db, run, attempt)
    model, place = f"{run}/{found['student']}", ["runs", run, "trajectories", attempt]
    held = {"status": found["status"], "question": found["question"], "waits": 0}
    return {"name": f"{run}/{attempt}", "model": model, "place": place, "attempt": found, **held}


def _said(turn: Row | None) -> tuple[str, str] | None:
    return (turn["role"], turn["content"]) if turn else None


async def ask_both(
    context: ApiContext, left: str, right: str, question: str, expected: str, again: str, key: Key | None
) -> tuple[str, str]:
    """Submit one task to two checkpoints, to be solved under the same seed; the names of the two submissions.

    Raises:
        As ``submit_task``.
    """
    seed = int.from_bytes(again.encode()[:4].ljust(4, b"0")) >> 1 if again else secrets.randbits(31)
    asked = [TaskRequest(question=question, model=one, expected=expected, seed=seed) for one in (left, right)]
    found = [
        await submit_task(context, one, f"{again}-{side}" if again else "", key)
        for one, side in zip(asked, ("left", "right"), strict=True)
    ]
    return found[0].run, found[1].run
