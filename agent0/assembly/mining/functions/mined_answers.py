"""Part of the rim: a task about a function of a release whose answer is read, or measured, in place of tests."""

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent0.assembly.mining.baseline import TRIALS, Release, UnusableError
from agent0.assembly.mining.candidates import Code
from agent0.assembly.mining.functions.called_functions import MinedRelease
from agent0.assembly.mining.mined_folder import stored
from agent0.errors import DependencyError
from agent0.events.base import Value, sha256
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.verification.repositories.mined_task import Decider, Kind, MinedSolution, MinedTask, TrialRecord


@dataclass(frozen=True)
class MinedAnswer:
    """A task that holds, named by ``key`` among those of its kind: ``student`` is the work folder, ``answer`` what the
    reference writes, ``hidden`` what decides, in the file ``decides`` beside ``files``."""

    release: Release
    kind: Kind
    key: str
    statement: str
    student: Code
    answer: Code
    files: Code
    hidden: Value
    decides: str
    change: str
    trials: TrialRecord

    @property
    def id(self) -> str:
        """What the task is called."""
        return f"{'-'.join(self.release.title)}-{self.kind}-{sha256(self.key)[:10]}"

    def values(self, kind: Kind, artifacts: Artifacts) -> tuple[MinedTask, MinedSolution]:
        """What is written of it; its files are stored first."""
        release = self.release
        task = MinedTask(
            id=self.id,
            kind=kind,
            package=release.package,
            version=release.source.version,
            licence=release.tree.licence,
            statement=self.statement,
            tree=stored(self.student, artifacts),
        )
        solution = MinedSolution(
            id=self.id,
            code=stored(self.answer, artifacts),
            frame=stored({**self.files, self.decides: self.hidden.model_dump_json().encode()}, artifacts),
            packages=release.tree.packages,
            modules=(),
            fail_to_pass=(),
            pass_to_pass=(),
            seconds=0.0,
            values=self.decides,
            change=self.change,
            sources=(release.source,),
            trials=self.trials,
        )
        return task, solution


Draw = tuple[str, Callable[[], Awaitable[MinedAnswer]]]
"""How the ledger names a candidate, and what tries it."""
Tried = Callable[[], Mapping[str, bool]]
"""Names of candidates tried so far, and whether they were accepted."""
Draws = Callable[[MinedRelease, random.Random, Tried], Iterator[Draw]]
"""The candidates of a release, in a drawn order."""


async def tried(decider: Decider, reference: Code, empty: Code, drawn: Sequence[Code], sandbox: Sandbox) -> TrialRecord:
    """Judge ``reference`` and ``empty`` three times each, and three ``drawn`` answers.

    Raises:
        UnusableError: the reference is refused, another accepted, or there are no three.
        SandboxUnavailableError, DependencyError: there is no sandbox, or it failed.
    """
    if len(drawn) < TRIALS:
        raise UnusableError("there are no three random answers")
    expected = [(reference, True)] * TRIALS + [(empty, False)] * TRIALS + [(each, False) for each in drawn[:TRIALS]]
    for answer, right in expected:
        accepted, why = await decider.accept(answer, sandbox)
        if accepted is None:
            raise DependencyError("The sandbox", why, "Try again.")
        if right and not accepted:
            raise UnusableError(f"its reference is refused: {why}"[:200])
        if accepted is not right:
            raise UnusableError("the empty answer passes" if answer is empty else "a random answer passes")
    return TrialRecord(reference=TRIALS, empty=0, random=0)
