"""What the API sends is what the command line prints, now and at any past event; pages of it join up."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.infra.storage import sqlite
from agent0.projections import Projector, tables
from agent0.settings import Settings
from tests.api.served import ADDRESS, stored
from tests.story import bodies, whole_run
from tests.terminal import agent0 as call

SAME = {
    "/v1/runs/r1": ("run", "show", "r1"),
    "/v1/runs/r1/story": ("run", "story", "r1"),
    "/v1/runs/r1/tasks?limit=1000": ("task", "list", "r1"),
    "/v1/runs/r1/tasks?status=rejected": ("task", "list", "r1", "--status", "rejected"),
    "/v1/runs/r1/trajectories?limit=1000": ("trajectory", "list", "r1"),
    "/v1/runs/r1/trajectories?correct=false": ("trajectory", "list", "r1", "--wrong"),
    "/v1/runs/r1/trajectories/t0-000-a0": ("trajectory", "show", "t0-000-a0", "r1"),
    "/v1/events/40": ("events", "show", "40"),
    "/v1/checkpoints": ("model", "list"),
    "/v1/checkpoints/r1/student-1": ("model", "show", "r1/student-1"),
    "/v1/experiments": ("experiment", "list"),
    "/v1/router/budgets": ("router", "budget", "list"),
    "/v1/router/stats?by=role&run=r1": ("router", "stats", "--by", "role", "--run", "r1"),
    "/v1/admin/failures": ("failures", "list"),
}
"""Address -> the command that prints the same."""
LISTS = ("/v1/runs/r1/tasks", "/v1/runs/r1/trajectories", "/v1/checkpoints", "/v1/events", "/v1/runs")


@pytest.mark.parametrize("path", SAME)
def test_it_sends_what_commands_print(client: TestClient, home: Path, path: str) -> None:
    sent = client.get(path).json()
    printed = call(*SAME[path], "--json", home=home).json
    assert (sent["data"] if "next" in sent else sent) == printed


@settings(max_examples=8)
@given(path=st.sampled_from(LISTS), limit=st.integers(13, 120))
def test_pages_join_up(client: TestClient, path: str, limit: int) -> None:
    whole = client.get(path, params={"limit": 1000}).json()["data"]
    joined: list[Any] = []
    after = ""
    while after is not None:
        page = client.get(path, params={"limit": limit, "after": after} if after else {"limit": limit}).json()
        assert len(page["data"]) <= limit
        joined, after = joined + page["data"], page["next"]
    assert joined == whole and len(whole) > 0


def served(home: Path) -> TestClient:
    held = Settings(home=home)
    return TestClient(create_app(ApiContext(held, KeyFile(home), PastTables(held))), base_url=ADDRESS)


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/runs/r1", "/v1/runs/r1/trajectories", "/v1/runs/r1/curve"])
def test_the_past_is_what_was_shown_then(client: TestClient, tmp_path: Path, path: str) -> None:
    story = whole_run(iterations=3)
    for at in (200, 1, 201, 90):  # forwards from a kept one, and backwards
        then = served(stored(tmp_path / str(at), story[:at])).get(path)
        now = client.get(path, params={"at": at})
        assert (now.status_code, now.json()) == (then.status_code, then.json()), at


def test_a_tag_saves_what_did_not_change(tmp_path: Path) -> None:
    story = whole_run(iterations=1)
    client = served(stored(tmp_path, story[:60]))
    first = client.get("/v1/runs/r1")
    known = {"If-None-Match": first.headers["etag"]}
    assert client.get("/v1/runs/r1", headers=known).status_code == 304
    assert client.get("/v1/runs/r1?at=9", headers=known).status_code == 200
    assert client.get("/v1/runs/r1", headers={"If-None-Match": f'"x", {known["If-None-Match"]}'}).status_code == 304
    projector = Projector(tmp_path / "tables" / "view.db", sqlite.connect, tables(), "stream")
    projector.apply(bodies(story))
    projector.close()
    then = client.get("/v1/runs/r1", headers=known)
    assert then.status_code == 200 and then.json() != first.json()


def test_a_batch_and_its_answers_are_fetched_row_by_row(whole: TestClient) -> None:
    (listed,) = whole.get("/v1/batches").json()["data"]
    shown = whole.get("/v1/batches/LAST").json()
    assert shown == {**listed, "here": None}
    assert (shown["batch"], shown["rows"], shown["answered"], shown["failed"]) == ("batch-1", 2, 1, 1)
    first = whole.get("/v1/batches/batch-1/rows?limit=1").json()
    rest = whole.get(f"/v1/batches/batch-1/rows?after={first['next']}").json()
    assert [(row["row"], row["answer"], row["finish"], row["error"]) for row in first["data"] + rest["data"]] == [
        (1, "18", "answered", None),
        (2, None, None, "row 2, column question: it is empty"),
    ]
    assert rest["next"] is None and whole.get(f"/v1/events/{first['data'][0]['event']}").json()["type"] == "RowAnswered"


WRONG = {
    "/v1/batches/batch-9": 404,
    "/v1/batches/batch-9/rows": 404,
    "/v1/batches/batch-9/rows?after=x": 422,
    "/v1/runs/nobody": 404,
    "/v1/runs?after=nobody": 404,
    "/v1/runs/r1/tasks/t9-999": 404,
    "/v1/runs/r1/tasks?after=t9-999": 404,
    "/v1/runs/r1/trajectories/t9-999-a0": 404,
    "/v1/events?after=100000": 404,
    "/v1/events?type=Nothing": 404,
    "/v1/events?run=nobody": 404,
    "/v1/runs/r1?at=100000": 404,
    "/v1/events?limit=100000": 422,
    "/v1/events?after=-1": 422,
    "/v1/checkpoints?after=x": 422,
    "/v1/checkpoints/r1/nothing": 404,
    "/v1/admin/consumers": 409,
    "/nothing": 404,
    "/runs/nobody.json": 404,
}


@pytest.mark.parametrize("path", WRONG)
def test_what_is_wrong_is_a_problem_document(client: TestClient, path: str) -> None:
    found = client.get(path)
    assert found.status_code == WRONG[path]
    assert found.headers["content-type"] == "application/problem+json"
    told = found.json()
    assert told["status"] == WRONG[path] and told["title"] and told["instance"] == path.partition("?")[0]
    assert told["type"].startswith("urn:agent0:problem:")


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    client = served(tmp_path)
    assert client.get("/v1/runs").status_code == 404
    assert "agent0 run start" in client.get("/v1/runs").json()["fix"]
    assert client.get("/v1/status").json()["tables"] is None
    told = call("status", "--json", home=tmp_path)
    assert told.code == 0 and json.loads(told.out)["log"] == {"state": "at rest"}


def test_a_mistake_of_ours_tells_nothing(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("sk-canary")

    monkeypatch.setattr("agent0.api.v1.runs.overview", broken)
    found = client.get("/v1/runs/r1")
    assert found.status_code == 500 and "canary" not in found.text
    assert found.headers["content-security-policy"].startswith("default-src 'none'")
    assert found.headers["content-type"] == "application/problem+json"


def test_metrics_have_bounded_labels(client: TestClient) -> None:
    """Addresses that were asked are no labels; what the tables hold and how the server answers is there."""
    for path in ("/v1/runs/r1", "/v1/runs/nobody", "/no/such/page", "/v1/runs"):
        client.get(path)
    found = client.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain") and found.status_code == 200
    assert 'agent0_runs{status="finished"} 1.0' in found.text
    assert 'agent0_http_answers_total{method="GET",route="/v1/runs/{run}",status="4xx"}' in found.text
    assert 'agent0_http_seconds_bucket{le="0.2",route="/v1/runs"}' in found.text
    assert "nobody" not in found.text and "/no/such/page" not in found.text
