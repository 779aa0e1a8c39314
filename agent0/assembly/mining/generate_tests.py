"""Part of the rim: drawn repositories as tasks that ask for tests, which must reject hidden wrong versions."""

import random
from collections import Counter
from collections.abc import Sequence

from agent0.assembly.mining.drawn import LICENCE, Drawn, repository_of, values_by_call
from agent0.assembly.mining.mined_folder import MinedFolder, stored
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.drawn_calls import DrawnCall
from agent0.tasks.mining.mutations import Mutation, mutations_of
from agent0.tasks.mining.statements import tests_statement
from agent0.verification.repositories.hidden_values import RAISES, is_same
from agent0.verification.repositories.mined_task import VERSIONS, MinedSolution, MinedTask, TrialRecord
from agent0.verification.repositories.wrong_versions import TESTS, HiddenVersions, VersionedModule


def version_count(level: int) -> int:
    """How many wrong versions a task of ``level`` has."""
    return level + 2


async def decide_tests(batch: Sequence[Drawn], sandbox: Sandbox) -> None:
    """Find wrong versions of each repository that some call distinguishes from it, and none of the tests it has.
    Errors as for ``values_by_call``."""
    both = [[*repository_of(drawn).hidden, *repository_of(drawn).visible] for drawn in batch]
    right = await values_by_call(batch, both, [repository_of(drawn).code() for drawn in batch], sandbox)
    mutations = [_mutations(drawn) for drawn in batch]
    for drawn, expected in zip(batch, right, strict=True):
        drawn.expected = expected
        drawn.why = "its reference raises" if any(text.startswith(RAISES) for text in expected.values()) else ""
    for number in range(max(map(len, mutations), default=0)):
        open_ones = [
            (drawn, mutated[number])
            for drawn, mutated in zip(batch, mutations, strict=True)
            if _is_open(drawn, mutated, number)
        ]
        some = [drawn for drawn, _ in open_ones]
        codes = [repository_of(drawn).code([mutation]) for drawn, mutation in open_ones]
        calls = [[*repository_of(drawn).hidden, *repository_of(drawn).visible] for drawn in some]
        for (drawn, mutation), values in zip(open_ones, await values_by_call(some, calls, codes, sandbox), strict=True):
            wrong = frozenset(call for call, value in values.items() if not is_same(drawn.expected[call], value))
            if wrong and wrong.isdisjoint(repository_of(drawn).visible):
                drawn.versions, drawn.rejecting = [*drawn.versions, mutation], [*drawn.rejecting, wrong]
    for drawn in batch:
        if not drawn.why and len(drawn.versions) < version_count(repository_of(drawn).level):
            drawn.why = "too few wrong versions"


def _is_open(drawn: Drawn, mutations: Sequence[Mutation], number: int) -> bool:
    return not drawn.why and number < len(mutations) and len(drawn.versions) < version_count(repository_of(drawn).level)


def _mutations(drawn: Drawn) -> list[Mutation]:
    """Mutations of all modules in a drawn order, a few times as many as are needed."""
    repository = repository_of(drawn)
    every = [each for name, text in repository.modules.items() for each in mutations_of(name, text.encode())]
    rng = random.Random(f"versions {repository.package}")
    return rng.sample(every, min(len(every), 5 * version_count(repository.level)))


def written_tests(drawn: Drawn, folder: MinedFolder) -> tuple[MinedTask, MinedSolution]:
    """What is written of a task; its files are stored first."""
    repository, expected = repository_of(drawn), drawn.expected
    code, count = repository.code(), len(drawn.versions)
    hidden = HiddenVersions(package=repository.package, modules=_modules(drawn))
    task = MinedTask(
        id=drawn.id,
        kind="tests",
        package=repository.package,
        version="1",
        licence=LICENCE,
        statement=tests_statement(repository.package, count, list(repository.modules)),
        tree=stored({**code, **repository.examples(repository.visible, expected)}, folder.artifacts),
        level=repository.level,
    )
    solution = MinedSolution(
        id=task.id,
        code=stored({TESTS: _tests(drawn).encode()}, folder.artifacts),
        frame=stored({**code, VERSIONS: hidden.model_dump_json().encode()}, folder.artifacts),
        packages=(repository.package,),
        modules=(),
        fail_to_pass=(),
        pass_to_pass=(),
        seconds=0.0,
        values=VERSIONS,
        change="; ".join(f"{each.kind} in {each.function}, {each.path}:{each.line}" for each in drawn.versions),
        sources=(),
        trials=TrialRecord(reference=1, empty=0, random=0),
    )
    return task, solution


def _modules(drawn: Drawn) -> tuple[VersionedModule, ...]:
    """Each module with its wrong versions."""
    repository = repository_of(drawn)
    return tuple(
        VersionedModule(
            name=name,
            prelude=repository.prelude(name),
            functions=tuple(sorted({call.function for call in repository.hidden if call.module == name})),
            versions=tuple(
                repository.code([each])[f"{repository.package}/{name}.py"].decode()
                for each in drawn.versions
                if each.path == name
            ),
        )
        for name in repository.modules
    )


def _tests(drawn: Drawn) -> str:
    """The tests of a perfect student: the calls that reject most of what is left, one after the other."""
    calls, left = list[DrawnCall](), list(drawn.rejecting)
    while left:
        counts = Counter(call for wrong in left for call in wrong)
        calls.append(min(counts, key=lambda call: (-counts[call], call.expression)))
        left = [wrong for wrong in left if calls[-1] not in wrong]
    lines = [
        f"def test_{number}():\n    assert {call.expression} == {drawn.expected[call]}\n"
        for number, call in enumerate(calls)
    ]
    return "\n\n".join(lines)
