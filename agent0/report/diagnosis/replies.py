"""How the items of a run's evaluations failed, from the tables."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from agent0.projections.base import Row, select
from agent0.projections.evaluation_items import conversation_at, last_reply
from agent0.run.diagnosis.replies import FailedReplies, FailedReply, kind_of_reply

MOST = 200
"""Failed items that are looked at."""
SHOWN = 3
_NEWEST = """
SELECT evaluation, count(*) AS items, sum(item.correct IS NOT 1) AS failed
FROM evaluation_items AS item JOIN evaluations AS of USING (run, evaluation)
WHERE run = ? AND NOT forced_tool GROUP BY evaluation HAVING failed
ORDER BY split = 'validation' DESC, max(scored_seq) DESC LIMIT 1
"""
_FAILED = """
SELECT item.attempt, answer, correct, end, turns, scored_seq, json_extract(body, '$.data.expected') AS expected
FROM evaluation_items AS item JOIN events ON seq = scored_seq
WHERE item.run = ? AND evaluation = ? AND correct IS NOT 1 ORDER BY number LIMIT ?
"""


def failed_replies(db: sqlite3.Connection, run: str) -> FailedReplies | None:
    """How items failed in the newest validation that has failed ones, or else in the newest evaluation; the control
    whose tool is forced is none of them. None: nothing failed."""
    rows = select(db, _NEWEST, (run,))
    if not rows:
        return None
    name = rows[0]["evaluation"]
    replies = [_reply(db, row) for row in select(db, _FAILED, (run, name, MOST))]
    kinds = dict(Counter(reply.kind for reply in replies).most_common())
    return FailedReplies(name, rows[0]["items"], rows[0]["failed"], kinds, tuple(_various(replies, kinds)[:SHOWN]))


def _reply(db: sqlite3.Connection, row: Row) -> FailedReply:
    conversation = conversation_at(db, row["scored_seq"])
    text = last_reply(conversation["transcript"]) if conversation["transcript"] else None
    correct = None if row["correct"] is None else bool(row["correct"])
    called = any(use["turn"] == (row["turns"] or 0) - 1 and not use["call"]["error"] for use in conversation["calls"])
    kind = kind_of_reply(text, row["answer"], correct, row["end"] or "", called=called)
    return FailedReply(row["attempt"], kind, text or "", row["answer"], row["expected"] or "", row["scored_seq"])


def _various(replies: Sequence[FailedReply], kinds: Iterable[str]) -> list[FailedReply]:
    """Replies of the most frequent kinds first, one of each kind before the second of any."""
    groups = [[reply for reply in replies if reply.kind == kind] for kind in kinds]
    return [reply for reply in chain.from_iterable(zip_longest(*groups)) if reply is not None]


def reply_lines(replies: Row | None) -> list[str]:
    """How many items failed by which kinds of replies, and a line an example; none where nothing failed."""
    if not replies:
        return []
    kinds = ", ".join(f"{kind} ({n:,})" for kind, n in replies["kinds"].items())
    first = (
        "" if (counted := sum(replies["kinds"].values())) == replies["failed"] else f" (the first {counted:,} of them)"
    )
    head = f"{replies['failed']:,} of {replies['items']:,} items of {replies['evaluation']} failed{first}: {kinds}."
    return [
        head,
        *(
            f"  {example['attempt']}, {_outcome(example)}; wrote: {example['wrote'] or 'nothing'}"
            for example in replies["examples"]
        ),
    ]


def _outcome(example: Row) -> str:
    right = f", right is {example['expected']}" if example["expected"] else ""
    return example["kind"] if example["answer"] is None else f"{example['kind']} {example['answer']}{right}"
