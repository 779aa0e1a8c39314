"""Archives that version 819c1fb wrote: events, rewards, decisions and adapters are found as they were recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.terminal import agent0 as call

ARCHIVES = Path(__file__).parents[3] / "shared" / "archives"
needs_archives = pytest.mark.skipif(not ARCHIVES.is_dir(), reason="needs the archives beside the checkout")


def answer(home: Path, *words: str) -> Any:
    said = call(*words, "--json", home=home)
    assert said.code == 0, said.err
    return said.json


def found_as_recorded(home: Path, name: str, run: str, events: int, sha256: str) -> None:
    """Imports an archive into the empty ``home``, then looks at its tables, rewards and decisions."""
    came = answer(home, "events", "import", str(ARCHIVES / name))
    assert (came["events"], came["sha256"]) == (events, sha256)
    assert [row["run"] for row in answer(home, "run", "list")] == [run]  # which makes the tables
    assert answer(home, "projections", "rebuild", "--verify")["verified"]
    rewards = answer(home, "experiment", "rescore", run, "--rewards", "as-run")
    assert (rewards["identical"], rewards["changed"], rewards["failed"]) == (True, 0, 0)
    decisions = answer(home, "run", "check", run)
    assert (decisions["same"], decisions["first"]) == (True, None)


@needs_archives
def test_an_archive_of_a_scripted_run_is_read(tmp_path: Path) -> None:
    digest = "7fc8033c42dfda97456a3379898a811133210ff5539d1dab0d92893e002ff05c"
    found_as_recorded(tmp_path / "home", "scripted.tar", "scripted-c30dc8", 434, digest)


@pytest.mark.slow
@needs_archives
def test_an_archive_of_a_run_that_learned_gives_its_adapters_again(tmp_path: Path) -> None:
    """Bit by bit where the processor's kind is the recorded one. Elsewhere sums are rounded otherwise, each checkpoint
    begins where the one before it ended, and the losses agree to one in twenty."""
    home, run = tmp_path / "home", "tiny-7500e5"
    digest = "9dac7e67391c143b3ce0f846bd78d48b757681a1f260d06670e006d5831a7761"
    found_as_recorded(home, "tiny.tar", run, 16154, digest)
    answer(home, "experiment", "retrain", run, "--name", "again", "--roles", "student,teacher", "--no-evaluate")
    recorded, again = (trained(home, one) for one in (run, "exp-again"))
    assert len(recorded) == 16 and again.keys() == recorded.keys()
    for name, before in recorded.items():
        after = again[name]
        assert after["samples"] == before["samples"], name
        if after["environment"] == before["environment"]:
            assert after["adapter"] == before["adapter"], name
        else:
            losses = [json.loads(one["metrics"])["loss"] for one in (after, before)]
            assert losses[0] == pytest.approx(losses[1], rel=0.05, abs=0.01), name


def trained(home: Path, run: str) -> dict[str, dict[str, Any]]:
    """Checkpoints of a run or an experiment by name."""
    asked = f"SELECT * FROM checkpoints WHERE run = '{run}' AND adapter IS NOT NULL"
    return {row["checkpoint"]: row for row in answer(home, "projections", "query", asked)}
