"""``agent0 bench run`` on a folder of mined tasks: over turns in work folders, judged as in a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.evaluation import benchmark_item
from agent0.assembly.evaluation.benchmark_run import Plan, Progress, read_plan, run_benchmarks, scored_items
from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.events.benchmarks import ItemScored
from agent0.events.values import Task
from agent0.ports.storage import Artifacts
from agent0.settings import Settings
from tests.mined import DONE, mined_folder, random_edit
from tests.terminal import agent0

COUNT = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mined_folder(tmp_path_factory.mktemp("mined"), ("adds", "sums"), COUNT // 2)


def chosen(home: Path, **student: object) -> Settings:
    settings = load("scripted", {"home": str(home)}, {})
    run = settings.run.model_copy(update={"student": settings.run.student.model_copy(update=student)})
    return settings.model_copy(update={"run": run})


async def scored(settings: Settings, folder: Path, run: str) -> list[ItemScored]:
    """The items of a whole benchmark run of ``folder``."""
    await run_benchmarks(settings, Plan((str(folder),), Path()), run)
    return (await scored_items(settings, run))[0]


class Stopped(BaseException):
    """What ends a process that is stopped."""


def stop(progress: Progress) -> None:
    """Stop behind the second item."""
    if progress.done == 2:
        raise Stopped


async def events_of(settings: Settings, run: str) -> list[ItemScored]:
    async with open_log(settings, "reader") as log:
        return [r.event async for r in log.read(run, ["ItemScored"]) if isinstance(r.event, ItemScored)]


async def test_a_stopped_run_goes_on_and_the_perfect_student_is_right_on_all(
    folder: Path, tmp_path: Path, shared_sandbox: None
) -> None:
    settings, plan = chosen(tmp_path), Plan((str(folder),), Path(), limit=COUNT - 1)
    with pytest.raises(BaseExceptionGroup):
        await run_benchmarks(settings, replace(plan, at_once=1), "bench-stopped", stop)
    earlier = await events_of(settings, "bench-stopped")
    assert len(earlier) == 2
    reports: list[int] = []
    results = await run_benchmarks(settings, plan, "bench-stopped", lambda progress: reports.append(progress.done))
    assert reports == [2, 3], "what was scored is not asked again"
    assert results["n-samples"] == {folder.name: {"original": COUNT - 1, "effective": COUNT - 1}}
    items = await events_of(settings, "bench-stopped")
    assert items[:2] == earlier and len({item.item for item in items}) == COUNT - 1
    assert {(item.mode, item.correct, item.reason) for item in items} == {("tools", True, "all 2 hidden tests pass")}
    assert {(item.turns, item.tool_ok, item.end, item.facts["level"]) for item in items} == {(2, 1, "answered", "1")}


async def test_students_that_repair_nothing_are_right_on_none(
    folder: Path, tmp_path: Path, shared_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turns(task: Task, files: Artifacts) -> tuple[str, ...]:
        assert task.row and task.row.repository
        package = task.row.repository.package
        return (random_edit(package), DONE) if package == "adds" else (DONE,)

    monkeypatch.setattr(benchmark_item, "reference_turns", turns)
    items = await scored(chosen(tmp_path), folder, "bench-wrong")
    assert [item.correct for item in items] == [False] * COUNT
    failing = "1 of 2 tests fail, such as tests/test_hidden.py::test_two"
    assert sorted(item.reason for item in items) == [failing] * 2 + ["nothing was changed"] * 2


def test_the_command_takes_a_folder_by_its_name_and_tells_levels(
    folder: Path, tmp_path: Path, shared_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    words = ("bench", "run", folder.name, "--provider", "scripted", "--limit", "1", "--json")
    done = agent0(*words, home=tmp_path)
    assert done.code == 0, done.err
    (level,) = done.json["levels"]
    assert (level["level"], level["n"], level["accuracy"]) == ("1", 1, 1.0) and level["lower95"] < 1
    assert done.json["results"][folder.name]["acc,tools"] == 1.0


async def test_a_student_that_cannot_write_files_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"need tools that write files.*It has none"):
        read_plan(Plan((str(folder),), Path(), ("plain",)))
    for without in ({"tools": ()}, {"max_calls": 0}):
        with pytest.raises(ConfigError, match="need tools that write files"):
            await run_benchmarks(chosen(tmp_path, **without), Plan((str(folder),), Path()), "bench-none")
