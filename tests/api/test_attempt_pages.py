"""An attempt in its four views, its files after each call, and two attempts side by side."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from agent0.events.runs import RunStarted
from agent0.events.tasks import AttemptRequested, TaskAttempted, ToolCalled
from agent0.events.values import Artifact, Task, ToolCall, ToolResult, ToolState, Turn
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.projections.tool_calls import list_calls
from agent0.tools.snapshots import save
from benchmarks.server import long_attempt
from tests.api.conftest import seeing
from tests.api.served import stored
from tests.api.test_pages import links
from tests.story import Teller
from tests.test_report import NASTY, Reader

TURNS = 450
LONG = "/runs/long/trajectories/t0-000-a0"
FOLDERS: tuple[dict[str, bytes], ...] = (
    {"a.txt": b"one\ntwo\n"},
    {"a.txt": b"one\nthree\n", "sub/<b>.txt": NASTY.encode()},
    {"sub/<b>.txt": NASTY.encode(), "raw.bin": b"\xff\xfe"},
)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    home = tmp_path_factory.mktemp("long")
    return seeing(stored(home, long_attempt(FileArtifacts(home), TURNS)))


@pytest.mark.parametrize("view", ["conversation", "compact", "raw"])
def test_parts_of_a_view_join_up_to_all_turns(long: TestClient, view: str) -> None:
    path, seen = f"{LONG}?view={view}", list[int]()
    while path:
        text = long.get(path).text
        seen += [int(one) for one in re.findall(r'id="turn-(\d+)"', text)]
        assert text.count("data-part") == text.count('data-virtual="turns"') == 1
        following = re.search(r'<p data-more="turns"><a href="([^"#]+)', text)
        path = unescape(following[1]) if following else ""
    assert seen == [*range(1, TURNS + 1)]


def test_calls_are_those_of_the_turns_that_are_shown(long: TestClient) -> None:
    found = [
        {int(one) for one in re.findall(r"<summary>(\d+) run_python", long.get(f"{LONG}?turn={turn}").text)}
        for turn in (1, 201, 401)
    ]
    assert found == [{*range(1, 101)}, {*range(101, 201)}, {*range(201, 226)}]


def test_calls_of_some_turns_keep_their_names(tmp_path: Path) -> None:
    """Steps of plans come before their plan: 2.1, 2.2, 2; each is named as among all calls."""
    teller = Teller("w", 1, 1, 1, 0)
    at: dict[str, Any] = {"task": "t0-000", "attempt": "t0-000-a0"}
    result = ToolResult(state=ToolState.OK)
    turns = [(0, False), (1, True), (1, True), (1, False), (3, True), (3, False), (3, False)]
    for number, (turn, inner) in enumerate(turns):
        call = ToolCall(name="python", raw="")
        teller.tell(ToolCalled(**at, turn=turn, number=number, call=call, result=result, inner=inner))
    with seeing(stored(tmp_path, teller.told)).app.state.context.tables() as db:  # type: ignore[attr-defined]
        held = list_calls(db, "w", at["attempt"])
        assert [one["call"] for one in held] == ["1", "2.1", "2.2", "2", "3.1", "3", "4"]
        for first, last in ((0, 1), (1, 2), (1, 4), (2, 3), (3, 9)):
            some = list_calls(db, "w", at["attempt"], (first, last))
            assert some == [one for one in held if first <= one["turn"] < last]


def test_the_timeline_is_the_events_of_the_attempt(long: TestClient) -> None:
    pages = [long.get(f"{LONG}.json?view=timeline&turn={turn}").json() for turn in (1, 201)]
    rows = [row for page in pages for row in page["events"]]
    held = long.get("/v1/events?run=long&task=t0-000&limit=1000").json()["data"]
    assert [row["seq"] for row in rows] == [one["seq"] for one in held if one["attempt"]]
    assert pages[0]["total"] == len(rows) and rows[0]["type"] == "AttemptRequested" and rows[0]["after_s"] == 0
    assert [row["after_s"] for row in rows] == sorted(row["after_s"] for row in rows)


def test_raw_is_what_was_recorded(long: TestClient, hostile: TestClient) -> None:
    turns = long.get(f"{LONG}.json").json()["attempt"]["transcript"]
    shown = [unescape(one) for one in re.findall(r'<pre class="record"[^>]*>([^<]*)</pre>', _text(long, "raw"))]
    assert [json.loads(one) for one in shown] == turns[:200]
    raw = hostile.get("/runs/r1/trajectories/t0-000-a0?view=raw").text
    said = [unescape(one) for one in re.findall(r'<pre class="record"[^>]*>([^<]*)</pre>', raw)]
    assert json.loads(said[0])["content"].startswith(NASTY)  # controls are written, not obeyed and not left out


def _text(client: TestClient, view: str) -> str:
    return client.get(f"{LONG}?view={view}").text


def test_a_view_there_is_not(long: TestClient) -> None:
    assert long.get(f"{LONG}?view=graph").status_code == 422
    assert "Nothing" not in long.get(f"{LONG}?turn=100000").headers["content-type"]


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An attempt whose three calls leave ``FOLDERS``."""
    home = tmp_path_factory.mktemp("worked")
    artifacts, teller = FileArtifacts(home), Teller("w", 1, 1, 1, 0)
    teller.tell(
        RunStarted(
            name="w",
            profile="tiny",
            seed=0,
            config={"seed": 0, "iterations": 1, "tasks": 1, "attempts": 1},
            config_sha="0",
        )
    )
    task = Task(question="Count.", domain="code", family="lists", level=4, canonical="count")
    at: dict[str, Any] = {"task": "t0-000", "attempt": "t0-000-a0"}
    held = {**at, "iteration": 0, "number": 0, "student": "base"}
    teller.tell(AttemptRequested(**held, proposal=task, seed=1, state_sha="0"))
    for n, files in enumerate(FOLDERS):
        work: Artifact | None = save(files, artifacts)
        result = ToolResult(state=ToolState.OK, output="", work=work, files=len(files), file_bytes=1)
        teller.tell(ToolCalled(**at, turn=n, number=n, call=ToolCall(name="run_python", raw=""), result=result))
    said = tuple(Turn(role="assistant", content=f"step {n}") for n in range(3))
    counts = {"turns": 3, "tool_calls": 3, "tool_ok": 3}
    teller.tell(TaskAttempted(**held, answer="1", end="answered", **counts, prompt="p", transcript=said))
    yield seeing(stored(home, teller.told))


def test_a_call_shows_what_it_left_in_the_work_folder(worked: TestClient) -> None:
    path = "/runs/w/trajectories/t0-000-a0"
    assert f"{path}/files/2" in links(worked.get(path).text)
    kinds = [
        {row["path"]: row["kind"] for row in worked.get(f"{path}/files/{call}.json").json()["changes"]}
        for call in "0123"
    ]
    assert kinds == [
        {},
        {"a.txt": "added"},
        {"a.txt": "changed", "sub/<b>.txt": "added"},
        {"a.txt": "removed", "raw.bin": "added"},
    ]
    second = worked.get(f"{path}/files/2").text
    assert "-two" in second and "+three" in second
    for link in links(second):
        assert worked.get(link).status_code == 200, link
    shown = worked.get(f"{path}/files/2", params={"file": "sub/<b>.txt"})
    seen = Reader(shown.text)
    assert "<script>alert(1)</script>" in "".join(seen.words) and seen.tags.count("script") == 1
    assert "no text" in worked.get(f"{path}/files/3", params={"file": "raw.bin"}).text
    for wrong in ("4", "x", "1?file=../../etc/passwd"):
        assert worked.get(f"{path}/files/{wrong}").status_code in (404, 422), wrong


def test_files_that_are_not_here_are_told(worked: TestClient) -> None:
    home = Path(worked.get("/runs.json").json()["home"])
    manifest = worked.get("/v1/runs/w/trajectories/t0-000-a0").json()["calls"][0]["work"]
    stored_at = home / "artifacts" / manifest[:2] / manifest[2:]
    kept = stored_at.read_bytes()
    stored_at.unlink()
    found = worked.get("/runs/w/trajectories/t0-000-a0/files/1")
    assert found.status_code == 404 and "<h1>" in found.text
    stored_at.write_bytes(kept)


def test_two_attempts_stand_side_by_side(whole: TestClient) -> None:
    """Of a group, of two runs, and what two checkpoints made of a submitted task; turns are aligned."""
    left, right = "r1/t0-000-a0", "r2/t0-001-a1"
    found = whole.get("/compare.json", params={"left": left, "right": right}).json()
    own = [
        [turn["content"] for turn in whole.get(f"/v1/runs/{run}/trajectories/{name}").json()["transcript"]]
        for run, _, name in (left.partition("/"), right.partition("/"))
    ]
    for side, said in zip(("left", "right"), own, strict=True):
        shown = [row[side]["content"] for row in found["turns"] if row[side]]
        assert shown == said[-len(shown) :] and shown
    assert all(row["same"] == (row["left"] == row["right"]) for row in found["turns"])
    page = whole.get("/compare", params={"left": left, "right": left}).text
    assert page.count("<summary>The same: ") == len(
        whole.get(f"/compare.json?left={left}&right={left}").json()["turns"]
    )
    tasks = {"left": "submission-00aa11", "right": "submission-00aa22"}
    sides = whole.get("/compare.json", params=tasks).json()["sides"]
    assert [side["status"] for side in sides] == ["verified", whole.get("/v1/tasks/submission-00aa22").json()["status"]]
    assert sides[0]["attempt"]["answer"] == "56" and sides[1]["attempt"] is None
    assert whole.get("/compare", params=tasks).status_code == 200
    for wrong in ({"left": left, "right": "r1/student-1"}, {"left": left, "right": "r2"}):
        assert whole.get("/compare", params=wrong).status_code == 422
    for wrong in ("submission-ffffff", "r1/t9-000-a0"):
        assert whole.get("/compare", params={"left": left, "right": wrong}).status_code == 404
