"""A run as a handle: one table of cases for a folder and a server, by coroutines and without; what an interrupted cell,
two handles on one run and an ending process leave behind."""

import asyncio
import runpy
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

import agent0
from agent0.assembly.api import calls, local_runs
from agent0.assembly.api.local_runs import execution
from agent0.errors import Agent0Error, ConfigError, NotFoundError, OperationError
from agent0.events.checkpoints import CheckpointEvaluated
from agent0.infra.web.agent0_server import ServerLink
from tests.client_cases import CASES, TABLE, named, outcome, value_of
from tests.handles import LONG, SMALL, ChatRuns, SyncRuns, all_of, served
from tests.kept_open import attached, one_sandbox
from tests.processes import interrupt_main
from tests.terminal import agent0 as call

SCRIPT = Path(__file__).parents[1] / "docs" / "guide" / "handle.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[agent0.Folder]:
    home = tmp_path_factory.mktemp("folder")
    with attached(home), one_sandbox():
        opened = agent0.open(home, profile="scripted", settings={"sandbox.workers": 1})
        opened.start(settings=SMALL, name="whole")
        yield opened


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[agent0.Server]:
    with one_sandbox(), served(tmp_path_factory.mktemp("server")) as url:
        connected = agent0.connect(url)
        connected.start(settings=SMALL, name="whole")
        yield connected


@pytest.fixture(params=["folder sync", "folder async", "server sync", "server async"])
def runs(request: pytest.FixtureRequest) -> Any:
    where, how = request.param.split()
    place = request.getfixturevalue(where)
    return place.aio if how == "async" else SyncRuns(place)


@pytest.fixture(params=["folder sync", "folder async", "server sync", "server async", "server chat"])
def clients(request: pytest.FixtureRequest) -> Any:
    where, how = request.param.split()
    place = request.getfixturevalue(where)
    return {"sync": SyncRuns, "async": lambda there: there.aio, "chat": lambda there: ChatRuns(there.url)}[how](place)


async def test_a_run_that_is_over_says_what_it_came_to(runs: Any) -> None:
    run = await runs.run("whole")
    assert await run.status() == await run.wait() == "finished"
    progress = await run.progress()
    assert (progress.share, progress.iteration, progress.iterations) == (1.0, 0, 1) and progress.attempts > 0
    metrics = await run.metrics("curve/validation", "test/accuracy")
    assert [row["step"] for row in metrics] == [0, 1] and metrics[-1]["test/accuracy"] == progress.heldout_last
    assert metrics.frame()["curve/validation"].dropna().tolist()[-1] == progress.validation
    every = [event async for event in run.events()]
    assert [event.seq for event in every] == sorted({event.seq for event in every}) and len(every) == progress.events
    followed = [event async for event in run.events(follow=True)]
    assert followed == every, "a run that is over has no more to come"
    scored = [event async for event in run.events("CheckpointEvaluated", after=every[4].seq)]
    assert scored and all(isinstance(event.event, CheckpointEvaluated) for event in scored)
    asked = [event async for event in run.events(task=next(e.task for e in every if e.task != "-"))]
    assert 0 < len(asked) < len(every)
    assert run.id in [other.id for other in await runs.runs()]
    assert (await run.resume()).id == run.id and await run.status() == "finished"


async def test_a_run_is_started_held_and_followed_to_its_end(runs: Any) -> None:
    run = await runs.start(settings=SMALL, name="followed", wait=False)
    assert await run.status() in ("running", "finished")
    called: list[agent0.Recorded] = []

    async def take(event: agent0.Recorded) -> None:
        called.append(event)

    callbacks = asyncio.ensure_future(run.on(take if isinstance(run, agent0.AsyncRun) else called.append))
    followed = [event async for event in run.events("TaskAccepted,CheckpointEvaluated", follow=True)]
    assert await run.wait() == "finished"
    await callbacks
    every = [event async for event in run.events()]
    kinds = ("TaskAccepted", "CheckpointEvaluated")
    assert followed == [event for event in every if event.type in kinds]
    assert called == every[: len(called)] and called[-1].type == "RunFinished"
    trained = next(event for event in every if event.type == "CheckpointTrained")
    forked = await run.fork(trained.seq, {"training.student.lr": 0.001}, name="slower")
    overview = await forked.overview()
    assert (overview["parent"], overview["parent_seq"], overview["status"]) == (run.id, trained.seq, "finished")


async def test_two_handles_on_one_run_see_the_same(runs: Any) -> None:
    run = await runs.start(settings=LONG, name="long", wait=False)
    other = await runs.run(run.id)
    assert await run.wait(0.01) == "running" and (await other.progress()).share < 1
    await other.pause("a look")
    assert await run.status() == await other.status() == await run.wait() == "paused"
    with pytest.raises(OperationError, match="paused already"):
        await run.pause()
    await run.resume(wait=False)
    assert await run.status() == await other.status() == "running"
    waits = [asyncio.ensure_future(handle.wait()) for handle in (run, other)]
    followed = asyncio.ensure_future(all_of(run.events(follow=True)))
    await other.cancel("enough")
    assert await asyncio.gather(*waits) == ["cancelled", "cancelled"]
    events = await followed
    assert [event.event.reason for event in events if event.type == "RunCancelled"] == ["enough"]
    for refused in (run.cancel, run.pause, lambda: run.resume(wait=False)):
        with pytest.raises(OperationError, match="is cancelled"):
            await refused()
    assert await (await runs.run("whole")).status() == "finished", "others are left alone"


@pytest.mark.parametrize("case", CASES, ids=named)
async def test_errors_are_those_of_the_table(clients: Any, case: dict[str, Any]) -> None:
    if isinstance(clients, ChatRuns) and "chat" in case.get("without", {}):
        return
    got = await outcome(case, clients, await clients.run("whole"))
    assert got.get("error") == case["error"], got
    what, why, fix = got["texts"]
    assert [text for text in case["says"] if text not in f"{what} {why} {fix}"] == []
    assert case.get("server") or (why and fix), "what is refused here names what to do"


async def test_readings_and_decisions_are_those_of_the_table(clients: Any) -> None:
    run = await clients.run("whole")
    for case in TABLE["reads"]:
        got = await outcome(case, clients, run)
        assert "error" not in got and case.get("gives", got["gives"]) == got["gives"], case
    places = {"runs": clients, "run": run}
    for case in TABLE["life"]:
        try:
            value = await value_of(case, places[case["on"]], run.id)
        except Agent0Error as error:
            assert type(error).__name__ == case.get("error"), case
            assert all(text in str(error) for text in case["says"]), case
        else:
            assert "error" not in case and case.get("gives", value) == value, case
            places[case.get("as", "")] = value


async def test_documents_are_taken_where_they_lie(runs: Any, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for number in range(60):
        (tmp_path / f"{number}.txt").write_text(f"River {number} is {number} miles long. " * 20)
    if "server" in request.node.name:
        with pytest.raises(ConfigError, match=r"A request carries no files.*run\.documents\.folder"):
            await runs.start(settings=SMALL, documents=tmp_path, wait=False)
    else:
        run = await runs.start(settings=SMALL, documents=tmp_path)
        assert (await run.overview())["config"]["documents"]["folder"] == str(tmp_path)


def test_a_folder_and_a_server_of_another_type_are_refused() -> None:
    for wrong, opening in {
        "home = 5": lambda: agent0.open(5),  # type: ignore[arg-type]
        "plugins = 'x.py'": lambda: agent0.open(plugins="x.py"),
        "url = 5": lambda: agent0.connect(5),  # type: ignore[arg-type]
        "key = 5": lambda: agent0.connect(key=5),  # type: ignore[arg-type]
        "patience_s = 'x'": lambda: agent0.connect(patience_s="x"),  # type: ignore[arg-type]
    }.items():
        with pytest.raises(ConfigError, match=wrong):
            opening()


async def test_runs_are_listed_by_what_they_are(runs: Any) -> None:
    fork = await (await runs.run("whole")).fork(0, {"run.iterations": 500}, wait=False, name="odd one")
    await fork.cancel()

    async def ids(**chosen: Any) -> list[str]:
        return [run.id for run in await runs.runs(**chosen)]

    every = await ids()
    assert fork.id in await ids(forks=True) and (await runs.run("whole")).id not in await ids(forks=True)
    assert (await ids(text="ODD ONE"))[:1] == [fork.id] and await ids(tag="none") == []
    assert await ids(profile="scripted", hidden=True) == every
    assert fork.id in await ids(status="cancelled") and fork.id not in await ids(status="finished")
    with pytest.raises(ConfigError, match="status: there is no 'finishd'"):
        await ids(status="finishd")
    assert await ids(profile="scriptd") == []
    with pytest.raises(TypeError, match="colour"):
        await ids(colour="red")


def test_receipts_of_what_there_is_not_are_refused(folder: agent0.Folder) -> None:
    run = folder.run("whole")
    for name in ("t9-9", "t9-9-a0"):
        with pytest.raises(NotFoundError, match=name):
            run.explain(name)
    with pytest.raises(NotFoundError, match="no evaluation 'tset'"):
        list(run.trajectories(evaluation="tset"))
    assert run.explain(run.attempts()[0]["attempt"])


async def test_questions_of_ones_own_are_the_same_everywhere(runs: Any) -> None:
    rows = [{"question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(1, 30)]
    wrong = [*rows, {"question": "What is 7?", "answer": ""}]
    sizes = {**SMALL, "run.evaluation.validation": 1, "run.evaluation.test": 1}
    with pytest.raises(ConfigError, match=r"line 30: .*answer"):
        await runs.start(settings=sizes, questions=wrong, wait=False)
    run = await runs.start(settings=sizes, questions=rows, name="rows")
    asked, tasks = await run.ledger(), (await run.progress()).tasks
    assert sum(row["asked"] for row in asked) == tasks > 0 and {row["asked"] for row in asked} >= {0, 1}
    assert {row["question"] for row in asked} < {row["question"] for row in rows}
    with pytest.raises(NotFoundError, match="has no file of questions"):
        await (await runs.run("whole")).ledger()
    assert Path((await run.overview())["config"]["questions"]["file"]).name.startswith("rows-")


@pytest.mark.parametrize("where", ["folder", "server"])
def test_the_guides_script_does_all_of_it(
    where: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has 25 lines at most; ``make check`` reads it with ``mypy --strict``."""
    for key, value in {**SMALL, "run.iterations": 8}.items():  # it is paused before it is over
        monkeypatch.setenv(f"AGENT0_{key.upper().replace('.', '__')}", str(value))
    place = request.getfixturevalue(where)
    address = place.url if isinstance(place, agent0.Server) else str(place.settings.home)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), address])
    runpy.run_path(str(SCRIPT))
    printed = capsys.readouterr().out
    assert printed.startswith("paused") and "tasks accepted\nfinished\nfinished\n" in printed
    assert "\n11 scores\n" in printed and printed.endswith("metrics() without a name gives all.\n")
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 25


def test_a_server_starts_nothing_from_no_rows_or_a_folder(server: agent0.Server, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no rows"):
        server.start("scripted", questions=[])
    with pytest.raises(ConfigError, match="from an adapter in a folder"):
        server.start("scripted", adapter=str(tmp_path))
    with pytest.raises(NotFoundError, match="no run 'nobody'"):
        server.start("scripted", adapter="nobody/student-0")
    with pytest.raises(ConfigError, match="not on this machine"):
        server.start("scripted", adapter=f"{server.run('whole').id}/base")
    with pytest.raises(ConfigError, match="Row 2 is no mapping"):
        server.start("scripted", questions=[{"question": "1 + 1?", "answer": "2"}, 5])  # type: ignore[list-item]
    assert server.runs() == [] or all(run.id.startswith("scripted") is False for run in server.runs())


async def test_rows_are_checked_over_http(server: agent0.Server) -> None:
    """As by the command, each fault with its row and column."""
    rows = [{"question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(1, 6)]
    link = ServerLink(server.url, "", 1.0)
    checked = await link.post("/v1/questions/check", {"questions": [*rows, {"question": "What is 7?", "answer": ""}]})
    assert (checked["rows"], len(checked["sample"])) == (6, 5)
    assert [(fault["location"].rpartition(", ")[2], fault["column"]) for fault in checked["faults"]] == [
        ("line 6", "answer")
    ]
    with pytest.raises(ConfigError, match=r"Did you mean run\.questions\.columns"):
        await link.post("/v1/questions/check", {"questions": rows, "settings": {"run.questions.colums": "{}"}})
    with pytest.raises(OperationError, match="16,777,216 bytes at most"):
        await link.post("/v1/questions/check", {"questions": [{"question": "?" * (1 << 24), "answer": "1"}]})


def test_runs_beside_each_other_end_each(folder: agent0.Folder) -> None:
    beside = [folder.start(settings=SMALL, name=name, wait=False) for name in ("left", "right")]
    assert [run.wait() for run in beside] == ["finished", "finished"]
    for run in beside:
        executing = execution(folder.settings, run.id)
        assert executing is not None and executing.ended.done(), "who waited may end the process"


def test_what_an_execution_fails_of_is_raised_where_it_is_waited_for(folder: agent0.Folder) -> None:
    def fail(line: str) -> None:
        raise OperationError("The terminal is gone.")

    run = folder.start(settings=SMALL, name="failing", say=fail, wait=False)
    with pytest.raises(OperationError, match="The terminal is gone"):
        run.wait()
    with pytest.raises(OperationError, match="The terminal is gone"):
        list(run.events(follow=True))
    assert run.status == "paused" and run.resume().status == "finished"


def test_a_failing_callback_is_named_and_harms_nobody(folder: agent0.Folder) -> None:
    run = folder.run("whole")
    with pytest.warns(UserWarning, match=r"A callback failed at event \d+ of whole-.*division"):
        run.on(lambda event: 1 / 0).join()
    assert run.status == "finished"


def test_a_callback_that_is_stopped_is_called_no_more(folder: agent0.Folder) -> None:
    run, called = folder.start(settings=LONG, name="stopped", wait=False), list[int]()
    run.on(lambda event: called.append(event.seq)).stop()
    before = len(called)
    run.cancel()
    assert run.wait() == "cancelled" and len(called) == before


@pytest.fixture
def interruptible() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_cell_leaves_a_run_that_goes_on(folder: agent0.Folder) -> None:
    lines: list[str] = []

    def interrupt(line: str) -> None:
        lines.append(line)
        if len(lines) == 1:
            interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        folder.start(settings={**SMALL, "run.iterations": 4}, name="cell", say=interrupt)
    run = folder.run("cell")
    assert run.wait(60) == "paused" and run.status == "paused"
    forked = run.fork(wait=False)
    forked.cancel()
    assert run.resume().status == "finished" and forked.wait() == "cancelled"


@pytest.mark.usefixtures("interruptible")
def test_interrupted_waiting_ends_the_waiting_alone(folder: agent0.Folder) -> None:
    run = folder.start(settings=LONG, name="waited", wait=False)
    for waiting in (run.wait, lambda: [*run.events(follow=True)]):
        seen = max(event.seq for event in run.events())
        interrupts = run.on(lambda event: interrupt_main(), "TaskRequested", seen)
        with pytest.raises(KeyboardInterrupt):
            waiting()
        interrupts.stop()
        assert run.status == "running"
    run.cancel()
    assert run.wait() == "cancelled"


def test_a_curve_of_a_run_under_way_is_drawn_anew(folder: agent0.Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As IPython asks for it; of a run that is over it shows what ``_repr_html_`` gives."""
    shown: list[str] = []

    class Display:
        HTML = str

        def display(self, html: str, *, display_id: bool) -> "Display":
            self.update(html)
            return self

        def update(self, html: str) -> None:
            shown.append(html)

    monkeypatch.setitem(sys.modules, "IPython.display", Display())  # type: ignore[arg-type]
    run = folder.start(settings=SMALL, name="drawn", wait=False)
    run._ipython_display_()
    assert run.wait() == "finished"
    assert "running" in shown[0] and "<svg" not in shown[0]
    while "finished" not in shown[-1]:
        time.sleep(0.01)
    run._ipython_display_()
    assert "finished" in shown.pop() and "<svg" in shown[-1] and "<svg" not in shown[0]


@pytest.fixture
def idle() -> None:
    """Nothing of earlier tests executes runs any more: it would take up those of this one."""
    for executing in [*local_runs._executions.values()]:
        executing.stop()


@pytest.mark.usefixtures("idle")
def test_a_process_that_ends_pauses_what_it_executes(folder: agent0.Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folder.start(settings=LONG, name="left", wait=False)
    monkeypatch.setattr(calls, "_under_way", WeakSet([execution(folder.settings, run.id)]))
    calls._stop_all()
    assert run.status == run.wait() == "paused"
    run.cancel()
    assert run.status == run.wait() == "cancelled"


@pytest.mark.usefixtures("idle")
def test_waiting_for_what_nobody_executes_says_so(folder: agent0.Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent0.assembly.api.local_runs.LEFT_S", 0.1)
    words = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    begun = call("run", "start", "--detach", "--json", "--profile", "scripted", *words, home=folder.settings.home)
    folder.refresh()
    run = folder.run(begun.json["run"])
    with pytest.raises(OperationError, match="No process executes it"):
        run.wait()
    assert run.resume().status == "finished"


def test_a_folder_to_read_decides_nothing(folder: agent0.Folder) -> None:
    run = agent0.open(folder.settings.home, read_only=True).run("whole")
    assert run.status == "finished" and run.metrics()
    for refused in (run.pause, run.cancel, run.fork):
        with pytest.raises(OperationError, match="opened to read"):
            refused()
