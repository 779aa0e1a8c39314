"""How exact the verifiers of five domains are, on generated tasks.

    python -m benchmarks.domains [--count 1000] [--kind KIND]... [--out FOLDER] [--json]

Generates ``--count`` tasks of each of four levels of each domain (into ``--out``, where it goes on), looks for equal
ones, and judges the reference and the untouched folder of some. Then wrong and right answers, made by rules that the
verifiers do not know (``tests/answers``), kinds and levels in turns. Exit 3 where a task is equal to another, a
reference refused, an untouched folder or a wrong answer accepted, less than .95 of the right ones accepted, or where
one that only cheats earns a part.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar, get_args

from agent0.assembly.mining.generate import GenerationKind, GenerationRequest, generate
from agent0.assembly.mining.mined_folder import MinedFolder
from agent0.assembly.runtime import port_openers
from agent0.events.base import sha256
from agent0.ports.sandbox import Sandbox
from agent0.settings import SandboxSettings
from agent0.tasks.mining.generated import LEVELS
from agent0.verification.repositories.hidden_tests import ROOT
from tests.answers import Answers, DomainTask, Files, read_tasks

T = TypeVar("T")
WRONG, RIGHT, ACCEPTED, TASKS = 200, 100, 0.95, 24
"""Answers of each domain, the share of the right ones that is to be accepted, and tasks that answers are made for."""
MODULES = {
    "bug": "repairs",
    "document": "documents",
    "refactor": "refactors",
    "review": "reviews",
    "tests": "written_tests",
}


@dataclass
class DomainResult:
    """What came out for a domain: ``drawn`` and ``tasks`` generated, ``equal`` ones among them, ``sampled`` of them
    judged, and of these the references refused and untouched folders accepted; answers by name, and ``seconds`` of
    processor or clock, whichever is more, that the whole took."""

    kind: str
    drawn: int = 0
    tasks: int = 0
    equal: int = 0
    sampled: int = 0
    refused: list[str] = field(default_factory=list)
    untouched: list[str] = field(default_factory=list)
    wrong: int = 0
    false_accepts: list[str] = field(default_factory=list)
    part_paid: list[str] = field(default_factory=list)
    right: int = 0
    false_refusals: list[str] = field(default_factory=list)
    generated_s: float = 0.0
    judged_s: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether it is what was aimed at."""
        faults = (self.refused, self.untouched, self.false_accepts, self.part_paid)
        accepted = self.right - len(self.false_refusals)
        return not self.equal and not any(faults) and accepted >= ACCEPTED * self.right


async def measured(kind: GenerationKind, count: int, folder: Path, sandbox: Sandbox) -> DomainResult:
    """Generate and judge the tasks of one domain."""
    result, begin = DomainResult(kind), time.monotonic()
    request = GenerationRequest(kind, tuple(range(1, LEVELS + 1)), count, 0)
    with MinedFolder.opened(folder) as mined:
        rows = await generate(request, mined, SandboxSettings(), lambda line: print(kind, line, file=sys.stderr))
    result.drawn, result.tasks = sum(row.drawn for row in rows), sum(row.accepted for row in rows)
    result.generated_s = round(time.monotonic() - begin, 1)
    tasks = list(read_tasks(folder))
    result.equal = len(tasks) - len({_fingerprint(task) for task in tasks})
    begin = time.monotonic()
    some = _in_turns([[task for task in tasks if task.task.level == level] for level in range(1, LEVELS + 1)])[:TASKS]
    for task in some:
        result.sampled += 1
        result.refused += [] if (await _grade(task, task.reference, sandbox))[0] else [task.task.id]
        result.untouched += [task.task.id] if (await _grade(task, task.tree, sandbox))[0] else []
    answers = import_module(f"tests.answers.{MODULES[kind]}")
    cheats = getattr(answers, "EARNING_NOTHING", None)
    for task, name, files in _chosen(some, answers.wrong, WRONG):
        result.wrong += 1
        accepted, credit = await _grade(task, files, sandbox)
        result.false_accepts += [f"{task.task.id}: {name}"] if accepted else []
        result.part_paid += [f"{task.task.id}: {name}"] if credit and cheats and name in cheats else []
    for task, name, files in _chosen(some, answers.right, RIGHT):
        result.right += 1
        result.false_refusals += [] if (await _grade(task, files, sandbox))[0] else [f"{task.task.id}: {name}"]
    result.judged_s = round(time.monotonic() - begin, 1)
    return result


async def _grade(task: DomainTask, files: Files, sandbox: Sandbox) -> tuple[bool, float]:
    """Whether an answer is accepted, and the share that it earns."""
    code = {path: data for path, data in files.items() if path.endswith((".py", ".txt"))}
    if hasattr(task.hidden, "grade"):
        accepted, _, credit = await task.hidden.grade(code, sandbox)
        return accepted is not False, credit or 0.0
    accepted, _ = await task.hidden.accept(code, sandbox)
    return accepted is not False, float(accepted is not False)


def _fingerprint(task: DomainTask) -> str:
    """What is equal for tasks that differ in the name of their package alone."""
    files = {path: data.replace(task.package.encode(), b"package") for path, data in task.tree.items()}
    return sha256(repr((sorted(files.items()), task.task.statement.replace(task.package, "package"))))


def _in_turns(lists: Sequence[Sequence[T]]) -> list[T]:
    return [each for turn in zip_longest(*lists) for each in turn if each is not None]


def _chosen(
    tasks: Sequence[DomainTask], make: Callable[[DomainTask], Answers], count: int
) -> Iterator[tuple[DomainTask, str, Files]]:
    """``count`` answers, kinds in turns, each of another task where there is one."""
    kinds: dict[str, list[tuple[DomainTask, str, Files]]] = {}
    for task in tasks:
        for name, files in make(task).items():
            kinds.setdefault(name.rstrip("0123456789 "), []).append((task, name, files))
    shifted = [entries[at % len(entries) :] + entries[: at % len(entries)] for at, entries in enumerate(kinds.values())]
    yield from _in_turns(shifted)[:count]


def as_table(results: Sequence[DomainResult], count: int) -> str:
    """The lines of the results' page."""
    lines = [
        "| domain | tasks of drawn | equal | references accepted | untouched accepted | wrong accepted | right ones |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in results:
        passed = f"{row.sampled - len(row.refused)} of {row.sampled}"
        right = f"{row.right - len(row.false_refusals)} of {row.right}"
        wrong = f"{len(row.false_accepts)} of {row.wrong}"
        lines.append(
            f"| {row.kind} | {row.tasks:,} of {row.drawn:,} | {row.equal} | {passed} | {len(row.untouched)} | {wrong} "
            f"| {right} |"
        )
    return "\n".join(lines)


async def _all(kinds: Sequence[GenerationKind], count: int, out: Path) -> list[DomainResult]:
    sandbox = await port_openers.open_sandbox(SandboxSettings(), label="domains", root=ROOT)
    try:
        return [await measured(kind, count, out / kind, sandbox) for kind in kinds]
    finally:
        await sandbox.close()


def main() -> int:
    """Measure all domains, and print what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--kind", choices=sorted(MODULES), action="append")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    kinds = [kind for kind in get_args(GenerationKind) if kind in (options.kind or MODULES)]
    with tempfile.TemporaryDirectory() as folder:
        results = asyncio.run(_all(kinds, options.count, options.out or Path(folder)))
    print(json.dumps([asdict(row) for row in results], indent=1) if options.json else as_table(results, options.count))
    return 0 if all(row.is_exact and row.tasks == LEVELS * options.count for row in results) else 3


if __name__ == "__main__":
    sys.exit(main())
