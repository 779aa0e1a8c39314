"""What a call in the sandbox costs, beside what the same code costs elsewhere, all in one run.

    python -m benchmarks.sandbox [--calls 40] [--rounds 5] [--quick] [--json]

One table: every kind of call once after the other, over and over, so that each meets the same load: in the sandbox
(pass, sympy, numpy, shell, work folders of 1, 20 and 100 files restored, changed and stored), in a bare interpreter, in
a bubblewrap a call (with the same root file system and no other limit; and as the backend that falls back to it), and
in a container a call where there is an engine. A second one: calls without a pause by 1, 2 and 8 clients. p50 is the
median of the rounds' medians. CPU is that of this process and of what ran the code; not that of the fork server.

Exit 3 where an aim is missed: a sympy call within 0.1 of a bubblewrap that imports sympy, a trivial one within 1.0 of a
bare interpreter. On a busy machine p50 says little: look at min and CPU.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox import open_sandbox, rootfs
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.sandbox import Sandbox, SandboxCall, SandboxResult
from agent0.ports.storage import Artifacts
from agent0.settings import SandboxSettings
from agent0.tools.snapshots import load, save

SYMPY = "import sympy as s; x = s.Symbol('x'); print(s.diff(s.sin(x) * x**2, x))"
NUMPY = "import numpy as n; print(n.linalg.inv(n.eye(50) * 2)[0, 0])"
SIZE = 10_000
AIMS = (("sympy", "bubblewrap, import sympy", 0.1), ("pass", "bare python, pass", 1.0))
CLIENTS = (1, 2, 8)
Measured = Callable[[], Awaitable[float]]
"""Make one call; seconds of CPU it says it took, besides those of this process and its children."""


@dataclass
class Subject:
    """One kind of call. ``rounds`` holds seconds of each call, ``cpu`` likewise."""

    name: str
    call: Measured
    rounds: list[list[float]] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def once(self) -> None:
        """Make one call and measure it."""
        spent, start = cpu_s(), time.perf_counter()
        more = await self.call()
        self.rounds[-1].append(time.perf_counter() - start)
        self.cpu.append(cpu_s() - spent + more)

    def row(self) -> dict[str, Any]:
        """In milliseconds."""
        every = sorted(one for round_ in self.rounds for one in round_)
        numbers = {
            "p50": median(median(round_) for round_ in self.rounds),
            "p99": quantiles(every, n=100)[98],
            "min": every[0],
            "cpu": mean(self.cpu),
        }
        return {"call": self.name, **{key: round(value * 1000, 2) for key, value in numbers.items()}}


def cpu_s() -> float:
    """Of this process and its dead children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def inside(name: str, sandbox: Sandbox, kind: Any, code: str) -> Subject:
    """A call of ``sandbox``."""

    async def call() -> float:
        return done(await sandbox.call(SandboxCall(kind, code, wall_s=60))).cpu_s

    return Subject(name, call)


def folder(sandbox: Sandbox, count: int, store: Artifacts) -> Subject:
    """Restore ``count`` files, change each, store them."""
    manifest = save({f"{number}.bin": os.urandom(SIZE) for number in range(count)}, store)
    code = "import os\nfor name in os.listdir():\n    with open(name, 'ab') as file: file.write(os.urandom(8))"

    async def call() -> float:
        result = done(await sandbox.call(SandboxCall("python", code, load(manifest, store))))
        assert len(result.files) == count
        save(result.files, store)
        return result.cpu_s

    return Subject(f"{count} files of {SIZE // 1000} kB", call)


def done(result: SandboxResult) -> SandboxResult:
    """``result``, which must be a good one."""
    if result.state is not ToolState.OK:
        raise RuntimeError(f"{result.state}: {result.reason} {result.stderr}")
    return result


def outside(name: str, *words: str) -> Subject:
    """A process of its own. In a session of its own, too: a bubblewrap that ``timeout`` ends while it prepares its
    child leaves that child waiting for ever, one that nobody ends is over in a moment."""
    null = subprocess.DEVNULL

    async def call() -> float:
        subprocess.run(words, check=True, stdout=null, stdin=null, start_new_session=True)
        return 0.0

    return Subject(name, call)


async def baselines() -> list[Subject]:
    """Without any engine of ours: a bare interpreter, and one in a bubblewrap with our root file system."""
    wrapped = [
        *await rootfs.command(),
        f"/opt/python/bin/python{sys.version_info[0]}.{sys.version_info[1]}",
        "-sBP",
        "-c",
    ]
    bare = [sys.executable, "-I", "-c"]
    out = [outside("bare python, pass", *bare, "pass"), outside("bare python, import sympy", *bare, SYMPY)]
    out += [outside("bubblewrap, pass", *wrapped, "pass"), outside("bubblewrap, import sympy", *wrapped, SYMPY)]
    return out


async def others(opened: list[Sandbox]) -> list[Subject]:
    """The backends that start anew for every call, where they work."""
    out = []
    for name in ("bwrap-cold", "docker-cold"):
        try:
            opened.append(await open_sandbox(SandboxSettings(backend=name)))
        except SandboxUnavailableError as error:
            print(f"{name} is not here: {str(error)[:160]}", file=sys.stderr)
        else:
            out += [
                inside(f"{name}, {what}", opened[-1], "python", code)
                for what, code in (("pass", "pass"), ("sympy", SYMPY))
            ]
    if shutil.which("docker") is None:
        print("docker is not here", file=sys.stderr)
    return out


async def interleaved(subjects: list[Subject], calls: int, rounds: int) -> None:
    """Each subject in turn, ``calls`` times a round; who goes first changes from call to call."""
    for number in range(rounds):
        for subject in subjects:
            subject.rounds.append([])
        for turn in range(calls):
            at = turn % len(subjects)
            for subject in subjects[at:] + subjects[:at]:
                await subject.once()
        print(f"round {number + 1} of {rounds} (load {os.getloadavg()[0]:.1f})", file=sys.stderr)


async def throughput(name: str, sandbox: Sandbox, code: str, clients: int, calls: int) -> dict[str, Any]:
    """``clients`` at once, each with its next call as soon as it has an answer."""
    taken: list[float] = []
    left = iter(range(calls))

    async def client() -> None:
        for _ in left:
            start = time.perf_counter()
            done(await sandbox.call(SandboxCall("python", code, wall_s=60)))
            taken.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    wall = time.perf_counter() - start
    found = {"p50": median(taken) * 1000, "p99": quantiles(taken, n=100)[98] * 1000, "calls_s": calls / wall}
    return {"call": name, "clients": clients, **{key: round(value, 2) for key, value in found.items()}}


async def measure(calls: int, rounds: int, home: Path) -> dict[str, Any]:
    """Both tables and the ratios of AIMS."""
    opened: list[Sandbox] = [await open_sandbox(SandboxSettings(backend="zygote-bwrap"), workers=2)]
    sandbox, store = opened[0], FileArtifacts(home)
    try:
        kinds = (("pass", "python", "pass"), ("sympy", "python", SYMPY), ("numpy", "python", NUMPY))
        subjects = [inside(*one[:1], sandbox, *one[1:]) for one in (*kinds, ("shell", "shell", "echo hello"))]
        subjects += [folder(sandbox, count, store) for count in (1, 20, 100)]
        subjects += [*await baselines(), *await others(opened)]
        await interleaved(subjects, 2, 1)
        for subject in subjects:
            subject.rounds, subject.cpu = [], []
        await interleaved(subjects, calls, rounds)
        pairs = [(name, code, clients) for name, code in (("pass", "pass"), ("sympy", SYMPY)) for clients in CLIENTS]
        busy = [await throughput(name, sandbox, code, clients, calls * rounds) for name, code, clients in pairs]
    finally:
        for one in opened:
            await one.close()
    rows = [subject.row() for subject in subjects]
    p50 = {row["call"]: row["p50"] for row in rows}
    least = {row["call"]: row["min"] for row in rows}
    ratios = [
        {
            "of": one,
            "to": other,
            "aim": aim,
            "p50": round(p50[one] / p50[other], 3),
            "min": round(least[one] / least[other], 3),
        }
        for one, other, aim in AIMS
    ]
    return {"calls": rows, "clients": busy, "ratios": ratios, "load": os.getloadavg()[0], "cores": os.cpu_count()}


def show(found: dict[str, Any]) -> None:
    """Both tables and the aims, for people."""
    print(f"{'ms a call':28}{'p50':>9}{'p99':>9}{'min':>9}{'CPU':>9}")
    for row in found["calls"]:
        print(f"{row['call']:28}{row['p50']:9.1f}{row['p99']:9.1f}{row['min']:9.1f}{row['cpu']:9.1f}")
    print(f"\n{'without a pause':20}{'clients':>8}{'p50':>9}{'p99':>9}{'calls/s':>9}")
    for row in found["clients"]:
        print(f"{row['call']:20}{row['clients']:8}{row['p50']:9.1f}{row['p99']:9.1f}{row['calls_s']:9.1f}")
    print()
    for row in found["ratios"]:
        met = "met" if row["p50"] <= row["aim"] else "missed"
        print(f"{row['of']} / {row['to']}: {row['p50']:.3f} (of the best: {row['min']:.3f}); aim {row['aim']}: {met}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=40, help="of each kind, a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two rounds of ten")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    calls, rounds = (10, 2) if chosen.quick else (chosen.calls, chosen.rounds)
    with tempfile.TemporaryDirectory(prefix="agent0-bench-") as home:
        found = asyncio.run(measure(calls, rounds, Path(home)))
    if chosen.json:
        print(json.dumps(found))
    else:
        show(found)
    return 0 if all(row["p50"] <= row["aim"] for row in found["ratios"]) else 3


if __name__ == "__main__":
    sys.exit(main())
