"""``agent0 tiny``: what it passes on, what it tells, what it refuses."""

import json
from pathlib import Path

import pytest

from agent0.infra.models.transformers import BASE
from agent0.infra.tiny.build import ModelCard
from agent0.infra.tiny.courses import DEFAULT_MIX, MIXES
from tests.terminal import agent0

PHASE = {"steps": 3, "lr": 0.01, "lr_end": 0.001, "levels": [1, 0, 0, 0], "tool": 0.5, "teacher": 0.1}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What was to be built, without building it."""
    held: list[dict] = []

    def build(out, *, seed, mix, progress, device):
        held.append({"out": out, "seed": seed, "mix": mix, "device": device})
        for step in range(1, 301):
            progress(step, 300, 1.5)
        return ModelCard(out, "ab" * 32, 1000, 300, 2.5, 1.5)

    monkeypatch.setattr("agent0.cli.models.tiny_build.make", build)
    return held


def test_build_passes_on_what_was_asked_for(tmp_path: Path, asked: list[dict]) -> None:
    mix = tmp_path / "mix.json"
    mix.write_text(json.dumps({"batch": 4, "phases": [PHASE]}))
    said = agent0(
        "tiny", "build", "--out", str(tmp_path / "model"), "--seed", "3", "--mix", str(mix), "--device", "cuda"
    )
    assert said.code == 0
    assert "parameters\t1000" in said.out
    assert [line.split("  ")[0] for line in said.err.splitlines()[:3]] == [
        "step 100/300",
        "step 200/300",
        "step 300/300",
    ]
    (wanted,) = asked
    assert (wanted["out"], wanted["seed"], wanted["mix"].batch) == (tmp_path / "model", 3, 4)
    assert wanted["mix"].phases[0].steps == 3 and wanted["device"] == "cuda"


def test_build_has_a_mix_of_its_own(tmp_path: Path, asked: list[dict]) -> None:
    said = agent0("tiny", "build", "--out", str(tmp_path), "--json")
    assert said.json["path"] == str(tmp_path)
    assert said.err == ""
    assert asked[0]["mix"] == DEFAULT_MIX and asked[0]["device"] == "cpu"


@pytest.mark.parametrize("course", MIXES)
def test_every_course_can_be_built(tmp_path: Path, asked: list[dict], course: str) -> None:
    assert agent0("tiny", "build", "--out", str(tmp_path), "--course", course, "--json").code == 0
    assert asked[0]["mix"] == MIXES[course]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"phases": [{"steps": 3}]}', json.dumps({"phases": [{**PHASE, "colour": 1}]})]
)
def test_what_is_no_mix_is_refused(tmp_path: Path, asked: list[dict], text: str) -> None:
    mix = tmp_path / "mix.json"
    mix.write_text(text)
    said = agent0("tiny", "build", "--mix", str(mix))
    assert (said.code, asked) == (2, [])
    assert "is no mix" in said.err
    assert agent0("tiny", "build", "--mix", str(tmp_path / "none.json")).code == 2


def test_the_card_is_the_packaged_models(tmp_path: Path) -> None:
    assert agent0("tiny", "card").out.strip() == (BASE / "README.md").read_text().strip()
    assert agent0("tiny", "card", "--json").json == json.loads((BASE / "provenance.json").read_text())
