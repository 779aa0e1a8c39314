"""What plays a port is opened once, when it must be, and closed."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agent0.assembly.runtime import port_openers
from agent0.assembly.runtime.port_openers import OnDemandSandbox, open_port, open_ports
from agent0.errors import SandboxUnavailableError
from agent0.ports.sandbox import SandboxCall
from agent0.settings import Settings
from tests.memory import MemoryArtifacts, TrustingSandbox

CALL = SandboxCall("python", "print(1)")


class _Ending(TrustingSandbox):
    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    async def close(self) -> None:
        self.closed = True


class _Starts:
    """Starts sandboxes, slowly, unless it was told of trouble."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.made: list[_Ending] = []
        self.trouble: Exception | None = None

    async def __call__(self, *_: object, label: str = "", **__: object) -> _Ending:
        self.labels.append(label)
        await asyncio.sleep(0)
        if self.trouble:
            raise self.trouble
        self.made.append(_Ending())
        return self.made[-1]


async def test_calls_at_once_start_one_and_no_call_starts_none() -> None:
    starts = _Starts()
    await OnDemandSandbox(starts).close()
    assert not starts.labels
    sandbox = OnDemandSandbox(starts)
    said = await asyncio.gather(*(sandbox.call(CALL) for _ in range(3)))
    assert [one.stdout for one in said] == ["1\n"] * 3 and len(starts.made) == 1
    await sandbox.close()
    assert starts.made[0].closed


async def test_a_start_that_failed_is_told_and_tried_again() -> None:
    starts = _Starts()
    sandbox, starts.trouble = OnDemandSandbox(starts), SandboxUnavailableError("The sandbox", "no room.")
    for _ in range(2):
        with pytest.raises(SandboxUnavailableError, match="no room"):
            await sandbox.call(CALL)
    await sandbox.close()
    starts.trouble = None
    assert (await sandbox.call(CALL)).stdout == "1\n" and len(starts.labels) == 3


async def test_what_is_closed_while_it_starts_ends() -> None:
    starts = _Starts()
    sandbox = OnDemandSandbox(starts)
    call = asyncio.ensure_future(sandbox.call(CALL))
    await asyncio.sleep(0)
    call.cancel()
    await sandbox.close()
    assert starts.made[0].closed


async def test_the_verifiers_sandbox_waits_for_a_call_where_another_one_was_tested(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    starts, settings = _Starts(), Settings(home=tmp_path)
    monkeypatch.setattr(port_openers, "open_sandbox", starts)
    async with AsyncExitStack() as stack:
        ports = await open_ports(("sandbox", "verifier_sandbox"), settings, MemoryArtifacts(), stack)
        assert starts.labels == ["student"]
        await ports["verifier_sandbox"].call(CALL)
        assert starts.labels == ["student", "verifier"]
    assert [one.closed for one in starts.made] == [True, True]
    await open_port("verifier_sandbox", settings, MemoryArtifacts())
    assert starts.labels[2:] == ["verifier"], "alone it is tested at once"
