"""The sandbox from the command line: checked, watched; things allowed and denied; work folders compared, restored."""

import asyncio
import json
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.app import started
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.tooling.workspaces import read
from agent0.cli.tools import usage
from agent0.config.loading import load
from agent0.events.tasks import AttemptRequested, ToolCalled
from agent0.events.values import Artifact, Task, ToolCall, ToolResult, ToolState
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.settings import Settings
from agent0.tools import snapshots
from tests.kept_open import attached
from tests.terminal import Said, agent0

FOLDERS: list[dict[str, bytes]] = [
    {"a.txt": b"one\ntwo\n", "data/x.bin": bytes(range(256)), "gone.txt": b"bye\n"},
    {"a.txt": b"one\n\x1b[2Jthree\n", "data/x.bin": bytes(range(255)), "new.txt": b"hello\n"},
    {},
]
CALLS = ("1", "2.1", "2")
"""The second call is a plan of one step."""
ENDS = (ToolState.OK, ToolState.TIMEOUT, ToolState.REFUSED)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def held(tmp_path: Path) -> Settings:
    return load("scripted", {"home": str(tmp_path / "home")}, {})


@pytest.fixture
def log(held: Settings) -> Iterator[None]:
    """No command starts its server."""
    with attached(held.home):
        yield


@pytest.fixture
def manifests(held: Settings, log: None) -> list[str]:
    """A run with an attempt of three tool calls; digests of their work folders."""
    store = FileArtifacts(held.home)
    saved = [snapshots.save(files, store) for files in FOLDERS]
    asyncio.run(_tell(held, saved))
    return [one.sha256 if one else "" for one in saved]


async def _tell(held: Settings, saved: list[Artifact | None]) -> None:
    begin = started(held, "one")
    task = Task(domain="math", family="arithmetic", level=1, question="1+1", canonical="2", params={})
    at: dict[str, Any] = {"task": "t0", "attempt": "t0-a0"}
    events: list[Any] = [
        AttemptRequested(**at, iteration=0, number=0, proposal=task, seed=1, student="base", state_sha="")
    ]
    for n, (work, state, files) in enumerate(zip(saved, ENDS, FOLDERS, strict=True)):
        size = sum(map(len, files.values()))
        ended = ToolResult(state=state, wall_s=0.004 * 10**n, work=work, files=len(files), file_bytes=size)
        call = ToolCall(name="python" if n < 2 else "shell", arguments={"code": "1"})
        events.append(ToolCalled(**at, turn=n, number=n, call=call, result=ended, inner="." in CALLS[n]))
    async with open_log(held, make=True) as log:
        await log.append([begin, *(recorded(begin.run, event) for event in events)])


def sandbox(held: Settings, *words: str) -> Said:
    return agent0("sandbox", *words, home=held.home)


# --- work folders ----------------------------------------------------------------------------------------------------


def test_folders_are_listed_compared_and_restored(held: Settings, manifests: list[str], tmp_path: Path) -> None:
    rows = sandbox(held, "snapshots", "--json").json
    assert [(row["attempt"], row["call"], row["work"] or "") for row in rows] == [
        ("t0-a0", f"t0-a0#{call}", digest) for call, digest in zip(CALLS, manifests, strict=True)
    ]
    assert [(row["files"], row["file_bytes"]) for row in rows] == [
        (len(files), sum(map(len, files.values()))) for files in FOLDERS
    ]
    assert sandbox(held, "snapshots", "--attempt", "other", "--json").json == []
    assert "t0-a0#2.1" in sandbox(held, "snapshots").out
    changed = sandbox(held, "diff", "t0-a0#1", manifests[1][:8], "--json").json
    assert [(row["path"], row["kind"], row["before"], row["after"]) for row in changed] == [
        ("a.txt", "changed", 8, 14),
        ("data/x.bin", "changed", 256, 255),
        ("gone.txt", "removed", 4, None),
        ("new.txt", "added", None, 6),
    ]
    assert sandbox(held, "diff", "t0-a0#2", "empty", "--json").json == []
    assert sandbox(held, "diff", "t0-a0#0", "t0-a0#2", "--json").json == []
    for n, word in enumerate(("t0-a0#1", manifests[1], "t0-a0#2")):
        place, files = tmp_path / "out" / str(n), FOLDERS[n]
        assert sandbox(held, "restore", word, str(place), "--json").json["files"] == len(files)
        assert read(place) == files
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_lines_of_small_text_files_are_shown_cleaned(held: Settings, manifests: list[str]) -> None:
    told = sandbox(held, "diff", manifests[0], manifests[1], "--text")
    assert "-two\n" in told.out and "+\\x1b[2Jthree" in told.out and "+++ b/new.txt" in told.out
    assert "\x1b" not in told.out
    rows = {
        row["path"]: row["diff"] for row in sandbox(held, "diff", manifests[0], manifests[1], "--text", "--json").json
    }
    assert rows["data/x.bin"] is None
    assert "\x1b[2J" in rows["a.txt"]


NOTHING = {
    "t0-a0#3": "no tool call t0-a0#3",
    "t0-a0#2.2": "no tool call t0-a0#2.2",
    "t0-a0#1.1": "no tool call",
    "t0-a0#01": "no tool call",
    "t0-a0#-1": "names no work folder",
    "other#0": "no tool call",
    "abcdef0": "names no work folder",
    "../../etc/passwd": "names no work folder",
    "ABCDEF0123": "names no work folder",
    "0123456789abcdef": "No stored work folder",
    "LAST": "names no work folder",
}


def test_words_that_name_no_folder(held: Settings, manifests: list[str]) -> None:
    for word, problem in NOTHING.items():
        told = sandbox(held, "diff", word, "empty")
        assert told.code in (1, 2) and problem in told.err, (word, told.err)


def test_an_artifact_that_is_no_folder_is_none(held: Settings, manifests: list[str], tmp_path: Path) -> None:
    store = FileArtifacts(held.home)
    bodies = [b"text", b"[1]", b'{"a": 1}', b'{"../x": ["%s", 1]}' % (b"0" * 64), b'{"a": ["/etc/passwd", 1]}', b"1"]
    for body in bodies:
        told = sandbox(held, "restore", store.put(body).sha256, str(tmp_path / "out"))
        assert (told.code, "No stored work folder" in told.err) == (1, True), body
    assert not (tmp_path / "out").exists()


def test_a_damaged_or_missing_file_restores_nothing(held: Settings, manifests: list[str], tmp_path: Path) -> None:
    store = FileArtifacts(held.home)
    path = store.path(store.put(b"hello\n"))
    path.write_bytes(b"other\n")
    assert "damaged" in sandbox(held, "restore", manifests[1], str(tmp_path / "out")).err
    path.unlink()
    assert "not in the store" in sandbox(held, "restore", manifests[1], str(tmp_path / "out")).err
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_over_and_no_link_is_followed(held: Settings, manifests: list[str], tmp_path: Path) -> None:
    full, file, link, target = (tmp_path / name for name in ("full", "file", "link", "target"))
    full.mkdir()
    (full / ".hidden").touch()
    file.touch()
    target.mkdir()
    link.symlink_to(target)
    for place in (full, file, link, file / "below"):
        told = sandbox(held, "restore", manifests[0], str(place))
        assert told.code == 1, place
        assert "new folder" in told.err
    assert [path.name for path in full.iterdir()] == [".hidden"]
    assert list(target.iterdir()) == []


# --- watching --------------------------------------------------------------------------------------------------------


def test_top_counts_what_the_log_says(held: Settings, manifests: list[str]) -> None:
    seen = sandbox(held, "top", "--once", "--json").json
    assert (seen["runs"], seen["attempts_under_way"]) == (1, 1)
    rows = {row["tool"]: row for row in seen["tools"]}
    assert {name: rows["python"][name] for name in ("calls", "per_min", "limits", "kills", "refused", "ok")} == {
        "calls": 2,
        "per_min": 2,
        "limits": 1,
        "kills": 1,
        "refused": 0,
        "ok": 1,
    }
    assert rows["shell"]["refused"] == 1
    assert 0 < rows["python"]["p50_ms"] <= rows["python"]["p95_ms"] <= rows["python"]["p99_ms"] <= 50
    told = sandbox(held, "top", "--once", "--run", "LAST")
    assert "python" in told.out and "1 attempts under way" in told.err
    assert "There is no run" in sandbox(held, "top", "--once", "--run", "nonsense").err


class EnoughError(Exception):
    """What was waited for was seen."""


def test_top_shows_a_call_as_soon_as_it_is_in_the_log(held: Settings, manifests: list[str]) -> None:
    more = ToolCalled(
        task="t0",
        attempt="t0-a0",
        turn=3,
        number=3,
        call=ToolCall(name="lint"),
        result=ToolResult(state=ToolState.OK),
    )
    looks: list[set[str]] = []

    async def work() -> None:
        async with open_log(held) as log:
            (run,) = [one.run async for one in log.read("", ("RunStarted",))]

            def look(db: sqlite3.Connection, name: str) -> dict[str, Any]:
                seen = usage.look(db, name)
                looks.append({row["tool"] for row in seen["tools"]})
                if len(looks) == 1:
                    appending.append(asyncio.ensure_future(log.append([recorded(run, more)])))
                if "lint" in looks[-1]:
                    raise EnoughError
                return seen

            appending: list[asyncio.Future[Any]] = []
            with pytest.raises(ExceptionGroup) as ended:
                await asyncio.wait_for(usage.watch(held, "LAST", 0.01, look), 60)
            assert ended.group_contains(EnoughError)
            await asyncio.gather(*appending)

    asyncio.run(work())
    assert looks[0] == {"python", "shell"}


def test_nothing_to_watch_is_said(held: Settings) -> None:
    for words in (("top", "--once"), ("top",), ("snapshots",)):
        told = sandbox(held, *words)
        assert told.code == 1
        assert "nothing to show" in told.err


# --- the self-test ---------------------------------------------------------------------------------------------------


@pytest.mark.slow  # part of make knockout
def test_every_probe_of_every_backend_is_shown(held: Settings) -> None:
    told = sandbox(held, "check", "--set", "sandbox.backend=zygote-bwrap", "--json")
    assert told.code == 0, told.out
    assert told.json["chosen"] == "zygote-bwrap"
    (found,) = told.json["candidates"]
    assert found["chosen"] and all(probe["ok"] and probe["detail"] for probe in found["probes"])
    assert (len(found["probes"]) >= 12, found["why"]) == (True, "")
    assert {"no_network", "no_mount", "memory_limit", "time_limit"} <= {probe["name"] for probe in found["probes"]}


def test_no_backend_is_exit_5_with_a_fix(held: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told = sandbox(held, "check")
    assert told.code == 5
    assert "fix:" in told.out and "NO" in told.out
    assert "every tool call is refused" in told.err
    found = sandbox(held, "check", "--json")
    assert (found.code, found.json["chosen"]) == (5, None)
    assert all(candidate["why"] and candidate["fix"] for candidate in found.json["candidates"])


# --- allowing and denying --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("log")
def test_changes_are_recorded_once_and_listed(held: Settings) -> None:
    first = sandbox(held, "allow", "host", "*.Example.org", "--profile", "scripted", "--reason", "docs", "--json")
    assert first.json == {
        "profile": "scripted",
        "kind": "host",
        "name": "*.example.org",
        "allowed": True,
        "changed": True,
        "notes": [],
    }
    again = sandbox(held, "allow", "host", "a.example.org", "--profile", "scripted")
    assert (again.code, "allowed already, by *.example.org" in again.err) == (0, True)
    covered = sandbox(held, "deny", "host", "a.example.org", "--profile", "scripted")
    assert (covered.code, "Deny *.example.org first" in covered.err) == (1, True)
    denied = sandbox(held, "deny", "module", "sympy", "--profile", "scripted", "--json").json
    assert (denied["changed"], denied["notes"]) == (True, ["Every call of sympy is then refused."])
    assert "not allowed anyway" in sandbox(held, "deny", "module", "sympy", "--profile", "scripted").err
    listed = sandbox(held, "list", "--profile", "scripted", "--json").json
    assert listed["policy"]["hosts"] == ["*.example.org"]
    changed = {(row["kind"], row["name"]): row for row in listed["entries"] if row["origin"] == "changed"}
    assert {key: (row["allowed"], row["reason"]) for key, row in changed.items()} == {
        ("host", "*.example.org"): (True, "docs"),
        ("module", "sympy"): (False, ""),
    }
    assert all(row["changed"] for row in changed.values())
    assert sandbox(held, "list", "--profile", "tiny", "--json").json["policy"]["hosts"] == []
    assert "docs" in sandbox(held, "list", "--profile", "scripted").out
    seen = agent0("events", "tail", "--type", "PolicyChanged", "--json", home=held.home).lines
    assert [(one["run"], one["data"]["name"]) for one in seen] == [("policy", "*.example.org"), ("policy", "sympy")]
    assert agent0("run", "list", "--json", home=held.home).json == []
    assert agent0("run", "story", "policy", home=held.home).code == 1


@pytest.mark.usefixtures("log")
def test_dangerous_and_absent_things_are_allowed_with_words(held: Settings) -> None:
    told = sandbox(held, "allow", "executable", "git")
    assert (told.code, "anything that exists in the sandbox" in told.err) == (0, True)
    for kind, name in (("executable", "no-such-program"), ("module", "no_such_package")):
        told = sandbox(held, "allow", kind, name)
        assert (told.code, "Until then every call is refused" in told.err) == (0, True)
    for words in (("hots", "x"), ("module", "os"), ("executable", "/bin/sh")):
        assert sandbox(held, "allow", *words).code == 2


@pytest.mark.usefixtures("log")
def test_a_run_says_for_ever_what_it_was_allowed(held: Settings) -> None:
    sandbox(held, "allow", "sql", "attach", "--profile", "scripted")
    sandbox(held, "deny", "executable", "awk", "--profile", "scripted")
    begun = agent0("run", "start", "--profile", "scripted", "--detach", "--json", home=held.home)
    assert begun.code == 0, begun.err
    sandbox(held, "allow", "executable", "awk", "--profile", "scripted")
    (event,) = agent0("events", "tail", "--type", "RunStarted", "--json", home=held.home).lines
    policy = event["data"]["config"]["policy"]
    assert "ATTACH" in policy["sql"]
    assert "awk" not in policy["executables"]
    assert [row["run"] for row in agent0("run", "list", "--json", home=held.home).json] == [begun.json["run"]]


@pytest.mark.parametrize(
    ("words", "code", "rows"),
    [
        (("ls | git log; cd x",), 3, {"ls": True, "git": False, "cd": True}),
        (("ls -l && echo $(wc -l x)",), 0, {"ls": True, "wc": True, "echo": True}),
        (("--python", "import os, numpy.linalg, no_such"), 3, {"os": True, "numpy": True, "no_such": False}),
        (("--url", "https://example.org/x"), 3, {"example.org": False, "GET": True}),
        (
            ("--url", "https://a.example.org/", "--method", "post", "--set", 'run.policy.hosts=["*.example.org"]'),
            3,
            {"a.example.org": True, "POST": False},
        ),
        (("--sql", "select 1; attach 'x' as y"), 3, {"SELECT": True, "ATTACH": False}),
    ],
)
def test_a_command_is_judged_word_by_word(
    held: Settings, words: tuple[str, ...], code: int, rows: dict[str, bool]
) -> None:
    told = sandbox(held, "test", *words, "--json")
    assert told.code == code, told.err
    assert {row["name"]: row["allowed"] for row in told.json["words"]} == rows
    assert all(row["why"] for row in told.json["words"])
    assert (told.json["allowed"], told.json["installed"]) == (code == 0, "no_such" not in rows)
    assert all(row["installed"] in (True, None) for row in told.json["words"] if row["name"] not in ("git", "no_such"))
    assert sandbox(held, "test", *words).code == code


@pytest.mark.parametrize(
    "words", [(), ("echo 'x",), ("--python", "import ("), ("--url", "file:///etc/passwd"), ("ls", "--sql", "select 1")]
)
def test_what_cannot_be_judged_is_said(held: Settings, words: tuple[str, ...]) -> None:
    assert sandbox(held, "test", *words).code == 2


def test_json_is_one_object(held: Settings) -> None:
    assert json.loads(sandbox(held, "list", "--json").out)["profile"] == "tiny"
