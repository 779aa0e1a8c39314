"""Two attempts side by side, turn by turn: of a group, of two runs, or of two checkpoints that were asked one task."""

import re
import secrets
import sqlite3
from itertools import zip_longest

from agent0.api.admission.keys import Key
from agent0.api.context import ApiContext
from agent0.api.pages.readings import own_turns
from agent0.api.v1.runs import whole_attempt
from agent0.api.v1.tasks import TaskRequest, submit_task
from agent0.events.submissions import PREFIX
from agent0.projections.base import Row
from agent0.projections.runs import resolve
from agent0.projections.submissions import show_submission

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
    written = [own_turns(side["attempt"]["transcript"]) if side["attempt"] else [] for side in sides]
    turns = [
        {"left": left_turn, "right": other, "same": _content(left_turn) == _content(other)}
        for left_turn, other in zip_longest(*written)
    ]
    return {"left": left, "right": right, "sides": sides, "turns": turns}


def _side(context: ApiContext, db: sqlite3.Connection, name: str) -> Row:
    if name.startswith(PREFIX):
        row = show_submission(db, name)
        model, waits = f"{row['source']}/{row['student']}", row["submitted_seq"]
        shown = whole_attempt(context, db, name, row["attempt"]) if row["solution"] else None
        over = shown is not None or row["status"] in ("failed", "dropped")
        more = {"place": ["tasks", name], "question": row["question"], "waits": 0 if over else waits}
        return {"name": name, "model": model, "status": row["status"], "attempt": shown, **more}
    of, _, attempt = name.partition("/")
    run = resolve(db, of)
    shown = whole_attempt(context, db, run, attempt)
    model, path = f"{run}/{shown['student']}", ["runs", run, "trajectories", attempt]
    more = {"status": shown["status"], "question": shown["question"], "waits": 0}
    return {"name": f"{run}/{attempt}", "model": model, "place": path, "attempt": shown, **more}


def _content(turn: Row | None) -> tuple[str, str] | None:
    return (turn["role"], turn["content"]) if turn else None


async def ask_both(
    context: ApiContext, left: str, right: str, question: str, expected: str, again: str, key: Key | None
) -> tuple[str, str]:
    """Submit one task to two checkpoints, to be solved under the same seed; the names of the two submissions.

    Raises:
        As ``submit_task``.
    """
    seed = int.from_bytes(again.encode()[:4].ljust(4, b"0")) >> 1 if again else secrets.randbits(31)
    requests = [TaskRequest(question=question, model=model, expected=expected, seed=seed) for model in (left, right)]
    begun = [
        await submit_task(context, request, f"{again}-{side}" if again else "", key)
        for request, side in zip(requests, ("left", "right"), strict=True)
    ]
    return begun[0].run, begun[1].run
