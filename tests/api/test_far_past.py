"""A moment too far from all that is kept is built by a process of its own, and is then the same as any other."""

import time
from pathlib import Path

import pytest

from tests.api.conftest import seeing
from tests.api.served import stored
from tests.story import whole_run

PATHS = ("/v1/runs/r1", "/v1/runs/r1/trajectories", "/runs/r1/iterations/0.json")
SOON_S = 120


@pytest.mark.slow
def test_a_far_moment_is_built_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = seeing(stored(tmp_path, whole_run(iterations=3)))
    at = [{"at": one} for one in (300, 390)]
    plain = [[client.get(path, params=one).json() for path in PATHS] for one in at]
    other = seeing(tmp_path)
    monkeypatch.setattr("agent0.api.past.MOST", 50)
    page = other.get("/runs/r1", params=at[0], headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["refresh"]) == (503, "5") and "being built" in page.text
    second = other.get(PATHS[0], params=at[1])
    assert second.json()["type"] == "urn:agent0:problem:being_made" and second.headers["retry-after"] == "5"
    assert other.get(PATHS[0]).status_code == 200  # meanwhile the present is there
    found, until = [], time.monotonic() + SOON_S
    for one in at:
        while other.get(PATHS[0], params=one).status_code == 503 and time.monotonic() < until:
            time.sleep(0.05)
        found.append([other.get(path, params=one).json() for path in PATHS])
    assert found == plain
    other.app.state.context.past.close()  # type: ignore[attr-defined]
    client.app.state.context.past.close()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_server_that_ends_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = seeing(stored(tmp_path, whole_run(iterations=3)))
    monkeypatch.setattr("agent0.api.past.MOST", 50)
    assert client.get("/v1/runs/r1", params={"at": 300}).status_code == 503
    past = client.app.state.context.past  # type: ignore[attr-defined]
    process, folder = past._beside[1], past._folder
    past.close()
    assert folder.path.parent == tmp_path / "cache" / "past"
    assert process.poll() is not None and not folder.path.exists()
