"""Pages of a fork: its past is that of its parent, and they say so."""

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from agent0.assembly.api.handles import RunProgress
from agent0.events.base import Recorded
from agent0.events.runs import RunStarted
from agent0.events.tasks import TaskRequested
from tests.api.conftest import seeing
from tests.api.served import stored
from tests.story import renumbered, whole_run
from tests.test_report import Reader


def second(told: list[Recorded]) -> int:
    """Where the second iteration of ``told`` begins."""
    return next(n for n, e in enumerate(told) if isinstance(e.event, TaskRequested) and e.event.iteration == 1)


@pytest.fixture(scope="module")
def branched(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """A run of two iterations, and a fork of it that begins with the second of them."""
    parent, other = whole_run(incidents=False), whole_run("f1", incidents=False, seed=1)
    begins = second(parent)
    started = other[0].event
    assert isinstance(started, RunStarted)
    start = started.model_copy(update={"parent": "r1", "parent_seq": parent[begins - 1].seq})
    fork = [other[0].model_copy(update={"event": start}), *other[second(other) :]]
    return seeing(stored(tmp_path_factory.mktemp("forks"), [*parent, *renumbered(fork, len(parent))]))


def words(client: TestClient, path: str) -> str:
    return " ".join(" ".join(Reader(client.get(path).text).words).split())


def test_tiles_and_progress_of_a_fork_have_the_scores_that_it_shares(branched: TestClient) -> None:
    parent, fork = (branched.get(f"/v1/runs/{run}").json() for run in ("r1", "f1"))
    progress = RunProgress.of(fork)
    assert progress.heldout_first == fork["heldout_first"] == parent["heldout_first"] is not None
    assert fork["forced_tool"] == parent["forced_tool"] is not None
    own = next(test for test in fork["test"] if test["evaluation"].endswith("-final"))
    assert progress.heldout_last == own["accuracy"]
    page = words(branched, "/runs/f1")
    assert f"Test, first {parent['heldout_first']:.1%}" in page and f"Forced tool {parent['forced_tool']:.1%}" in page


def test_before_it_is_scored_itself_a_fork_has_only_shared_scores(tmp_path: Path) -> None:
    parent = whole_run(iterations=1, incidents=False)
    facts = {"name": "", "profile": "tiny", "seed": 0, "config": {"tasks": 1, "iterations": 2}, "config_sha": ""}
    start = RunStarted.model_validate({**facts, "parent": "r1", "parent_seq": len(parent)})
    begun = parent[0].model_copy(update={"run": "f2", "id": "f2-start", "seq": len(parent) + 1, "event": start})
    client = seeing(stored(tmp_path, [*parent, begun]))
    whole, fork = (client.get(f"/v1/runs/{run}").json() for run in ("r1", "f2"))
    assert [fork[name] for name in ("heldout_first", "heldout_last", "forced_tool")] == [
        whole[name] for name in ("heldout_first", "heldout_last", "forced_tool")
    ]
    assert f"Test, last {whole['heldout_last']:.1%} {whole['test'][-1]['checkpoint']}" in words(client, "/runs/f2")


def test_the_curve_of_a_fork_begins_with_that_of_its_parent(branched: TestClient) -> None:
    curves = {run: branched.get(f"/v1/runs/{run}/curve").json()["data"] for run in ("r1", "f1")}
    shared = [point["validation"] for point in curves["r1"] if point["iteration"] < 1]
    whole = [point["validation"] for point in curves["f1"]]
    own = whole[2:]
    assert len(shared) == 2 and len(own) == 1 and whole == shared + own
    assert [row["curve"] for row in branched.get("/runs.json").json()["runs"] if row["run"] == "f1"] == [whole]
    lines = branched.get("/compare.json?run=r1&run=f1").json()["drawn"][0]["lines"]
    assert lines[0]["x"] == lines[1]["x"] == [0, 1, 2]
    assert lines[1]["y"] == pytest.approx([*shared, *own], abs=1e-5)
    page = branched.get("/runs/f1").text
    links = {value for name, value in Reader(page).attributes if name == "href"}
    assert {"/runs/r1/iterations/0", "/runs/f1/iterations/1", "/runs/r1"} <= links
    assert len(re.findall('<circle class="(?:point|refused)"', page)) == 3
    assert "/runs/f1/iterations/0" not in links and "it is the curve of" in page
    assert "it is the curve of" not in branched.get("/runs/r1").text


def test_an_iteration_that_the_parent_made_leads_there(branched: TestClient) -> None:
    refused = branched.get("/runs/f1/iterations/0")
    assert refused.status_code == 404 and "its parent r1 made that" in refused.text
    assert ("href", "/runs/r1/iterations/0") in Reader(refused.text).attributes
    assert branched.get("/runs/r1/iterations/0").status_code == 200
    assert "parent" not in branched.get("/runs/f1/iterations/7.json").json()["detail"]
