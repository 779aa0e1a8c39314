"""Archives that version 819c1fb wrote: events, rewards, decisions and adapters are found as they were recorded."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from tests.terminal import agent0 as call

ARCHIVES = Path(__file__).parents[3] / "shared" / "archives"
THEN = ("curriculum.split_rule=1", "verification.edition=1", "evaluation.edition=1", "evaluation.teacher_gate=open")
"""Settings of `run` that earlier versions had no choice in."""
LATER = ("EvaluationItemRequested", "EvaluationItemScored")
"""Items of an evaluation have events of their own since; so positions differ, and digests of what holds one."""
POSITIONS = {"position", "after", "replay_after", "until", "state_sha", "config_sha", "manifest", "dataset"}
MEASURED = {"wall_s", "cpu_s", "peak_mem_mib", "latency_p50_s", "latency_p95_s", "items", "tier", "backend"}
"""By a clock, or by what the machine offers the sandbox at that moment."""
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


@needs_archives
def test_the_same_run_gives_the_events_of_then(tmp_path: Path) -> None:
    home = tmp_path / "home"
    answer(home, "events", "import", str(ARCHIVES / "scripted.tar"))
    settings = [word for one in THEN for word in ("--set", f"run.{one}")]
    again = answer(home, "run", "start", "--profile", "scripted", "--seed", "0", *settings)["run"]
    before, after = (asyncio.run(events_of(home, run)) for run in ("scripted-c30dc8", again))
    assert after.keys() == before.keys()
    for key, recorded in before.items():
        assert [pair for pair in zip(recorded, after[key], strict=True) if not within(*pair)] == [], key


async def events_of(home: Path, run: str) -> dict[tuple[Any, ...], list[Any]]:
    """A run's events, but for later kinds, by what they are about, each without what is measured or a position."""
    found = defaultdict[tuple[Any, ...], list[Any]](list)
    async with open_log(load("scripted", {"home": str(home), "nats.url": ""}, {}), "reader") as log:
        async for one in log.read(run):
            if one.type in LATER:
                continue
            held = plain(one.event.model_dump(mode="json", exclude_unset=True), run)
            task = "" if "evaluation" in held else one.task  # an evaluation is its events' task since
            about = (held.get(name) for name in ("iteration", "role", "checkpoint", "evaluation", "slot"))
            found[one.type, task, one.attempt, *about].append(held)
    return found


def plain(held: Any, run: str) -> Any:
    """``held`` without positions and what is measured, and without the id of ``run``."""
    if isinstance(held, Mapping):
        return {key: plain(value, run) for key, value in held.items() if key not in POSITIONS | MEASURED}
    if isinstance(held, list):
        return [plain(value, run) for value in held]
    return held.replace(run, "RUN") if isinstance(held, str) else held


def within(before: Any, after: Any) -> bool:
    """Whether ``after`` says all that ``before`` says: fields may have been added."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(name in after and within(value, after[name]) for name, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(within(*pair) for pair in zip(before, after, strict=True))
    return bool(before == after)


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
