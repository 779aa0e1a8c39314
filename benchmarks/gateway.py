"""What the gateway adds to a call: the bare client, a call through the gateway, and a hit of its cache, by turns.

    python -m benchmarks.gateway [--calls 200] [--gap]

The server stands in for Anthropic's on loopback; the log is an embedded one on this disk. Each kind of call is timed
until its answer is there. Processor time is counted twice: until the answer is there, and until the log has all that
was queued; that of the log's server beside it. ``--gap`` waits for the queue before the next call, as where a model
takes longer than a disk. All but the bare call include the server that stands in; so does the bare call.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median, quantiles

from agent0.assembly.log.access import open_log
from agent0.assembly.routing.billing import open_ledger
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.config.loading import load
from agent0.events.values import Turn
from agent0.infra.gateway.billed import Billed, Books, Remote
from agent0.infra.gateway.cache import AnswerCache
from agent0.infra.gateway.gateway import Gateway, Guards, RemoteLink
from agent0.infra.gateway.pins import Pins
from agent0.infra.gateway.prices import Prices
from agent0.infra.gateway.rates import RateLimits
from agent0.infra.gateway.retries import Retries
from agent0.infra.log.event_log import Log
from agent0.infra.models.anthropic.provider import Anthropic
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.models import GenerateRequest, Model, Sampling
from agent0.routing.breaker import Breaker
from agent0.settings import ActorConfig
from tests.anthropic_server import serving

ASKED = GenerateRequest((Turn(role="user", content="What is 6 times 7?"),), Sampling(0.0, max_tokens=64), group="r1")
WARM = 10
"""Calls of each kind before anything is counted."""


@dataclass
class Took:
    """Milliseconds of each call of a kind: until its answer, of this process's processors until then and until the log
    has everything, of the log server's."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    cpu_all: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)


def server_ms(pid: int) -> float:
    """Processor time of all threads of a process so far, in milliseconds."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e6


@contextmanager
def model_of(log: Log, folder: Path, bare: Model) -> Iterator[dict[str, Model]]:
    """The three kinds of calls."""
    held = load("scripted", {"home": str(folder)}, {})
    ledger, store = open_ledger(held, log), FileArtifacts(folder)
    books = Books(ledger, Prices(held.router), log, store, recorded, utc_now, Pins(log, "segment"))
    remote = Remote("anthropic", "claude-sonnet-4-5", "judge", "me", {}, usage=("anthropic", "default"))
    cache = AnswerCache(folder / "answers.sqlite", 1, 16)
    guards, billed = Guards(RateLimits(), Breaker(5, 30), Retries(0, 60)), Billed(bare, remote, books)
    links = RemoteLink(billed, books, guards), RemoteLink(billed, books, guards, cache)
    yield {"bare": bare, "gateway": Gateway([links[0]], bare), "hit": Gateway([links[1]], bare)}
    cache.close()


async def measured(calls: int, gap: bool) -> dict[str, Took]:
    """Ask ``calls`` times in each way, by turns."""
    took: defaultdict[str, Took] = defaultdict(Took)
    with tempfile.TemporaryDirectory() as folder, serving() as server:
        home, server.limits = Path(folder), {}
        bare = Anthropic(ActorConfig(provider="anthropic/claude-sonnet-4-5", base_url=server.url))
        async with open_log(load("scripted", {"home": folder}, {}), make=True) as log:
            pid = int(next(home.rglob("*.pid")).read_text())
            with model_of(log, home, bare) as models:
                for number in range(-WARM, calls):
                    fresh = replace(ASKED, sampling=replace(ASKED.sampling, seed=number + WARM + 1))
                    for name, model in models.items():
                        one = took[name] if number >= 0 else Took()
                        await timed(model, ASKED if name == "hit" else fresh, one, log, pid, gap)
        await bare.close()
    return took


async def timed(model: Model, asked: GenerateRequest, took: Took, log: Log, pid: int, gap: bool) -> None:
    """Ask once."""
    server, cpu, begun = server_ms(pid), time.process_time(), time.perf_counter()
    await model.generate(asked)
    took.wall.append(1e3 * (time.perf_counter() - begun))
    took.cpu.append(1e3 * (time.process_time() - cpu))
    if gap:
        await log.queue.join()
        took.cpu_all.append(1e3 * (time.process_time() - cpu))
        took.server.append(server_ms(pid) - server)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--gap", action="store_true")
    given = parser.parse_args()
    os.environ["ANTHROPIC_API_KEY"] = "sk-ant-test"
    took = asyncio.run(measured(given.calls, given.gap))
    print("| call | median ms | 95 % below | CPU ms until its answer | CPU ms in all | log server's CPU ms |")
    print("|---|---|---|---|---|---|")
    for name, one in took.items():
        behind = f"{mean(one.cpu_all):.2f} | {mean(one.server):.2f}" if given.gap else " | "
        high = quantiles(one.wall, n=20)[-1]
        print(f"| {name} | {median(one.wall):.2f} | {high:.2f} | {mean(one.cpu):.2f} | {behind} |")


if __name__ == "__main__":
    main()
