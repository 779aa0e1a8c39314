"""A task from a published package: what a student sees of it, and, kept apart, what decides whether it is solved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent0.errors import OperationError
from agent0.events.base import Value
from agent0.events.episodes import Episode
from agent0.events.values import Artifact, Repository
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.tools.snapshots import copy_folder, load
from agent0.verification.repositories.determining_examples import DeterminingExamples, HiddenDocstring
from agent0.verification.repositories.hidden_tests import TestRun, run_hidden_tests
from agent0.verification.repositories.hidden_values import HiddenCalls, HiddenValues, mended_share
from agent0.verification.repositories.round_trip import HiddenDocumentation, RoundTrip
from agent0.verification.repositories.seeded_defects import HiddenDefects, SeededDefects
from agent0.verification.repositories.simpler_code import HiddenMeasures, SimplerCode
from agent0.verification.repositories.simpler_function import HiddenFunction, SimplerFunction
from agent0.verification.repositories.source_tree import SourceTree
from agent0.verification.repositories.wrong_versions import HiddenVersions, WrongVersions

SLACK_S, SLOWER = 10.0, 3
"""What tests may take beyond what they took with the reference: seconds, and times as long."""
VERSIONS = "versions.json"
"""The file of wrong versions, where tests are asked for."""
DEFECTS = "defects.json"
"""The file of defects, where a review is asked for."""
DOCSTRINGS = "docstrings.json"
"""The file of functions, where docstrings are asked for."""
MEASURES = "measures.json"
"""The file of bounds, where code is to be simplified."""
FUNCTION, DOCSTRING = "function.json", "docstring.json"
"""The same two, of a function of a published package."""
Kind = Literal["bug", "change", "document", "harbor", "refactor", "review", "tests"]
"""A bug by a mutation, what changed between two releases, a task folder of Harbor, or documentation, simpler code, a
review or tests that are asked for."""


class MinedTask(Value):
    """What a student sees: a statement, and ``tree``, the manifest of its work folder. ``version`` is that of the tree,
    ``level`` that of a generated one, 0 for others.

    Files of ``tree`` that are no code of the package (its tests, its data) may be changed, but do not count.
    """

    id: str
    kind: Kind
    package: str
    version: str
    licence: str
    statement: str
    tree: Artifact
    level: int = 0


class EpisodeTask(Value):
    """What an environment asks at the begin of an ``episode``. ``version`` is what it said of itself; what decides is
    its own."""

    id: str
    environment: str
    version: str
    statement: str
    episode: Episode


class SourceRecord(Value):
    """The source distribution of a release, with its digest."""

    version: str
    url: str
    sha256: str


class TrialRecord(Value):
    """How many of three trials of a patch were accepted; of a generated task's, of one."""

    reference: int
    empty: int
    random: int


class MinedSolution(Value):
    """What no student sees. ``code`` is the manifest of all code of the reference, ``frame`` of everything beside it,
    the hidden tests among it; ``modules`` are the files with tests, ``seconds`` what all of them took.

    ``values``: the file of ``frame`` with calls that decide in place of tests, empty for none.
    ``packages`` are the top-level names of code that counts. ``change`` says what was done: the releases, or a mutation
    with its file, function and line.
    """

    id: str
    code: Artifact
    frame: Artifact
    packages: tuple[str, ...]
    modules: tuple[str, ...]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    seconds: float
    values: str = ""
    change: str
    sources: tuple[SourceRecord, ...]
    trials: TrialRecord
    script: str = ""
    """Of a Harbor task: the script of ``frame`` that writes the reward. No module decides then."""
    order: int = 1
    parent: str = ""
    """Of a repair that failed: how many bugs came one after the other, and the task that it was to solve."""


@dataclass(frozen=True)
class HiddenTests:
    """Tests that decide: those of ``modules`` in ``frame``, named by ``tests`` (empty: all), within ``seconds``. Those
    of ``failing`` fail before the task is solved."""

    frame: Mapping[str, bytes]
    packages: Sequence[str]
    modules: Sequence[str]
    tests: Sequence[str]
    seconds: float
    failing: Sequence[str] = ()

    async def run(
        self, code: Mapping[str, bytes], sandbox: Sandbox, watched: Sequence[str] = (), messages: bool = True
    ) -> TestRun:
        """Run them on the files ``code``, of which those count alone that are code of ``packages``: a module that takes
        the place of another's is left out. Calls of functions in the files ``watched`` are recorded.

        Raises:
            SandboxUnavailableError: there is no sandbox.
        """
        changed = SourceTree(code)
        counted = [path for path in changed.code if changed.package_of(path) in self.packages]
        files = {**self.frame, **{path: code[path] for path in counted if path not in self.frame}}
        used = {test.partition("::")[0] for test in self.tests}
        modules = [module for module in self.modules if not used or module in used]
        return await run_hidden_tests(
            files, (changed.root,), modules, sandbox, self.seconds, self.tests, code=watched, messages=messages
        )

    async def accept(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether all of them pass on ``code``, and why not; the rest as for ``grade``."""
        return (await self.grade(code, sandbox))[:2]

    async def grade(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str, float | None]:
        """Whether all of them pass on ``code``, why not, and the share of the failing ones that pass now, less those
        that it breaks. None where the sandbox itself failed. Errors as for ``run``."""
        run = await self.run(code, sandbox, messages=False)
        if run.sandbox_failed or run.problem:
            return (None, run.problem, None) if run.sandbox_failed else (False, run.problem, 0.0)
        failed = [test for test in self.tests if run.outcomes.get(test) != "passed"]
        why = f"{len(failed)} of {len(self.tests)} tests fail, such as {failed[0]}" if failed else ""
        return not failed, why, mended_share(self.failing, failed)


Decider = (
    DeterminingExamples
    | HiddenTests
    | HiddenValues
    | RoundTrip
    | SeededDefects
    | SimplerCode
    | SimplerFunction
    | WrongVersions
)
"""What decides about a work folder."""
_DECIDERS: Mapping[str, Callable[[bytes, Mapping[str, bytes]], Decider]] = {
    DEFECTS: lambda data, frame: SeededDefects(HiddenDefects.model_validate_json(data), frame, SLACK_S),
    DOCSTRING: lambda data, frame: DeterminingExamples(HiddenDocstring.model_validate_json(data), frame, SLACK_S),
    DOCSTRINGS: lambda data, frame: RoundTrip(HiddenDocumentation.model_validate_json(data), frame, SLACK_S),
    FUNCTION: lambda data, frame: SimplerFunction(HiddenFunction.model_validate_json(data), frame, SLACK_S),
    MEASURES: lambda data, frame: SimplerCode(HiddenMeasures.model_validate_json(data), frame, SLACK_S),
    VERSIONS: lambda data, frame: WrongVersions(HiddenVersions.model_validate_json(data), frame, SLACK_S),
}
"""By the file of the hidden ones that says what is asked for."""


def hidden_tests_of(solution: MinedSolution, artifacts: Artifacts) -> Decider:
    """All tests that decide a task: those that its reference makes pass, and those that it must not break; or calls, or
    wrong versions.

    Raises:
        NotFoundError, LogError: a file of the tests is missing or damaged.
        OperationError: it is a task of Harbor, whose own script decides.
    """
    if solution.script:
        raise OperationError(f"{solution.id} has no hidden tests.", "It is a task of Harbor.", "Ask it in a run.")
    frame = load(solution.frame, artifacts)
    if decider := _DECIDERS.get(solution.values):
        return decider(frame.pop(solution.values), frame)
    if solution.values:
        calls = HiddenCalls.model_validate_json(frame[solution.values])
        return HiddenValues(solution.packages, calls.modules, SLACK_S, solution.fail_to_pass)
    return HiddenTests(
        frame,
        solution.packages,
        solution.modules,
        (*solution.fail_to_pass, *solution.pass_to_pass),
        SLACK_S + SLOWER * solution.seconds,
        solution.fail_to_pass,
    )


def keep_repository(repository: Repository, source: Artifacts, target: Artifacts) -> None:
    """Store the files of ``source`` that a task names in ``target``, too: its work folder and what decides about it.

    Raises:
        NotFoundError, LogError: one is missing or damaged.
        DependencyError: the disk is full or cannot be written.
    """
    copy_folder(repository.tree, source, target)
    body = source.get(repository.hidden)
    copy_folder(MinedSolution.model_validate_json(body).frame, source, target)
    target.put(body)
