"""The sandbox that most of these tests are about, and no other."""

from agent0.infra.sandbox import Bubblewrap, open_sandbox
from agent0.ports.sandbox import Root
from agent0.settings import SandboxSettings

LEAN = Root(("bash", "cat", "ls", "sleep"), ())
"""A root whose fork server starts in a fraction of a second: no package, four executables."""


async def open_bubblewrap(workers: int = 1, label: str = "tests") -> Bubblewrap:
    """Warm fork servers inside bubblewrap."""
    opened = await open_sandbox(SandboxSettings(backend="zygote-bwrap"), workers=workers, label=label)
    assert isinstance(opened, Bubblewrap)
    return opened


async def open_lean(root: Root = LEAN, **settings: object) -> Bubblewrap:
    """One warm fork server of ``root``, self-tested; calls must name the root."""
    opened = Bubblewrap(SandboxSettings(workers=1).model_copy(update=settings), "tests", root)
    try:
        await opened.start()
    except BaseException:
        await opened.close()
        raise
    return opened
