"""Part of the rim: fill a folder of mined tasks with generated repositories. What is right is computed by running the
reference in the sandbox; a task is accepted where its reference has a value for each call, each of its bugs changes
one, and more go wrong than its statement shows. A command that was killed goes on with the next draw."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from agent0.assembly.mining.drawn import (
    HANGS,
    LICENCE,
    Drawn,
    calls_of,
    repository_of,
    values_by_call,
)
from agent0.assembly.mining.generate_documents import decide_documents, written_document
from agent0.assembly.mining.generate_refactors import decide_refactors, written_refactor
from agent0.assembly.mining.generate_reviews import written_review
from agent0.assembly.mining.generate_tests import decide_tests, written_tests
from agent0.assembly.mining.mine import Report
from agent0.assembly.mining.mined_folder import LedgerLine, MinedFolder, stored
from agent0.assembly.runtime import port_openers
from agent0.ports.sandbox import Sandbox
from agent0.settings import SandboxSettings
from agent0.tasks.mining.documented import documented
from agent0.tasks.mining.drawn_calls import DrawnCall
from agent0.tasks.mining.generated import BUGS, generated
from agent0.tasks.mining.statements import bug_statement, shown_difference
from agent0.verification.repositories import hidden_tests
from agent0.verification.repositories.hidden_values import RAISES, HiddenCalls, is_same
from agent0.verification.repositories.mined_task import MinedSolution, MinedTask, TrialRecord

BATCH, TRIES = 25, 4
"""Repositories whose tests run together; draws for each task that is asked for, at most."""
SHOWN: Mapping[int, int] = {1: 3, 2: 2, 3: 1, 4: 2}
"""Failures that a statement shows, by level."""
EVERY = 3
"""One in this many repositories to review is right."""
LEAST = 2
"""Calls that must go wrong beyond those that are shown."""
PACKAGE, VALUES = "generated", "values.json"


GenerationKind = Literal["bug", "document", "refactor", "review", "tests"]


@dataclass
class LevelCount:
    """A level: repositories drawn, tasks accepted, and reasons why the others were not."""

    level: int
    drawn: int = 0
    accepted: int = 0
    why: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class GenerationRequest:
    """``count`` tasks of each of ``levels``, drawn with ``seed``: bugs to repair, code to document, to simplify or
    to review, or tests to write."""

    kind: GenerationKind
    levels: tuple[int, ...]
    count: int
    seed: int

    def candidate(self, level: int, number: int | None = None) -> str:
        """How the ledger names repository ``number``; without a number how all such names begin."""
        kind = "" if self.kind == "bug" else f"{self.kind} "
        return f"{kind}{level} {self.seed} {'' if number is None else number}"


async def generate(
    request: GenerationRequest, folder: MinedFolder, settings: SandboxSettings, report: Report
) -> list[LevelCount]:
    """Add tasks to ``folder`` until it has as many of each level as ``request`` says.

    Raises:
        SandboxUnavailableError: there is no sandbox.
        DependencyError: the sandbox failed, or the disk is full; what was tried is written down.
    """
    sandbox = await port_openers.open_sandbox(settings, label="mining", root=hidden_tests.ROOT)
    try:
        for level in request.levels:
            await _level(level, request, folder, sandbox, report)
    finally:
        await sandbox.close()
    return [_count(folder, level, request) for level in request.levels]


async def _level(level: int, request: GenerationRequest, folder: MinedFolder, sandbox: Sandbox, report: Report) -> None:
    count = request.count
    while True:
        so_far = _count(folder, level, request)
        size = min(BATCH, count - so_far.accepted, TRIES * count - so_far.drawn)
        if size <= 0:
            return
        batch = [_draw(level, request, number) for number in range(so_far.drawn, so_far.drawn + size)]
        await _try(batch, request, {line.task for line in folder.lines}, sandbox)
        for drawn in batch:
            _add(folder, level, request, drawn)
        tasks = _count(folder, level, request).accepted
        report(f"  level {level}: {so_far.drawn + size} drawn, {tasks} of {count} tasks")


def _draw(level: int, request: GenerationRequest, number: int) -> Drawn:
    """Draw a repository; where tests are asked for it is right, and has one of each function."""
    if request.kind == "document":
        drawn, docstrings = documented(level, request.seed, number)
        return Drawn(number, request.kind, drawn, docstrings=docstrings)
    repository = generated(level, request.seed, number)
    if repository and request.kind == "tests":
        firsts = {call.function: call for call in reversed(repository.hidden)}
        hidden = tuple(call for call in repository.hidden if call not in firsts.values())
        repository = replace(repository, changes=(), visible=tuple(firsts.values()), hidden=hidden)
    if repository and (request.kind == "refactor" or (request.kind == "review" and number % EVERY == 0)):
        repository = replace(repository, changes=())
    return Drawn(number, request.kind, repository)


def _count(folder: MinedFolder, level: int, request: GenerationRequest) -> LevelCount:
    """What the ledger of ``folder`` says."""
    count = LevelCount(level)
    for line in folder.lines:
        if line.package == PACKAGE and line.candidate.startswith(request.candidate(level)):
            count.drawn += 1
            count.accepted += bool(line.task)
            count.why.update([line.why] if line.why else [])
    return count


async def _try(batch: Sequence[Drawn], request: GenerationRequest, names: set[str], sandbox: Sandbox) -> None:
    """Find out for all of ``batch`` whether they are tasks; ``names`` are those of tasks that there are."""
    for drawn in batch:
        if drawn.repository is None:
            drawn.why = "no mutation is Python"
        elif drawn.id in names:
            drawn.why = "a duplicate"
        names.add(drawn.id)
    deciders = {"document": decide_documents, "refactor": decide_refactors, "tests": decide_tests}
    await deciders.get(request.kind, _decide)([drawn for drawn in batch if not drawn.why], sandbox)


async def _decide(batch: Sequence[Drawn], sandbox: Sandbox) -> None:
    """Make all calls on the references, on the repositories with their bugs, and with each bug alone."""
    both = [[*repository_of(drawn).hidden, *repository_of(drawn).visible] for drawn in batch]
    right = await values_by_call(batch, both, [repository_of(drawn).code() for drawn in batch], sandbox)
    wrong = await values_by_call(
        batch, both, [repository_of(drawn).code(repository_of(drawn).changes) for drawn in batch], sandbox
    )
    for drawn, expected, changed in zip(batch, right, wrong, strict=True):
        drawn.expected, drawn.changed = expected, changed
        drawn.failing = [case for case in repository_of(drawn).hidden if not is_same(expected[case], changed[case])]
        if any(text.startswith(RAISES) for text in expected.values()):
            drawn.why = "its reference raises"
        elif HANGS in changed.values():
            drawn.why = HANGS
        elif repository_of(drawn).changes and len(drawn.failing) < SHOWN[repository_of(drawn).level] + LEAST:
            drawn.why = "too few calls go wrong"
    several = [drawn for drawn in batch if not drawn.why and len(repository_of(drawn).changes) > 1]
    for bug in range(max(BUGS.values())) if several else ():
        codes = [repository_of(drawn).code([repository_of(drawn).changes[bug]]) for drawn in several]
        alone = await values_by_call(several, [repository_of(drawn).hidden for drawn in several], codes, sandbox)
        for drawn, values in zip(several, alone, strict=True):
            if all(is_same(drawn.expected[case], value) for case, value in values.items()):
                drawn.why = "one of its bugs changes no value"


def _add(folder: MinedFolder, level: int, request: GenerationRequest, drawn: Drawn) -> None:
    written = _WRITTEN[request.kind]
    candidate = request.candidate(level, drawn.number)
    line = LedgerLine(package=PACKAGE, candidate=candidate, kind=request.kind, why=drawn.why)
    if drawn.why:
        folder.add(line)
    else:
        folder.add(line.model_copy(update={"task": drawn.id}), *written(drawn, folder))


def _written(drawn: Drawn, folder: MinedFolder) -> tuple[MinedTask, MinedSolution]:
    """What is written of a task; its files are stored first. The student has tests of the functions that seem right."""
    repository, expected = repository_of(drawn), drawn.expected
    wrong = {call.function for call, value in drawn.changed.items() if not is_same(expected[call], value)}
    examples = repository.examples([call for call in repository.visible if call.function not in wrong], expected)
    called = [case for case in drawn.failing if case.function in repository.callers]
    shown = (called if len(called) >= SHOWN[repository.level] else drawn.failing)[: SHOWN[repository.level]]
    failures = {f"{case.module}: {case.expression}": _difference(drawn, case) for case in shown}
    task = MinedTask(
        id=drawn.id,
        kind="bug",
        package=repository.package,
        version="1",
        licence=LICENCE,
        statement=bug_statement(repository.package, "1", failures, len(drawn.failing), len(repository.changes)),
        tree=stored({**repository.code(repository.changes), **examples}, folder.artifacts),
        level=repository.level,
    )
    hidden = HiddenCalls(modules=tuple(calls_of(repository, repository.hidden, expected)))
    names = {case: f"{case.module}: {case.expression}" for case in repository.hidden}
    solution = MinedSolution(
        id=task.id,
        code=stored(repository.code(), folder.artifacts),
        frame=stored({VALUES: hidden.model_dump_json().encode()}, folder.artifacts),
        packages=(repository.package,),
        modules=(),
        fail_to_pass=tuple(names[case] for case in drawn.failing),
        pass_to_pass=tuple(name for case, name in names.items() if case not in drawn.failing),
        seconds=0.0,
        values=VALUES,
        change="; ".join(f"{each.kind} in {each.function}, {each.path}:{each.line}" for each in repository.changes),
        sources=(),
        trials=TrialRecord(reference=1, empty=0, random=0),
    )
    return task, solution


def _difference(drawn: Drawn, case: DrawnCall) -> str:
    """What a call gives with the bugs, and what it is to give."""
    title = repository_of(drawn).title if case.function == "after" else ""
    return shown_difference(title, drawn.expected[case], drawn.changed[case])


_WRITTEN = {
    "bug": _written,
    "document": written_document,
    "refactor": written_refactor,
    "review": written_review,
    "tests": written_tests,
}
"""What is written of a task, by kind."""
