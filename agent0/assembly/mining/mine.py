"""Part of the rim: mine tasks from packages of an index, one after the other. Each candidate is written down as soon as
it is tried, so a command that was killed goes on with the next."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Literal

from agent0.assembly.mining import candidates
from agent0.assembly.mining.baseline import LONGEST_S, WATCHED, Baseline, Release, UnusableError, baseline, sound
from agent0.assembly.mining.candidates import MinedCandidate
from agent0.assembly.mining.functions.called_functions import MinedRelease, called_functions
from agent0.assembly.mining.functions.documents import documents
from agent0.assembly.mining.functions.mined_answers import Draws, MinedAnswer
from agent0.assembly.mining.functions.refactors import refactors
from agent0.assembly.mining.functions.reviews import reviews
from agent0.assembly.mining.functions.wrong_versions import tests
from agent0.assembly.mining.mined_folder import LedgerLine, MinedFolder, stored
from agent0.assembly.runtime import port_openers
from agent0.errors import NotFoundError, OperationError
from agent0.events.base import sha256
from agent0.infra.web.package_index import PackageIndex, SourceDistribution
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.settings import SandboxSettings
from agent0.tasks.mining.mutations import Mutation, by_kinds, mutations_of
from agent0.tasks.mining.packages import PackageRequest, refusal
from agent0.verification.repositories import hidden_tests
from agent0.verification.repositories.hidden_tests import Call, TestRun
from agent0.verification.repositories.mined_task import Kind, MinedSolution, MinedTask, SourceRecord
from agent0.verification.repositories.source_tree import source_tree

TRIES = 4
"""Candidates tried for each task by mutation that is asked for, at most."""
MinedKind = Literal["bug", "document", "refactor", "review", "tests"]
_DRAWS: Mapping[MinedKind, Draws] = {
    "document": documents,
    "refactor": refactors,
    "review": reviews,
    "tests": tests,
}
"""What is tried of a release, by kind, beside bugs."""


@dataclass(frozen=True)
class MiningRequest:
    """Which packages, how many tasks by mutation of each, what they are drawn with, whether packages of benchmarks are
    mined, and of which ``kind``: bugs, to which changes between releases come, or one of the others."""

    packages: tuple[PackageRequest, ...]
    count: int
    seed: int
    benchmarks: bool
    kind: MinedKind = "bug"


@dataclass
class PackageCount:
    """A package: candidates tried, tasks accepted by kind, and reasons why the others were not; ``refused`` says why
    the package as a whole was not mined."""

    package: str
    tried: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    why: Counter[str] = field(default_factory=Counter)
    refused: str = ""


Report = Callable[[str], None]


@dataclass
class _Mining:
    """The packages of one command, under way."""

    request: MiningRequest
    index: PackageIndex
    folder: MinedFolder
    sandbox: Sandbox
    report: Report

    async def run(self) -> None:
        """Mine every package that is not done, and say after each how long those that are left will take."""
        left = [package for package in self.request.packages if not self._is_done(package)]
        begin = time.monotonic()
        for number, package in enumerate(left, 1):
            await self._package(package)
            if others := len(left) - number:
                minutes = (time.monotonic() - begin) / number * others / 60
                length = f"{minutes / 60:.1f} hours" if minutes > 90 else f"{max(1, round(minutes))} minutes"
                self.report(f"About {length} for {others} more packages, if each takes as long as those so far.")

    def _is_done(self, package: PackageRequest) -> bool:
        return any(
            not line.candidate
            and (line.request, line.seed, line.kind) == (package.text, self.request.seed, self.request.kind)
            and line.count >= self.request.count
            for line in self.folder.lines
        )

    async def _package(self, package: PackageRequest) -> None:
        why = ""
        sources: tuple[SourceRecord, ...] = ()
        try:
            if refused := refusal(package.name, self.request.benchmarks):
                raise UnusableError(refused)
            releases = await self._releases(package)
            sources = tuple(release.source for release in releases)
            await self._mine(releases)
        except (UnusableError, NotFoundError, OperationError) as error:
            why = getattr(error, "what", "") or str(error)
        request = self.request
        line = LedgerLine(package=package.name, kind=request.kind, why=why, count=request.count, seed=request.seed)
        self.folder.add(line.model_copy(update={"request": package.text, "sources": sources}))
        count = counts(self.folder, [package])[0]
        tasks = f"{sum(count.accepted.values())} tasks of {count.tried} candidates"
        self.report(f"{package.text}: {why or tasks}")

    async def _releases(self, package: PackageRequest) -> list[Release]:
        """The releases that are asked for, oldest first, read from the index."""
        entries = {entry.version: entry for entry in await asyncio.to_thread(self.index.releases, package.name)}
        chosen = [entries[version] for version in package.chosen(list(entries))]
        if not chosen:
            raise UnusableError("the index has no source distribution of such a release")
        return [await self._release(entry) for entry in (chosen if self.request.kind == "bug" else chosen[-1:])]

    async def _release(self, entry: SourceDistribution) -> Release:
        tree = source_tree(await asyncio.to_thread(self.index.read, entry))
        return Release(
            entry.package, SourceRecord(version=str(entry.version), url=entry.url, sha256=entry.sha256), tree
        )

    async def _mine(self, releases: Sequence[Release]) -> None:
        """Changes between neighbours, then bugs of the newest; or what else is asked for, of the newest."""
        for before, after in pairwise(releases[:-1]):
            await self._change(before, after)
        newest = releases[-1]
        start = await baseline(newest, self.sandbox)
        if len(releases) > 1:
            await self._change(releases[-2], newest, start)
        await (self._bugs if self.request.kind == "bug" else self._answers)(newest, start)

    async def _change(self, before: Release, after: Release, start: Baseline | None = None) -> None:
        versions = before.source.version, after.source.version
        name = f"change {' '.join(versions)}"

        async def make() -> Mined:
            stable = start or await baseline(after, self.sandbox)
            mutations = [each for path, data in before.code.items() for each in mutations_of(path, data)]
            candidate = await candidates.change(before, after, stable, mutations, self.sandbox)
            return Mined(f"{before.package}-{'-'.join(versions)}", name, (before, after), stable, candidate)

        await self._try(before.package, name, "change", make)

    async def _bugs(self, release: Release, start: Baseline) -> None:
        """Draw mutations until there are as many bugs as asked for, or many more tries than that."""
        mutations = [each for path, data in release.code.items() for each in mutations_of(path, data)]
        callers = _callers(await self._watched(release), start)
        reached = [each for each in mutations if (each.path, each.line) in callers]
        version = release.source.version
        drawn = by_kinds(reached, random.Random(f"{release.package} {version} {self.request.seed}"))
        for number, mutation in enumerate(drawn):
            accepted = sum(self._tried(release, "bug").values())
            if accepted >= self.request.count or number >= TRIES * self.request.count:
                return
            await self._bug(release, start, callers, mutation, mutations)
            if number % 20 == 19:
                self.report(
                    f"  {release.package}: {number + 1} tried, {sum(self._tried(release, 'bug').values())} accepted"
                )

    async def _bug(
        self,
        release: Release,
        start: Baseline,
        callers: Mapping[Call, frozenset[str]],
        mutation: Mutation,
        others: Sequence[Mutation],
    ) -> None:
        version = release.source.version

        async def make() -> Mined:
            candidate = await candidates.bug(release, start, callers, mutation, others, self.sandbox)
            change = f"{mutation.kind} in {mutation.function}, {mutation.path}:{mutation.line}"
            return Mined(
                f"{release.package}-{version}-{sha256(mutation.key)[:10]}", change, (release,), start, candidate
            )

        await self._try(release.package, f"bug {version} {mutation.key}", "bug", make)

    async def _answers(self, release: Release, start: Baseline) -> None:
        """Draw tasks about functions until there are as many as asked for, or many more tries than that."""
        run, kind = await self._watched(release), self.request.kind
        functions, callers = await called_functions(release, run, self.sandbox), _callers(run, start)
        if not functions:
            raise UnusableError("its tests call no public function with literals")
        mutations = [each for path, data in release.code.items() for each in mutations_of(path, data)]
        reached = [each for each in mutations if (each.path, each.line) in callers]
        mined = MinedRelease(release, start, callers, reached, functions, self.sandbox)
        source = random.Random(f"{release.package} {release.source.version} {self.request.seed}")
        for name, make in _DRAWS[kind](mined, source, partial(self._tried, release, kind)):
            tried = self._tried(release, kind)
            if sum(tried.values()) >= self.request.count or len(tried) >= TRIES * self.request.count:
                return
            await self._try(release.package, f"{kind} {release.source.version} {name}", kind, make)

    def _tried(self, release: Release, kind: Kind) -> dict[str, bool]:
        """Names of candidates of ``release``, and whether they were accepted."""
        start = f"{kind} {release.source.version} "
        lines = [line for line in self.folder.lines if line.package == release.package]
        return {
            line.candidate.removeprefix(start): bool(line.task) for line in lines if line.candidate.startswith(start)
        }

    async def _watched(self, release: Release) -> TestRun:
        """One run of all tests in which calls are watched."""
        tests = replace(release.tests, seconds=WATCHED * LONGEST_S)
        return sound(await tests.run(release.code, self.sandbox, release.tree.code))

    async def _try(
        self, package: str, name: str, kind: Kind, make: Callable[[], Awaitable["Mined | MinedAnswer"]]
    ) -> None:
        """Try a candidate, unless the ledger has it, and write down how it went."""
        if any((line.package, line.candidate) == (package, name) for line in self.folder.lines):
            return
        mined, begin, why = None, time.monotonic(), ""
        try:
            mined = await make()
        except UnusableError as error:
            why = str(error)
        seconds = round(time.monotonic() - begin, 2)
        line = LedgerLine(package=package, candidate=name, kind=kind, why=why, seconds=seconds)
        if mined is None:
            self.folder.add(line)
        else:
            self.folder.add(line.model_copy(update={"task": mined.id}), *mined.values(kind, self.folder.artifacts))


@dataclass(frozen=True)
class Mined:
    """A candidate that is a task, with its name, the change it is about, and the releases it is made of."""

    id: str
    change: str
    releases: tuple[Release, ...]
    start: Baseline
    candidate: MinedCandidate

    def values(self, kind: Kind, artifacts: Artifacts) -> tuple[MinedTask, MinedSolution]:
        """What is written of it; its files are stored first."""
        candidate, first = self.candidate, self.releases[0]
        task = MinedTask(
            id=self.id,
            kind=kind,
            package=first.package,
            version=first.source.version,
            licence=first.tree.licence,
            statement=candidate.statement,
            tree=stored(candidate.student, artifacts),
        )
        solution = MinedSolution(
            id=self.id,
            code=stored(candidate.reference, artifacts),
            frame=stored(candidate.hidden.frame, artifacts),
            packages=tuple(candidate.hidden.packages),
            modules=tuple(candidate.hidden.modules),
            fail_to_pass=candidate.fail_to_pass,
            pass_to_pass=candidate.pass_to_pass,
            seconds=round(self.start.seconds, 2),
            change=self.change,
            sources=tuple(release.source for release in self.releases),
            trials=candidate.trials,
        )
        return task, solution


def _callers(run: TestRun, start: Baseline) -> dict[Call, frozenset[str]]:
    """Which tests call each function, from a run in which calls were watched."""
    callers: dict[Call, set[str]] = {}
    for test in sorted(start.stable):
        for call in run.calls.get(test, ()):
            callers.setdefault(call, set()).add(test)
    return {call: frozenset(tests) for call, tests in callers.items()}


async def mine(
    request: MiningRequest, index: PackageIndex, folder: MinedFolder, settings: SandboxSettings, report: Report
) -> list[PackageCount]:
    """Mine ``request`` into ``folder``; returns what the folder has of each package.

    Raises:
        SandboxUnavailableError: there is no sandbox, so nothing of any package is run.
        DependencyError: the index or the disk is away; what was tried is written down.
    """
    sandbox = await port_openers.open_sandbox(settings, label="mining", root=hidden_tests.ROOT)
    try:
        await _Mining(request, index, folder, sandbox, report).run()
    finally:
        await sandbox.close()
    return counts(folder, request.packages)


def counts(folder: MinedFolder, packages: Sequence[PackageRequest]) -> list[PackageCount]:
    """What the ledger of ``folder`` says of each package."""
    rows = {package.name: PackageCount(package.name) for package in packages}
    for line in folder.lines:
        row = rows.get(line.package)
        if row is None:
            continue
        if not line.candidate:
            row.refused = line.why
            continue
        row.tried += 1
        if line.task:
            row.accepted[line.kind] += 1
        else:
            row.why[line.why.partition(":")[0]] += 1
    return list(rows.values())
