"""Processes of one version are replaced by those of the next, one after the other, while a run goes on.

    python -m benchmarks.upgrade [--write]

The next version is this tree, copied, with a number of its own, an event that is new and a field that is new in an old
one. It has a data folder of its own, as on another host; log and artifacts are on a server of this machine. The student
is replaced first, which is the worst order: what it writes is new to all others. Exit 1 where something was lost, done
twice, or done by an old process for what came after the first new event.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import open_server
from agent0.settings import NatsSettings
from benchmarks.measured_page import write
from tests.crashing import SIZES
from tests.patience import until
from tests.processes import KINDS, ROOT, Crew

ROOMS = ("agent0", "events", "handlers", "infra", "projections")
NEXT = "0.2.0"
CHANGES = {
    "events/tasks.py": (
        'class TaskAttempted(Event):\n    """',
        'class MoodNoted(Event):\n    """A mood."""\n\n    task: str\n    attempt: str\n    mood: str\n\n\n'
        'class TaskAttempted(Event):\n    mood: str = "calm"\n    """',
    ),
    "handlers/attempt_task.py": (
        "return await to_events(event, attempt, artifacts)",
        "from agent0.events.tasks import MoodNoted\n"
        '    mood = MoodNoted(task=event.task, attempt=event.attempt, mood="calm")\n'
        "    return [mood, *await to_events(event, attempt, artifacts)]",
    ),
}
"""File of the next version -> what stands there instead of what."""
SETTINGS = {**SIZES, "RUN__ITERATIONS": "2", "RUN__TASKS": "6", "ARTIFACTS__STORE": "nats"}
BOUNDS = {"ARTIFACTS__MAX_BYTES": str(1 << 28), "NATS__MAX_BYTES": str(1 << 28)}
ORDER = ("student", "runner", "rewarder", "verifier", "teacher", "trainer", "projector")


@dataclass
class Upgrade:
    """What became of a run whose processes were replaced. ``refused``: old processes that lacked the next version;
    ``late``: reactions of old processes to what came after the first event that they do not know."""

    refused: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    lost: int = 0
    twice: int = 0
    late: int = 0
    events: int = 0
    by_version: Counter[str] = field(default_factory=Counter)
    finished: bool = False
    same: bool = False
    rebuilt: bool = False
    artifacts: str = ""
    wall_s: float = 0.0

    @property
    def wrong(self) -> bool:
        """Whether anything is not as it must be."""
        whole = self.finished and self.same and self.rebuilt and self.artifacts == "whole"
        return bool(self.lost or self.twice or self.late or not whole or len(self.refused) < len(ORDER) - 2)


def next_version(place: Path) -> Path:
    """A copy of this tree with ``CHANGES``, installed as ``NEXT`` for whoever has the folder on the path."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, place / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, after) in CHANGES.items():
        text = (place / name).read_text()
        if text.count(before) != 1:
            raise RuntimeError(f"{name} does not hold {before!r} once.")
        (place / name).write_text(text.replace(before, after))
    metadata = place / f"agent0_train-{NEXT}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: agent0-train\nVersion: {NEXT}\n")
    return place


async def bodies(log: Log, run: str) -> list[dict[str, Any]]:
    """The events of ``run`` as they are stored: this version cannot read all of them."""
    stored = [json.loads(body) async for chunk in log.read_bodies() for _, body in chunk]
    return [body for body in stored if body["run"] == run]


class Replacing:
    """One run, begun by ``old`` processes and ended by ``new`` ones."""

    def __init__(self, old: Crew, new: Crew, log: Log) -> None:
        self.old, self.new, self.log = old, new, log
        self.run, self.upgrade = "", Upgrade()

    async def whole(self) -> Upgrade:
        """Replace every process while the run goes on; what it came to."""
        begun = time.monotonic()
        self.run = self.old.tell("run", "start", "--detach", "--json")["run"]
        for kind in KINDS:
            self.old.start(kind)
        await self._until(lambda kinds: kinds["TaskAttempted"] >= 2)
        for kind in ORDER:
            self._replace(kind)
            if kind == "student":
                await self._until(lambda kinds: kinds["MoodNoted"] >= 1)
                await until(self._refusing, "the old processes to refuse the run")
                self._look()
        await self._until(lambda kinds: kinds["RunFinished"] >= 1)
        self.upgrade.wall_s = time.monotonic() - begun
        await self._judge()
        return self.upgrade

    def _replace(self, kind: str) -> None:
        """SIGTERM, wait for the end of what is in hand, start the next version."""
        process = self.old.running.pop(kind)
        process.terminate()
        process.wait()
        self.new.start(kind)

    async def _until(self, holds: Any) -> None:
        while not holds(Counter(body["type"] for body in await bodies(self.log, self.run))):
            await asyncio.sleep(0.5)

    def _refusing(self) -> bool:
        self.status = self.old.tell("cluster", "status", "--json")
        lacking = [process["does"] for process in self.status["processes"] if process["lacks"] == f"Agent0 {NEXT}"]
        self.upgrade.refused = lacking
        return len(lacking) >= len(ORDER) - 2  # the projector is no handler, the student is replaced

    def _look(self) -> None:
        self.upgrade.versions = sorted({process["version"] for process in self.status["processes"]})
        self.upgrade.faults = self.status["faults"]

    def _is_old(self, body: dict[str, Any]) -> bool:
        return not str(body["code_rev"]).startswith(NEXT)

    async def _judge(self) -> None:
        upgrade, stored = self.upgrade, await bodies(self.log, self.run)
        upgrade.events, kinds = len(stored), Counter(body["type"] for body in stored)
        upgrade.finished = kinds["RunFinished"] == 1
        upgrade.by_version = Counter(body["code_rev"].partition("+")[0] for body in stored)
        attempts = {(body["task"], body["attempt"]) for body in stored if body["type"] == "TaskAttempted"}
        asked = {(body["task"], body["attempt"]) for body in stored if body["type"] == "AttemptRequested"}
        reactions = Counter((body["cause"], body["handler"], body["id"]) for body in stored if body["handler"])
        upgrade.lost = len(asked - attempts)
        upgrade.twice = kinds["TaskAttempted"] - len(attempts) + sum(n - 1 for n in reactions.values())
        first_new = next(n for n, body in enumerate(stored) if not self._is_old(body))
        later = {body["id"] for body in stored[first_new:]}
        upgrade.late = sum(self._is_old(body) and body["cause"] in later for body in stored)
        upgrade.same = bool(self.new.tell("run", "check", self.run, "--json")["same"])
        upgrade.artifacts = str(self.new.tell("artifacts", "verify", "--json")["state"])
        upgrade.rebuilt = bool(self.new.tell("projections", "rebuild", "--verify", "--json")["verified"])


async def measure() -> Upgrade:
    """One run in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        server = await open_server(folder / "log", NatsSettings(max_bytes=1 << 28))
        try:
            crews = []
            for version, path in (("old", ROOT), ("new", next_version(folder / "tree"))):
                login = {"NATS_URL": server.url, "NATS__USER": "app"}
                password = server.password("app").get_secret_value()
                crew = Crew(folder / version, **SETTINGS, **BOUNDS, **login, NATS__PASSWORD=password)
                crew.env["PYTHONPATH"] = str(path)
                crews.append(stack.enter_context(crew))
            admin = {"NATS__USER": "admin", "NATS__PASSWORD": server.password("admin").get_secret_value()}
            Crew(folder / "admin", **SETTINGS, **BOUNDS, NATS_URL=server.url, **admin).tell("log", "init")
            async with open_log(crews[0].settings, "reader") as log:
                return await Replacing(*crews, log).whole()
        finally:
            stack.close()
            await server.stop()


def page(upgrade: Upgrade) -> str:
    """What was measured, in Markdown."""
    counts = ", ".join(f"{version} wrote {count}" for version, count in sorted(upgrade.by_version.items()))
    whole = "equal" if upgrade.rebuilt else "do not equal"
    lines = [
        f"- **{upgrade.lost} attempts lost, {upgrade.twice} reactions twice** in a run whose seven processes were "
        f"replaced by those of another version, student first: {upgrade.events} events, {counts}; "
        f"{upgrade.wall_s:.0f} s. Tables {whole} a rebuild, artifacts are {upgrade.artifacts}.",
        f"- {len(upgrade.refused)} processes of {upgrade.versions[0]} met what only {NEXT} knows: they took no more of "
        f"the run's work ({upgrade.late} later reactions). `agent0 cluster status`: "
        f"“{upgrade.faults[0]}”",
        "",
    ]
    return "\n".join(lines)


async def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="Write docs/results/cluster.md.")
    options = parser.parse_args(arguments)
    upgrade = await measure()
    text = page(upgrade)
    print(text)
    if options.write:
        write("cluster.md", text, "upgrade")
    return int(upgrade.wrong)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
