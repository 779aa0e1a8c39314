"""The sandbox that most of these tests are about, and no other."""

from agent0.settings import SandboxSettings
from infra.sandbox import Bubblewrap, open_sandbox


async def open_bubblewrap(workers: int = 1, label: str = "tests") -> Bubblewrap:
    """Warm zygotes inside bubblewrap."""
    opened = await open_sandbox(SandboxSettings(backend="zygote-bwrap"), workers=workers, label=label)
    assert isinstance(opened, Bubblewrap)
    return opened
