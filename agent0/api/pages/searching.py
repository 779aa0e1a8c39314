"""The page that searches tasks, turns, tool calls and answers."""

from agent0.api.conditional import At, Counted
from agent0.api.context import Context
from agent0.api.pages.rendering import Shown, twin
from agent0.api.v1.lists import Kind, Of, Words
from agent0.events.submissions import PREFIX
from agent0.projections.base import MOST_TERMS, Row
from agent0.projections.passages import KINDS, RANKED, search_passages
from agent0.projections.runs import list_runs, resolve

SHOWN = 20
"""Passages of a page."""
RUNS = 200
"""Runs that the form offers."""


@twin("/search", "search.html.jinja")
def search(
    context: Context,
    words: Words = "",
    of: Of = "",
    kind: Kind = None,
    after: Counted = "",
    at: At = 0,
) -> Shown:
    """Passages that hold all the words, the best first, each leading to where it stands."""
    with context.tables(at) as db:
        run, start = resolve(db, of) if of else "", int(after or 0)
        rows = search_passages(db, words, run, kind, SHOWN + 1, start)
        names = [row["run"] for row in list_runs(db, RUNS)]
    data: Row = {"words": words, "run": run, "kind": kind, "passages": rows[:SHOWN]}
    data["next"] = start + SHOWN if len(rows) > SHOWN else None
    more = {"names": dict.fromkeys([*names, *([run] if run else [])]), "kinds": KINDS, "start": start}
    return Shown(data, at, {**more, "places": [_place(row) for row in rows], "ranked": RANKED, "terms": MOST_TERMS})


def _place(row: Row) -> Row:
    """The path of the page that holds a passage, the turn that it shows, and the anchor there."""
    if row["run"].startswith(PREFIX):
        return {"path": ("tasks", row["run"]), "turn": "", "anchor": ""}
    if row["attempt"] == "-":
        return {"path": ("runs", row["run"], "tasks", row["task"]), "turn": "", "anchor": ""}
    anchor = f"turn-{row['turn']}" if row["turn"] else f"call-{row['call']}" if row["call"] is not None else ""
    path = ("runs", row["run"], "trajectories", row["attempt"])
    return {"path": path, "turn": row["turn"] or "", "anchor": anchor}
