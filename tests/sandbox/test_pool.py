"""The pool: who waits and who is told to come back, what is replaced and why, and a root of its own for each call."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox import Bubblewrap, open_sandbox, pool_slot
from agent0.infra.sandbox.backends import bubblewrap
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult
from agent0.settings import SandboxSettings
from tests.sandbox.opened import LEAN, open_lean
from tests.sandbox.processes import descendants

pytestmark = pytest.mark.asyncio(loop_scope="session")
PYTEST = Root(("bash",), ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"))
SEGFAULT = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


async def _python(sandbox: Bubblewrap, code: str, root: Root = LEAN, wall_s: float = 5.0) -> SandboxResult:
    return await sandbox.call(SandboxCall("python", code, root=root, wall_s=wall_s))


def _roots(sandbox: Bubblewrap) -> list[Root]:
    return [server.root for server in sandbox.stats().servers]


async def _gone(pid: int) -> None:
    async with asyncio.timeout(20):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.01)


async def test_a_killed_fork_server_costs_one_start() -> None:
    opened = await open_lean()
    try:
        server = await opened._slots[0].server()
        slow = asyncio.create_task(_python(opened, "import time; time.sleep(0.5); print('again')"))
        while server.idle.is_set():
            await asyncio.sleep(0.01)
        os.kill(descendants(server.pid)[0], signal.SIGKILL)
        assert (await slow).stdout == "again\n", "run again from the start, in a fresh sandbox process"
        assert (await _python(opened, "print(6 * 7)")).stdout == "42\n"
        assert opened._slots[0].current is not server
        assert opened.stats().recycled == {"error": 1}
        async with asyncio.timeout(20):
            while not opened.stats().deaths:
                await asyncio.sleep(0.01)
    finally:
        await opened.close()
    with pytest.raises(SandboxUnavailableError, match="closed"):
        await _python(opened, "1")


async def test_a_world_that_ends_without_a_word_costs_its_neighbours_nothing() -> None:
    opened = await open_lean()
    try:
        server = await opened._slots[0].server()
        served, spawners = server.served, _below(descendants(server.pid)[0])
        code = "import time; time.sleep(1.5); print(open('/box/a').read())"
        neighbour = asyncio.create_task(opened.call(SandboxCall("python", code, {"a": b"kept"}, root=LEAN)))
        (first,) = await _children(spawners, 1)
        unlucky = asyncio.create_task(_python(opened, "import time; time.sleep(0.2); print('again')"))
        (second,) = set(await _children(spawners, 2)) - {first}
        os.kill(second, signal.SIGKILL)
        assert (await unlucky).stdout == "again\n"
        assert ((await neighbour).stdout, server.served - served) == ("kept\n", 2), "neither asked twice of the old one"
        assert (opened.stats().recycled, opened.stats().deaths) == ({"error": 1}, 0)
    finally:
        await opened.close()


@pytest.mark.parametrize(("calls", "oldest_s", "why"), [(5, 600.0, "calls"), (1000, 0.001, "age")])
async def test_fork_servers_are_replaced_on_schedule(
    calls: int, oldest_s: float, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_slot, "OLDEST_S", oldest_s)
    monkeypatch.setattr(pool_slot, "MOST_CALLS", calls)
    opened = await open_lean()
    try:
        first = await opened._slots[0].server()
        async with asyncio.timeout(60):
            while opened._slots[0].current is first:
                assert (await _python(opened, "print(6 * 7)")).stdout == "42\n", "nobody waits for the new one"
            await first._process.wait()
        assert opened.stats().recycled[why] >= 1
    finally:
        await opened.close()


async def test_who_crashes_again_and_again_is_not_served_by_the_same_fork_server() -> None:
    opened = await open_lean()
    try:
        first = opened._slots[0].current
        crashed = [(await _python(opened, SEGFAULT)).rc for _ in range(4)]
        assert (crashed, opened._slots[0].current is first) == ([-11] * 4, True)
        shell = SandboxCall("shell", "(kill -SEGV $BASHPID); exit $?", root=LEAN)
        assert (await opened.call(shell)).rc == 128 + 11
        assert (await _python(opened, "print(6 * 7)")).stdout == "42\n"
        assert opened._slots[0].current is not first
        assert opened.stats().recycled == {"crashes": 1}
    finally:
        await opened.close()


async def test_an_idle_fork_server_that_misses_a_probe_serves_no_more() -> None:
    opened = await open_lean()
    try:
        slot = opened._slots[0]
        first = slot.current
        await opened.tend()
        assert (await slot.server()) is first, "not due yet"
        slot.tested -= bubblewrap.PROBE_S
        await opened.tend()
        assert (await slot.server()) is first, "probed, and well"
        server = descendants(first.pid)[0]
        for spawner in _below(server):
            with contextlib.suppress(ProcessLookupError):  # it may end with one that was killed before it
                os.kill(spawner, signal.SIGKILL)
        slot.tested -= bubblewrap.PROBE_S
        await opened.tend()
        assert (await _python(opened, "print(6 * 7)")).stdout == "42\n"
        assert (slot.current is first, opened.stats().recycled) == (False, {"probe": 1})
    finally:
        await opened.close()


def _below(parent: int) -> list[int]:
    """Children, without theirs."""
    found = descendants(parent)
    return [pid for pid in found if not any(pid in descendants(other) for other in found)]


async def _children(spawners: list[int], count: int) -> list[int]:
    """Pids 1 of that many sandbox processes, as soon as they are there."""
    async with asyncio.timeout(20):
        while len(found := [pid for spawner in spawners for pid in _below(spawner)]) != count:
            await asyncio.sleep(0.01)
    return found


async def test_a_full_line_says_busy_and_a_cancelled_call_leaves_it() -> None:
    opened = await open_lean(calls=1, queue=2)
    try:
        first = asyncio.create_task(_python(opened, "input() if 0 else __import__('time').sleep(60)", wall_s=60))
        while not opened.stats().servers[0].in_flight:
            await asyncio.sleep(0.01)
        line = [asyncio.create_task(_python(opened, f"print({n})")) for n in range(2)]
        await asyncio.sleep(0)
        refused = await _python(opened, "print(2)")
        assert (refused.state, "waiting" in refused.reason) == (ToolState.BUSY, True)
        assert (opened.stats().waiting, opened.stats().busy) == (2, 1)
        line[0].cancel()
        first.cancel()
        assert (await line[1]).stdout == "1\n"
        assert (opened.stats().waiting, opened._slots[0].busy) == (0, 0)
    finally:
        await asyncio.gather(first, *line, return_exceptions=True)
        await opened.close()


async def test_calls_at_once_are_as_many_as_was_said() -> None:
    opened = await open_lean(calls=3)
    try:
        slow = [asyncio.create_task(_python(opened, "import time; time.sleep(0.3)")) for _ in range(7)]
        most = 0
        while not all(task.done() for task in slow):
            most = max(most, opened.stats().servers[0].in_flight)
            await asyncio.sleep(0.01)
        assert (most, {task.result().state for task in slow}) == (3, {ToolState.OK})
        assert len(descendants(opened.stats().servers[0].pid)) + 1 <= opened.stats().processes
    finally:
        await opened.close()


async def test_a_root_has_what_it_names_and_nothing_else() -> None:
    look = "import importlib.util as u, os; print(os.listdir('/opt/site'), sorted(os.listdir('/usr/bin')))"
    named = Root(("bash", "ls", "ruff"), ("typing_extensions", "numpy"))
    opened = await open_lean()
    try:
        assert (await _python(opened, look)).stdout == f"[] {sorted(LEAN.executables)}\n"
        seen = (await _python(opened, look, named)).stdout
        assert "sympy" not in seen
        assert {"'typing_extensions.py'", "'numpy'", "'numpy.libs'"} == set(seen[1 : seen.index("]")].split(", "))
        assert seen.endswith("['bash', 'ls', 'ruff']\n")
        code = "import numpy, typing_extensions; print(numpy.linalg.inv(numpy.eye(2))[0, 0])"
        assert (await _python(opened, code, named)).stdout == "1.0\n"
        shell = SandboxCall("shell", "ruff --version; cat /dev/null || echo none", root=named)
        assert "ruff 0" in (await opened.call(shell)).stdout
        assert (await opened.call(shell)).stdout.endswith("none\n")
        bare = SandboxCall("shell", "echo hello", root=Root(("cat",), ()))
        assert (await opened.call(bare)).state is ToolState.REFUSED
    finally:
        await opened.close()


async def test_tests_run_where_pytest_is_named() -> None:
    opened = await open_lean(PYTEST)
    try:
        code = "import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '/box']))"
        files = {"test_it.py": b"def test_right(): assert 1\ndef test_wrong(): assert [1] == [2]"}
        result = await opened.call(SandboxCall("python", code, files, root=PYTEST, wall_s=20))
        assert (result.rc, "1 failed, 1 passed" in result.stdout) == (1, True)
    finally:
        await opened.close()


BAD = {
    Root(("no-such-program",), ()): "no-such-program is not in",
    Root(("../bin/bash",), ()): "no name of an executable",
    Root(("",), ()): "no name of an executable",
    Root((), ("no_such_package",)): "pip install no_such_package",
    Root((), ("numpy.linalg",)): "Name the top level",
    Root((), ("../agent0",)): "no name of a package",
    Root((), ("agent0",)): "agent0 is not installed beside",
    Root((), (), ("infra.sandbox",)): "no package of Agent0",
    Root((), (), ("agent0.no.such",)): "no package of Agent0",
    Root((), (), ("agent0.seeding",)): "no package of Agent0",
    Root((), ("sympy",)): "SymPy now depends on mpmath",
}


async def test_a_root_that_cannot_be_had_is_refused_by_name() -> None:
    opened = await open_lean()
    try:
        for root, reason in BAD.items():
            result = await _python(opened, "print(1)", root)
            assert (result.state, reason in result.reason) == (ToolState.REFUSED, True), result
        packaged = Root((*LEAN.executables, "yes"), ())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("agent0.infra.sandbox.roots.PACKAGED", frozenset({"no-such-program"}))
            assert (await _python(opened, "print(1)", Root(("no-such-program",), ()))).stdout == "1\n"
        assert (await _python(opened, "print(1)", packaged)).stdout == "1\n"
        assert (await _python(opened, "print(1)")).stdout == "1\n"
    finally:
        await opened.close()
    with pytest.raises(SandboxUnavailableError, match="no-such-program"):
        await open_lean(Root(("no-such-program",), ()))


@pytest.mark.slow  # part of make knockout
async def test_fork_servers_are_of_the_root_that_calls_will_name_or_of_the_packaged_one() -> None:
    only = SandboxSettings(backend="zygote-bwrap")
    for root, kept in ((LEAN, LEAN), (Root(("no-such-program",), ()), Root())):
        opened = await open_sandbox(only, root=root)
        try:
            assert isinstance(opened, Bubblewrap) and _roots(opened) == [kept]
            asked = await _python(opened, "print(1)", root)
            assert (asked.state is ToolState.OK) == (root == LEAN)
        finally:
            await opened.close()


@pytest.mark.slow  # part of make knockout
async def test_fork_servers_of_other_roots_are_few_and_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "VISITORS", 2)
    others = [Root((*LEAN.executables, name), ()) for name in ("cut", "head", "tail", "wc")]
    opened = await open_lean()
    try:
        calls = [asyncio.create_task(_python(opened, f"print({n})", others[n % 4])) for n in range(8)]
        while not all(call.done() for call in calls):
            assert len(_roots(opened)) <= 3
            await asyncio.sleep(0.01)
        assert [call.result().stdout for call in calls] == [f"{n}\n" for n in range(8)]
        kept, oldest = set(_roots(opened)) - {LEAN}, min(opened._slots[1:], key=lambda slot: slot.used)
        assert len(kept) == 2
        new = next(root for root in others if root not in kept)
        await _python(opened, "1", new)
        assert set(_roots(opened)) == {LEAN, new, *kept} - {oldest.root}, "the least recently used one made room"
        pids = [server.pid for server in opened.stats().servers if server.root != LEAN]
        await opened.tend()
        assert len(_roots(opened)) == 3
        for slot in opened._slots:
            slot.used -= bubblewrap.VISIT_S
        await opened.tend()
        assert _roots(opened) == [LEAN]
        for pid in pids:
            await _gone(pid)
    finally:
        await opened.close()


async def test_a_root_that_is_busy_gets_more_fork_servers_but_not_more_than_workers() -> None:
    other = Root(("bash", "cat"), ())
    opened = await open_lean(workers=2, calls=1)
    try:
        results = await asyncio.gather(*(_python(opened, "import time; time.sleep(0.2)", other) for _ in range(6)))
        assert {r.state for r in results} == {ToolState.OK}
        assert _roots(opened) == [LEAN, LEAN, other, other]
    finally:
        await opened.close()


@pytest.mark.parametrize("steps", [0, 10, 40])
async def test_closing_while_a_fork_server_starts_leaves_none(steps: int) -> None:
    opened = await open_lean()
    before = set(descendants(os.getpid())) - set(descendants(opened.stats().servers[0].pid))
    before.discard(opened.stats().servers[0].pid)
    starting = asyncio.create_task(_python(opened, "print(1)", Root(("bash", "cat"), ())))
    for _ in range(steps):
        await asyncio.sleep(0.005)
    await opened.close()
    await asyncio.gather(starting, return_exceptions=True)
    async with asyncio.timeout(20):
        while set(descendants(os.getpid())) - before:
            await asyncio.sleep(0.01)
