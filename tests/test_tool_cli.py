"""Tools from the command line: what is promised of one call."""

import json
import unicodedata
from pathlib import Path

import pytest

from agent0.assembly.tooling.tool_calls import ToolBench, ToolRequest
from agent0.assembly.tooling.workspaces import content, find
from agent0.config.loading import load
from agent0.infra.sandbox import Refusing
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.settings import Settings
from agent0.tools import tools
from tests.terminal import Said, agent0

KEYS = {"tool", "state", "rc", "stdout", "stderr", "wall_s", "cpu_s", "peak_mem_mib", "tier", "backend", "files"}
KEYS |= {"manifest", "reason", "output_bytes"}
LIGHT = ("--set", "run.policy.modules=[]")
"""A fork server without packages starts in a fraction of a second."""
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def held(home: Path, **more: str) -> Settings:
    return load("scripted", {"home": str(home), **{key.replace("__", "."): value for key, value in more.items()}}, {})


def python(home: Path, code: str, *more: str, stdin: str = "") -> Said:
    said = agent0("tool", "call", "python", "--code", code, *more, *LIGHT, "--json", home=home, stdin=stdin)
    assert said.code == int(said.json["state"] != "ok" or bool(said.json["rc"])), said.err
    return said


# --- one call --------------------------------------------------------------------------------------------------------


def test_tools_are_listed_with_what_they_do(home: Path) -> None:
    rows = {row["tool"]: row for row in agent0("tool", "list", "--json", home=home).json}
    assert len(rows) >= 10
    assert {"python", "shell", "sympy", "run_tests"} <= set(rows)
    assert all(row["does"] and row["parameters"]["type"] == "object" for row in rows.values())
    assert {name for name, row in rows.items() if not row["on"]} == {"http_request", "web_search"} & set(rows)
    assert all(row["why_off"] for row in rows.values() if not row["on"])
    told = agent0("tool", "list", home=home)
    assert all(name in told.out for name in rows)
    on = agent0("tool", "list", "--set", "web.enabled=true", "--json", home=home).json
    assert next(row for row in on if row["tool"] == "http_request")["on"]


def test_a_call_is_one_object_and_its_folder_can_be_gone_on_from(home: Path, tmp_path: Path) -> None:
    laid = tmp_path / "laid" / "deep"
    laid.mkdir(parents=True)
    (laid / "in.txt").write_text("21")
    code = (
        "import sys; n = int(open('deep/in.txt').read()); open('out', 'w').write(str(2 * n)); print(n, file=sys.stderr)"
    )
    first = python(home, code, "--files", str(tmp_path / "laid")).json
    assert set(first) == KEYS
    assert (first["state"], first["rc"], first["stdout"], first["stderr"]) == ("ok", 0, "", "21\n")
    assert first["files"] == {"deep/in.txt": 2, "out": 2}
    assert first["backend"] and first["tier"] and first["peak_mem_mib"] > 0
    second = python(home, "print(open('out').read())", "--from", first["manifest"][:12]).json
    assert (second["stdout"], second["manifest"]) == ("42\n", first["manifest"])
    assert content(held(home), find(held(home), first["manifest"])) == {"deep/in.txt": b"21", "out": b"42"}
    assert not (home / "nats").exists()  # no log is made, and none is needed


def test_limits_beyond_the_settings_are_cut_and_said(home: Path) -> None:
    limits = ("--set", "sandbox.wall_s=0.4", "--set", "sandbox.mem_mib=100")
    told = python(home, "while True: pass", "--wall", "60", "--mem", "9000", *limits)
    assert told.json["state"] == "timeout"
    assert told.json["wall_s"] < 60
    assert "--wall is cut to sandbox.wall_s = 0.4" in told.err
    assert "--mem is cut to sandbox.mem_mib = 100" in told.err


def test_a_terminal_gets_no_control_characters(home: Path, tmp_path: Path) -> None:
    code = f"import sys; print({HOSTILE!r}); print({HOSTILE!r}, file=sys.stderr); open({'a' + HOSTILE!r}, 'w')"
    (tmp_path / "code.py").write_text(code)
    told = agent0("tool", "call", "python", "--code-file", str(tmp_path / "code.py"), *LIGHT, home=home)
    assert told.code == 0
    assert "owned" in told.out and "[stdout]" in told.out and "[stderr]" in told.out
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(told.out + told.err)
    assert told.out.count(r"\u202e") == 3, "they are shown"
    escaped = agent0("tool", "call", "python", "--code-file", "-", *LIGHT, "--json", home=home, stdin=code)
    assert escaped.out.isascii() and "\x1b" not in escaped.out
    told = escaped.json
    for text in (told["stdout"], told["stderr"], *told["files"]):
        assert "owned" in text and r"\u202e" in text
        assert not [sign for sign in text if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cf")]


def test_other_tools_take_arguments_and_say_what_a_model_would_read(home: Path) -> None:
    args = json.dumps({"code": "print(6 * 7)"})
    told = agent0("tool", "call", "python", "--args", args, *LIGHT, "--json", home=home).json
    assert (told["state"], told["output"], told["stdout"], told["stderr"]) == ("ok", "42", "42\n", "")
    assert set(told) == KEYS | {"output"} and told["tier"] and told["backend"] and told["rc"] == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("pyton", "--code", "1"), "Did you mean python?"),
        (("python",), "one of"),
        (("python", "--code", "1", "--args", "{}"), "one of"),
        (("python", "--code", "1", "--code-file", "x"), "exclude"),
        (("python", "--code-file", "no-such-file"), "cannot be read"),
        (("python", "--code-file", "latin"), "UTF-8"),
        (("python", "--args", "[1]"), "no JSON object"),
        (("python", "--args", "{"), "no JSON"),
        (("python", "--args", "[" * 100_000), "no JSON"),
        (("python", "--code", "1", "--from", "zzz"), "names no work folder"),
        (("python", "--code", "1", "--from", "0" * 64), "No stored work folder"),
        (("python", "--code", "1", "--files", "no-such-folder"), "no folder"),
        (("python", "--code", "1", "--files", "linked"), "no plain file"),
    ],
)
def test_what_a_person_typed_wrongly_is_said_before_anything_runs(
    home: Path, tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "latin").write_bytes(b"print('\xe9')")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "a").symlink_to("/etc/passwd")
    told = agent0("tool", "call", *arguments, "--json", home=home)
    assert told.code in (1, 2)
    assert problem in told.err
    assert told.out == ""


def test_without_a_sandbox_every_call_is_refused(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no bubblewrap, no engine
    for name in ("python", "shell"):
        told = agent0("tool", "call", name, "--code", "echo 1", "--json", home=home)
        assert told.code == 1
        assert (told.json["state"], told.json["rc"], told.json["stdout"]) == ("refused", None, "")
        assert set(told.json) == KEYS
        assert told.json["reason"]
    told = agent0("tool", "call", "python", "--args", '{"code": "1"}', "--json", home=home)
    assert (told.code, told.json["state"], set(told.json)) == (1, "refused", KEYS | {"output"})
    assert agent0("tool", "call", "python", "--code", "1", home=home).code == 1


def test_a_server_that_is_not_configured_is_said(home: Path) -> None:
    told = agent0("tool", "mcp", "nonsense", home=home)
    assert (told.code, "no MCP server" in told.err) == (1, True)


def test_what_a_profile_denies_is_gone_for_its_calls(home: Path) -> None:
    assert agent0("sandbox", "deny", "executable", "wc", "--profile", "scripted", home=home).code == 0
    told = agent0(
        "tool", "call", "shell", "--code", "echo x | wc -c", *LIGHT, "--json", "--profile", "scripted", home=home
    )
    assert told.json["state"] == "error"
    assert "not found" in told.json["stderr"]


async def test_a_tool_without_what_it_needs_is_refused_and_says_by_what(home: Path) -> None:
    policy = {"run__policy__modules": '["numpy"]', "run__policy__executables": '["cat"]'}
    args = {"operation": "solve", "expression": "x = 2"}
    bench = ToolBench(held(home, **policy), Refusing("nothing is run"), None, FileArtifacts(home), tools())
    symbolic = await bench.answer(ToolRequest("sympy", args=args))
    raw = await bench.answer(ToolRequest("shell", "echo 1", files={"a": b"x"}))
    assert (symbolic["state"], symbolic["output"]) == ("refused", f"[refused: {symbolic['reason']}]")
    assert "the policy (run.policy.modules) does not allow the module mpmath" in symbolic["reason"]
    assert (raw["state"], raw["files"]) == ("refused", {"a": 1})
    assert "the policy (run.policy.executables) does not allow the executable bash" in raw["reason"]
