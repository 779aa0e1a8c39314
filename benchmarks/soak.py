"""Thousands of calls, one in twenty hostile, through one sandbox: does anything stay?

    python -m benchmarks.soak [--calls 5000] [--clients 4] [--seed 0] [--json]

Counted before and after, once nothing runs: processes, descriptors of this process and of the fork servers, mounts,
namespaces of everything below this process, and memory of both as it was after the first fifth and is at the end. Every
call must come to its documented state; a harmless one to its right answer. Exit 1 where something does not.
"""

import argparse
import asyncio
import contextlib
import ctypes
import gc
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent0.infra.sandbox import Bubblewrap, open_sandbox
from agent0.infra.sandbox.inside import kernel
from agent0.settings import SandboxSettings
from agent0.tools.snapshots import kept
from tests.sandbox.attacks import ATTACKS, Attack, Seen, faults
from tests.sandbox.campaign import SECRET, Canaries, canaries, through_engine
from tests.sandbox.processes import descendants

HOSTILE = 0.05
HARMLESS = (
    ("python", "pass", ""),
    ("python", "import sympy as s; x = s.Symbol('x'); print(s.diff(x**3, x))", "3*x**2\n"),
    ("python", "import numpy as n; print(n.ones(9).sum())", "9.0\n"),
    ("shell", "echo 3 1 2 | tr ' ' '\\n' | sort | paste -sd,", "1,2,3\n"),
    ("python", "open('kept', 'a').write('x'); print(len(open('kept').read()))", None),
    ("python", "import os\nif os.fork(): print(os.wait()[1])", "0\n"),
)
GROWS_MIB = 8.0
"""What memory of a process may differ by, from one look to another."""
SETTLE_S = 30.0
UNSHARE, NEW_MOUNTS = 272, 0x20000


@dataclass(frozen=True)
class Look:
    """What is there while nothing runs. ``processes`` below this one; ``zygote_*`` is the largest of any fork
    server."""

    processes: int
    descriptors: int
    zygote_descriptors: int
    mounts: int
    zygote_mounts: int
    namespaces: int
    rss_mib: float
    zygote_rss_mib: float


@dataclass
class Soak:
    """What came of the calls so far."""

    states: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    hostile: int = 0
    seconds: float = 0.0


def look(sandbox: Bubblewrap) -> Look:
    """Now."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free but not given back is no leak
    below = descendants(os.getpid())
    servers = [pid for server in sandbox.stats().servers for pid in (server.pid, *descendants(server.pid)[:1])]
    return Look(
        processes=len(below),
        descriptors=_count("/proc/self/fd"),
        zygote_descriptors=max(_count(f"/proc/{pid}/fd") for pid in servers),
        mounts=len(Path("/proc/self/mounts").read_text().splitlines()),
        zygote_mounts=max(len(Path(f"/proc/{pid}/mounts").read_text().splitlines()) for pid in servers),
        namespaces=len({link for pid in below for link in _namespaces(pid)}),
        rss_mib=_rss_mib(os.getpid()),
        zygote_rss_mib=max(map(_rss_mib, servers)),
    )


def _count(folder: str) -> int:
    return sum(1 for _ in Path(folder).iterdir())


def _namespaces(pid: int) -> Iterator[str]:
    try:
        yield from (str(link.readlink()) for link in Path(f"/proc/{pid}/ns").iterdir())
    except OSError:
        return  # it ended in between


def _rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


async def settled(sandbox: Bubblewrap) -> Look:
    """Once every process of a call is gone and each fork server has its sandbox processes in waiting."""
    for _ in range(8):
        await asyncio.gather(*(through_engine(sandbox)(_call(*HARMLESS[0])) for _ in range(8)))
    deadline = time.monotonic() + SETTLE_S
    before, same = look(sandbox), 0
    while same < 10 and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
        now = look(sandbox)
        same = same + 1 if (now.processes, now.descriptors) == (before.processes, before.descriptors) else 0
        before = now
    return before


def _call(kind: Any, code: str, prints: str | None) -> Attack:
    return Attack("harmless", kind, code, frozenset({"ok"}), prints or "", 10.0, 512, 0, False, ())


def plan(calls: int, seed: int, planted: Canaries) -> Iterator[Attack]:
    """``calls`` calls, ``HOSTILE`` of them attacks, each attack about as often as any other."""
    draw, queue = random.Random(seed), list[Attack]()
    for _ in range(calls):
        if draw.random() >= HOSTILE:
            yield _call(*draw.choice(HARMLESS))
            continue
        if not queue:
            queue = draw.sample(ATTACKS, len(ATTACKS))
        attack = queue.pop()
        yield replace(attack, code=planted.fill(attack.code))


async def soak(sandbox: Bubblewrap, todo: Iterator[Attack], clients: int, kept_so_far: Soak) -> None:
    """Every call of ``todo``, each client's harmless ones on what its last call left behind."""
    call, start = through_engine(sandbox), time.monotonic()

    async def client() -> None:
        after: Seen | None = None
        for attack in todo:
            begun = time.monotonic()
            seen = await call(attack, after if attack.id == "harmless" else None)
            seen = replace(seen, took=time.monotonic() - begun)
            _note(kept_so_far, attack, seen)
            after = replace(seen, files=kept(seen.files)[0]) if len(seen.files) < 20 else None

    await asyncio.gather(*(client() for _ in range(clients)))
    kept_so_far.seconds += time.monotonic() - start


def _note(so_far: Soak, attack: Attack, seen: Seen) -> None:
    hostile = attack.id != "harmless"
    so_far.hostile += hostile
    so_far.states[seen.state] += 1
    if found := faults(attack, seen, SECRET):
        so_far.wrong.append(f"{attack.id}: {'; '.join(found)}: {seen}")


def leaks(before: Look, first: Look, last: Look, usual: int) -> list[str]:
    """What grew, in words."""
    out = [f"{last.processes} processes, at most {usual} wait"] if last.processes > usual else []
    for what in ("descriptors", "zygote_descriptors", "mounts", "zygote_mounts"):
        if getattr(last, what) > getattr(before, what) + 8 * (what == "descriptors"):
            out.append(f"{what}: {getattr(before, what)} before, {getattr(last, what)} after")
    if last.namespaces > before.namespaces + 8 * usual // 3:
        out.append(f"namespaces: {before.namespaces} before, {last.namespaces} after")
    for what in ("rss_mib", "zygote_rss_mib"):
        if getattr(last, what) > getattr(first, what) + GROWS_MIB:
            out.append(f"{what}: {getattr(first, what):.1f} after a fifth, {getattr(last, what):.1f} at the end")
    return out


def look_away() -> None:
    """Where one may: from what others on this machine mount meanwhile."""
    with contextlib.suppress(OSError):
        kernel.syscall("leave the mounts of others", UNSHARE, NEW_MOUNTS)
        kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)


async def run(calls: int, clients: int, seed: int) -> dict[str, Any]:
    """The whole of it."""
    look_away()
    sandbox = await open_sandbox(SandboxSettings(backend="zygote-bwrap"), workers=2)
    assert isinstance(sandbox, Bubblewrap)
    so_far, looks = Soak(), []
    try:
        with canaries() as planted:
            todo = plan(calls, seed, planted)
            looks.append(await settled(sandbox))
            for number in range(5):
                share = [attack for _, attack in zip(range(calls // 5), todo, strict=False)]
                await soak(sandbox, iter(share), clients, so_far)
                looks.append(await settled(sandbox))
                print(f"{(number + 1) * calls // 5} calls, {so_far.seconds:.0f} s, {looks[-1]}", file=sys.stderr)
            hits = planted.hits()
        stats = sandbox.stats()
    finally:
        await sandbox.close()
    over = descendants(os.getpid())
    return {
        "calls": sum(so_far.states.values()),
        "hostile": so_far.hostile,
        "seconds": round(so_far.seconds, 1),
        "states": dict(so_far.states),
        "recycled": stats.recycled,
        "deaths": stats.deaths,
        "looks": [vars(one) for one in looks],
        "wrong": so_far.wrong + [f"{hit} was reached" for hit in hits],
        "leaks": leaks(looks[0], looks[1], looks[-1], stats.processes)
        + [f"{pid} outlived the sandbox" for pid in over],
    }


def show(found: dict[str, Any]) -> None:
    """For people."""
    states = ", ".join(f"{count} {state}" for state, count in sorted(found["states"].items()))
    print(f"{found['calls']} calls, {found['hostile']} of them hostile, in {found['seconds']} s: {states}")
    print(f"fork servers replaced: {found['recycled'] or 'none'}; dead by themselves: {found['deaths']}")
    print(f"{'while nothing runs':24}{'before':>10}{'1/5':>10}{'end':>10}")
    for what in found["looks"][0]:
        row = [found["looks"][at][what] for at in (0, 1, -1)]
        print(f"{what:24}" + "".join(f"{value:10.1f}" if isinstance(value, float) else f"{value:10}" for value in row))
    for trouble in (*found["wrong"][:20], *found["leaks"]):
        print(trouble)
    print(f"{len(found['wrong'])} calls went wrong, {len(found['leaks'])} leaks")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found = asyncio.run(run(chosen.calls, chosen.clients, chosen.seed))
    if chosen.json:
        print(json.dumps(found))
    else:
        show(found)
    return 1 if found["wrong"] or found["leaks"] else 0


if __name__ == "__main__":
    sys.exit(main())
