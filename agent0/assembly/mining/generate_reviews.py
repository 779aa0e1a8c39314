"""Part of the rim: drawn repositories as tasks that ask for a review: which lines are wrong, and by which calls."""

from agent0.assembly.mining.drawn import LICENCE, Drawn, repository_of
from agent0.assembly.mining.mined_folder import MinedFolder, stored
from agent0.tasks.mining.generated import BUGS
from agent0.tasks.mining.mutations import Mutation
from agent0.tasks.mining.statements import review_statement
from agent0.verification.repositories.mined_task import DEFECTS, MinedSolution, MinedTask, TrialRecord
from agent0.verification.repositories.seeded_defects import (
    CLEAN,
    REVIEW,
    REVIEWED,
    Defect,
    HiddenDefects,
    ReviewedModule,
)


def written_review(drawn: Drawn, folder: MinedFolder) -> tuple[MinedTask, MinedSolution]:
    """What is written of a task; its files are stored first. It has no tests: which ones lack would show the place."""
    repository, changes = repository_of(drawn), repository_of(drawn).changes
    code, right = repository.code(changes), repository.code()
    task = MinedTask(
        id=drawn.id,
        kind="review",
        package=repository.package,
        version="1",
        licence=LICENCE,
        statement=review_statement(repository.package, list(repository.modules), max(BUGS.values()), repository.title),
        tree=stored(code, folder.artifacts),
        level=repository.level,
    )
    reviewed = {f"{REVIEWED}/{path.partition('/')[2]}": data for path, data in code.items()}
    solution = MinedSolution(
        id=task.id,
        code=stored({REVIEW: _review(drawn).encode()}, folder.artifacts),
        frame=stored({**right, **reviewed, DEFECTS: _defects(drawn).model_dump_json().encode()}, folder.artifacts),
        packages=(repository.package,),
        modules=(),
        fail_to_pass=(),
        pass_to_pass=(),
        seconds=0.0,
        values=DEFECTS,
        change="; ".join(f"{each.kind} in {each.function}, {each.path}:{each.line}" for each in changes) or CLEAN,
        sources=(),
        trials=TrialRecord(reference=1, empty=0, random=0),
    )
    return task, solution


def _defects(drawn: Drawn) -> HiddenDefects:
    repository = repository_of(drawn)
    modules = (
        ReviewedModule(
            name=name,
            prelude=repository.prelude(name),
            functions=tuple(sorted({call.function for call in repository.hidden if call.module == name})),
        )
        for name in repository.modules
    )
    defects = (_defect(drawn, each) for each in repository.changes)
    return HiddenDefects(package=repository.package, modules=tuple(modules), defects=tuple(defects))


def _defect(drawn: Drawn, change: Mutation) -> Defect:
    """Where a change stands in the file that it changed; no other is in that file."""
    first, last = change.lines(repository_of(drawn).modules[change.path].encode())
    return Defect(module=change.path, first=first, last=last)


def _review(drawn: Drawn) -> str:
    """What a perfect student writes: for each defect a call that goes wrong, of its module where there is one."""
    lines = []
    for change in repository_of(drawn).changes:
        calls = sorted(drawn.failing, key=lambda call: call.module != change.path)
        lines.append(f"{change.path}.py:{_defect(drawn, change).first}: {calls[0].expression}")
    return "\n".join(lines or [CLEAN]) + "\n"
