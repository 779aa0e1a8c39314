"""Part of the rim: fill a folder of mined tasks with generated repositories. What is right is computed by running the
reference in the sandbox; a task is accepted where its reference has a value for each call, each of its bugs changes
one, and more go wrong than its statement shows. A command that was killed goes on with the next."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from agent0.assembly.mining.candidates import Code
from agent0.assembly.mining.mine import Report, stored
from agent0.assembly.mining.mined_folder import LedgerLine, MinedFolder
from agent0.assembly.runtime import port_openers
from agent0.errors import DependencyError
from agent0.ports.sandbox import Sandbox
from agent0.settings import SandboxSettings
from agent0.tasks.mining.generated import BUGS, DrawnCall, GeneratedRepository, generated
from agent0.tasks.mining.statements import bug_statement
from agent0.verification.repositories import hidden_tests
from agent0.verification.repositories.hidden_values import HiddenCalls, ModuleCalls, is_same, values_of
from agent0.verification.repositories.mined_task import MinedSolution, MinedTask, TrialRecord

BATCH, TRIES = 25, 4
"""Repositories whose tests run together; draws for each task that is asked for, at most."""
BATCH_S, ALONE_S = 60.0, 10.0
SHOWN: Mapping[int, int] = {1: 3, 2: 2, 3: 1, 4: 2}
"""Failures that a statement shows, by level."""
LEAST = 2
"""Calls that must go wrong beyond those that are shown."""
PACKAGE, LICENCE, VALUES = "generated", "MIT (Agent0)", "values.json"
HANGS, RAISES = "its calls hang", "raises "


@dataclass
class LevelCount:
    """A level: repositories drawn, tasks accepted, and reasons why the others were not."""

    level: int
    drawn: int = 0
    accepted: int = 0
    why: Counter[str] = field(default_factory=Counter)


@dataclass
class _Drawn:
    """A repository under way: values of its cases as they should be and with its bugs, those that decide and differ,
    and why it is no task."""

    number: int
    repository: GeneratedRepository | None
    expected: Mapping[DrawnCall, str] = field(default_factory=dict)
    changed: Mapping[DrawnCall, str] = field(default_factory=dict)
    failing: Sequence[DrawnCall] = ()
    why: str = ""


async def generate(
    levels: Sequence[int], count: int, seed: int, folder: MinedFolder, settings: SandboxSettings, report: Report
) -> list[LevelCount]:
    """Add repositories of each of ``levels`` to ``folder`` until it has ``count`` tasks of that.

    Raises:
        SandboxUnavailableError: there is no sandbox.
        DependencyError: the sandbox failed, or the disk is full; what was tried is written down.
    """
    sandbox = await port_openers.open_sandbox(settings, label="mining", root=hidden_tests.ROOT)
    try:
        for level in levels:
            await _level(level, count, seed, folder, sandbox, report)
    finally:
        await sandbox.close()
    return [_count(folder, level, seed) for level in levels]


async def _level(level: int, count: int, seed: int, folder: MinedFolder, sandbox: Sandbox, report: Report) -> None:
    while True:
        so_far = _count(folder, level, seed)
        size = min(BATCH, count - so_far.accepted, TRIES * count - so_far.drawn)
        if size <= 0:
            return
        batch = [_Drawn(number, generated(level, seed, number)) for number in range(so_far.drawn, so_far.drawn + size)]
        await _try(batch, {line.task for line in folder.lines}, sandbox)
        for drawn in batch:
            _add(folder, level, seed, drawn)
        report(f"  level {level}: {so_far.drawn + size} drawn, {_count(folder, level, seed).accepted} of {count} tasks")


def _count(folder: MinedFolder, level: int, seed: int) -> LevelCount:
    """What the ledger of ``folder`` says."""
    count = LevelCount(level)
    for line in folder.lines:
        if line.package == PACKAGE and line.candidate.startswith(f"{level} {seed} "):
            count.drawn += 1
            count.accepted += bool(line.task)
            count.why.update([line.why] if line.why else [])
    return count


async def _try(batch: Sequence[_Drawn], names: set[str], sandbox: Sandbox) -> None:
    """Find out for all of ``batch`` whether they are tasks; ``names`` are those of tasks that there are."""
    for drawn in batch:
        if drawn.repository is None:
            drawn.why = "no mutation is Python"
        elif drawn.repository.package in names:
            drawn.why = "a duplicate"
        else:
            names.add(drawn.repository.package)
    await _decide([drawn for drawn in batch if not drawn.why], sandbox)


async def _decide(batch: Sequence[_Drawn], sandbox: Sandbox) -> None:
    """Make all calls on the references, on the repositories with their bugs, and with each bug alone."""
    both = [[*_of(drawn).hidden, *_of(drawn).visible] for drawn in batch]
    right = await _values(batch, both, [_of(drawn).code() for drawn in batch], sandbox)
    wrong = await _values(batch, both, [_of(drawn).code(_of(drawn).changes) for drawn in batch], sandbox)
    for drawn, expected, changed in zip(batch, right, wrong, strict=True):
        drawn.expected, drawn.changed = expected, changed
        drawn.failing = [case for case in _of(drawn).hidden if not is_same(expected[case], changed[case])]
        if any(text.startswith(RAISES) for text in expected.values()):
            drawn.why = "its reference raises"
        elif HANGS in changed.values():
            drawn.why = HANGS
        elif len(drawn.failing) < SHOWN[_of(drawn).level] + LEAST:
            drawn.why = "too few calls go wrong"
    several = [drawn for drawn in batch if not drawn.why and len(_of(drawn).changes) > 1]
    for bug in range(max(BUGS.values())):
        codes = [_of(drawn).code([_of(drawn).changes[bug]]) for drawn in several]
        alone = await _values(several, [_of(drawn).hidden for drawn in several], codes, sandbox)
        for drawn, values in zip(several, alone, strict=True):
            if all(is_same(drawn.expected[case], value) for case, value in values.items()):
                drawn.why = "one of its bugs changes no value"


async def _values(
    batch: Sequence[_Drawn], cases: Sequence[Sequence[DrawnCall]], codes: Sequence[Code], sandbox: Sandbox
) -> list[dict[DrawnCall, str]]:
    """The texts of the values of each repository's cases on its code: of all in one process, or where that does not
    end, one by one."""
    if not batch:
        return []
    calls = [_calls(_of(drawn), own) for drawn, own in zip(batch, cases, strict=True)]
    modules = [module for part in calls for module in part]
    files = {path: data for code in codes for path, data in code.items()}
    lists, problem, unsaid = await values_of(modules, files, sandbox, BATCH_S if len(batch) > 1 else ALONE_S)
    if unsaid:
        raise DependencyError("The sandbox", problem, "Try again.")
    if problem and len(batch) > 1:
        parts = zip(batch, cases, codes, strict=True)
        return [(await _values([drawn], [own], [code], sandbox))[0] for drawn, own, code in parts]
    if problem:
        return [dict.fromkeys(cases[0], HANGS)]
    texts = iter(lists)
    return [_by_case(_of(drawn), own, texts) for drawn, own in zip(batch, cases, strict=True)]


def _by_case(
    repository: GeneratedRepository, cases: Sequence[DrawnCall], texts: Iterator[list[str]]
) -> dict[DrawnCall, str]:
    """The next of ``texts``, by the cases that they are of."""
    by_case: dict[DrawnCall, str] = {}
    for module in repository.modules:
        own = [case for case in cases if case.module == module]
        by_case |= zip(own, next(texts), strict=True)
    return by_case


def _calls(
    repository: GeneratedRepository,
    cases: Sequence[DrawnCall],
    expected: Mapping[DrawnCall, str] = MappingProxyType({}),
) -> list[ModuleCalls]:
    """``cases`` as calls of each module."""
    return [
        ModuleCalls(
            module=f"{repository.package}.{module}",
            prelude=repository.prelude(module),
            calls=tuple((case.expression, expected.get(case, "")) for case in cases if case.module == module),
        )
        for module in repository.modules
    ]


def _of(drawn: _Drawn) -> GeneratedRepository:
    assert drawn.repository is not None  # noqa: S101 - else there is a reason why not
    return drawn.repository


def _add(folder: MinedFolder, level: int, seed: int, drawn: _Drawn) -> None:
    line = LedgerLine(package=PACKAGE, candidate=f"{level} {seed} {drawn.number}", kind="bug", why=drawn.why)
    if drawn.why:
        folder.add(line)
    else:
        folder.add(line.model_copy(update={"task": _of(drawn).package}), *_written(drawn, folder))


def _written(drawn: _Drawn, folder: MinedFolder) -> tuple[MinedTask, MinedSolution]:
    """What is written of a task; its files are stored first. The student has tests of the functions that seem right."""
    repository, expected = _of(drawn), drawn.expected
    wrong = {case.function for case, value in drawn.changed.items() if not is_same(expected[case], value)}
    examples = repository.examples([case for case in repository.visible if case.function not in wrong], expected)
    called = [case for case in drawn.failing if case.function in repository.callers]
    shown = (called if len(called) >= SHOWN[repository.level] else drawn.failing)[: SHOWN[repository.level]]
    failures = {f"{case.module}: {case.expression}": _difference(drawn, case) for case in shown}
    task = MinedTask(
        id=repository.package,
        kind="bug",
        package=repository.package,
        version="1",
        licence=LICENCE,
        statement=bug_statement(repository.package, "1", failures, len(drawn.failing), len(repository.changes)),
        tree=stored({**repository.code(repository.changes), **examples}, folder.artifacts),
        level=repository.level,
    )
    hidden = HiddenCalls(modules=tuple(_calls(repository, repository.hidden, expected)))
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


def _difference(drawn: _Drawn, case: DrawnCall) -> str:
    """What a call gives with the bugs, and what it is to give."""
    value = drawn.changed[case]
    of_class = f"{case.function} lists what these methods of a {_of(drawn).title} return; " * (case.function == "after")
    return f"{of_class}it is to be {drawn.expected[case]}, and {value if value.startswith(RAISES) else f'is {value}'}"
