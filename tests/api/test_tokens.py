"""An attempt token by token: what was drawn with its probability, what was read as masked, advantages of trainings."""

import json
from math import exp
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from agent0.api.pages.attempt_views import shaded
from agent0.assembly.models.token_heat import EDGE, MOST
from agent0.events.base import Recorded, record, sha256
from agent0.events.experiments import DatasetSelected
from agent0.events.tasks import TaskAttempted
from agent0.events.values import Trajectory
from agent0.infra.storage.artifacts import FileArtifacts
from tests.api.conftest import seeing
from tests.api.served import stored
from tests.story import renumbered, whole_run

MASK = (0,) * 300 + (1,) * 5 + (0,) * 3 + (1,) * (MOST + 10)
LOGPROBS = tuple(-0.001 * place if drawn else 0.0 for place, drawn in enumerate(MASK))
CHANGED: dict[str, dict[str, Any]] = {
    "t0-000-a0": {"trajectory": Trajectory(token_ids=(*range(len(MASK)),), mask=MASK, logprobs=LOGPROBS)},
    "t0-000-a1": {"trajectory": None, "trajectory_problem": "", "capture": "text"},
    "t0-001-a0": {"trajectory": None, "trajectory_problem": "its <b>prompt</b> was cut"},
}
SAMPLE = [-0.75, 0.28, 1.5]


def changed(recorded: Recorded) -> Recorded:
    event = recorded.event
    if not isinstance(event, TaskAttempted) or recorded.run != "r1" or event.attempt not in CHANGED:
        return recorded
    return recorded.model_copy(update={"event": event.model_copy(update=CHANGED[event.attempt])})


@pytest.fixture(scope="module")
def story() -> list[Recorded]:
    return [*map(changed, whole_run(iterations=1))]


@pytest.fixture(scope="module")
def pages(story: list[Recorded], tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    home: Path = tmp_path_factory.mktemp("tokens")
    ids = {recorded.attempt: recorded.id for recorded in story if isinstance(recorded.event, TaskAttempted)}
    manifest = {"events": ["other", ids["t0-000-a0"], ids["t0-001-a1"]], "samples": [[0.1, 0.2, 1.0], SAMPLE]}
    artifact = FileArtifacts(home).put(json.dumps(manifest).encode(), "application/json")
    fields = {"checkpoint": "student-0", "role": "student", "dataset": sha256("d"), "events": 3, "until": len(story)}
    selected = record(DatasetSelected(manifest=artifact, **fields), run="r1", time=story[-1].time)
    return seeing(stored(home, [*story, *renumbered([selected], after=len(story))]))


def test_tokens_are_those_of_the_trajectory(pages: TestClient) -> None:
    found = pages.get("/runs/r1/trajectories/t0-000-a0.json").json()["tokens"]
    assert (found["tokens"], found["masked"], found["problem"]) == (sum(MASK), len(MASK) - sum(MASK), "")
    assert [(span["own"], len(span["tokens"]) + span["left_out"]) for span in found["spans"]] == [
        (False, 300), (True, 5), (False, 3), (True, MOST + 10),
    ]  # fmt: skip
    assert len(found["spans"][0]["tokens"]) == 2 * EDGE and sum(len(span["tokens"]) for span in found["spans"]) == MOST
    drawn = [token for span in found["spans"] if span["own"] for token in span["tokens"]]
    assert all(MASK[token["id"]] and token["logprob"] == round(LOGPROBS[token["id"]], 4) for token in drawn)
    assert all(token["probability"] == round(exp(LOGPROBS[token["id"]]), 4) for token in drawn)
    assert not any("probability" in token for span in found["spans"] if not span["own"] for token in span["tokens"])


def test_the_advantage_is_that_of_the_manifest(pages: TestClient, story: list[Recorded]) -> None:
    path = "/runs/r1/trajectories/{}{}"
    trained = pages.get(path.format("t0-000-a0", ".json")).json()["tokens"]["trained"]
    assert [[row[name] for name in ("advantage", "clip_high", "weight")] for row in trained] == [SAMPLE]
    page = pages.get(path.format("t0-000-a0", "?shade=push")).text
    assert "-0.750" in page and 'class="down' in page
    assert f'title="token 300: log-probability {LOGPROBS[300]:.3f}' in page
    replayed = pages.get(path.format("t0-001-a1", ".json")).json()["tokens"]["trained"]
    assert [(row["use"], row["advantage"]) for row in replayed] == [("replay or pair", None)]
    before = pages.get(path.format("t0-000-a0", f"?shade=push&at={len(story)}")).text
    assert "no advantage is known" in before and "Shaded by" not in before


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        ("t0-000-a1", "neither token ids nor log-probabilities"),
        ("t0-001-a0", "its &lt;b&gt;prompt&lt;/b&gt; was cut"),
        ("base-test-0", "evaluations keep texts"),
    ],
)
def test_what_was_not_captured_is_told(pages: TestClient, attempt: str, why: str) -> None:
    for address in (f"/runs/r1/trajectories/{attempt}", f"/runs/r1/trajectories/{attempt}.html"):
        assert why in pages.get(address).text


@given(st.floats(-3, 3), st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_push_has_the_sign_of_the_advantage(advantage: float, probabilities: list[float]) -> None:
    tokens = {"spans": [{"own": True, "tokens": [{"id": 1, "logprob": -1.0, "probability": p} for p in probabilities]}]}
    for row in shaded({**tokens, "trained": [{"advantage": advantage}]}, "push")["rows"]:
        assert row["push"] * advantage >= 0 and row["css"].startswith("up" if row["push"] > 0 else ("down", "up"))
