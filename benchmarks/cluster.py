"""Four hosts that share a network and no folder: what a run loses when servers, workers and links are lost, and how
much faster four workers are than one.

    python -m benchmarks.cluster [--kills 50] [--cut 30] [--seed 0] [--only losses|speed] [--write]

Each host has a network namespace, a host name and a data folder of its own. Three of them hold the log (a NATS cluster
with three copies of everything, artifacts too). ``a`` has the conductor, the tables and the API, ``b`` and ``c`` work,
``d`` trains. Rounds of whole runs go on until so many processes were killed: the leader of the log, workers, the
trainer, the conductor and the projector at moments drawn from the seed; in each round the link of ``c`` is pulled for
``--cut`` seconds, and a worker on ``d`` joins late. Exit 1 where something was lost, twice or different.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import code_rev
from agent0.events.runs import RunFinished
from benchmarks.measured_page import write
from benchmarks.network import SWITCH, NetworkHost, enter_switch, network
from tests.clusters import NODES, Cluster
from tests.crashing import SIZES, Watch, past_of, watching
from tests.patience import until
from tests.processes import KINDS, Crew

HOSTS = ("a", "b", "c", "d")
PLACES = {
    "a": ("runner", "rewarder", "projector"),
    "b": ("teacher", "student", "verifier"),
    "c": ("student", "verifier"),
    "d": ("trainer",),
}
"""Which kinds of process run where."""
LATE = ("d", "student")
SHORT = {**SIZES, "RUN__ITERATIONS": "3", "RUN__TASKS": "8", "ARTIFACTS__STORE": "nats"}
BOUNDS = {"ARTIFACTS__MAX_BYTES": str(1 << 28), "NATS__MAX_BYTES": str(1 << 28)}
TURN_S = 1.0
WORKERS = ("a", "b", "c", "d")
SPEED = {
    "RUN__ITERATIONS": "1",
    "RUN__TASKS": "64",
    "RUN__ATTEMPTS": "8",
    "RUN__EVALUATION__VALIDATION": "1",
    "RUN__EVALUATION__TEST": "1",
    "RUN__TRAINING__STUDENT__OBJECTIVE": "none",
    "RUN__EVALUATION__FORCED_TOOL": "false",
    "RUN__STUDENT__PROVIDER": "openai",
    "RUN__STUDENT__MODEL": "stand-in",
    "RUN__STUDENT__MAX_TURNS": "1",
    "ARTIFACTS__STORE": "nats",
    "SANDBOX__CGROUP": "never",
}
SLOTS, API_PORT, LATE_AFTER = 8, 8650, 100


@dataclass
class Round:
    """What a run with losses came to."""

    kills: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    twice: int = 0
    events: int = 0
    finished: bool = False
    same: bool = False
    rebuilt: bool = False
    artifacts: str = ""
    hosts: int = 0
    api: int = 0
    wall_s: float = 0.0

    @property
    def wrong(self) -> bool:
        """Whether anything is not as it must be."""
        whole = self.finished and self.same and self.rebuilt and self.artifacts == "whole"
        return bool(self.lost or self.twice or not whole or self.hosts < len(HOSTS) or self.api != 200)


@contextmanager
def hosts_with_log() -> Iterator[tuple[Cluster, dict[str, NetworkHost]]]:
    """Four hosts, and the log on the first three; their folders are gone when this ends."""
    with tempfile.TemporaryDirectory() as folder, network(HOSTS) as hosts:
        servers = dict(zip(NODES, list(hosts.values())[: len(NODES)], strict=True))
        with Cluster(Path(folder), servers) as cluster:
            yield cluster, hosts


@contextmanager
def crews(cluster: Cluster, hosts: Mapping[str, NetworkHost], settings: Mapping[str, str]) -> Iterator[dict[str, Crew]]:
    """The data folders of all hosts; what runs there ends with this."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                Crew(cluster.folder / name, host.prefix, **cluster.env("app"), **BOUNDS, **settings)
            )
            for name, host in hosts.items()
        }


class Losses:
    """One round: who is killed, when, and what is left of it."""

    def __init__(
        self, cluster: Cluster, crew: dict[str, Crew], hosts: Mapping[str, NetworkHost], rng: random.Random
    ) -> None:
        self.cluster, self.crew, self.hosts, self.rng = cluster, crew, hosts, rng
        self.round = Round()

    async def run(self, cut_s: float) -> Round:
        """A whole run, with everything that befalls it."""
        begun, first = time.monotonic(), self.crew["a"]
        run = first.tell("run", "start", "--detach", "--json")["run"]
        for host, kinds in PLACES.items():
            for kind in kinds:
                self.crew[host].start(kind)
        async with watching(first, run) as watch, asyncio.TaskGroup() as group:
            others = [group.create_task(self._revived(name)) for name in HOSTS[1:]]
            harm = group.create_task(self._harm(watch, cut_s))
            await watch.until(lambda: False, "the run to be finished")
            await harm
            for task in others:
                task.cancel()
        self.round.wall_s = time.monotonic() - begun
        await self._judge(run, watch)
        return self.round

    async def _harm(self, watch: Watch, cut_s: float) -> None:
        """Losses one after the other until the run is over; a link first, and a worker that joins late."""
        await self._news(watch, 40)
        late = asyncio.create_task(self._cut(cut_s))
        self.crew[LATE[0]].start(LATE[1])
        while not watch.over:
            await self._news(watch, self.rng.randrange(5, 25))
            if not watch.over:
                await self._kill(late.done())
        await late
        await until(self._all_there, "every host to answer")

    def _all_there(self) -> bool:
        processes = self.crew["a"].tell("cluster", "status", "--json")["processes"]
        self.round.hosts = len({process["host"] for process in processes})
        return self.round.hosts == len(HOSTS)

    async def _cut(self, seconds: float) -> None:
        """Pull a link. The servers that are left go on: what is on the other side waits."""
        self.hosts["c"].connect(False)
        await asyncio.sleep(seconds)
        self.hosts["c"].connect(True)

    async def _kill(self, whole: bool) -> None:
        """Somebody drawn; a leader only while all servers are there, since two of three must be."""
        choices = [(host, kind) for host, kinds in PLACES.items() for kind in kinds]
        host, kind = self.rng.choice([*choices, ("", "leader")] if whole else choices)
        if kind == "leader":
            await self._kill_leader()
        else:
            self.crew[host].kill(kind)
            self.crew[host].start(kind)
        self.round.kills[kind] += 1

    async def _kill_leader(self) -> None:
        async with await self.cluster.connect(self.cluster.folder / "watch") as log:
            leader = await self.cluster.leader(log)
            self.cluster.kill(leader)
            self.cluster.start(leader)
            await self.cluster.whole(log)

    async def _news(self, watch: Watch, events: int) -> None:
        wanted = len(watch.told) + events
        await watch.until(lambda: len(watch.told) >= wanted, "more events")

    async def _revived(self, name: str) -> None:
        while True:
            self.crew[name].revive()
            await asyncio.sleep(0.1)

    async def _judge(self, run: str, watch: Watch) -> None:
        first, round = self.crew["a"], self.round
        past = await past_of(first, run, watch)
        round.finished, round.same, round.events = past.finished, past.same, len(past.told)
        round.lost, round.twice = len(past.lost) + past.lost_attempts, len(past.duplicates)
        round.artifacts = str(first.tell("artifacts", "verify", "--json")["state"])
        round.rebuilt = bool(first.tell("projections", "rebuild", "--verify", "--json")["verified"])
        round.api = await self._asked(run)

    async def _asked(self, run: str) -> int:
        """The status of the run's answer over HTTP, asked from another host."""
        first, host = self.crew["a"], self.hosts["a"]
        key = first.tell("api", "key", "add", "watch", "--json")["key"]
        first.start("api", "up", "--no-handlers", "--host", host.address, "--port", str(API_PORT))

        def status() -> int:
            connection = HTTPConnection(host.address, API_PORT, timeout=5)
            try:
                connection.request("GET", f"/v1/runs/{run}", headers={"Authorization": f"Bearer {key}"})
                return connection.getresponse().status
            except OSError:
                return 0
            finally:
                connection.close()

        await until(status, "the API to answer", 120)
        return status()


class StandIn:
    """A server that answers each request after ``TURN_S`` seconds, and counts who asked."""

    def __init__(self, address: str = SWITCH) -> None:
        self.requests: Counter[str] = Counter()
        counted = self.requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(TURN_S)
                counted[self.client_address[0]] += 1
                message = {"role": "assistant", "content": "\\boxed{7}"}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                self._send({"id": "1", "model": "stand-in", "choices": [choice], "usage": USAGE})

            def do_GET(self) -> None:
                self._send({"object": "list", "data": [{"id": "stand-in", "object": "model"}]})

            def _send(self, content: dict[str, Any]) -> None:
                body = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True

    def __enter__(self) -> "StandIn":
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()

    @property
    def url(self) -> str:
        """Its address, as ``base_url`` names it."""
        return "http://{}:{}/v1".format(*self.server.server_address[:2])


USAGE = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
ROLES = [name for kind in ("runner", "rewarder", "teacher", "verifier", "trainer") for name in KINDS[kind][2:]]


async def measure_speed(workers: Sequence[str], late: str = "") -> tuple[float, Counter[str]]:
    """The seconds from the first attempt's request to the last attempt, and attempts by host; ``late`` joins after
    ``LATE_AFTER`` of them."""
    with hosts_with_log() as (cluster, hosts), StandIn() as server:
        await cluster.provision(cluster.folder / "admin", **BOUNDS, ARTIFACTS__STORE="nats")
        with crews(cluster, hosts, {**SPEED, "RUN__STUDENT__BASE_URL": server.url}) as crew:
            run = crew["a"].tell("run", "start", "--detach", "--json")["run"]
            crew["a"].start("runner", "handlers", "run", *ROLES)
            for name in workers:
                crew[name].start("student", "handlers", "run", "--role", "student", "--slots", str(SLOTS))
            return await _timed(crew, run, late), _by_host(server, hosts)


async def _timed(crew: Mapping[str, Crew], run: str, late: str) -> float:
    begun = last = 0.0
    attempts = 0
    async with open_log(crew["a"].settings, "reader") as log:
        async for recorded in log.tail(0, run):
            if recorded.type == "AttemptRequested":
                begun = begun or recorded.time.timestamp()
            elif recorded.type == "TaskAttempted":
                last, attempts = recorded.time.timestamp(), attempts + 1
            if late and attempts >= LATE_AFTER:
                crew[late].start("student", "handlers", "run", "--role", "student", "--slots", str(SLOTS))
                late = ""
            if isinstance(recorded.event, RunFinished):
                return last - begun
    raise RuntimeError("The log ended before the run.")


def _by_host(server: StandIn, hosts: Mapping[str, NetworkHost]) -> Counter[str]:
    return Counter({name: server.requests[host.address] for name, host in hosts.items()})


async def measure_losses(kills: int, cut_s: float, seed: int) -> list[Round]:
    """Rounds until so many processes were killed."""
    rounds: list[Round] = []
    while sum(round.kills.total() for round in rounds) < kills:
        with hosts_with_log() as (cluster, hosts):
            await cluster.provision(cluster.folder / "admin", **BOUNDS, **SHORT)
            with crews(cluster, hosts, SHORT) as crew:
                rng = random.Random(f"{seed} {len(rounds)}")
                rounds.append(await Losses(cluster, crew, hosts, rng).run(cut_s))
        print(rounds[-1], file=sys.stderr, flush=True)
    return rounds


def page(rounds: Sequence[Round], speed: Mapping[str, tuple[float, Counter[str]]]) -> str:
    """What was measured, in Markdown."""
    lines = [*(_losses(rounds) if rounds else ()), *(_speed(speed) if speed else ())]
    return "\n".join([*lines, "", f"{os.cpu_count()} cores, {platform.machine()}; {code_rev()}.", ""])


def _losses(rounds: Sequence[Round]) -> list[str]:
    kills = sum((round.kills for round in rounds), Counter[str]())
    killed = ", ".join(f"{kind} {count}" for kind, count in kills.most_common())
    lost, twice = sum(round.lost for round in rounds), sum(round.twice for round in rounds)
    equal = [sum(marks) for marks in zip(*((r.rebuilt, r.artifacts == "whole", r.same) for r in rounds), strict=True)]
    return [
        f"- **{lost} events or attempts lost, {twice} twice, in {kills.total()} kills** ({killed}) over {len(rounds)} "
        f"runs, each with a link pulled and a worker that joins late; a run took "
        f"{median(round.wall_s for round in rounds):.0f} s (median).",
        f"- Tables equal a rebuild in {equal[0]} of {len(rounds)} runs, every artifact is there in {equal[1]}, and "
        f"what the log says equals a run in memory in {equal[2]}.",
    ]


def _speed(speed: Mapping[str, tuple[float, Counter[str]]]) -> list[str]:
    alone = speed["1"][0]
    lines = [
        f"- **Four workers make attempts {alone / speed['4'][0]:.1f} times as fast as one.**",
        "",
        "| workers | seconds | times as fast | attempts by host |",
        "|---|--:|--:|---|",
    ]
    for name, (seconds, counts) in speed.items():
        hosts = ", ".join(f"{host} {count}" for host, count in sorted(counts.items()) if count)
        lines.append(f"| {name} | {seconds:.1f} | {alone / seconds:.2f} | {hosts} |")
    return lines


async def main(options: argparse.Namespace) -> int:
    """Measure what was asked for; print it, and write it into the page."""
    rounds: list[Round] = []
    speed: dict[str, tuple[float, Counter[str]]] = {}
    if options.only != "speed":
        rounds = await measure_losses(options.kills, options.cut, options.seed)
    if options.only != "losses":
        speed["1"] = await measure_speed(WORKERS[:1])
        speed["4"] = await measure_speed(WORKERS)
        speed[f"3, and one after {LATE_AFTER} attempts"] = await measure_speed(WORKERS[:3], WORKERS[3])
    text = page(rounds, speed)
    print(text)
    if options.write:
        write("cluster.md", text)
    return int(any(round.wrong for round in rounds))


if __name__ == "__main__":
    enter_switch("benchmarks.cluster")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="Processes to kill, at least.")
    parser.add_argument("--cut", type=float, default=30.0, help="Seconds for which a link is pulled.")
    parser.add_argument("--seed", type=int, default=0, help="Draws whom and when.")
    parser.add_argument("--only", choices=("losses", "speed"), help="Half of it.")
    parser.add_argument("--write", action="store_true", help="Write docs/results/cluster.md.")
    sys.exit(asyncio.run(main(parser.parse_args())))
