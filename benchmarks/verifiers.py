"""How many verdicts a second, beside what others take for the same, in one run.

    python -m benchmarks.verifiers --data FOLDER [--limit 0] [--json]

Maths: every gold of the folder's maths files against itself, against the same number written otherwise where it is one,
and against a changed gold; ours (exact algebra, the symbolic engine in the sandbox where algebra cannot tell) beside
plain math-verify in this process. Programs: the reference solutions of HumanEval and MBPP, ours (candidate and tests in
two processes of one sandbox call) beside one bare ``python -I`` that runs solution and tests together, as many at
once.

Both sides take turns, chunk by chunk, so that each meets the same load. Exit 3 where an aim is missed: twice as many
verdicts a second as math-verify, programs within 1.3 of the bare interpreter's wall time; or where a reference is
refused or a changed gold accepted.
"""

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent0.evaluation.benchmarks import Item, chosen, read_items
from agent0.grading import answer_in
from agent0.grading.math.symbolic import compared, decide, warm
from agent0.infra.sandbox import open_sandbox
from agent0.infra.storage.datasets import find
from agent0.ports.sandbox import Sandbox
from agent0.settings import SandboxSettings
from agent0.verification.programs import check

MATHS = ("gsm8k", "math500", "math", "svamp", "aime24")
CODE = ("humaneval", "mbpp")
CHUNK = 64
AIMS = {"maths": ("ratio", 2.0), "programs": ("ratio", 1.3)}
_last_digit = re.compile(r"\d(?=\D*$)")


@dataclass(frozen=True)
class Pair:
    """A verdict to be given: whether ``said`` is ``gold``."""

    gold: str
    said: str
    right: bool


@dataclass
class Side:
    """Seconds and verdicts of one of the two."""

    wall_s: float = 0.0
    said: int = 0
    agreed: int = 0
    slowest_s: float = 0.0

    def row(self) -> dict[str, Any]:
        """For the table."""
        rate = self.said / self.wall_s if self.wall_s else 0.0
        return {
            "verdicts": self.said,
            "as_labelled": self.agreed,
            "wall_s": round(self.wall_s, 2),
            "a_second": round(rate, 1),
            "slowest_s": round(self.slowest_s, 3),
        }


def changed(gold: str) -> str:
    """Another answer that looks like ``gold``: its last digit is one more, or a word is put before it."""
    found = _last_digit.search(gold)
    if found is None:
        return f"{gold} + x" if "\\text" not in gold else "\\text{neither}"
    return gold[: found.start()] + str((int(found[0]) + 1) % 10) + gold[found.end() :]


def pairs_of(items: Sequence[Item]) -> list[Pair]:
    """Two a row: the reference's own answer, and a changed gold."""
    out: list[Pair] = []
    for item in items:
        out.append(Pair(item.gold, answer_in(item.reference) or "", True))
        out.append(Pair(item.gold, changed(item.gold), False))
    return out


def math_verify_says(pair: Pair) -> bool:
    """Plain math-verify, both sides as maths, its own time limits."""
    from math_verify import parse, verify

    return bool(verify(parse(f"${pair.gold}$"), parse(f"${pair.said}$")))


async def maths(pairs: Sequence[Pair], sandbox: Sandbox, at_once: int) -> tuple[Side, Side]:
    """Ours, then math-verify's, in turns. The engine's start counts where it is asked at all; waiting for others in
    line does not count as time of a verdict."""
    ours, theirs = Side(), Side()
    began = time.perf_counter()
    if any(compared(pair.gold, pair.said).symbolic for pair in pairs):
        await asyncio.gather(*(warm(sandbox) for _ in range(at_once)))
    ours.wall_s += time.perf_counter() - began
    room = asyncio.Semaphore(at_once)

    async def one(pair: Pair) -> None:
        async with room:
            await _clocked(ours, pair.right, _decided(pair, sandbox))

    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        began = time.perf_counter()
        await asyncio.gather(*(one(pair) for pair in chunk))
        ours.wall_s += time.perf_counter() - began
        for pair in chunk:
            began = time.perf_counter()
            says = math_verify_says(pair)
            spent = time.perf_counter() - began
            _count(theirs, says == pair.right, spent)
            theirs.wall_s += spent
    return ours, theirs


async def _decided(pair: Pair, sandbox: Sandbox) -> bool | None:
    return (await decide(pair.gold, pair.said, sandbox)).correct


async def programs(items: Sequence[Item], sandbox: Sandbox, at_once: int) -> tuple[Side, Side]:
    """Ours, then the bare interpreter's, in turns."""
    ours, theirs = Side(), Side()
    for start in range(0, len(items), CHUNK):
        chunk = items[start : start + CHUNK]
        for side, judge in ((ours, _judged), (theirs, _bare)):
            began = time.perf_counter()
            await _at_once(chunk, at_once, side, lambda item, judge=judge: judge(item, sandbox))  # type: ignore[misc]
            side.wall_s += time.perf_counter() - began
    return ours, theirs


async def _at_once(
    items: Sequence[Item], at_once: int, side: Side, judge: Callable[[Item], Awaitable[bool | None]]
) -> None:
    room = asyncio.Semaphore(at_once)

    async def one(item: Item) -> None:
        async with room:
            await _clocked(side, True, judge(item))

    await asyncio.gather(*(one(item) for item in items))


async def _clocked(side: Side, right: bool, verdict: Awaitable[bool | None]) -> None:
    began = time.perf_counter()
    said = await verdict
    _count(side, said is right, time.perf_counter() - began)


def _count(side: Side, agreed: bool, spent: float) -> None:
    side.said, side.agreed = side.said + 1, side.agreed + agreed
    side.slowest_s = max(side.slowest_s, spent)


async def _judged(item: Item, sandbox: Sandbox) -> bool | None:
    assert item.problem is not None
    return (await check(item.problem, item.reference, sandbox)).passed


async def _bare(item: Item, sandbox: Sandbox) -> bool:
    """Solution and tests in one interpreter; its exit code is believed."""
    problem = item.problem
    assert problem is not None
    code = re.sub(r"^```(?:python)?\n|\n```$", "", item.reference)
    call = f"check({problem.entry})" if "def check(" in problem.test else ""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(f"{problem.setup}{code}\n{problem.test}\n{call}\n")
        file.flush()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", file.name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return await process.wait() == 0


def items_of(folder: Path, names: Sequence[str], limit: int) -> list[Item]:
    """Rows of these benchmarks, at most ``limit`` of each (0: all)."""
    out: list[Item] = []
    for entry in chosen(names):
        held = find(folder, entry.files, entry.name)
        found = read_items(entry, held.text, held.name)
        out += random.Random(0).sample(found, limit) if 0 < limit < len(found) else found
    return out


async def measure(folder: Path, limit: int) -> dict[str, Any]:
    """Both tables."""
    settings = SandboxSettings(queue=4096)
    sandbox = await open_sandbox(settings)
    try:
        ours, theirs = await maths(pairs_of(items_of(folder, MATHS, limit)), sandbox, settings.workers)
        mine, bare = await programs(items_of(folder, CODE, limit), sandbox, settings.workers)
    finally:
        await sandbox.close()
    rate = (ours.said / ours.wall_s) / (theirs.said / theirs.wall_s)
    return {
        "maths": {"ours": ours.row(), "math-verify": theirs.row(), "ratio": round(rate, 2)},
        "programs": {"ours": mine.row(), "python -I": bare.row(), "ratio": round(mine.wall_s / bare.wall_s, 2)},
    }


def missed(found: dict[str, Any]) -> list[str]:
    """Aims that were not met."""
    out = []
    if found["maths"]["ratio"] < AIMS["maths"][1]:
        out.append(f"maths: {found['maths']['ratio']} times math-verify's rate, aim {AIMS['maths'][1]}")
    if found["programs"]["ratio"] > AIMS["programs"][1]:
        out.append(f"programs: {found['programs']['ratio']} of a bare interpreter's time, aim {AIMS['programs'][1]}")
    for kind in ("maths", "programs"):
        row = found[kind]["ours"]
        if row["as_labelled"] < 0.99 * row["verdicts"]:
            out.append(
                f"{kind}: {row['verdicts'] - row['as_labelled']} of {row['verdicts']} verdicts are not as labelled"
            )
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = asyncio.run(measure(given.data, given.limit))
    if given.json:
        print(json.dumps(found))
    else:
        for kind, table in found.items():
            for name, row in table.items():
                print(f"{kind:10} {name:12} {row}")
    for line in missed(found):
        print(f"missed: {line}", file=sys.stderr)
    return 3 if missed(found) else 0


if __name__ == "__main__":
    sys.exit(main())
