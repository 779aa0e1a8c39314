"""Tasks from packages: a local index, small packages that the tests write, the real sandbox."""

import asyncio
import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.mining import baseline as baselines
from agent0.assembly.mining.baseline import Release, baseline
from agent0.assembly.mining.mined_folder import MinedFolder
from agent0.assembly.runtime import port_openers
from agent0.errors import OperationError
from agent0.events.values import ToolState
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.tools.snapshots import load
from agent0.verification.repositories import source_tree as source_trees
from agent0.verification.repositories.mined_task import (
    HiddenTests,
    MinedSolution,
    MinedTask,
    SourceRecord,
    hidden_tests_of,
)
from agent0.verification.repositories.source_tree import SourceTree, source_tree
from tests.terminal import Said, agent0

CODE = '''"""Small sums."""


def clamp(value, low, high):
    """Return value, but low or high where it is beyond."""
    if value < low:
        return low
    if value > high:
        return high
    return value


def total(values, start=0):
    """Add values to start."""
    result = start
    for at in range(len(values)):
        result += values[at]
    return result
'''
NEWER = (
    CODE
    + '''

def mean(values):
    """Return the mean of values, None of none. Example: mean([1, 2]) is 1.5"""
    secret_count = len(values)
    return total(values) / secret_count if secret_count else None
'''
)
TESTS = """from sums import clamp, total
import sums

def test_below():
    assert clamp(1, 2, 4) == 2

def test_above():
    assert clamp(5, 2, 4) == 4

def test_between():
    assert clamp(3, 2, 4) == 3
"""
TOTALS = "from sums import total\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n    assert total([]) == 0\n"
MEANS = "import sums\n\ndef test_mean():\n    assert sums.mean([1, 2]) == 1.5\n    assert sums.mean([]) is None\n"
META = "Metadata-Version: 2.1\nName: sums\nLicense: MIT\n"
Files = Mapping[str, str | bytes]


def package(code: str = CODE, **more: str | bytes) -> dict[str, str | bytes]:
    files = {"PKG-INFO": META, "sums/__init__.py": code, "tests/test_clamp.py": TESTS, "tests/test_total.py": TOTALS}
    return {**files, **{name.replace("__", "/") + ".py": text for name, text in more.items()}}


def sdist(files: Files, extra: Mapping[str, tarfile.TarInfo] = {}) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            info = tarfile.TarInfo(f"sums-1/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in extra.values():
            archive.addfile(info)
    return gzip.compress(out.getvalue(), mtime=0)


class Index:
    """A package index in the form of PEP 691: releases by package, a list of (version, archive)."""

    def __init__(self) -> None:
        self.releases: dict[str, list[tuple[str, bytes]]] = {}
        self.false: set[str] = set()
        self.asked: list[str] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append(self.path)
                _, kind, name, *rest = self.path.split("/")
                data = owner.page(name) if kind == "simple" else dict(owner.releases[name])[rest[0]]
                self.send_response(200 if data is not None else 404)
                self.send_header("content-length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def page(self, name: str) -> bytes | None:
        if name not in self.releases:
            return None
        files = [
            {
                "filename": f"{name}-{version}.tar.gz",
                "url": f"/files/{name}/{version}",
                "hashes": {"sha256": "0" * 64 if name in self.false else hashlib.sha256(data).hexdigest()},
            }
            for version, data in self.releases[name]
        ]
        return json.dumps({"files": [*files, {"filename": f"{name}-1-py3-none-any.whl"}]}).encode()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/simple"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def index() -> Iterator[Index]:
    served = Index()
    yield served
    served.close()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT0_HOME", str(tmp_path / "home"))
    return tmp_path


def mine(index: Index, *arguments: str) -> Said:
    return agent0("task", "mine", *arguments, "--index", index.url, "--out", "mined")


def tasks() -> list[tuple[MinedTask, MinedSolution]]:
    paths = sorted(Path("mined/tasks").glob("*.json"))
    return [
        (
            MinedTask.model_validate_json(path.read_text()),
            MinedSolution.model_validate_json(Path("mined/solutions", path.name).read_text()),
        )
        for path in paths
    ]


def ledger() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("mined/ledger.jsonl").read_text().splitlines()]


def test_a_package_gives_tasks_that_hidden_tests_decide(index: Index, shared_sandbox: None, place: Path) -> None:
    setup = f"open({str(place / 'built')!r}, 'w')\nraise SystemExit"
    index.releases["sums"] = [
        ("1.0", sdist(package(setup=setup))),
        ("1.1rc1", b"no release yet"),
        ("1.1", sdist(package(NEWER, setup=setup, tests__test_mean=MEANS))),
    ]
    done = mine(index, "sums==1.0..1.1", "--count", "1")
    assert done.code == 0, done.err
    assert "sums==1.0..1.1: 2 tasks of" in done.err
    assert not (place / "built").exists()
    mined = tasks()
    assert [task.kind for task, _ in mined] == ["change", "bug"]
    asyncio.run(_decided(mined))
    for task, solution in mined:
        assert solution.trials.model_dump() == {"reference": 3, "empty": 0, "random": 0}
        assert task.licence == "MIT"
        for source in solution.sources:
            assert source.sha256 == hashlib.sha256(dict(index.releases["sums"])[source.version]).hexdigest()
        assert "secret_count" not in task.statement
    change, decided = mined[0]
    assert decided.fail_to_pass == ("tests/test_mean.py::test_mean",)
    assert len(decided.pass_to_pass) == 4
    assert "def mean(values):" in change.statement
    assert "Return the mean of values, None of none." in change.statement
    _worked_on(change, decided)
    assert len({task.tree.sha256 for task, _ in mined}) == 2


def _worked_on(task: MinedTask, solution: MinedSolution) -> None:
    """By commands: unpacked, judged as it is, then with the file that solves it."""
    opened = agent0("task", "unpack", task.id, "work")
    assert (opened.code, opened.out.strip()) == (0, task.statement)
    assert not Path("work/tests/test_mean.py").exists()
    assert "is not empty" in agent0("task", "unpack", task.id, "work").err
    assert "has no task 'x'" in agent0("task", "judge", "x", "work").err
    wrong = agent0("task", "judge", task.id, "work", "--json")
    assert (wrong.code, wrong.json["accepted"]) == (3, False)
    assert "1 of 5 tests fail, such as tests/test_mean.py::test_mean" in wrong.json["why"]
    Path("work/sums/__init__.py").unlink()
    Path("work/sums/__init__.py").symlink_to("/etc/passwd")
    assert agent0("task", "judge", task.id, "work").code == 3
    Path("work/sums/__init__.py").unlink()
    Path("work/sums/__init__.py").write_text(NEWER)
    assert agent0("task", "judge", task.id, "work").code == 0


async def _decided(mined: list[tuple[MinedTask, MinedSolution]]) -> None:
    """The reference solves each task; the work folder as it is, and cheats in it, do not."""
    artifacts, sandbox = FileArtifacts(Path("mined")), await port_openers.open_sandbox()
    for task, solution in mined:
        student, reference = load(task.tree, artifacts), load(solution.code, artifacts)
        hidden = hidden_tests_of(solution, artifacts)
        assert not {test.partition("::")[0] for test in solution.fail_to_pass} & set(student)
        assert (await hidden.accept(reference, sandbox))[0] is True
        if task.kind == "bug":
            assert (await hidden.accept(student, sandbox))[0] is False
            continue
        cheat = {**student, "unittest.py": b"", "pytest.py": b"", "conftest.py": b"import os\nos._exit(0)"}
        cheat |= dict.fromkeys(solution.modules, b"def test_total(): pass")
        assert (await hidden.accept(cheat, sandbox))[0] is False


def test_mining_goes_on_where_it_was_cut(index: Index) -> None:
    index.releases["sums"] = [("1.0", sdist(package()))]
    mine(index, "sums==1.0", "--count", "1")
    first, path = ledger(), Path("mined/ledger.jsonl")
    whole, before = path.read_bytes(), {task.id: solution for task, solution in tasks()}
    again = mine(index, "sums==1.0", "--count", "1", "--json")
    assert ledger() == first
    assert again.json[0]["accepted"] == 1
    cut = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(cut[:-2]) + cut[-2][:30])  # killed within the line of its last candidate
    mine(index, "sums==1.0", "--count", "1")
    assert {task.id: solution.fail_to_pass for task, solution in tasks()} == {
        name: solution.fail_to_pass for name, solution in before.items()
    }
    names = [
        json.loads(line)["candidate"]
        for line in path.read_bytes().split(b"\n")
        if b'"task"' in line and line.endswith(b"}")
    ]
    assert len(names) == len(set(names)) == 1
    mine(index, "sums==1.0", "--count", "2")
    assert len(tasks()) == 2
    asked = len(index.asked)
    assert "Another command mines into" in _while_open(index)
    assert len(index.asked) == asked


def _while_open(index: Index) -> str:
    with MinedFolder.opened(Path("mined")):
        return mine(index, "sums==1.0", "--count", "9").err


def link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


UNUSABLE: dict[str, tuple[bytes, str]] = {
    "untested": (sdist({"PKG-INFO": META, "sums/__init__.py": CODE}), "it has no tests"),
    "unlicensed": (sdist({**package(), "PKG-INFO": "Name: sums\n"}), "it has no licence"),
    "empty": (
        sdist({"PKG-INFO": META, "tests/test_a.py": "def test(): pass"}),
        "it has no Python",
    ),
    "failing": (sdist(package("raise ImportError('its C part is not built')")), "its C part is not built"),
    "networked": (
        sdist(
            {
                "PKG-INFO": META,
                "sums/__init__.py": CODE,
                "tests/test_a.py": "import socket\n\ndef test():\n    socket.create_connection(('1.1.1.1', 80), 1)\n",
            }
        ),
        "its tests fail before any change",
    ),
    "hanging": (sdist(package(tests__test_z="def test():\n    while True: pass\n")), "its tests hang"),
    "ending": (sdist(package(tests__test_a="import os\n\ndef test():\n    os._exit(0)\n")), "end their own process"),
    "climbing": (sdist(package(), {"x": tarfile.TarInfo("sums-1/../../evil.py")}), "its archive holds the name"),
    "cut": (sdist(package())[:200], "its archive cannot be read"),
    "binary": (b"\x00\xff" * 50, "its archive cannot be read"),
    "linked": (
        sdist({"PKG-INFO": META, "sums/__init__.py": CODE}, {"x": link("sums-1/tests/test_a.py", "/etc/passwd")}),
        "it has no tests",
    ),
}


def test_unusable_packages_are_told_in_a_line_each(index: Index, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setattr(baselines, "LONGEST_S", 2.0)
    index.releases = {name: [("1.0", data)] for name, (data, _) in UNUSABLE.items()}
    index.releases |= {name: [("1.0", sdist(package()))] for name in ("false", "requests", "pluggy")}
    index.false.add("false")
    done = mine(index, *index.releases, "absent", "untested==7", "--json")
    assert done.code == 1
    why = {row["package"]: row["why not"] for row in done.json}
    for name, (_, reason) in UNUSABLE.items():
        assert reason in why[name] or name == "untested"
    assert "is not the file that is meant" in why["false"]
    assert "SWE-bench" in why["requests"]
    assert "runner of tests" in why["pluggy"]
    assert "has no package absent" in why["absent"]
    assert "no source distribution of such a release" in why["untested"]  # of the request behind the first
    assert {path.name for path in place.iterdir()} == {"mined"}
    assert not any("\n" in reason for reason in why.values())


async def test_of_a_students_files_the_code_of_the_package_counts_alone() -> None:
    class Kept:
        async def call(self, call: SandboxCall) -> Any:
            self.files = call.files
            return SandboxResult(ToolState.ERROR, 1, "", "", 0, 0, 0, "", "")

    frame, sandbox = {"tests/test_total.py": b"hidden"}, Kept()
    names = (
        "unittest.py",
        "conftest.py",
        "sums/conftest.py",
        "tests/test_total.py",
        "sums/__init__.py",
        "sums/more.py",
    )
    hidden = HiddenTests(frame, ("sums",), tuple(frame), (), 1.0)
    await hidden.run(dict.fromkeys(names, b"student's"), sandbox)  # type: ignore[arg-type]
    assert sandbox.files == {**frame, "sums/__init__.py": b"student's", "sums/more.py": b"student's"}


async def test_flaky_tests_decide_nothing(shared_sandbox: None) -> None:
    coins = "import os\n" + "".join(f"def test_{n}():\n    assert os.urandom(1)[0] < 128\n" for n in range(12))
    tree = SourceTree({name: str(text).encode() for name, text in package(tests__test_coins=coins).items()})
    source = SourceRecord(version="1", url="", sha256="")
    start = await baseline(Release("sums", source, tree), await port_openers.open_sandbox())
    assert {test.partition("::")[0] for test in start.flaky} == {"tests/test_coins.py"}
    assert {"tests/test_total.py::test_total", "tests/test_clamp.py::test_below"} <= start.stable


def test_a_tree_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_trees, "MOST_FILES", 3)
    with pytest.raises(OperationError, match="more than 3 files"):
        source_tree(sdist(package()))
    monkeypatch.setattr(source_trees, "MOST_BYTES", 10)
    with pytest.raises(OperationError, match="its archive is too large"):
        source_tree(sdist(package()))
