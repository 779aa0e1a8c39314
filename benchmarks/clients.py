"""Several clients of one server at once: errors, times, and what the server's process costs.

``python -m benchmarks.clients`` makes the tables of ``benchmarks.server`` where they are not there, starts
``agent0 view`` on them in a process of its own, and lets clients ask for its pages and lists in turns, each at another
place, while others follow the stream of a run. Where ``wrk`` is installed it then asks for the same addresses, as fast
as answers come. ``--home`` takes another data folder: its newest run is asked for. ``--write`` puts what was found into
``docs/results/server.md``. Wall times mean something on a quiet machine only.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from agent0.assembly.runtime.stamping import code_rev
from agent0.config.loading import load
from benchmarks.measured_page import write
from benchmarks.server import LONG, PAGES, made

CLIENTS, ROUNDS, FOLLOWERS = 16, 5, 8
SLOW_S, WRK_S = 60.0, 30
"""Seconds after which an answer counts as none, and for which wrk asks."""


@dataclass
class Found:
    """Milliseconds of every answer, and what was none."""

    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    bytes: int = 0
    streamed: int = 0

    def spread(self, share: float) -> float:
        """The ``share`` of times that are no longer than this."""
        held = sorted(self.times)
        return held[min(len(held) - 1, round(share * (len(held) - 1)))] if held else 0.0


@contextmanager
def viewed(home: Path) -> Iterator[tuple[str, int]]:
    """`agent0 view` of ``home`` in a process of its own: its address and its process id."""
    command = [sys.executable, "-m", "agent0", "view", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "AGENT0_HOME": str(home)}
    ) as it:
        assert it.stdout
        try:
            yield it.stdout.readline().strip().removesuffix("/runs"), it.pid
        finally:
            it.terminate()


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid: int) -> float:
    """The most memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


async def ask(client: httpx2.AsyncClient, paths: list[str], begin: int, found: Found) -> None:
    """Ask for every address once, from the place ``begin`` on."""
    for path in (*paths[begin:], *paths[:begin]):
        began = time.perf_counter()
        try:
            answer = await client.get(path, headers={"Accept": "application/json" if "/v1/" in path else "text/html"})
        except httpx2.HTTPError as error:
            found.errors.append(f"{path}: {type(error).__name__}")
            continue
        found.times.append(1000 * (time.perf_counter() - began))
        found.bytes += len(answer.content)
        if answer.status_code != 200:
            found.errors.append(f"{path}: {answer.status_code}")


async def follow(client: httpx2.AsyncClient, run: str, found: Found) -> None:
    """Read a run's stream until cancelled."""
    headers = {"Accept": "text/event-stream"}
    async with client.stream("GET", f"/v1/events?run={run}&after=0", headers=headers, timeout=None) as answer:
        async for line in answer.aiter_lines():
            found.streamed += line.startswith("data: ")


async def crowd(address: str, paths: list[str], run: str, clients: int, rounds: int) -> Found:
    """All clients at once, each beginning at another address."""
    found = Found()
    limits = httpx2.Limits(max_connections=clients + FOLLOWERS)
    async with httpx2.AsyncClient(base_url=address, timeout=SLOW_S, limits=limits) as client:
        followers = [asyncio.ensure_future(follow(client, run, found)) for _ in range(FOLLOWERS)]

        async def one(number: int) -> None:
            for _ in range(rounds):
                await ask(client, paths, number * len(paths) // clients, found)

        await asyncio.gather(*map(one, range(clients)))
        for each in followers:
            each.cancel()
        await asyncio.gather(*followers, return_exceptions=True)
    return found


def loaded(address: str, paths: list[str], clients: int) -> str:
    """What wrk finds of ``paths``, asked for in turns by so many clients; empty where it is not installed."""
    if shutil.which("wrk") is None:
        return ""
    script = (
        f"local paths = {{{', '.join(map(json.dumps, paths))}}}\nlocal n = math.random(#paths)\n"
        'request = function() n = n % #paths + 1; return wrk.format("GET", paths[n], {["Accept"] = "text/html"}) end\n'
    )
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = [
            "wrk",
            "-t1",
            f"-c{clients}",
            f"-d{WRK_S}s",
            f"--timeout={SLOW_S:.0f}s",
            "--latency",
            "-s",
            file.name,
        ]
        told = subprocess.run([*command, address], check=True, capture_output=True, text=True).stdout
    wrong = sum(map(int, re.findall(r"(?:connect|read|write|timeout|responses:) (\d+)", told)))
    done = re.search(r"(\d+) requests in", told)
    shares = dict(re.findall(r"(50|90|99)%\s+(\S+)", told))
    return (
        f"`wrk -t1 -c{clients} -d{WRK_S}s` over the same addresses: {done[1] if done else 0} answers, {wrong} errors; "
        f"wall, median {shares.get('50')}, 90 % {shares.get('90')}, 99 % {shares.get('99')}.\n\n"
    )


def addresses(address: str, own: bool) -> tuple[str, list[str]]:
    """The run that is followed, and what is asked for."""
    if own:
        return "r1", [*PAGES, LONG]
    with httpx2.Client(base_url=address, timeout=SLOW_S) as client:
        run = client.get("/v1/runs").json()["data"][0]["run"]
        attempts = client.get(f"/v1/runs/{run}/trajectories").json()["data"]
    of = [f"/runs/{run}/{page}" for page in ("iterations/1", "curriculum", "rewards")]
    of += [f"/runs/{run}/trajectories/{attempt['attempt']}" for attempt in attempts[:3]]
    lists = [f"/v1/runs/{run}/trajectories?limit=50", f"/v1/events?run={run}&limit=100", "/metrics"]
    return run, ["/runs", f"/runs/{run}", *of, "/models", "/compare", "/router", "/config", "/admin", *lists]


def main() -> int:
    """3 where an answer was an error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    home = chosen.home or made(load(None).home / "bench-server").home
    with viewed(home) as (address, pid):
        run, paths = addresses(address, chosen.home is None)
        before, began = cpu_s(pid), time.perf_counter()
        found = asyncio.run(crowd(address, paths, run, chosen.clients, chosen.rounds))
        took, spent = time.perf_counter() - began, cpu_s(pid) - before
        by_wrk, peak = loaded(address, paths, chosen.clients), peak_mib(pid)
    said = (
        f"{len(found.times):,} answers to {chosen.clients} clients at once, {FOLLOWERS} others following a run "
        f"({found.streamed:,} events): {len(found.errors)} errors, {1000 * spent / max(1, len(found.times)):.0f} ms of "
        f"CPU an answer, {len(found.times) / took:.0f} answers a second; wall, median {found.spread(0.5):.0f} ms, p95 "
        f"{found.spread(0.95):.0f} ms; {peak:,.0f} MiB at the most. {code_rev()}.\n\n{by_wrk}"
    )
    print(said, *found.errors[:10], sep="\n")
    if chosen.write:
        write("server.md", said, "clients")
    return 3 if found.errors else 0


if __name__ == "__main__":
    raise SystemExit(main())
