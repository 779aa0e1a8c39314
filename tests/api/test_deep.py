"""Large runs: their page does not wait for what takes reading all attempts, and that is read again now and then."""

from pathlib import Path
from threading import Event

import pytest
from fastapi.testclient import TestClient

from agent0.api import deep
from agent0.api.deep import DeepReadings
from tests.api.conftest import seeing
from tests.api.served import stored
from tests.story import whole_run


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setattr(deep, "SMALL", 0)  # so that this run counts as a large one
    return seeing(stored(tmp_path, whole_run(iterations=1)))


def test_a_page_says_that_a_run_is_being_read(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands at once; the API waits, and then the page has all of it."""
    let, read = Event(), deep.deep_parts

    def held(*given: object) -> dict[str, object]:
        let.wait(60)
        return read(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(deep, "deep_parts", held)
    first = client.get("/runs/r1")
    assert first.status_code == 200 and "being read from its attempts" in first.text and "Learning curve" in first.text
    let.set()
    whole = client.get("/v1/runs/r1").json()
    assert whole["targets"] and whole["why"]["conclusion"]
    again = client.get("/runs/r1.json").json()
    assert again["run"]["targets"] == whole["targets"] and again["as_of"] == again["last"]


def test_what_was_read_serves_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes on is not read again at each event, and not never; whoever waits gets what is true now."""
    monkeypatch.setattr(deep, "SMALL", 0)
    story, clock = whole_run(iterations=1), [0.0]

    def tick() -> float:
        clock[0] += 1.0  # so that reading takes a second
        return clock[0]

    tables = seeing(stored(tmp_path, story[:60])).app.state.context.tables  # type: ignore[attr-defined]
    readings = DeepReadings(tables, tick)
    first = readings.wait("r1")
    stored(tmp_path, story[:61])
    assert readings.look("r1") is first and first.seq == 60 and first.took_s == 1
    clock[0] += deep.SHARE
    assert readings.look("r1") is first  # and it is read again beside
    newer = readings.wait("r1")
    assert newer.seq == 61 and readings.look("r1") is newer
    readings.close()
