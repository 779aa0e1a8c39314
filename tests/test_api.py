"""``import agent0``: the command line in Python. It costs nothing until it is used, gives what commands print, works
where an event loop is running, and shows itself in a notebook."""

import _thread
import ast
import asyncio
import csv
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

import agent0
from agent0.assembly.ablations.study_request import StudyRequest
from agent0.assembly.api import calls
from agent0.assembly.api import folder as folders
from agent0.assembly.api.calls import run_sync, texts
from agent0.assembly.api.rows import Rows
from agent0.errors import ConfigError, NotFoundError, OperationError, RequirementsError
from agent0.events.tasks import RewardAssigned
from tests.kept_open import attached, one_sandbox
from tests.plugin_files import REWARD, forgotten
from tests.terminal import agent0 as call

SMALL = {
    "run.tasks": 4,
    "run.attempts": 2,
    "run.evaluation.validation": 4,
    "run.evaluation.test": 4,
    "sandbox.workers": 1,
}
HOSTILE = "<script>alert(1)</script>\x1b[2J"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[agent0.Folder]:
    """A data folder with one finished run, started by the API."""
    home = tmp_path_factory.mktemp("api")
    with attached(home), one_sandbox():
        found = agent0.open(home, profile="scripted", settings=SMALL)
        assert found.runs() == [] and "no run yet" in found._repr_html_()
        said: list[str] = []
        found.start(name="first", say=said.append)
        assert [line.split()[0] for line in said] == ["untrained", "iteration", "iteration"], said
        yield found


@pytest.fixture
def run(folder: agent0.Folder) -> agent0.Run:
    return folder.runs()[-1]


def test_importing_it_imports_nothing() -> None:
    program = "import agent0, sys; dir(agent0); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pydantic", "nats", "sqlite3", "numpy", "matplotlib", "typer", "asyncio"} & set(loaded)
    assert {name for name in loaded if name.startswith("agent0")} <= {"agent0"}


def test_every_name_is_there_and_is_what_type_checkers_see() -> None:
    tree = ast.parse(Path(agent0.__file__).read_text(encoding="utf-8"))
    seen = {a.name: n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
    assert {name: seen[name] for name in agent0.__all__} == agent0._HOMES
    assert all(
        getattr(agent0, name).__name__ == name for name in agent0.__all__ if isinstance(getattr(agent0, name), type)
    )
    assert set(agent0.__all__) <= set(dir(agent0))
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        agent0.opne  # noqa: B018
    typed = Path(agent0.__file__).with_name("py.typed")
    assert typed.is_file()


def test_it_gives_what_commands_print(folder: agent0.Folder, run: agent0.Run) -> None:
    home = folder.settings.home
    assert json.loads(json.dumps(run.overview())) == call("run", "show", run.id, "--json", home=home).json
    assert json.loads(json.dumps(run.why())) == call("run", "why", run.id, "--json", home=home).json
    rows = call("projections", "show", "tasks", "--json", home=home).json
    assert [*run.tasks()] == rows and all(isinstance(row["run"], str) for row in rows)
    rescored = folder.rescore(run, settings={"run.rewards.weights.call_cost": 0.5})
    words = ("experiment", "rescore", run.id, "--set", "run.rewards.weights.call_cost=0.5", "--json")
    assert rescored == call(*words, home=home).json and rescored["changed"] > 0
    assert folder.rescore(run)["identical"]


def test_its_events_are_typed_and_in_order(run: agent0.Run) -> None:
    events = list(run.events())
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert len(events) == run.row["events"] and events[0].type == "RunStarted"
    rewards = [event.event for event in run.events("RewardAssigned")]
    assert rewards and all(isinstance(reward, RewardAssigned) for reward in rewards)
    assert [event.seq for event in run.events(after=events[5].seq)] == [event.seq for event in events[6:]]


def test_its_trajectories_say_what_was_said(folder: agent0.Folder, run: agent0.Run) -> None:
    right, every = list(run.trajectories(correct=True)), list(run.trajectories())
    assert {one.correct for one in right} == {True} and len(every) == run.row["attempts"]
    shown = call("trajectory", "show", right[0].attempt, run.id, "--json", home=folder.settings.home).json
    assert [dict(turn) for turn in right[0].turns] == shown["transcript"] and right[0].answer == shown["answer"]
    assert right[0].reward == pytest.approx(
        sum(p["worth"] or 0 for r in right[0].receipts for p in r["parts"]), abs=1e-9
    )
    assert "right, reward" in right[0]._repr_html_() and "<script" not in right[0]._repr_html_()
    with pytest.raises(NotFoundError, match="no attempt 't9-999-a0'"):
        run.trajectory("t9-999-a0")
    with pytest.raises(NotFoundError):
        run.table("no_such_table")


def test_a_table_is_of_a_run_however_it_is_named(folder: agent0.Folder, run: agent0.Run) -> None:
    rows = list(folder.table("tasks", run.id))
    assert rows and all(list(folder.table("tasks", name)) == rows for name in ("LAST", run.id[:-2]))
    with pytest.raises(NotFoundError, match="no run 'zzz'"):
        folder.table("tasks", "zzz")


async def test_it_works_where_an_event_loop_is_running(folder: agent0.Folder) -> None:
    """As in a notebook; this test itself runs in one."""
    assert asyncio.get_running_loop().is_running()
    reopened = agent0.open(folder.settings.home)
    assert reopened.run().id == folder.run().id
    assert reopened.rescore()["identical"]


def test_a_fork_goes_on_under_other_settings(folder: agent0.Folder, run: agent0.Run) -> None:
    at = next(run.events("CheckpointTrained")).seq
    forked = run.fork(at, {"training.student.lr": 0.001}, name="slower")
    assert (forked.status, forked.row["parent"], forked.row["parent_seq"]) == ("finished", run.id, at)
    assert forked.config["training"]["student"]["lr"] == 0.001
    assert run.resume().id == run.id, "a finished run is what it is"
    found = folder.compare(run, forked)
    assert found["names"] == [run.id, forked.id] and found["rewards"]
    with pytest.raises(ConfigError, match="Nothing to compare"):
        folder.compare(run, run)


def test_a_run_that_nobody_carries_goes_on(folder: agent0.Folder) -> None:
    words = ("run", "start", "--detach", "--json", "--profile", "scripted")
    sizes = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    begun = call(*words, *sizes, "--name", "left", home=folder.settings.home).json["run"]
    folder.refresh()
    assert folder.run(begun).status == "running"
    assert folder.run(begun).resume().status == "finished"


def test_a_study_is_asked_for_as_by_its_command(folder: agent0.Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[StudyRequest] = []

    async def run_study(settings: object, request: StudyRequest, say: object) -> dict[str, object]:
        asked.append(request)
        return {"complete": False}

    monkeypatch.setattr(folders, "run_study", run_study)
    found = folder.ablation({"base": {}, "mine": {"run.tasks": 3}}, range(2), profile="scripted", jobs=2)
    (request,) = asked
    assert not found.complete and (request.name, request.seeds, request.jobs) == ("base-mine-scripted", (0, 1), 2)
    assert [(variant.name, variant.settings) for variant in request.study.variants] == [
        ("base", {}),
        ("mine", {"run.tasks": "3"}),
    ]
    assert request.typed["run.attempts"] == "2"
    file = Path(__file__).parents[1] / "studies" / "teacher.toml"
    folder.ablation(file, only=["trained", "frozen"], settings={"run.iterations": 2})
    of_file = asked[1]
    assert (of_file.profile, of_file.seeds, of_file.only) == ("climb-teacher", (0, 1, 2, 3, 4), ("trained", "frozen"))
    assert (
        of_file.study.own_bases and of_file.name == "teacher-climb-teacher" and of_file.typed["run.iterations"] == "2"
    )


def test_a_folder_to_read_starts_nothing_and_writes_nothing(folder: agent0.Folder, run: agent0.Run) -> None:
    home = folder.settings.home
    before = {path: path.stat().st_mtime_ns for path in home.glob("tables/*.db")}
    reading = agent0.open(home, read_only=True)
    assert reading.run(run.id).curve() == run.curve() and reading.run(run.id).row == run.row
    assert {path: path.stat().st_mtime_ns for path in home.glob("tables/*.db")} == before
    for refused in (reading.start, reading.resume, reading.fork, reading.rescore):
        with pytest.raises(OperationError, match="opened to read"):
            refused()


def test_a_folder_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    found = agent0.open(tmp_path / "new", read_only=True)
    assert found.runs() == [] and not (tmp_path / "new").exists()
    with pytest.raises(NotFoundError, match="nothing to show"):
        found.run()
    with pytest.raises(ConfigError, match=r"no setting 'run\.taks'"):
        agent0.open(tmp_path, settings={"run.taks": 3})


def test_ones_own_reward_counts(folder: agent0.Folder, run: agent0.Run, tmp_path: Path) -> None:
    (tmp_path / "my_reward.py").write_text(REWARD)
    with forgotten():
        mine = agent0.open(folder.settings.home, plugins=[tmp_path / "my_reward.py"])
        assert list(mine.settings.run.plugins) == ["my_reward"]
        assert mine.rescore(run, settings={"rewards.weights.brevity": 0.2})["changed"] > 0
    with forgotten(), pytest.raises(ConfigError, match="no reward 'brevity'"):
        folder.rescore(run, settings={"rewards.weights.brevity": 0.2})


def test_ctrl_c_drains_what_runs_and_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "LOOK_S", 0.001)
    begun, drained = [], []

    async def work() -> None:
        begun.append(True)
        try:
            _thread.interrupt_main()
            await asyncio.sleep(3600)
        finally:
            drained.append(True)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        for _ in range(100):  # it comes at any moment of the call's beginning
            with pytest.raises(KeyboardInterrupt):
                run_sync(work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(drained) == len(begun) > 0


def test_what_fails_is_raised_as_it_is() -> None:
    async def work() -> None:
        raise OperationError("It failed.")

    with pytest.raises(OperationError, match="It failed"):
        run_sync(work)


def test_settings_are_written_as_they_would_be_typed() -> None:
    given = {"a": "x=y", "b": 3, "c": True, "d": ["x", "y"], "e": 0.5, "f": {"g": 1}}
    assert texts(given) == {"a": "x=y", "b": "3", "c": "true", "d": '["x", "y"]', "e": "0.5", "f": '{"g": 1}'}


def test_rows_are_frames_and_files(run: agent0.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curve, metrics = run.curve(), run.metrics()
    assert [row["step"] for row in metrics] == [0, 1, 2] and "curve/validation" in metrics[0]
    assert run.export("csv", tmp_path / "out").name == f"{run.id}.csv"
    scores = [row["validation"] for row in curve if row["validation"] is not None]
    assert curve.frame()["validation"].dropna().tolist() == scores
    with curve.write(tmp_path / "curve.csv").open() as file:
        assert [float(row["validation"]) for row in csv.DictReader(file) if row["validation"]] == scores
    rows = Rows([{"a": 1, "b": {"c": [1, 2]}}, {"a": None, "b": None}])
    assert pyarrow.parquet.read_table(rows.write(tmp_path / "r.parquet")).to_pylist()[0] == {
        "a": 1,
        "b": '{"c": [1, 2]}',
    }
    with pytest.raises(ConfigError, match=r"\.csv or \.parquet"):
        rows.write(tmp_path / "rows.xlsx")
    for missing, ask in (("pandas", rows.frame), ("pyarrow", lambda: rows.write(tmp_path / "r.parquet"))):
        monkeypatch.setitem(sys.modules, missing, None)
        with pytest.raises(RequirementsError, match=f"{missing} is not installed.*pip install {missing}"):
            ask()


def test_a_notebook_shows_curves_tables_and_no_markup_of_strangers(run: agent0.Run, folder: agent0.Folder) -> None:
    shown = run._repr_html_()
    assert "<svg" in shown and "--validation:#0072b2" in shown and "untrained" in shown
    assert run.id in folder._repr_html_()
    hostile = Rows([{HOSTILE: HOSTILE}] * 60)._repr_html_()
    assert "<script" not in hostile and "\x1b" not in hostile and "50 of 60 rows" in hostile
    assert repr(run) == f"Run('{run.id}', finished)"
