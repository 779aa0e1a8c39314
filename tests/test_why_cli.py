"""`agent0 run why` on real runs: broken by real limits, mended by the command that it names, and told of elsewhere."""

import asyncio
import re
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import recorded
from agent0.config.loading import load
from agent0.errors import DependencyError, OperationError
from agent0.events.alarms import AlarmRaised, DependencyLost
from agent0.infra.storage.sqlite import reading
from tests.kept_open import attached
from tests.terminal import Said
from tests.terminal import agent0 as call
from tests.test_cli_run import SMALL, append

ENDLESS = '''"""A student whose calls never end by themselves."""

from dataclasses import replace

from agent0.assembly.runtime.providers import Provider, provider
from agent0.chat_format import format_call
from agent0.infra.models.scripted import Scripted, ScriptedTrainer, encode


class Endless(Scripted):
    async def generate(self, request):
        written = await super().generate(request)
        if request.turns[-1].role != "user":
            return written
        ids = encode(text := format_call("python", {"code": "while True: pass"}))
        return replace(written, text=text, token_ids=ids, logprobs=(-1.0,) * len(ids), ends=())


provider(Provider(
    "endless",
    lambda actor, settings, artifacts: Endless(artifacts),
    lambda actor, settings, artifacts: ScriptedTrainer(artifacts),
))
'''
STRICT = ("-s", "run.curriculum.similarity_limit=0.000001", "-s", "run.max_untrained=0")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run whose sandbox is too small, then one whose screening is too strict."""
    with attached(tmp_path_factory.mktemp("why")) as held:
        (held / "endless.py").write_text(ENDLESS)
        student = ("--plugin", str(held / "endless.py"), "--set", "run.student.provider=endless")
        tight = (*student, "--tasks", "8", "--attempts", "3", "--iterations", "1", "--set", "sandbox.wall_s=0.02")
        small = call("run", "start", *SMALL, *tight, "--name", "small", home=held)
        strict = call("run", "start", *SMALL, *STRICT, "--name", "strict", home=held)
        assert (small.code, strict.code) == (0, 0), strict.err
        yield held


def of(home: Path, name: str) -> str:
    return next(row["run"] for row in call("run", "list", "--json", home=home).json if row["run"].startswith(name))


def first(said: Said) -> str:
    assert said.code == 0, said.err
    return said.out.splitlines()[0]


def test_a_sandbox_that_is_too_small_is_the_first_line(home: Path) -> None:
    run = of(home, "small")
    found = call("run", "why", run, home=home)
    limit = r"the sandbox is too small: \d+ of \d+ tool calls took longer than its time limit"
    assert re.match(rf"{run}: {limit}", found.out), found.out
    assert "To mend it: AGENT0_SANDBOX__WALL_S=5 agent0 run fork" in found.out
    told = call("run", "why", run, "--json", home=home).json
    assert (told["cause"], told["evidence"][0]["attempt"][:3]) == ("sandbox", "t0-")


def test_what_mends_it_does(home: Path) -> None:
    run = of(home, "strict")
    line = first(call("run", "why", run, home=home))
    assert line.startswith(f"{run}: screening is too strict: everything is refused as known")
    told = call("run", "why", run, "--json", home=home).json
    assert told["settings"][0]["key"] == "run.curriculum.similarity_limit"
    assert call(*shlex.split(told["mend"])[1:], "--name", "mended", "--json", home=home).code == 0
    assert call("run", "why", of(home, "mended"), "--json", home=home).json["cause"] != "refused"


def test_show_report_and_page_begin_with_it(home: Path, tmp_path: Path) -> None:
    run = of(home, "strict")
    line = first(call("run", "why", run, home=home))
    assert first(call("run", "show", run, home=home)) == line
    assert call("run", "show", run, "--json", home=home).json["why"]["conclusion"] == line
    out = tmp_path / "page.html"
    assert first(call("report", run, "--out", str(out), home=home)) == line
    text = out.read_text()
    body = text[text.index("<body>") :]
    assert body.index("screening is too strict") < body.index("Alarms that stand") < body.index("Learning curve")


def test_a_refused_task_says_why_and_what_was_written(home: Path) -> None:
    run = of(home, "strict")
    listed = call("task", "list", run, "--status", "rejected", "--json", home=home).json
    similar = next(row for row in listed if row["reason"] == "similar")
    assert similar["detail"].startswith("similarity 0.")
    assert "similar" in call("task", "list", run, home=home).out
    shown = call("task", "show", similar["task"], run, "--json", home=home).json
    assert shown["written"] == similar["question"]
    told = call("task", "show", similar["task"], run, home=home).out
    assert re.search(rf"^written\s+{re.escape(similar['question'])}", told, re.MULTILINE)


def test_alarms_of_a_kind_are_one_line_with_what_shows_it(home: Path) -> None:
    run = of(home, "strict")
    found = call("run", "show", run, "--json", home=home).json
    assert {alarm["alarm"] for alarm in found["alarms"]} >= {"no-signal-student-0", "no-signal-student-1"}
    (kind,) = [
        alarm_kind for alarm_kind in found["alarm_kinds"] if alarm_kind["alarm"] in ("known-tasks", "no-contrast")
    ]
    shown = call("run", "show", run, home=home).out.partition("Alarms that stand\n")[2].splitlines()
    (line,) = [one for one in shown if one.startswith(kind["alarm"])]
    assert "nothing to learn from" in line
    assert re.search(r"\[t\d-\d{3}(-a\d)?, event \d+\]$", line)


def test_a_full_disk_is_seen_from_here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = call("run", "start", *SMALL, "--name", "begun", "--detach", "--json", home=home).json["run"]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=1 << 40, used=1 << 40, free=1 << 20))
    assert first(call("run", "why", begun, home=home)).startswith(f"{begun}: the disk is full: 1 MiB are free")
    assert "disk" not in first(call("run", "why", of(home, "small"), home=home)), "what is finished needs no room"


def test_a_model_that_is_away_is_named_and_what_waits_for_it(home: Path) -> None:
    begun = call("run", "start", *SMALL, "--name", "away", "--detach", "--json", home=home).json["run"]
    said = "Ollama is not available. Nothing answers at http://127.0.0.1:11434."
    append(home, begun, DependencyLost(dependency="Ollama", waiting="attempt_task", message=said))
    line = "Ollama is away, and attempt_task waits for it: Nothing answers at http://127.0.0.1:11434."
    assert first(call("run", "why", begun, home=home)) == f"{begun}: {line}"


def test_a_server_that_is_gone_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = of(home, "away")
    monkeypatch.setenv("AGENT0_NATS_URL", "nats://127.0.0.1:9")
    monkeypatch.setattr("agent0.infra.log.connection.CONNECT_S", 0.3)
    line = first(call("run", "why", begun, home=home))
    assert line.startswith(f"{begun}: the log's server (NATS) is away: ") and "127.0.0.1:9 does not answer" in line


def test_a_log_that_refuses_events_is_named(tmp_path: Path) -> None:
    """Filled until it does."""
    with attached(tmp_path):
        full = ("-s", "nats.max_bytes=400000")
        run = call("run", "start", *SMALL, *full, "--name", "full", "--detach", "--json", home=tmp_path).json["run"]

        async def fill() -> None:
            settings = load("scripted", {"home": str(tmp_path), "nats.max_bytes": "400000"}, {})
            async with open_log(settings) as log:
                for number in range(40):
                    noise = AlarmRaised(alarm=f"noise-{number}", severity="info", message=f"{number}" * 20_000)
                    await log.append([recorded(run, noise)])

        with pytest.raises(DependencyError, match="refuses to store"):
            asyncio.run(fill())
        assert first(call("run", "why", run, home=tmp_path)).startswith(f"{run}: the log is full: ")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("task", "show", "t9-999"), 1, "has no task 't9-999'. `agent0 task list"),
        (("reward", "explain", "t9-999"), 1, "has no task 't9-999'. `agent0 task list"),
        (("projections", "query", "SELECT * FROM taks"), 1, "no table 'taks'. Did you mean tasks? See: agent0"),
        (("run", "start", *SMALL, "-s", "run.rewards.weights.correctness=much"), 2, "Input should be a valid number"),
        (("tool", "call", "python", "--code", "1/0", "-s", "sandbox.workers=1"), 1, ""),
    ],
)
def test_bad_input_is_one_line_with_its_mend(home: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    said = call(*arguments, home=home)
    assert (said.code, words in said.err, "Traceback" in said.err) == (code, True, False), said.err
    assert len(said.err.splitlines()) <= 1


def test_a_data_folder_that_cannot_be_is_refused() -> None:
    said = call("run", "list", home=Path("/proc/nowhere"))
    assert said.code == 2
    assert "The data folder cannot be /proc/nowhere. Nothing can be made in /proc." in said.err


# --- by real trainings, and a real server that is not there


CLIMB = ("-s", "run.evaluation.validation=12", "-s", "run.evaluation.test=0", "-s", "run.training.student.steps=3")
TINY = ("-s", "run.evaluation.validation=6", "-s", "run.evaluation.test=0", "-s", "run.evaluation.forced_tool=false")


@pytest.mark.slow
def test_the_learning_rate_that_ruined_the_student_is_named(tmp_path: Path) -> None:
    size = ("--profile", "climb", "--iterations", "2", "--tasks", "12", *CLIMB)
    assert call("run", "start", *size, "-s", "run.training.student.lr=5", home=tmp_path).code == 0
    line = first(call("run", "why", home=tmp_path))
    assert "the student's learning rate ruined student-0: 0 of 12 attempts give an answer, after 12 of 12" in line
    assert line.endswith("(run.training.student.lr is 5, in profile climb 0.001).")


@pytest.mark.slow
def test_the_learning_rate_that_ruined_the_teacher_is_named(tmp_path: Path) -> None:
    size = ("--profile", "tiny", "--iterations", "2", "--tasks", "6", "--attempts", "2", *TINY)
    assert call("run", "start", *size, "-s", "run.training.teacher.lr=5", home=tmp_path).code == 0
    line = first(call("run", "why", home=tmp_path))
    assert "the teacher's learning rate ruined teacher-0: 0 of 6 texts hold a task, after 5 of 6 of base" in line
    assert line.endswith("(run.training.teacher.lr is 5, in profile tiny 0.0025).")


@pytest.mark.slow
@pytest.mark.parametrize("temperature", ["0", "50"])
def test_a_temperature_is_named(tmp_path: Path, temperature: str) -> None:
    size = ("--profile", "tiny", "--iterations", "1", "--tasks", "8", "--attempts", "4", *TINY)
    call("run", "start", *size, "-s", f"run.student.temperature={temperature}", home=tmp_path)
    line = first(call("run", "why", home=tmp_path))
    assert "the student's temperature: " in line
    assert line.endswith(f"(run.student.temperature is {temperature}, in profile tiny 1).")


def test_tables_that_a_full_disk_left_empty_are_no_matter_of_permissions(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "view.db").close()
    with pytest.raises(OperationError, match="agent0 projections rebuild"), reading(tmp_path / "view.db") as db:
        db.execute("SELECT run FROM runs")
