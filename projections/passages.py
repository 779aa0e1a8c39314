"""One row per passage of text that can be searched for: what teachers asked, what students and tools wrote, answers."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Literal, get_args

from agent0.events import benchmarks, checkpoints, submissions
from agent0.events import tasks as facts
from agent0.events.base import Event, Recorded, decode
from agent0.events.values import Turn
from agent0.projections.base import Row, match_of, projection, select
from agent0.projections.events import extent_of

PassageKind = Literal["task", "turn", "call", "answer"]
KINDS: tuple[PassageKind, ...] = get_args(PassageKind)
PARTS = 10_000
"""Passages that one event may have: passage n of the event with sequence s is s * PARTS + n. A turn's n is its place in
the transcript, from 1."""
RANKED = 5_000
"""Passages with the words, the newest, that are put into an order."""
TOKENS = 32
"""Words of a snippet."""
_OPEN, _CLOSE = "\x02", "\x03"
_Part = tuple[int, PassageKind, str]


@projection(
    key=("passage",),
    columns={"passage": int, "kind": str},
    events=(
        submissions.TaskSubmitted,
        facts.TaskProposed,
        facts.ToolCalled,
        facts.TaskAttempted,
        checkpoints.EvaluationItemScored,
        benchmarks.ItemScored,
        submissions.RowAnswered,
    ),
    search=KINDS,
)
def passages(e: Recorded) -> Iterator[Row]:
    """``kind``: what was asked (task), what a student wrote (turn), a tool call with its output (call), an answer. The
    text is indexed and not stored again: the event has it. Of a transcript that is an artifact only calls and answer
    are passages."""
    for number, kind, text in _parts(e.event):
        yield {"passage": e.seq * PARTS + number, "kind": kind, kind: text}


def _parts(event: Event) -> Iterator[_Part]:
    """Number, kind and text of each passage of an event; none is empty."""
    return ((number, kind, text.strip()) for number, kind, text in _all_parts(event) if text.strip() and number < PARTS)


def _all_parts(event: Event) -> Iterator[_Part]:
    match event:
        case submissions.TaskSubmitted() as x if not x.turn:
            yield 0, "task", x.proposal.question
        case facts.TaskProposed() as x:
            question = x.proposal.question if x.proposal else ""
            yield 0, "task", x.text if question in x.text else f"{question}\n{x.text}"
        case facts.ToolCalled() as x:
            yield 0, "call", f"{x.call.raw.strip()}\n{x.result.output}"
        case facts.TaskAttempted() as x:
            yield from _turns(x.transcript, x.turns, ("assistant",))
            yield PARTS - 1, "answer", x.answer or ""
        case checkpoints.EvaluationItemScored() as x:
            yield 0, "task", x.question
            yield from _conversation(x)
        case benchmarks.ItemScored() as x:
            yield 0, "task", x.facts.get("question", "")
            yield from _conversation(x)
        case submissions.RowAnswered() as x:
            yield from _conversation(x)


def _conversation(
    x: checkpoints.EvaluationItemScored | benchmarks.ItemScored | submissions.RowAnswered,
) -> Iterator[_Part]:
    """Turns of the student and its tools, which have no events of their own here, and the answer."""
    if x.conversation:
        yield from _turns(x.conversation.transcript, x.turns, ("assistant", "tool"))
    yield PARTS - 1, "answer", x.answer or ""


def _turns(transcript: Sequence[Turn], own: int, roles: Sequence[str]) -> Iterator[_Part]:
    """Turns of ``roles`` from the first of the last ``own`` ones of the student: before it is the prompt, which all
    attempts share."""
    before = sum(turn.role == "assistant" for turn in transcript) - own
    for number, turn in enumerate(transcript, 1):
        if turn.role == "assistant":
            before -= 1
        if before < 0 and turn.role in roles:
            text = "\n".join(filter(None, (turn.thinking, turn.content)))
            yield number, "call" if turn.role == "tool" else "turn", text


def search_passages(
    db: sqlite3.Connection, query: str, run: str = "", kind: PassageKind | None = None, limit: int = 20, skip: int = 0
) -> list[Row]:
    """Passages that hold all words of ``query``, the best first, without the first ``skip``. Empty ``run``: all runs
    that lists show.

    ``turn`` is a place in the transcript, from 1, None beside turns; ``call`` the number of a tool call; ``snippet``
    are pieces of text, those with ``match`` being the words. Of more than ``RANKED`` passages the newest are looked at.
    """
    match = match_of(query)
    if not match:
        return []
    first, last = extent_of(db, run) if run else (0, 0)
    low, high = (first * PARTS, (last + 1) * PARTS) if run else (0, 1 << 62)
    of_kind = f"{{{kind}}} : ({match})" if kind else match
    of = "events.run = ?" if run else f"? = '' AND events.run NOT IN ({_UNLISTED})"
    rows = select(db, _RANKED.format(of=of), (of_kind, low, high, run, RANKED, limit, skip))
    texts = [_text(row) for row in rows]
    return [_shown(row, snippet) for row, snippet in zip(rows, _snippets(texts, match), strict=True)]


_UNLISTED = "SELECT run FROM runs WHERE deleted IS NOT NULL OR coalesce(hidden, 0)"
_RANKED = """
SELECT seq, passage, kind, type, run, task, attempt, time, body FROM (
    SELECT passage, kind, score FROM (
        SELECT passage, kind, bm25(passages_fts) AS score FROM passages_fts
        JOIN passages ON passage = passages_fts.rowid JOIN events ON seq = passage / 10000
        WHERE passages_fts MATCH ? AND passages_fts.rowid BETWEEN ? AND ? AND {of}
        ORDER BY passages_fts.rowid DESC LIMIT ?)
    ORDER BY score, passage DESC LIMIT ? OFFSET ?) AS hit
JOIN events ON seq = passage / 10000 ORDER BY score, passage DESC
"""


def _event(row: Row) -> Event:
    return decode(str(row["body"]).encode(), row["seq"]).event


def _text(row: Row) -> str:
    """The text of the passage of ``row``, from its event."""
    number = row["passage"] % PARTS
    return next((text for n, _, text in _parts(_event(row)) if n == number), "")


def _snippets(texts: Sequence[str], match: str) -> list[list[Row]]:
    """What of each text stands around the words, by the same reading of words that found it."""
    clean = [text.replace(_OPEN, "").replace(_CLOSE, "") for text in texts]
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE VIRTUAL TABLE hits USING fts5(text)")
        memory.executemany("INSERT INTO hits (rowid, text) VALUES (?, ?)", enumerate(clean))
        query = "SELECT rowid, snippet(hits, 0, ?, ?, '…', ?) FROM hits WHERE hits MATCH ?"
        marked = dict(memory.execute(query, (_OPEN, _CLOSE, TOKENS, match)).fetchall())
    return [_pieces(marked.get(number, text[:200])) for number, text in enumerate(clean)]


def _pieces(marked: str) -> list[Row]:
    """A marked text cut at its marks."""
    pieces = []
    for head, *tail in (part.split(_CLOSE, 1) for part in marked.split(_OPEN)):
        pieces += [{"text": head, "match": bool(tail)}, *({"text": text, "match": False} for text in tail)]
    return [piece for piece in pieces if piece["text"]]


def _shown(row: Row, snippet: list[Row]) -> Row:
    number, event = row["passage"] % PARTS, _event(row)
    own = {name: row[name] for name in ("kind", "run", "task", "attempt", "seq", "time")}
    call = event.number if isinstance(event, facts.ToolCalled) else None
    if isinstance(event, submissions.RowAnswered):
        own["attempt"] = event.item
    return {**own, "turn": number if 0 < number < PARTS - 1 else None, "call": call, "snippet": snippet}
