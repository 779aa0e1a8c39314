"""What must not leak and must not run: secrets, text of models, ids in paths, marks for terminals.

Beside it: attacks on the sandbox (``tests/sandbox``), special tokens (``tests/engine``), calls in tool output
(``test_student``), rights of the log's users (``test_provisioning``), HTML (``test_report``).
"""

import ast
import asyncio
import json
import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.cli import console
from agent0.errors import ConfigError, NotFoundError
from agent0.events.values import Artifact
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.rollout.prompts import prompt
from tests.kept_open import attached
from tests.processes import Crew
from tests.terminal import agent0 as call
from tests.test_architecture import FILES
from tests.test_architecture import source as parsed

SIZES = {
    "RUN__ITERATIONS": "1",
    "RUN__TASKS": "3",
    "RUN__ATTEMPTS": "2",
    "RUN__EVALUATION__VALIDATION": "3",
    "RUN__EVALUATION__TEST": "0",
    "RUN__STUDENT__MODEL": "latency=0.05",
}
KEYS = {name: f"sk-canary-{name.lower()}" for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY")}


# --- secrets -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crew, Crew]]:
    """A log with a password, and a data folder whose processes use that log from outside, with keys in sight."""
    with pytest.MonkeyPatch.context() as patch, Crew(tmp_path_factory.mktemp("log"), **SIZES) as server:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        with attached(server.home):
            assert call("log", "init", home=server.home).code == 0
            password = Server(server.settings.nats, server.home / "nats").password("app").get_secret_value()
            port = json.loads((server.home / "nats" / "server.json").read_text())["port"]
            url = {"NATS__URL": f"nats://127.0.0.1:{port}", "NATS__USER": "app", "NATS__PASSWORD": password}
            with Crew(tmp_path_factory.mktemp("app"), **SIZES, **url) as app:
                app.env |= KEYS
                yield server, app


@pytest.fixture
def app(homes: tuple[Crew, Crew], monkeypatch: pytest.MonkeyPatch) -> Crew:
    """The folder that uses the log from outside; commands of this process see what its processes see."""
    for name, value in homes[1].env.items():
        if name.startswith("AGENT0_"):
            monkeypatch.setenv(name, value)
    return homes[1]


def test_no_secret_is_ever_written_or_handed_on(homes: tuple[Crew, Crew]) -> None:
    server, app = homes
    password = app.env["AGENT0_NATS__PASSWORD"]
    canaries = [value.encode() for value in (*KEYS.values(), password)]
    app.start("whole", "run", "start", "--json")
    seen, names = _children(app.running["whole"], canaries)
    said = app.said("whole")
    assert app.running["whole"].returncode == 0, said
    assert '"curve"' in said, "it told what it came to"
    assert {"bwrap"} <= names, f"no sandbox was looked at, only {names}"
    assert seen == []
    pid = Server(server.settings.nats, server.home / "nats").pid
    assert pid and not [c for c in canaries if c in Path(f"/proc/{pid}/environ").read_bytes()]
    for home in (server.home, app.home):
        for file in (f for f in home.rglob("*") if f.is_file() and f.name != "app.password"):
            held = file.read_bytes()
            assert not [c for c in canaries if c in held], f"{file} holds a secret"
    (row,) = app.tell("run", "list", "--json")
    stored = [recorded.to_json() for recorded in asyncio.run(server.facts(row["run"]))]
    assert stored and not [c for c in canaries if any(c in body for body in stored)]  # its files are compressed
    assert not [c for c in canaries if c.decode() in said]


def _children(process: "subprocess.Popen[bytes]", canaries: list[bytes]) -> tuple[list[str], set[str]]:
    """Until ``process`` ends: who has a secret among its arguments, or among its variables below ``process``."""
    found: set[str] = set()
    names: set[str] = set()
    deadline = time.monotonic() + 90
    while process.poll() is None:
        assert time.monotonic() < deadline
        parents = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
                parents[int(folder.name)] = (name, int(rest.split()[1]))
                if any(c in (folder / "cmdline").read_bytes() for c in canaries):
                    found.add(f"arguments of {name}")
            except (OSError, ValueError):
                continue
        below = _below(process.pid, {pid: parent for pid, (_, parent) in parents.items()})
        for pid in below:
            try:
                held = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            names.add(parents[pid][0])
            if any(c in held for c in canaries):
                found.add(f"environment of {parents[pid][0]}")
        time.sleep(0.1)
    return sorted(found), names


def _below(root: int, parents: dict[int, int]) -> set[int]:
    below: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in below | {root}} - below:
        below |= more
    return below


def test_the_list_of_fonts_is_made_without_our_variables(tmp_path: Path) -> None:
    seen, program = tmp_path / "seen", tmp_path / "fc-list"
    program.write_text(f"#!/bin/sh\nenv >>{seen}\necho /usr/share/fonts/--format\n")
    program.chmod(0o755)
    env = {**os.environ, **KEYS, "PATH": f"{tmp_path}:{os.environ['PATH']}", "MPLCONFIGDIR": str(tmp_path / "cache")}
    charts = "from agent0.report.charts import curriculum_heatmap, learning_curve"
    asked = f"import os; {charts}; print(os.environ['OPENAI_API_KEY'])"
    done = subprocess.run(
        [sys.executable, "-c", asked], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == KEYS["OPENAI_API_KEY"], "ours are there again"
    held = seen.read_text()
    assert "MPLCONFIGDIR" in held and not any(key in held for key in KEYS.values())


def test_a_password_is_no_flag_and_no_output(app: Crew) -> None:
    password = app.env["AGENT0_NATS__PASSWORD"]
    for words in (("--json",), ()):
        shown = call("config", "show", *words)
        assert shown.code == 0 and password not in shown.out and "***" in shown.out
    done = call("config", "show", "--set", f"nats.password={password}")
    assert done.code == ConfigError("").kind.exit_code
    assert password not in done.out + done.err


# --- text of models ----------------------------------------------------------------------------------------------

INSIDE = ("infra/sandbox/inside/", "agent0/verification/programs/judged/", "infra/mcp/stdio_bridge.py")
"""What runs inside the sandbox; the programs of ``agent0/tools`` are text that is only run there."""

PICKLES = "agent0/verification/programs/judged/operations.py"
"""In the sandbox a program may be asked to copy its own objects so; the tests' process refuses to be asked."""
RUNS = {"eval", "exec", "compile", "__import__"}
RUNS_OF_OTHERS = {"sympify", "parse_expr", "system", "popen", "getoutput", "create_subprocess_shell"}
STARTS = {"run", "call", "check_call", "check_output", "Popen", "create_subprocess_exec"}
LOADS = {"torch.load", "yaml.load", "yaml.unsafe_load"}
STORES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


@cache
def calls(path: str) -> list[tuple[str, str, ast.Call]]:
    """What ``path`` calls: on what ("" for a plain name), under which name, and where."""
    found = []
    for node in parsed(path).nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            room, name = ("", node.func.id) if isinstance(node.func, ast.Name) else (_dotted(node.func), node.func.attr)
            found.append((room, name, node))
    return found


def _dotted(node: ast.Attribute) -> str:
    """What stands before the last dot; of an expression only that it is there."""
    inner = node.value
    if isinstance(inner, ast.Attribute):
        return f"{_dotted(inner)}.{inner.attr}"
    return inner.id if isinstance(inner, ast.Name) else "..."


def test_nothing_runs_text_outside_the_sandbox() -> None:
    for path in (p for p in FILES if not p.startswith(INSIDE)):
        for room, name, node in calls(path):
            assert name not in RUNS_OF_OTHERS, f"{path}:{node.lineno} calls {name}"
            assert room or name not in RUNS, f"{path}:{node.lineno} calls {name}"


def test_no_child_inherits_the_environment() -> None:
    for path in (p for p in FILES if not p.startswith(INSIDE)):
        for room, name, node in calls(path):
            starts = room in ("subprocess", "asyncio") and name in STARTS and (room, name) != ("asyncio", "run")
            assert not starts or "env" in {k.arg for k in node.keywords}, f"{path}:{node.lineno} hands it on"


def test_nothing_is_unpickled_and_no_remote_code_is_trusted() -> None:
    for path in FILES:
        source = parsed(path)
        stores = STORES - {PICKLES: {"pickle"}}.get(path, set())
        assert not stores & {module.partition(".")[0] for module, _ in source.imports()}, path
        for room, name, node in calls(path):
            assert f"{room}.{name}" not in LOADS, f"{path}:{node.lineno} loads what may run"
        for node in (node for node in source.nodes if isinstance(node, ast.keyword)):
            value = getattr(node.value, "value", None)
            assert node.arg != "trust_remote_code" or value is False, path
            assert node.arg not in ("shell", "allow_pickle") or value is False, path
            assert node.arg != "weights_only" or value is True, path


NO_PAGES = {
    "agent0/report/markdown/rendering.py",
    "infra/engine/folder_template.py",
    "agent0/evaluation/benchmarks/rows/question_template.py",
}
"""What they make is no HTML: Markdown, whose templates escape what goes into an HTML tag, prompts of models, and
questions, which pages escape."""


def test_pages_escape_what_they_show() -> None:
    for path in set(FILES) - NO_PAGES:
        for _, name, node in calls(path):
            if name.endswith("Environment"):
                assert {"autoescape"} <= {k.arg for k in node.keywords if getattr(k.value, "value", None) is True}, path


# --- ids in paths ------------------------------------------------------------------------------------------------

EVIL = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "a\0b",
    "a\nb",
    "%2e%2e",
    "*",
    ">",
    "x" * 65,
    "ä",
]


@pytest.mark.parametrize("name", [*EVIL, "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_an_artifact_is_named_by_its_digest_only(name: str, tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("secret")
    with pytest.raises(NotFoundError):
        FileArtifacts(tmp_path).get(Artifact(sha256=name, size=1))


@pytest.mark.parametrize("name", [name for name in EVIL if not name.startswith("x")])
def test_a_prompt_is_named_by_words(name: str) -> None:
    for parts in ((name, "math", "student"), ("compact", name, "student"), ("compact", "math", name)):
        with pytest.raises(NotFoundError):
            prompt(*parts)


async def test_a_run_is_named_by_its_id(log: Log) -> None:
    for name in EVIL[1:]:
        with pytest.raises(NotFoundError):
            await anext(log.read(name))
        with pytest.raises(NotFoundError):
            await anext(log.read("r1", [name]))


def test_commands_refuse_ids_that_are_none(app: Crew) -> None:
    for command in (("run", "show"), ("report",), ("trajectory", "show")):
        done = call(*command, "../../etc/passwd")
        assert done.code in (1, 2) and "Traceback" not in done.err, (command, done.err)


# --- terminals and tables ----------------------------------------------------------------------------------------

HOSTILE = "\x1b]0;owned\x07 \x1b[2J\x9b31m right\u202eleft\u2066 bell\x07 back\b\r over \u200b\ue000"


@given(st.text())
def test_no_text_commands_a_terminal(text: str) -> None:
    shown = console.clean(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs") and c not in "\n\t"]
    assert console.clean(shown) == shown
    assert "\n" not in console.one_line(text)


@pytest.mark.parametrize("as_json", [True, False])
def test_whatever_a_model_wrote_is_shown_as_text(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    console.table([{"text": HOSTILE, "[bold]": "[red]x[/red]"}], as_json)
    console.record({"text": HOSTILE}, as_json)
    console.say(HOSTILE)
    if not as_json:
        console.text(HOSTILE)
    told = capsys.readouterr()
    marks = {c for c in told.out + told.err if unicodedata.category(c) in ("Cc", "Cf", "Co")} - {"\n"}
    assert marks <= (set() if as_json else {"\t"})  # what parts the columns of a pipe; a text's own are escaped
    assert as_json or all(line.count("\t") == 1 for line in told.out.splitlines()[:2])
    assert "[red]x[/red]" in told.out, "markup of ours is not markup of theirs"
