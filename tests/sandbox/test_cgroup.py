"""Control groups: the kernel's own sum over a call's processes, in groups that nobody leaves behind."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent0.events.values import ToolState
from agent0.infra.sandbox import Bubblewrap, cgroup, rootfs
from agent0.infra.sandbox.cgroup import V1, V2, Base, Layout
from agent0.ports.sandbox import SandboxCall, SandboxResult
from tests.sandbox.opened import LEAN, open_lean

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _given() -> bool:
    made = cgroup.slots(1)
    cgroup.discard(made)
    return bool(made)


needed = pytest.mark.skipif(not _given(), reason="no control group of memory can be made here")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Bubblewrap]:
    opened = await open_lean()
    yield opened
    await opened.close()


async def _python(sandbox: Bubblewrap, code: str, mem_mib: int = 512, wall_s: float = 10.0) -> SandboxResult:
    return await sandbox.call(SandboxCall("python", code, mem_mib=mem_mib, wall_s=wall_s, root=LEAN))


def _spared(sandbox: Bubblewrap) -> bool:
    """Whether who watches was hit once at most. It is where the process that the kernel chose is gone and its pages are
    not yet back (2 of 456 kills with four sandboxes on two cores); such a call is made again, on another fork
    server."""
    return sum(sandbox.stats().recycled.values()) <= 1


def _ours() -> list[Path]:
    """Groups of this process."""
    folders = {one for base in cgroup.bases() for one in (base.memory, base.processes) if one is not None}
    return [group for folder in folders for group in folder.glob(f"agent0-{os.getpid()}-*")]


@needed
async def test_memory_is_what_the_kernel_counts(sandbox: Bubblewrap) -> None:
    result = await _python(sandbox, "kept = []\nwhile True: kept.append(bytearray(1 << 20))", mem_mib=150)
    assert (result.state, result.rc, result.tier) == (ToolState.MEMORY, None, "cgroup")
    assert 140 < result.peak_mem_mib <= 150, "not a page above the limit"
    assert (await _python(sandbox, "x = bytearray(120 << 20)", mem_mib=150)).state is ToolState.OK
    assert len({server.pid for server in sandbox.stats().servers}) == 1
    assert _spared(sandbox), "or the call would have ended without a report, twice"


@pytest.mark.slow  # part of make knockout
@needed
async def test_many_small_processes_are_one_sum_and_end_together(sandbox: Bubblewrap) -> None:
    code = "import os, time\nfor _ in range(12):\n  if not os.fork(): x = bytearray(20 << 20); time.sleep(60)\n"
    result = await _python(sandbox, code + "time.sleep(60)", mem_mib=150, wall_s=60.0)
    assert (result.state, result.wall_s < 50) == (ToolState.MEMORY, True), "those the kernel spared are ended, too"
    shell = "for i in 1 2 3 4 5 6 7 8 9 10; do x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 60 & done; wait"
    root = LEAN.__class__((*LEAN.executables, "head", "tr"), ())
    result = await sandbox.call(SandboxCall("shell", shell, mem_mib=150, wall_s=60.0, root=root))
    assert (result.state, result.wall_s < 50) == (ToolState.MEMORY, True), "though who watches is larger than any"
    assert _spared(sandbox)


@needed
async def test_files_in_memory_count(sandbox: Bubblewrap) -> None:
    code = "for n in range(50): open(f'/box/{n}', 'wb').write(bytes(1 << 20))\nkept = bytearray(40 << 20)"
    assert (await _python(sandbox, code, mem_mib=80)).state is ToolState.MEMORY
    result = await _python(sandbox, code, mem_mib=130)
    assert (result.state, len(result.files)) == (ToolState.OK, 50), "reading them back is not the call's memory"


@needed
async def test_calls_at_once_have_a_limit_each(sandbox: Bubblewrap) -> None:
    modest = "import time; x = bytearray(100 << 20); time.sleep(0.3); print(len(x))"
    calls = [_python(sandbox, modest, mem_mib=130), _python(sandbox, "x = bytearray(200 << 20)", mem_mib=130)]
    states = [result.state for result in await asyncio.gather(*calls)]
    assert states == [ToolState.OK, ToolState.MEMORY]


@needed
async def test_a_limit_below_what_a_world_needs_is_still_only_memory(sandbox: Bubblewrap) -> None:
    result = await _python(sandbox, "x = bytearray(50 << 20)", mem_mib=1)
    assert (result.state, _spared(sandbox)) == (ToolState.MEMORY, True)


@needed
async def test_processes_are_bounded_even_without_their_own_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layer = "        resource.setrlimit(kind, (value, value))\n"
    inside = shutil.copytree(rootfs.INSIDE, tmp_path / "inside", ignore=shutil.ignore_patterns("__pycache__"))
    text = (inside / "payload.py").read_text()
    assert text.count(layer) == 1
    (inside / "payload.py").write_text(text.replace(layer, "        pass\n"))
    monkeypatch.setattr(rootfs, "INSIDE", inside)
    bomb = (
        "import os, time\nmade = 0\ntry:\n  for _ in range(500):\n    if not os.fork(): time.sleep(60)\n    made += 1\n"
        "except OSError as error: print(made, error)"
    )
    opened = await open_lean()
    try:
        if not any((group / "pids.max").exists() for group in _ours()):
            pytest.skip("no control group of processes can be made here")
        result = await _python(opened, bomb)
        assert int(result.stdout.split()[0]) < cgroup.MAX_PROCESSES
    finally:
        await opened.close()


@needed
async def test_no_group_is_left_behind() -> None:
    before = set(_ours())
    opened = await open_lean(calls=3)
    assert len(set(_ours()) - before) >= 3
    running = asyncio.create_task(_python(opened, "x = bytearray(50 << 20)\nwhile True: pass", wall_s=60.0))
    while not opened.stats().servers[0].in_flight:
        await asyncio.sleep(0.01)
    await opened.close()
    await asyncio.gather(running, return_exceptions=True)
    assert set(_ours()) == before


KILLED = """
import asyncio, sys
from tests.sandbox.opened import open_lean
async def main():
    await open_lean()
    print("open", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@needed
async def test_groups_of_a_killed_owner_go_at_the_next_start() -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        left = [folder for base in cgroup.bases() for folder in base.memory.glob(f"agent0-{process.pid}-*")]
        assert left
        for base in cgroup.bases():
            cgroup.sweep(base)
        assert all(folder.exists() for folder in left), "an owner that lives keeps its own"
        process.send_signal(signal.SIGKILL)
    async with asyncio.timeout(20):
        while any(folder.exists() for folder in left):  # its fork server takes a moment to end
            cgroup.discard(cgroup.slots(1))
            await asyncio.sleep(0.05)


async def test_never_means_watchdog() -> None:
    opened = await open_lean(cgroup="never")
    try:
        greedy = await _python(opened, "kept = []\nwhile True: kept.append(bytearray(1 << 20))", mem_mib=150)
        assert (greedy.state, greedy.tier) == (ToolState.MEMORY, "watchdog")
    finally:
        await opened.close()


@pytest.mark.parametrize("broken", ["adopt", "open", "make"])
async def test_a_group_that_cannot_be_used_is_not_claimed(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(cgroup.Slot, broken, refuse)
    before = set(_ours())
    opened = await open_lean()
    try:
        assert (await _python(opened, "print(6 * 7)")).tier == "watchdog"
    finally:
        await opened.close()
    assert set(_ours()) == before


def _base(tmp_path: Path, layout: Layout) -> Base:
    (tmp_path / "void").symlink_to("/dev/null")
    return Base(tmp_path, layout)


@pytest.mark.parametrize("layout", [V1, V2])
async def test_limits_that_do_not_hold_are_no_limits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, layout: Layout
) -> None:
    """Folders stand in for a hierarchy: in one, a limit is what was written; in the other, writing does nothing."""
    good = _base(tmp_path, layout)
    monkeypatch.setattr(cgroup, "bases", lambda: iter([good]))
    made = cgroup.slots(2)
    assert [slot.folders[0].parent for slot in made] == [tmp_path, tmp_path]
    assert {file.name for file in made[0].folders[0].iterdir()} == {layout.limit, layout.no_swap[0]}
    deaf = Base(tmp_path, Layout("../void", *(layout.usage, layout.peak, layout.events), layout.no_swap))
    monkeypatch.setattr(cgroup, "bases", lambda: iter([deaf]))
    assert cgroup.slots(2) == []
    monkeypatch.setattr(cgroup, "bases", lambda: iter([deaf, good]))
    assert len(cgroup.slots(1)) == 1


def _machine(folder: Path, own: str, mounts: str) -> Path:
    folder.joinpath("cgroup").write_text(own)
    folder.joinpath("mountinfo").write_text(mounts)
    return folder


MOUNT = "36 25 0:30 {root} {at} rw,relatime shared:9 - {kind} none rw,{options}\n"


async def test_where_groups_are_made(tmp_path: Path) -> None:
    one = MOUNT.format(root="/", at="/cg/memory", kind="cgroup", options="memory")
    pids = MOUNT.format(root="/", at="/cg/pids", kind="cgroup", options="pids")
    old = _machine(tmp_path, "4:memory:/user/me\n3:pids:/\n0::/\n", one + pids)
    memory = Path("/cg/memory/user/me")
    assert list(cgroup.bases(old)) == [Base(memory, V1, Path("/cg/pids")), Base(memory, V1)]

    inside = MOUNT.format(root="/docker/1234", at="/cg/memory", kind="cgroup", options="memory")
    container = _machine(tmp_path, "4:memory:/docker/1234/x\n0::/\n", inside)
    assert list(cgroup.bases(container)) == [Base(Path("/cg/memory/x"), V1)]
    assert list(cgroup.bases(_machine(tmp_path, "4:memory:/elsewhere\n", inside))) == []

    tree = tmp_path / "unified"
    (tree / "app.slice" / "run.scope").mkdir(parents=True)
    tree.joinpath("cgroup.subtree_control").write_text("cpu memory pids\n")
    tree.joinpath("app.slice", "cgroup.subtree_control").write_text("memory pids\n")
    tree.joinpath("app.slice", "run.scope", "cgroup.subtree_control").write_text("\n")
    new = _machine(tmp_path, "0::/app.slice/run.scope\n", MOUNT.format(root="/", at=tree, kind="cgroup2", options="x"))
    assert [base.memory for base in cgroup.bases(new)] == [tree / "app.slice", tree], "nearest first"
    assert {base.layout for base in cgroup.bases(new)} == {V2}
    assert list(cgroup.bases(tmp_path / "nothing here")) == []
