"""Where code nobody has read runs: a port to fresh, confined worlds that refuses rather than runs with less."""

from agent0.errors import SandboxUnavailableError
from infra.sandbox import selftest
from infra.sandbox.bubblewrap import Bubblewrap, Refusing
from infra.sandbox.selftest import Probe
from infra.sandbox.zygote import Zygote

__all__ = ["Bubblewrap", "Probe", "Refusing", "open_sandbox", "probe"]


async def open_sandbox(*, workers: int = 1, label: str = "student") -> Bubblewrap:
    """A sandbox on ``workers`` zygotes (twice as many calls at once) that has passed its self-test.

    Raises:
        SandboxUnavailableError: it did not. There is nothing to fall back to.
    """
    sandbox = Bubblewrap(workers, label)
    try:
        await sandbox.start()
    except BaseException:
        await sandbox.close()
        raise
    return sandbox


async def probe() -> list[Probe]:
    """Every probe with what it saw. A sandbox that does not even start is one failed probe, never an exception."""
    try:
        zygote = await Zygote.start()
    except SandboxUnavailableError as error:
        return [Probe("starts", False, str(error))]
    try:
        return [Probe("starts", True, "bubblewrap"), *await selftest.inspect(zygote), *await selftest.limits(zygote)]
    except SandboxUnavailableError as error:
        return [Probe("starts", False, str(error))]
    finally:
        await zygote.close()
