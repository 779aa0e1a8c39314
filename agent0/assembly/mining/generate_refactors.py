"""Part of the rim: drawn repositories, written more complicated than they need be, as tasks that ask to simplify
them."""

import random
from collections.abc import Sequence
from dataclasses import replace

from agent0.assembly.mining.drawn import HANGS, LICENCE, Drawn, calls_of, repository_of, values_by_call
from agent0.assembly.mining.mined_folder import MinedFolder, stored
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.complication import CHANGES, complicated
from agent0.tasks.mining.generated import GeneratedRepository
from agent0.tasks.mining.statements import refactor_statement
from agent0.verification.repositories.code_measures import CodeMeasures, measured
from agent0.verification.repositories.hidden_values import RAISES, is_same
from agent0.verification.repositories.mined_task import MEASURES, MinedSolution, MinedTask, TrialRecord
from agent0.verification.repositories.seeded_defects import ReviewedModule
from agent0.verification.repositories.simpler_code import HiddenMeasures

LEAST, LEFT = 3, 0.4
"""By how much the complexity must be above that of the reference, and the share of what is above it that may stay."""


async def decide_refactors(batch: Sequence[Drawn], sandbox: Sandbox) -> None:
    """Write each repository more complicated, and see that all calls give the same. Errors as for
    ``values_by_call``."""
    both = [[*repository_of(drawn).hidden, *repository_of(drawn).visible] for drawn in batch]
    right = await values_by_call(batch, both, [repository_of(drawn).code() for drawn in batch], sandbox)
    for drawn in batch:
        drawn.before = _before(repository_of(drawn))
    changed = await values_by_call(batch, both, [drawn.before for drawn in batch], sandbox)
    for drawn, expected, values in zip(batch, right, changed, strict=True):
        drawn.expected = expected
        measures = _measures(drawn)
        if any(text.startswith(RAISES) for text in expected.values()):
            drawn.why = "its reference raises"
        elif HANGS in values.values() or not all(is_same(expected[call], text) for call, text in values.items()):
            drawn.why = "written more complicated it gives another value"
        elif measures[0].complexity - measures[1].complexity < LEAST or measures[0].size <= measures[1].size:
            drawn.why = "it is hardly more complicated"


def _before(repository: GeneratedRepository) -> dict[str, bytes]:
    """Its files of code, more complicated."""
    rng = random.Random(f"complicated {repository.package}")
    modules = complicated(repository.modules, CHANGES[repository.level], rng)
    files = replace(repository, modules=modules).code()
    return {f"{repository.package}/{path.partition('/')[2]}": data for path, data in files.items()}


def _measures(drawn: Drawn) -> tuple[CodeMeasures, CodeMeasures]:
    """Of the code before, and of the reference."""
    repository = repository_of(drawn)
    return measured(drawn.before, repository.package), measured(repository.code(), repository.package)


def written_refactor(drawn: Drawn, folder: MinedFolder) -> tuple[MinedTask, MinedSolution]:
    """What is written of a task; its files are stored first."""
    repository, expected = repository_of(drawn), drawn.expected
    before, reference = _measures(drawn)
    most = CodeMeasures(*(int(low + LEFT * (high - low)) for high, low in _pairs(before, reference)))
    task = MinedTask(
        id=drawn.id,
        kind="refactor",
        package=repository.package,
        version="1",
        licence=LICENCE,
        statement=refactor_statement(
            repository.package, (before.complexity, most.complexity), (before.size, most.size)
        ),
        tree=stored({**drawn.before, **repository.examples(repository.visible, expected)}, folder.artifacts),
        level=repository.level,
    )
    hidden = HiddenMeasures(
        package=repository.package,
        complexity=most.complexity,
        size=most.size,
        calls=tuple(calls_of(repository, [*repository.hidden, *repository.visible], expected)),
        modules=_modules(repository),
    )
    solution = MinedSolution(
        id=task.id,
        code=stored(repository.code(), folder.artifacts),
        frame=stored({**drawn.before, MEASURES: hidden.model_dump_json().encode()}, folder.artifacts),
        packages=(repository.package,),
        modules=(),
        fail_to_pass=(),
        pass_to_pass=(),
        seconds=0.0,
        values=MEASURES,
        change=f"complexity {before.complexity} of {reference.complexity}, size {before.size} of {reference.size}",
        sources=(),
        trials=TrialRecord(reference=1, empty=0, random=0),
    )
    return task, solution


def _pairs(before: CodeMeasures, reference: CodeMeasures) -> list[tuple[int, int]]:
    return [(before.complexity, reference.complexity), (before.size, reference.size)]


def _modules(repository: GeneratedRepository) -> tuple[ReviewedModule, ...]:
    return tuple(
        ReviewedModule(
            name=name,
            prelude=repository.prelude(name),
            functions=tuple(sorted({call.function for call in repository.hidden if call.module == name})),
        )
        for name in repository.modules
    )
