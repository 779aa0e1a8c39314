"""Two attempts side by side, turn by turn and word by word: of a group, of two runs, or of two checkpoints that were
asked one task or scored on one item."""

import re
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from agent0.api.admission.keys import Key
from agent0.api.context import ApiContext
from agent0.api.v1.runs import whole_attempt
from agent0.api.v1.tasks import TaskRequest, submit_task
from agent0.events.submissions import PREFIX
from agent0.projections.attempts import own_turns
from agent0.projections.base import Row
from agent0.projections.evaluation_items import evaluated_run, is_item
from agent0.projections.submissions import show_submission
from agent0.report.html.rendering import LONGEST

_ATTEMPT = re.compile(r"-a\d+$")


_WORD = re.compile(r"\s+|\w+|[^\w\s]")
MARKED = 60_000
"""Characters of a pair of attempts up to which the words that differ are marked."""


def names_attempt(db: sqlite3.Connection, name: str) -> bool:
    """Whether ``name`` is RUN/ATTEMPT, RUN/ITEM of an evaluation, or a submitted task."""
    run, _, attempt = name.partition("/")
    if name.startswith(PREFIX) or not attempt:
        return name.startswith(PREFIX)
    return bool(_ATTEMPT.search(attempt)) or is_item(db, evaluated_run(db, run), attempt)


def pair_data(context: ApiContext, db: sqlite3.Connection, left: str, right: str) -> Row:
    """Two attempts with their own turns aligned. ``sides`` name their pages; ``attempt`` is None of a submitted task
    that is not solved yet, and ``waits`` then the event behind which it will be. Turns of one role have their texts in
    ``words``, those that the other lacks marked; empty behind the first ``MARKED`` characters. ``verdicts`` and
    ``rewards`` are theirs by verifier and by part.

    Raises:
        NotFoundError: there is no such attempt.
    """
    sides = [_side(context, db, name) for name in (left, right)]
    written = [own_turns(side["attempt"]) if side["attempt"] else [] for side in sides]
    turns, size = list[Row](), 0
    for turn, other in zip_longest(*written):
        same = _content(turn) == _content(other)
        marked = bool(turn and other) and not same and turn["role"] == other["role"] and size < MARKED
        size += len(turn["content"][:LONGEST]) + len(other["content"][:LONGEST]) if marked else 0
        words = word_changes(turn["content"], other["content"]) if marked else None
        turns.append({"left": turn, "right": other, "same": same, "words": words})
    judged = {"verdicts": _verdicts(sides), "rewards": _rewards(sides)}
    return {"left": left, "right": right, "sides": sides, **judged, "turns": turns}


def word_changes(left: str, right: str) -> tuple[list[Row], list[Row]]:
    """The first ``LONGEST`` characters of both texts in pieces: ``changed`` where the other has other words there."""
    ours, theirs = (_WORD.findall(text[:LONGEST]) for text in (left, right))
    head = _shared(ours, theirs)
    tail = _shared(ours[head:][::-1], theirs[head:][::-1])
    ends = len(ours) - tail, len(theirs) - tail
    changes = SequenceMatcher(None, ours[head : ends[0]], theirs[head : ends[1]]).get_opcodes()
    spans = [(kind != "equal", i + head, j + head, k + head, n + head) for kind, i, j, k, n in changes]
    spans = [(False, 0, head, 0, head), *spans, (False, ends[0], len(ours), ends[1], len(theirs))]
    left_pieces = _pieces((changed, ours[begin:end]) for changed, begin, end, *_ in spans)
    return left_pieces, _pieces((changed, theirs[begin:end]) for changed, _, _, begin, end in spans)


def _shared(left: Sequence[str], right: Sequence[str]) -> int:
    """How many words both begin with."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((n for n, (word, other) in pairs if word != other), min(len(left), len(right)))


def _pieces(pieces: Iterable[tuple[bool, Sequence[str]]]) -> list[Row]:
    return [{"text": "".join(words), "changed": changed} for changed, words in pieces if words]


def _verdicts(sides: Sequence[Row]) -> list[Row]:
    by_side = [
        {verdict["verifier"]: verdict for verdict in (side["attempt"] or _NOTHING)["verdicts"]} for side in sides
    ]
    names = dict.fromkeys(name for verdicts in by_side for name in verdicts)
    return [{"verifier": name, "sides": [verdicts.get(name) for verdicts in by_side]} for name in names]


def _rewards(sides: Sequence[Row]) -> list[Row]:
    """What each part of the rewards is worth on both sides, the total last; empty where neither was rewarded."""
    receipts = [next(iter((side["attempt"] or _NOTHING)["receipts"]), None) for side in sides]
    worths = [{part["name"]: part["worth"] for part in receipt["parts"]} if receipt else {} for receipt in receipts]
    totals = [receipt["total"] if receipt else None for receipt in receipts]
    names = dict.fromkeys(name for side in worths for name in side)
    rows = [(name.replace("_", " "), *(side.get(name) for side in worths)) for name in names]
    rows += [("total", *totals)] if any(receipts) else []
    return [
        {
            "part": part,
            "left": left,
            "right": right,
            "right less left": None if left is None or right is None else right - left,
        }
        for part, left, right in rows
    ]


_NOTHING: Row = {"verdicts": [], "receipts": []}


def _side(context: ApiContext, db: sqlite3.Connection, name: str) -> Row:
    if name.startswith(PREFIX):
        row = show_submission(db, name)
        model, waits = f"{row['source']}/{row['student']}", row["submitted_seq"]
        shown = whole_attempt(context, db, name, row["attempt"]) if row["solution"] else None
        over = shown is not None or row["status"] in ("failed", "dropped")
        more = {"place": ["tasks", name], "question": row["question"], "waits": 0 if over else waits}
        return {"name": name, "model": model, "status": row["status"], "attempt": shown, **more}
    of, _, attempt = name.partition("/")
    run = evaluated_run(db, of)
    shown = whole_attempt(context, db, run, attempt)
    model, path = f"{run}/{shown['student']}" if shown["student"] else run, ["runs", run, "trajectories", attempt]
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
