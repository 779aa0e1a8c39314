"""The past through the command line: any state again, forks, the same decisions, other rewards."""

import asyncio
import random
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.replay.past_states import state_at
from agent0.config.loading import load
from agent0.events.base import Recorded
from tests.kept_open import attached
from tests.terminal import agent0 as call

SMALL = (
    *("--profile", "scripted", "--seed", "3", "--iterations", "1", "--tasks", "6", "--attempts", "2"),
    *("-s", "run.evaluation.validation=4", "-s", "run.evaluation.test=4", "-s", "sandbox.workers=1"),
    *("-s", "handlers.snapshot_events=20"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a finished run."""
    with attached(tmp_path_factory.mktemp("past")) as folder:
        said = call("run", "start", *SMALL, "--name", "first", home=folder)
        assert said.code == 0, said.err
        yield folder


def reading(home: Path, work: Any) -> Any:
    async def run() -> Any:
        async with open_log(load("scripted", {"home": str(home)}, {}), "reader") as log:
            return await work(log)

    return asyncio.run(run())


@cache
def name_of(home: Path) -> str:
    """The run's name; asked once, for every question starts a server."""
    return str(call("run", "list", "--json", home=home).json[-1]["run"])


def test_a_state_rebuilt_from_zero_is_the_one_that_was_recorded_then(home: Path) -> None:
    run = name_of(home)

    async def look(log: Any) -> list[tuple[Recorded, int, str]]:
        told = [r async for r in log.read(run)]
        at = {r.id: r.seq for r in told}
        asked = [r for r in told if hasattr(r.event, "state_sha") and r.cause]
        chosen = random.Random(0).sample(asked, 8)
        return [(r, at[r.cause], (await state_at(log, run, at[r.cause])).digest) for r in chosen]

    for recorded, seq, rebuilt in reading(home, look):
        assert rebuilt == recorded.event.state_sha, (recorded.type, seq)


def test_snapshots_change_nothing_of_what_is_shown(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The run left some. A state is the same with them, with a cut one, and without the folder."""
    run = name_of(home)
    parts = sorted((home / "snapshots" / run).glob("*.part"))
    assert len(parts) > 1
    shown, warned = [], []
    gone = partial(parts[0].parent.rename, tmp_path / "gone")
    for spoil in (str, partial(parts[-1].write_bytes, b"cut"), gone):
        spoil()
        caplog.clear()
        shown.append(call("run", "show", run, "--at", "0", "--json", home=home).json)
        warned.append(f"{parts[-1].name} is cut" in caplog.text)
    assert shown[0]["status"] == "finished" and shown == [shown[0]] * 3 and warned == [False, True, False]


def test_its_own_rules_give_its_own_rewards(home: Path) -> None:
    said = call("experiment", "rescore", name_of(home), "--rewards", "as-run", "--json", home=home)
    assert said.code == 0
    assert (said.json["identical"], said.json["changed"], said.json["committed"]) == (True, 0, False)
    assert said.json["receipts"] > 0


def test_an_exported_run_is_read_back_with_the_same_rewards_and_decisions(home: Path, tmp_path: Path) -> None:
    for words in (("export", "run.tar"), ("import", "run.tar")):
        at = home if words[0] == "export" else tmp_path / "other"
        said = call("events", words[0], str(tmp_path / words[1]), home=at)
        assert said.code == 0, said.err
    rewards = call("experiment", "rescore", name_of(home), "--rewards", "as-run", "--json", home=tmp_path / "other")
    assert rewards.json["identical"] and rewards.json["receipts"] > 0
    assert call("run", "check", name_of(home), "--json", home=tmp_path / "other").json["same"]


def test_other_rules_are_shown_first_and_written_down_once(home: Path, tmp_path: Path) -> None:
    rules = tmp_path / "bold.toml"
    rules.write_text('set = "agent0"\n[weights]\nnovelty = 0.4\n')
    asked = ("experiment", "rescore", name_of(home), "--rewards", str(rules), "--name", "bold")
    assert call(*asked, "--json", home=home).json["committed"] is False
    assert call("experiment", "list", "--json", home=home).json == []
    first = call(*asked, "--commit", "--json", home=home).json
    again = call(*asked, "--commit", "--json", home=home).json
    assert first == again and first["teacher"]["changed"] > 0 == first["student"]["changed"]
    count = "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM events WHERE run = 'exp-bold'"
    rows = call("projections", "query", count, "--json", home=home).json
    assert rows == [{"n": first["receipts"] + 2, "ids": first["receipts"] + 2}]
    shown = call("experiment", "show", "bold", "--json", home=home).json
    assert (shown["status"], shown["run"], shown["events"]) == ("finished", name_of(home), first["receipts"])
    other = call("experiment", "rescore", name_of(home), "--name", "bold", "--commit", home=home)
    assert other.code != 0 and "another name" in other.err


RETRAIN = ("experiment", "retrain")


def adapters(home: Path, run: str) -> dict[str, tuple[str, int]]:
    asked = "SELECT checkpoint, adapter, samples FROM checkpoints WHERE role = 'student' AND run = 'RUN'"
    rows = call("projections", "query", asked.replace("RUN", run), "--json", home=home).json
    return {row["checkpoint"]: (row["adapter"], row["samples"]) for row in rows}


def test_training_again_from_the_same_past_gives_the_same_adapters(home: Path) -> None:
    said = call(*RETRAIN, name_of(home), "--name", "same", "--json", home=home)
    assert said.code == 0, said.err
    assert adapters(home, "exp-same") == adapters(home, name_of(home)) != {}
    again = call("experiment", "retrain", name_of(home), "--name", "same", "--json", home=home)
    assert again.json == said.json
    short, full = (call(*RETRAIN, name_of(home), "--name", "same", *more, home=home).out for more in ((), ("--full",)))
    answer = said.json["answer"]
    assert short.splitlines() == full.splitlines()[: len(answer)] == answer and "\t" in full
    assert answer[0].startswith(f"{len(said.json['checkpoints'])} checkpoint") and name_of(home) in answer[0]
    assert "+0.0 points" in answer[1] and "not significant" in answer[1], "the same adapter solves the same tasks"
    once = "SELECT count(*) AS n FROM events WHERE run = 'exp-same' AND type = 'CheckpointEvaluated'"
    assert call("projections", "query", once, "--json", home=home).json[0]["n"] == len(said.json["checkpoints"])
    other = call("experiment", "retrain", name_of(home), "--name", "same", "-s", "training.student.lr=1", home=home)
    assert other.code != 0 and "another name" in other.err


def test_a_checkpoint_leads_to_its_events_and_a_task_to_its_checkpoints(home: Path) -> None:
    run = name_of(home)
    name, (sha, samples) = next((n, found) for n, found in adapters(home, run).items() if found[0])
    chain = call("model", "lineage", f"{run}/{name}", "--json", home=home).json
    assert call("model", "lineage", sha[:20], "--json", home=home).json[0]["adapter"] == sha
    first = chain[0]
    assert first["dataset_agrees"] is True and first["missing_events"] == 0
    assert len(first["events"]) >= samples > 0 and first["rewards"] and first["verifiers"] and first["config_sha"]
    told = call("task", "lineage", first["tasks"][0], run, "--json", home=home).json
    assert (run, name) in {(row["run"], row["checkpoint"]) for row in told if row["events"]}
    for arguments in (("model", "lineage", "nobody/none"), ("task", "lineage", "t9-999", run)):
        assert call(*arguments, home=home).code != 0


def test_a_purged_task_is_in_no_dataset(home: Path) -> None:
    run = name_of(home)
    name, samples = next((n, samples) for n, (adapter, samples) in adapters(home, run).items() if adapter)
    told = call("model", "lineage", f"{run}/{name}", "--json", home=home).json[0]
    task = next(event["task"] for event in told["events"] if event["type"] == "TaskAttempted")
    seen = call("task", "lineage", task, run, "--json", home=home).json
    said = call("experiment", "purge-task", task, run, "--no-evaluate", "--json", home=home)
    assert said.code == 0, said.err
    left = {checkpoint["checkpoint"]: checkpoint["samples"] for checkpoint in said.json["checkpoints"]}
    assert left[name] <= samples  # another success may be replayed in its place
    kept = call("model", "lineage", f"{said.json['experiment']}/{name}", "--json", home=home).json[0]
    assert task not in kept["tasks"] != told["tasks"]
    assert (
        said.json["stay"]
        == [f"{run}/{one['checkpoint']}" for one in seen if (one["role"], one["run"]) == ("teacher", run)]
        != []
    )
    assert said.json["held_out"] is None and f"without {task}" in said.json["answer"][0]
    assert "Not scored" in said.json["answer"][1]
    assert call("experiment", "purge-task", "t9-999", run, "--name", "x", home=home).code != 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[weights]\nnovel = 1.0\n", "Did you mean novelty"),
        ("weights = 3\n", "weights"),
        ("[weights\n", "no TOML"),
        ("knob = 1\n", "knob"),
    ],
)
def test_rules_that_are_none_are_refused_by_name(home: Path, tmp_path: Path, text: str, words: str) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(text)
    said = call("experiment", "rescore", name_of(home), "--rewards", str(rules), home=home)
    assert said.code == 2 and words in said.err


def test_a_fork_goes_on_from_the_middle_under_other_settings(home: Path) -> None:
    first = name_of(home)
    events = call("run", "show", first, "--json", home=home).json["events"]
    changes = ("-s", "training.student.lr=0.01", "-s", "iterations=2")
    said = call("run", "fork", first, "--at", str(events // 2), *changes, "--name", "second", home=home)
    assert said.code == 0, said.err
    row = call("run", "list", "--forks", "--json", home=home).json[0]
    assert (row["parent"], row["parent_seq"], row["status"]) == (first, events // 2, "finished")
    again = call("run", "fork", row["run"], "--at", "0", "-s", "iterations=3", "--name", "third", home=home)
    assert again.code == 0, again.err
    third = call("run", "list", "--forks", "--json", home=home).json[0]
    assert (third["parent"], third["iteration"]) == (row["run"], 2)
    for run in (first, row["run"], third["run"]):
        told = call("run", "check", run, "--json", home=home).json
        assert told["same"] and told["decisions"] > 20, told
        assert call("experiment", "rescore", run, "--json", home=home).json["identical"]
        tests = [one["evaluation"] for one in call("run", "show", run, "--json", home=home).json["test"]]
        assert tests[:2] == ["base-test", "base-test-forced"] and tests[-1].endswith("-test-final"), tests
    shown = call("run", "show", row["run"], "--full", home=home).out.partition("Held-out test")[2]
    assert shown.index("untrained\t") < shown.index("control") < shown.index("\ntrained (") and " -1 " not in shown
    parted = call("run", "diff", first, row["run"], "--json", home=home).json
    assert parted["common_until"] == events // 2
    assert parted["settings"] == {"iterations": [1, 2], "training.student.lr": [0.0025, 0.01]}
    shared = "SELECT count(*) AS n FROM events WHERE run = 'RUN' AND type = 'TaskRequested'".replace("RUN", row["run"])
    assert 0 < call("projections", "query", shared, "--json", home=home).json[0]["n"] < 2 * 6


@pytest.mark.slow  # part of make crash
def test_a_fork_with_another_student_model_is_scored_anew(home: Path) -> None:
    first = name_of(home)
    query = f"SELECT seq FROM events WHERE run = '{first}' AND type = 'TaskAttempted' ORDER BY seq LIMIT 1"
    at = call("projections", "query", query, "--json", home=home).json[0]["seq"]
    said = call("run", "fork", first, "--at", str(at), "-s", "student.model=latency=0", "--json", home=home)
    assert said.code == 0, said.err
    run = call("run", "list", "--forks", "--json", home=home).json[0]["run"]
    told = call("run", "check", run, "--json", home=home).json
    assert told["same"] and told["decisions"] > 20, told
    shown = call("run", "show", run, "--json", home=home).json
    names = [one["evaluation"] for one in shown["test"]]
    assert names[:2] == ["base-test", "base-test-forced"] and len(names) == len(set(names)), names
    assert (shown["tasks"], shown["validation"][0]["iteration"]) == (6, -1)


def sealed_at(home: Path) -> int:
    """Where the seal right behind the first run stands: no event of it."""
    events: int = call("run", "show", name_of(home), "--json", home=home).json["events"]
    return events + 1


def test_what_cannot_be_forked_is_refused_by_name(home: Path) -> None:
    first = name_of(home)
    for arguments, words in (
        (("--at", "999999"), "no event 999999"),
        (("--at", str(sealed_at(home))), f"ends at event {sealed_at(home) - 1}"),
        (("-s", "nonsense=1"), "nonsense"),
        (("-s", "iterations=x"), "iterations"),
        (("-s", "iterations"), "KEY=VALUE"),
    ):
        said = call("run", "fork", first, *arguments, home=home)
        assert said.code != 0 and words in said.err, said.err
    assert call("run", "show", "nobody", "--at", "3", home=home).code != 0


def test_runs_and_experiments_stand_side_by_side(home: Path, tmp_path: Path) -> None:
    run, page = name_of(home), tmp_path / "page.html"
    assert call("experiment", "rescore", run, "--name", "again", "--commit", home=home).code == 0
    said = call("experiment", "compare", run, "again", "--out", str(page), "--json", home=home)
    assert said.code == 0, said.err
    against = said.json["against"][0]
    assert (against["teacher_rank_correlation"], against["changed_sides"]) == (pytest.approx(1.0), [])
    assert against["held_out"]["word"] == "no difference shown"
    assert [row["n"] for row in said.json["rewards"][:2]] == [row["n"] for row in said.json["rewards"][2:]]
    text = page.read_text()
    assert "<script" not in text and "http" not in text.replace("http-equiv", "") and "<svg" in text
    newest = call("run", "list", "--json", home=home).json[0]["run"]
    assert call("experiment", "compare", "LAST", "again", "--json", home=home).json["names"] == [newest, "again"]
    checkpoint = next(name for name, (adapter, _) in adapters(home, newest).items() if adapter)
    assert call("model", "lineage", f"LAST/{checkpoint}", "--json", home=home).json[0]["run"] == newest
    assert call("experiment", "compare", run, home=home).code == 2
    assert call("experiment", "compare", run, "nobody", home=home).code != 0
