"""Search in tasks, turns, tool calls and answers: every passage is found by its words, no query fails."""

import re
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.base import record
from agent0.events.runs import RunLabelled
from agent0.projections import Projector, tables
from agent0.projections.base import MOST_TERMS, match_of
from agent0.projections.passages import KINDS, PARTS, _parts, search_passages
from tests.story import benchmark_run, bodies, renumbered, whole_run
from tests.story_submissions import batch_run, submitted_task

RUN = whole_run(iterations=1, tasks=3, attempts=2)
STORY = [*RUN, *renumbered(whole_run("r2", iterations=1, tasks=2, attempts=2), after=len(RUN))]
STORY += benchmark_run(after=len(STORY))
STORY += batch_run(after=len(STORY))
STORY += submitted_task(after=len(STORY))
HOSTILE = (
    '"',
    '""',
    "*",
    "**",
    "a" * 10_000,
    "print " * 2_000,
    'x" OR "y',
    "NEAR(a b)",
    "text:a",
    "^a - b",
    "\0",
    "(",
    "';--",
)


def told(*batches: list[tuple[int, bytes]]) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    projector = Projector(Path("memory"), lambda _: db, tables(), "stream")
    for batch in batches:
        projector.apply(batch)
    return db


@pytest.fixture(scope="module")
def db() -> sqlite3.Connection:
    return told(bodies(STORY))


def test_every_passage_is_found_by_its_words(db: sqlite3.Connection) -> None:
    """With its place, and with a snippet of its own text in which the words are marked."""
    kinds = set[str]()
    for recorded in STORY:
        for number, kind, text in _parts(recorded.event):
            words = [word for word in text.replace('"', " ").split() if word.isalnum()][:3]
            if not words:
                continue
            rows = search_passages(db, " ".join(words), recorded.run, kind, limit=-1)
            row = next(row for row in rows if row["seq"] == recorded.seq and (row["turn"] or number) == number)
            assert row["turn"] == (number if 0 < number < PARTS - 1 else None) and row["run"] == recorded.run
            shown = "".join(part["text"] for part in row["snippet"])
            assert shown.strip("…") in text
            marked = " ".join(part["text"] for part in row["snippet"] if part["match"]).casefold()
            assert all(word.casefold() in marked for word in words if word in shown)
            kinds.add(kind)
    assert kinds == set(KINDS)


@pytest.mark.parametrize("query", HOSTILE, ids=lambda query: ascii(query[:12]))
def test_no_query_fails(db: sqlite3.Connection, query: str) -> None:
    assert isinstance(search_passages(db, query), list)


@given(st.text(max_size=80))
def test_no_text_is_an_operator(query: str) -> None:
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE VIRTUAL TABLE t USING fts5(text)")
        if match := match_of(query):
            memory.execute("SELECT rowid FROM t WHERE t MATCH ?", (match,)).fetchall()
    assert match_of("x " * 100).count('"') == 2 * MOST_TERMS


def test_phrases_beginnings_and_skipping(db: sqlite3.Connection) -> None:
    """A phrase is narrower than its words; a beginning is wider; pages do not overlap and are the whole in order."""
    question = next(row for row in search_passages(db, "what", kind="task"))
    words = "".join(part["text"] for part in question["snippet"]).split()[:2]
    assert search_passages(db, f'"{words[0]} {words[1]}"') and not search_passages(db, f'"{words[1]} {words[0]}"')
    assert search_passages(db, f"{words[0][:2]}*") and not search_passages(db, words[0][:2])
    everything = search_passages(db, "what", limit=-1)
    pages = [row for skip in range(0, len(everything), 3) for row in search_passages(db, "what", limit=3, skip=skip)]
    assert pages == everything and len(everything) > 3


def test_it_is_the_same_however_events_come() -> None:
    stored = bodies(STORY)
    cuts = [0, 7, 90, len(stored)]
    parts = [stored[begin:end] for begin, end in pairwise(cuts)]
    with closing(told(stored)) as whole, closing(told(*parts, stored)) as cut:
        for query in ("what", "pri*", "the", "1*"):
            assert search_passages(whole, query, limit=-1) == search_passages(cut, query, limit=-1) != []


def test_hidden_runs_are_found_by_name_alone() -> None:
    hidden = record(RunLabelled(hidden=True), run="r2", time=STORY[-1].time)
    with closing(told(bodies([*STORY, *renumbered([hidden], after=len(STORY))]))) as db:
        assert "r2" not in {row["run"] for row in search_passages(db, "what", limit=-1)}
        assert {row["run"] for row in search_passages(db, "what", "r2", limit=-1)} == {"r2"}


def test_a_hit_leads_to_its_turn(whole: TestClient) -> None:
    """The page of a hit has its anchor, and the turn there is the one that holds the words."""
    for row in whole.get("/v1/search?q=print*&kind=turn").json()["data"]:
        attempt = whole.get(f"/runs/{row['run']}/trajectories/{row['attempt']}.json").json()["attempt"]
        turn, head = attempt["transcript"][row["turn"] - 1], row["snippet"][0]["text"].strip("…")
        assert turn["role"] == "assistant" and head in turn["content"]
    page = whole.get("/search?q=print&run=r1").text
    assert "<mark>print</mark>" in page
    for path, anchor in re.findall(r'<a href="(/runs/[^"#]+)#([a-z0-9-]+)"', page):
        assert f'id="{anchor}"' in whole.get(path.replace("&amp;", "&")).text


def test_nothing_is_found_that_was_written_later(whole: TestClient) -> None:
    late = [row["seq"] for row in whole.get("/v1/search?q=print&run=r1").json()["data"]]
    at = sorted(late)[len(late) // 2]
    past = whole.get(f"/search.json?q=print&run=r1&at={at}").json()["passages"]
    assert {row["seq"] for row in past} == {seq for seq in late if seq <= at} < {*late}
