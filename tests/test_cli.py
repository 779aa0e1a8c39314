"""The command line without a run: help everywhere, errors for people, exit codes, clean output."""

import json
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

import agent0.cli
from agent0 import errors
from agent0.assembly.validate.requirements import REQUIREMENTS
from agent0.cli import build, console, user_error
from agent0.cli.lazy_group import LazyCommands, LazyGroup, Noun
from agent0.errors import Agent0Error
from tests.terminal import agent0 as call


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty working folder and an empty home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AGENT0_HOME", str(tmp_path / "home"))
    return tmp_path


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    command = command or get_command(build())
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


EVERY = list(commands())


@pytest.mark.parametrize("path", [path for path, _ in EVERY], ids=" ".join)
def test_every_command_has_help(path):
    for flag in ("-h", "--help"):
        said = call(*path, flag)
        assert said.code == 0
        assert "Usage: agent0" in said.out


@pytest.mark.parametrize(
    ("path", "command"), EVERY, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_every_command_and_option_is_explained(path, command):
    assert command.help
    for parameter in command.params:
        if parameter.param_type_name == "option":
            assert parameter.help, f"{path} {parameter.name}"


def test_everything_that_shows_data_speaks_json():
    talks = {path for path, command in EVERY if not hasattr(command, "commands")}
    silent = {path for path, command in EVERY if path in talks and "as_json" not in {p.name for p in command.params}}
    processes = {("handlers", "run"), ("projections", "run"), ("metrics", "serve"), ("up",), ("view",)}
    # formats of their own
    lines = {
        ("tutorial",),
        ("trajectory", "export"),
        ("tool", "serve"),
        ("env", "serve"),
        ("metrics", "show"),
        ("model", "card"),
    }
    lines |= {("api", "openapi"), ("model", "train")}
    assert {path for path in silent if path[0] not in ("report", "tiny")} == processes | lines


def test_the_nouns_are_those_that_are_documented():
    nouns = set(get_command(build()).commands)
    assert {"run", "handlers", "projections", "events", "task", "trajectory", "failures"} <= nouns
    assert {"prompt", "config", "log", "doctor"} <= nouns


GREET = """
import typer

app = typer.Typer(help="Greet.")

@app.command()
def hi() -> None:
    "Say hi."
    typer.echo("hi")

@app.command()
def ho() -> None:
    "Say ho."
"""


def test_a_file_is_a_noun(place, monkeypatch):
    (place / "extra").mkdir()
    (place / "extra" / "greet.py").write_text(GREET)
    monkeypatch.setattr(agent0.cli, "__path__", [*agent0.cli.__path__, str(place / "extra")])
    assert call("greet", "hi").out == "hi\n"


def test_version():
    assert call("--version").out.startswith("agent0 ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rum",), "Did you mean 'run'"),
        (("run", "strat"), "Did you mean 'start'"),
        (("run", "start", "--iteration", "3"), "--iterations"),
        (("run", "start", "--tasks", "none"), "--tasks"),
        (("run", "start", "--iterations", "0"), "--iterations"),
        (("run", "start", "--set", "run.seed"), "has no '='"),
        (("run", "start", "--set", "run.sed=1"), "Did you mean run.seed"),
        (("run", "start", "--set", "nats.password=x"), "is a secret"),
        (("run", "start", "--profile", "tinny"), "Did you mean tiny"),
        (("run", "start", "--set", "run.student.provider=olama"), "Did you mean ollama"),
        (("config", "show", "--profile", "no.toml"), "There is no profile at no.toml. That file does not exist"),
        (("handlers", "run", "propose_tsk"), "Did you mean propose_task"),
        (("prompt", "show", "math"), "style/domain/role"),
        (("events", "tail", "--type", "ToolCaled"), "Did you mean ToolCalled"),
        (("trajectory", "export", "--format", "csv"), "csv"),
    ],
)
def test_what_a_person_got_wrong_is_exit_2_and_says_what_to_do(arguments, said):
    result = call(*arguments)
    assert result.code == 2
    assert said in " ".join(result.err.split())
    assert result.out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "show"), "There is nothing to show yet"),
        (("task", "list"), "There is nothing to show yet"),
        (("projections", "list"), "There is nothing to show yet"),
        (("log", "check"), "There is no log yet"),
        (("prompt", "show", "alchemy/math/student"), "No prompt is named"),
        (("projections", "show", "evnts"), "Did you mean events"),
    ],
)
def test_what_is_not_there_is_exit_1_and_one_paragraph(arguments, said):
    result = call(*arguments)
    assert result.code == 1
    assert said in result.err
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err


def test_no_runs_yet_is_no_error():
    assert call("run", "list", "--json").json == []
    assert call("run", "list").code == 0


KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Agent0Error)]


@pytest.mark.parametrize("kind", KINDS)
def test_each_error_ends_with_its_exit_code(kind, monkeypatch):
    def broken(*_: str) -> typer.Typer:
        raise kind("Something", "Because.", "Do this.")

    monkeypatch.setattr(agent0.cli, "build", broken)
    result = call("run", "list")
    assert result.code == kind.kind.exit_code
    assert "Because. Do this." in result.err


def test_errors_of_the_machine_are_told_too():
    import errno
    import sqlite3

    full = user_error(OSError(errno.ENOSPC, "No space left on device"))
    assert full is not None
    assert full.kind.exit_code == 5
    assert "projections rebuild" in str(user_error(sqlite3.DatabaseError("malformed")))
    grouped = ExceptionGroup("some", [ValueError("x"), ExceptionGroup("more", [errors.GateError("held")])])
    assert isinstance(user_error(grouped), errors.GateError)
    assert user_error(ValueError("ours")) is None


@pytest.mark.parametrize("mistake", [ZeroDivisionError("by x"), ExceptionGroup("some", [ZeroDivisionError("by x")])])
def test_mistakes_of_ours_are_told_and_their_traceback_is_kept(mistake, tmp_path, monkeypatch):
    def broken(*_: str) -> typer.Typer:
        raise mistake

    monkeypatch.setattr(agent0.cli, "build", broken)
    told = call("run", "list", home=tmp_path)
    assert told.code == 1
    assert "ZeroDivisionError: by x. This is a defect of Agent0." in told.err
    assert "Traceback" not in told.err
    (crash,) = tmp_path.glob("crash-*.txt")
    assert str(crash) in told.err
    assert "in broken" in crash.read_text()
    assert crash.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("AGENT0_DEBUG", "1")
    assert "Traceback" in call("run", "list", home=tmp_path).err
    assert len(list(tmp_path.glob("crash-*.txt"))) == 1


def test_one_known_error_in_a_group_ends_with_its_code(monkeypatch):
    def broken(*_: str) -> typer.Typer:
        raise ExceptionGroup("some", [ExceptionGroup("more", [errors.DependencyError("log", "Away.")])])

    monkeypatch.setattr(agent0.cli, "build", broken)
    told = call("run", "list")
    assert (told.code, told.err) == (5, "error: log is not available. Away.\n")


@pytest.mark.parametrize(("platform", "said"), [("darwin", "macOS"), ("win32", "WSL2")])
def test_other_systems_are_told_what_they_need(platform, said, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    result = call("run", "list")
    assert result.code == 5
    assert said in result.err


@pytest.mark.parametrize("words", [(), ("run",), ("bench",), ("model", "--help"), ("rum",)])
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys; from agent0.cli import main\n"
        f"sys.argv = ['agent0', *{words!r}]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'faststream', 'fastapi', 'matplotlib', 'nats', 'numpy', 'sympy',"
        " 'sqlite_utils', 'httpx', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_who_has_seen_enough_is_not_shouted_at():
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m agent0 config docs | head -c 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.returncode in (0, 141)


@given(st.text())
def test_nothing_a_model_writes_can_drive_a_terminal(text):
    kept = console.clean(text)
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co") for c in kept)
    assert console.clean(kept) == kept
    assert len(console.one_line(text, 20)) <= 20
    assert "\n" not in console.one_line(text, 20)


MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u2028\x1b\x07\x9b\x7f\u200b"


def test_marks_that_turn_text_around_are_shown_where_they_are(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = "".join(f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in MARKS)
    console.text(f"a{MARKS}b\r\nc\td")
    console.table([{"answer": MARKS}], as_json=False)
    console.record({"answer": MARKS}, as_json=False)
    console.say(MARKS)
    told = capsys.readouterr()
    assert told.out.startswith(f"a{shown}b\nc\td\n") and (told.out.count(shown), told.err.count(shown)) == (3, 1)
    assert not set(MARKS) & set(told.out + told.err)


def test_tables_show_hostile_text_as_text(capsys):
    console.table([{"answer": "\x1b[31mred\x1b]0;title\x07 [bold]x[/bold]", "n": 1}], as_json=False)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[bold]x[/bold]" in out


def test_json_escapes_what_a_terminal_would_obey(capsys):
    console.data({"answer": "\x1b[31m\x9b\u202e"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert "\x1b" not in out
    assert json.loads(out) == {"answer": "\x1b[31m\x9b\u202e"}


def test_config_show_says_where_each_value_came_from(place):
    (place / "agent0.toml").write_text("[run]\nseed = 4\n")
    shown = {row["key"]: row for row in call("config", "show", "--origin", "--json", "-s", "run.tasks=9").json}
    assert (shown["run.seed"]["value"], shown["run.seed"]["origin"]) == ("4", "agent0.toml:2")
    assert shown["run.tasks"]["origin"] == "flag run.tasks"
    assert shown["home"]["origin"] == "environment AGENT0_HOME"
    assert shown["run.iterations"]["origin"].endswith("tiny.toml:4")
    plain = call("config", "show", "--json").json
    assert plain["run"]["seed"] == 4
    assert len(plain["config_sha"]) == 64


def test_config_docs_names_every_setting():
    from agent0.config.setting_entries import fields

    rows = call("config", "docs", "--json").json
    assert [row["key"] for row in rows] == [key for key, _ in fields()]
    assert all(row["meaning"] for row in rows)
    text = call("config", "docs").out
    assert all(f"| `{row['key']}` |" in text for row in rows)


def test_config_validate():
    assert call("config", "validate", "--json").json["valid"] is True
    assert call("config", "validate", "-s", "run.student.tools=hammer").code == 2


def test_a_model_that_is_not_there_is_found_before_a_run_begins(place, monkeypatch):
    monkeypatch.delitem(REQUIREMENTS, "sandbox")  # looked at, too, where something is missing: seconds each time
    empty = place / "empty"
    empty.mkdir()
    nowhere = str(place / "nowhere")
    for model, code, said in ((nowhere, 5, "no folder"), (str(empty), 5, "config.json"), ("", 2, "model is empty")):
        chosen = ("-s", "run.student.provider=transformers", "-s", f"run.student.model={model}")
        for command in (("config", "validate"), ("run", "start")):
            told = call(*command, "--profile", "scripted", *chosen)
            assert told.code == code
            assert said in told.err
    monkeypatch.setattr("agent0.assembly.runtime.providers.find_spec", lambda name: None)
    told = call("run", "start", "--profile", "tiny")
    assert told.code == 5
    assert "make setup" in told.err
    assert call("run", "list", "--json").json == []


def test_prompts_are_listed_shown_and_compared():
    rows = call("prompt", "list", "--json").json
    name = rows[0]["prompt"]
    shown = call("prompt", "show", name, "--json").json
    assert shown["version"] == rows[0]["version"]
    assert call("prompt", "diff", name, name, "--json").json["same"] is True
    other = next(row["prompt"] for row in rows if row["version"] != rows[0]["version"])
    assert call("prompt", "diff", name, other, "--json").json["diff"][:2] == [f"--- {name}", f"+++ {other}"]


def test_handlers_are_listed_with_what_they_need():
    rows = {row["handler"]: row for row in call("handlers", "list", "--json").json}
    assert rows["propose_task"]["reacts_to"] == "TaskRequested"
    assert "models" in rows["propose_task"]["needs"]


def test_a_command_imports_its_own_module_only():
    """What `run list` needs of the command line is a tenth of what all commands do."""
    script = (
        "import sys; from agent0.cli import build; from typer.main import get_command;"
        "root = get_command(build()); before = set(sys.modules); root.commands['run'].commands['list'];"
        "from agent0.cli.commands import COMMANDS; verbs = [*COMMANDS['run'].verbs.values()];"
        "modules = {'agent0.cli.' + verb.partition(':')[0] for verb in verbs};"
        "print(len(modules & before), len(modules & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "0 1\n"


@pytest.mark.parametrize("word", ["fork", "nothing"])
def test_a_word_that_is_no_command_is_answered_with_those_that_are(word):
    said = call(word)
    assert said.code == 2 and f"No such command '{word}'" in said.err


def test_what_stands_for_a_noun_is_a_verb_of_it():
    nouns = [command for _, command in EVERY if getattr(command, "default", "")]
    assert [noun.name for noun in nouns] == ["metrics"]
    assert all(noun.default in noun.commands for noun in nouns)


def test_a_file_with_an_error_is_no_missing_command(monkeypatch):
    monkeypatch.setattr("agent0.cli.lazy_group.import_module", {}.__getitem__)
    group = LazyGroup(name="x", commands=LazyCommands("x ", {"y": "y:y"}, {}))
    with pytest.raises(KeyError):
        group.get_command(None, "y")
    assert group.get_command(None, "z") is None


def test_help_of_a_noun_reads_its_verbs_and_imports_none():
    """The line of each verb is the one that its whole help begins with."""
    for path, command in EVERY:
        if hasattr(command, "commands") and path:
            fresh = LazyCommands("", {path[-1]: Noun("", command.commands.verbs)}, {})[path[-1]].commands
            for name in fresh:
                assert fresh.summary(name).help == command.commands[name].help
