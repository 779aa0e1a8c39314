"""Part of the rim: drawn repositories under way to tasks, and what their calls give on any version of their code."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from agent0.assembly.mining.candidates import Code
from agent0.errors import DependencyError
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.documented import Docstrings
from agent0.tasks.mining.drawn_calls import DrawnCall
from agent0.tasks.mining.generated import GeneratedRepository
from agent0.tasks.mining.mutations import Mutation
from agent0.verification.repositories.hidden_values import ModuleCalls, values_of

BATCH_S, ALONE_S = 60.0, 10.0
"""Seconds of the calls of a batch of repositories, and of one."""
LICENCE = "MIT (Agent0)"
HANGS = "its calls hang"


@dataclass
class Drawn:
    """A repository under way: values of its cases as they should be and with its bugs, those that decide and differ,
    or wrong versions with calls that tell each of them apart, or its files ``before`` they are simplified, or what its
    docstrings should say; and why it is no task."""

    number: int
    kind: str
    repository: GeneratedRepository | None
    expected: Mapping[DrawnCall, str] = field(default_factory=dict)
    changed: Mapping[DrawnCall, str] = field(default_factory=dict)
    failing: Sequence[DrawnCall] = ()
    versions: Sequence[Mutation] = ()
    rejecting: Sequence[frozenset[DrawnCall]] = ()
    before: Code = field(default_factory=dict)
    docstrings: Docstrings = field(default_factory=dict)
    why: str = ""

    @property
    def id(self) -> str:
        """What its task is called; empty where nothing was drawn."""
        if self.repository is None:
            return ""
        return self.repository.package if self.kind == "bug" else f"{self.repository.package}_{self.kind}"


async def values_by_call(
    batch: Sequence[Drawn], cases: Sequence[Sequence[DrawnCall]], codes: Sequence[Code], sandbox: Sandbox
) -> list[dict[DrawnCall, str]]:
    """The texts of the values of each repository's cases on its code: of all in one process, or where that does not
    end, one by one."""
    if not batch:
        return []
    calls = [calls_of(repository_of(drawn), drawn_calls) for drawn, drawn_calls in zip(batch, cases, strict=True)]
    modules = [module for part in calls for module in part]
    files = {path: data for code in codes for path, data in code.items()}
    lists, problem, sandbox_failed = await values_of(modules, files, sandbox, BATCH_S if len(batch) > 1 else ALONE_S)
    if sandbox_failed:
        raise DependencyError("The sandbox", problem, "Try again.")
    if problem and len(batch) > 1:
        parts = zip(batch, cases, codes, strict=True)
        return [
            (await values_by_call([drawn], [drawn_calls], [code], sandbox))[0] for drawn, drawn_calls, code in parts
        ]
    if problem:
        return [dict.fromkeys(cases[0], HANGS)]
    texts = iter(lists)
    return [_by_case(repository_of(drawn), drawn_calls, texts) for drawn, drawn_calls in zip(batch, cases, strict=True)]


def _by_case(
    repository: GeneratedRepository, cases: Sequence[DrawnCall], texts: Iterator[list[str]]
) -> dict[DrawnCall, str]:
    """The next of ``texts``, by the cases that they are of."""
    by_case: dict[DrawnCall, str] = {}
    for module in repository.modules:
        in_module = [case for case in cases if case.module == module]
        by_case |= zip(in_module, next(texts), strict=True)
    return by_case


def calls_of(
    repository: GeneratedRepository,
    cases: Sequence[DrawnCall],
    expected: Mapping[DrawnCall, str] = MappingProxyType({}),
) -> list[ModuleCalls]:
    """``cases`` as calls of each module of ``repository``, with the values that are ``expected``."""
    return [
        ModuleCalls(
            module=f"{repository.package}.{module}",
            prelude=repository.prelude(module),
            calls=tuple((case.expression, expected.get(case, "")) for case in cases if case.module == module),
        )
        for module in repository.modules
    ]


def repository_of(drawn: Drawn) -> GeneratedRepository:
    """The repository of a draw that has one."""
    assert drawn.repository is not None  # noqa: S101 - else there is a reason why not
    return drawn.repository
