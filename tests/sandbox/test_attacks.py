"""Every attack through the engine, once, several at a time: what it may end in, and that nothing of the host was seen,
touched, reached or left running, and that the next call is served.
"""

import asyncio
import hashlib
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent0.ports import SandboxCall, SandboxResult
from infra.sandbox import open_sandbox, rootfs
from tests.sandbox.attacks import ATTACKS, Attack
from tests.sandbox.processes import descendants

SECRET = "canary-3f1c9d"
WORKERS = 2
PLANTED = "X01-plant-state"


@dataclass
class Campaign:
    """What came of all attacks. ``hits`` are connections that reached a listener of the host."""

    results: dict[str, SandboxResult] = field(default_factory=dict)
    alive: dict[str, str] = field(default_factory=dict)
    hits: list[str] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


@dataclass
class Canaries:
    """A secret file, and listeners on TCP, on a path and on an abstract name."""

    folder: Path
    sockets: list[socket.socket]
    name: str

    @property
    def port(self) -> int:
        return int(self.sockets[0].getsockname()[1])

    def fill(self, code: str) -> str:
        words = {"{FOLDER}": str(self.folder), "{PORT}": str(self.port), "{NAME}": self.name}
        for word, text in words.items():
            code = code.replace(word, text)
        return code

    def hits(self) -> list[str]:
        out = []
        for listener in self.sockets:
            try:
                listener.accept()[0].close()
                out.append(str(listener.getsockname()))
            except BlockingIOError:
                pass
        return out


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaries]:
    folder = tmp_path_factory.mktemp("canary")
    folder.joinpath("secret.txt").write_text(SECRET)
    name = f"agent0-canary-{os.getpid()}"
    families = [(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, f"{folder}/listen.sock")]
    sockets = []
    for family, address in [*families, (socket.AF_UNIX, f"\0{name}")]:
        listener = socket.socket(family)
        listener.bind(address)
        listener.listen()
        listener.setblocking(False)
        sockets.append(listener)
    yield Canaries(folder, sockets, name)
    for listener in sockets:
        listener.close()


@pytest.fixture(scope="module")
def campaign(canaries: Canaries) -> Iterator[Campaign]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT0_SECRET", SECRET)
        yield asyncio.run(_attack_all(canaries))


async def _attack_all(canaries: Canaries) -> Campaign:
    campaign, before = Campaign(), _digests()
    others = frozenset(descendants(os.getpid()))  # of tests that ran before in this process
    sandbox = await open_sandbox(workers=WORKERS)
    ordered = [a for a in ATTACKS if a.id != PLANTED]

    async def one(attack: Attack) -> None:
        code = canaries.fill(attack.code)
        campaign.results[attack.id] = await sandbox.call(SandboxCall(attack.kind, code, wall_s=attack.wall))
        campaign.alive[attack.id] = (await sandbox.call(SandboxCall("python", "print(6 * 7)"))).stdout

    try:
        plant = next(a for a in ATTACKS if a.id == PLANTED)  # the one that looks for it comes among the others
        await asyncio.gather(*(one(plant) for _ in range(WORKERS)))
        await asyncio.gather(*(one(attack) for attack in ordered))
        campaign.left = await _left(others)
    finally:
        await sandbox.close()
    campaign.hits = canaries.hits()
    campaign.changed = [path for path, digest in _digests().items() if before[path] != digest]
    return campaign


def _digests() -> dict[str, str]:
    files = list(rootfs.INSIDE.glob("*.py"))
    files += [Path(os.path.realpath(Path(sys.executable)))]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def _left(others: frozenset[int]) -> list[int]:
    """Processes below this one, without ``others``, beyond bubblewrap, zygote, and shim and payload of one world in
    waiting."""
    usual = 4 * WORKERS
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 10
    while len(below := descendants(os.getpid(), others)) > usual and loop.time() < deadline:
        await asyncio.sleep(0.05)
    return below[usual:]


@pytest.mark.parametrize("attack", ATTACKS, ids=[a.id for a in ATTACKS])
def test_attack_comes_to_nothing(attack: Attack, campaign: Campaign) -> None:
    result = campaign.results[attack.id]
    seen = f"{result.state.value} rc={result.rc} {result.reason} {result.stdout[:300]!r} {result.stderr[-300:]!r}"
    assert result.state.value in attack.states, seen
    assert "ESCAPE" not in result.stdout, seen
    assert attack.prints in result.stdout, seen
    assert attack.rc is None or result.rc == attack.rc, seen
    assert not (attack.fails and result.rc == 0), seen
    assert len(result.stdout) + len(result.stderr) <= 4 * 2 * 256 * 1024, "output is capped (escapes count fourfold)"
    harvest = b"".join(result.files.values()).decode(errors="replace")
    assert SECRET not in result.stdout + result.stderr + harvest, seen
    assert campaign.alive[attack.id] == "42\n", "the next call is served"


def test_nothing_reached_the_host(campaign: Campaign) -> None:
    assert campaign.hits == [], "a listener was reached"
    assert campaign.left == [], "a process survived"
    assert campaign.changed == [], "a file of the interpreter or the sandbox changed"


def test_the_suite_is_whole() -> None:
    assert len(ATTACKS) == len({a.id for a in ATTACKS}) >= 100
