"""What a result says was used: measured however a call ended, zero where nothing ran, never more than a limit that was
kept; and which files it lost."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from agent0.events.values import ToolState
from agent0.infra.sandbox.backends.cold import ColdBubblewrap
from agent0.infra.sandbox.inside import calling
from agent0.ports.sandbox import Root, Sandbox, SandboxCall, SandboxResult
from agent0.settings import SandboxSettings
from tests.sandbox.opened import LEAN, open_lean

pytestmark = pytest.mark.asyncio(loop_scope="session")
KINDS = ("auto", "never", "cold")
HELD = 30
FLOOD = f"open('f', 'w').write('x'); kept = bytearray({HELD} << 20)\nwhile True: print('x' * 65536)"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def opened() -> AsyncIterator[dict[str, Sandbox]]:
    """One of each kind."""
    warm = {kind: await open_lean(cgroup=kind, calls=1) for kind in ("auto", "never")}
    found = {**warm, "cold": ColdBubblewrap(SandboxSettings(), root=LEAN)}
    yield found
    for one in found.values():
        await one.close()


async def _python(sandbox: Sandbox, code: str, mem_mib: int = 256) -> SandboxResult:
    return await sandbox.call(SandboxCall("python", code, root=LEAN, mem_mib=mem_mib, wall_s=20.0))


def _used(result: SandboxResult) -> list[float]:
    return [result.wall_s, result.cpu_s, result.peak_mem_mib, result.output_bytes]


@pytest.mark.parametrize("kind", KINDS)
async def test_every_result_says_what_was_used_and_which_tier_it_had(opened: dict[str, Sandbox], kind: str) -> None:
    sandbox = opened[kind]
    ran = await _python(sandbox, "print(1)")
    flooded = await _python(sandbox, FLOOD)
    refused = await _python(sandbox, "1\0")
    lacking = await sandbox.call(SandboxCall("python", "1", root=Root((), ("no_such_package",))))
    misfit = await sandbox.call(SandboxCall("python", "1", {"a": b"", "a/b": b""}, root=LEAN))
    assert (flooded.state, flooded.rc, flooded.files) == (ToolState.OUTPUT_FLOOD, None, {"f": b"x"})
    assert flooded.output_bytes > calling.FLOOD
    assert (min(_used(flooded)) > 0, flooded.peak_mem_mib >= HELD) == (True, True), flooded
    assert [one.state for one in (refused, lacking, misfit)] == [ToolState.REFUSED] * 3
    assert [_used(one) for one in (refused, lacking, misfit)] == [[0, 0, 0, 0]] * 3
    assert {one.tier for one in (flooded, refused, lacking, misfit)} == {ran.tier}
    assert ran.tier == "watchdog" or kind == "auto"


async def test_a_busy_sandbox_names_the_tier_that_the_call_would_have_had() -> None:
    sandbox = await open_lean(calls=1, queue=0)
    try:
        slot = await sandbox._lease(LEAN)
        told = await _python(sandbox, "1")
        sandbox._release(slot)
        ran = await _python(sandbox, "1")
    finally:
        await sandbox.close()
    assert (told.state, told.tier, _used(told)) == (ToolState.BUSY, ran.tier, [0, 0, 0, 0])


async def test_a_flood_that_cannot_be_stopped_from_inside_says_that_nothing_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling.SandboxProcess, "stop", lambda self: None)
    monkeypatch.setattr(calling, "SLACK_S", 0.3)
    sandbox = await open_lean()
    try:
        told = await _python(sandbox, FLOOD)
    finally:
        await sandbox.close()
    assert (told.state, told.cpu_s, told.wall_s > 0) == (ToolState.OUTPUT_FLOOD, 0, True)
    assert "only its time was measured" in told.reason


@pytest.mark.parametrize("kind", ["never", "cold"])
async def test_the_peak_is_what_the_limit_counts(opened: dict[str, Sandbox], kind: str) -> None:
    """However much of it all calls share, it is not above a limit that was kept; and it has what was there but for a
    moment."""
    sandbox = opened[kind]
    nothing = await _python(sandbox, "pass")
    least = await _python(sandbox, "pass", mem_mib=8)
    brief = await _python(sandbox, f"x = bytearray({HELD} << 20); del x")
    near = await _python(sandbox, "import os; x = bytearray(20 << 20); os.system('cat /dev/null')", mem_mib=36)
    over = await _python(sandbox, "x = bytearray(100 << 20)\nwhile True: pass", mem_mib=36)
    assert [one.state for one in (nothing, least, brief)] == [ToolState.OK] * 3
    assert 0 < least.peak_mem_mib <= 8
    assert brief.peak_mem_mib - nothing.peak_mem_mib >= HELD - 2
    assert near.state is ToolState.MEMORY or near.peak_mem_mib <= 36
    assert (over.state, over.peak_mem_mib > 36) == (ToolState.MEMORY, True)


DEEP = """
import os
for n in range(400):
    os.mkdir('d'); os.chdir('d')
    if n in (15, 16, 399): open('f', 'w').write(str(n))
"""
LOST = """
import os
os.chdir('/box')
os.symlink('a', 'link'); os.mkfifo('fifo')
for name in 'ab': os.mkdir(name); open(name + '/f', 'w').write('x')
os.chmod('a', 0); os.chmod('b/f', 0)
os.makedirs('n' * 200 + '/' + 'n' * 200); os.chdir('n' * 200 + '/' + 'n' * 200)
os.makedirs('n' * 200 + '/' + 'n' * 200); os.chdir('n' * 200 + '/' + 'n' * 200)
open('n' * 200, 'w').close()
"""
"""A link, a fifo and a name that is too long; a folder and a file without rights, where those count."""


@pytest.mark.parametrize(("kind", "lost"), [("never", 3), ("cold", 5)])
async def test_files_come_back_from_any_depth_or_are_counted(opened: dict[str, Sandbox], kind: str, lost: int) -> None:
    sandbox = opened[kind]
    deep, some = await _python(sandbox, DEEP), await _python(sandbox, LOST)
    many = await _python(sandbox, "for n in range(2040): open(str(n), 'w').close()")
    again = await sandbox.call(
        SandboxCall("python", "import os; print(len(list(os.walk('.'))))", deep.files, root=LEAN)
    )
    assert deep.files == {"d/" * (n + 1) + "f": str(n).encode() for n in (15, 16, 399)}
    assert (deep.state, deep.reason) == (ToolState.OK, "")
    assert (again.stdout, again.files) == ("401\n", deep.files)
    assert (some.state, some.reason) == (ToolState.OK, f"{lost} files were left out")
    assert (len(many.files), many.reason) == (2040, "")
