"""Part of the rim: repairs of a run that failed as further tasks, of a higher order: what a student left is a bug of
its own where other hidden tests fail than before. A command that was killed goes on with the next attempt."""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.mining.baseline import TRIALS, UnusableError
from agent0.assembly.mining.candidates import Code, trials, with_mutations
from agent0.assembly.mining.generate import LevelCount
from agent0.assembly.mining.judging import read_mined
from agent0.assembly.mining.mine import Report
from agent0.assembly.mining.mined_folder import SOLUTIONS, TASKS, LedgerLine, MinedFolder, stored
from agent0.assembly.runtime import port_openers
from agent0.errors import DependencyError, LogError, NotFoundError, OperationError
from agent0.events.runs import RunStarted
from agent0.events.tasks import ResultVerified, TaskAttempted, TaskProposed
from agent0.events.values import Artifact, Task
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.settings import RunConfig, Settings
from agent0.tasks.mining.mutations import mutations_of
from agent0.tasks.mining.statements import bug_statement, shown_difference
from agent0.tools.snapshots import answered_folder, copy_folder, fingerprint, load
from agent0.verification.repositories import hidden_tests
from agent0.verification.repositories.hidden_values import HiddenValues, ModuleCalls, is_same, values_of
from agent0.verification.repositories.mined_task import (
    HiddenTests,
    MinedSolution,
    MinedTask,
    TrialRecord,
    hidden_tests_of,
)
from agent0.verification.repositories.source_tree import SourceTree

PACKAGE = "failures"
_TITLE = re.compile(r"keeper = (\w+)\(\)")
_ORDER = re.compile(r"-order\d+-[0-9a-f]+$")


@dataclass(frozen=True)
class FailedRepair:
    """The work folder ``tree`` that the attempt ``attempt`` at the task ``task`` of ``folder`` left."""

    folder: Path
    task: str
    attempt: str
    tree: Artifact


async def failed_repairs(settings: Settings, run: str) -> list[FailedRepair]:
    """List the attempts of ``run`` at bugs of a folder that hidden tests refused.

    Raises:
        NotFoundError: there is none.
    """
    tasks, folders, failed = dict[str, Task](), dict[str, Artifact](), list[FailedRepair]()
    folder = Path()
    kinds = ["RunStarted", "TaskProposed", "TaskAttempted", "ResultVerified"]
    async with open_log(settings, "reader") as log:
        async for recorded in log.read(run, kinds):
            match recorded.event:
                case RunStarted(config=config):
                    folder = Path(RunConfig.recorded(config).questions.file)
                case TaskProposed(task=name, proposal=Task() as proposal):
                    tasks[name] = proposal
                case TaskAttempted(attempt=name, answer=answer) if tree := answered_folder(answer):
                    folders[name] = tree
                case ResultVerified(task=name, attempt=attempt, correct=False) if attempt in folders and name in tasks:
                    row = tasks[name].row
                    if row and row.repository and not row.repository.format:
                        failed.append(FailedRepair(folder, row.id, attempt, folders[attempt]))
    if not failed:
        raise NotFoundError(f"{run[:80]} has no failed repairs.", "No attempt at a bug of a folder was refused.")
    return failed


async def add_failures(settings: Settings, run: str, folder: MinedFolder, report: Report) -> LevelCount:
    """Add failed repairs of ``run`` to ``folder`` as tasks; returns what became of all of them, whichever command tried
    it.

    Raises:
        NotFoundError: there is none. OperationError: ``folder`` is the one that the run took its tasks from.
        SandboxUnavailableError: there is no sandbox. DependencyError: it failed; what was tried is written down.
    """
    failed = await failed_repairs(settings, run)
    if any(failure.folder.resolve() == folder.path.resolve() for failure in failed):
        why = "Its run would no longer know it."
        raise OperationError(f"{folder.path} is the folder of the run's own tasks.", why, "Name another with --out.")
    done, artifacts = {line.candidate for line in folder.lines}, artifact_store(settings)
    sandbox = await port_openers.open_sandbox(settings.sandbox, label="mining", root=hidden_tests.ROOT)
    try:
        for failure in failed:
            if (candidate := f"{run} {failure.attempt}") not in done:
                await _try(failure, candidate, artifacts, folder, sandbox)
                report(f"  {candidate}: {folder.lines[-1].task or folder.lines[-1].why}")
    finally:
        await sandbox.close()
    count = LevelCount(0)
    for line in folder.lines:
        if line.package == PACKAGE and line.candidate.startswith(f"{run} "):
            count.drawn += 1
            count.accepted += bool(line.task)
            count.why.update([line.why] if line.why else [])
    return count


async def _try(
    failure: FailedRepair, candidate: str, artifacts: Artifacts, folder: MinedFolder, sandbox: Sandbox
) -> None:
    """Try one attempt, and write down how it went."""
    line = LedgerLine(package=PACKAGE, candidate=candidate, kind="bug")
    try:
        task, solution = await _task(failure, candidate, artifacts, folder, sandbox)
    except (UnusableError, NotFoundError, LogError, OperationError) as error:
        folder.add(line.model_copy(update={"why": str(error)[:200]}))
    else:
        folder.add(line.model_copy(update={"task": task.id}), task, solution)


async def _task(
    failure: FailedRepair, candidate: str, artifacts: Artifacts, folder: MinedFolder, sandbox: Sandbox
) -> tuple[MinedTask, MinedSolution]:
    """The task that an attempt makes, whose files are stored first.

    Raises:
        UnusableError: it makes none.
    """
    source = FileArtifacts(failure.folder)
    parent = read_mined(failure.folder, TASKS, failure.task, MinedTask)
    solution = read_mined(failure.folder, SOLUTIONS, failure.task, MinedSolution)
    hidden = hidden_tests_of(solution, source)
    if not isinstance(hidden, HiddenTests | HiddenValues):
        raise UnusableError("it is no repair")
    before, reference = load(parent.tree, source), load(solution.code, source)
    code = _code(load(failure.tree, artifacts), solution)
    if fingerprint(code) in (fingerprint(_code(before, solution)), fingerprint(_code(reference, solution))):
        raise UnusableError("its code is not changed")
    name = f"{_ORDER.sub('', parent.id)}-order{solution.order + 1}-{fingerprint(code)[:8]}"
    if any(line.task.rpartition("-")[2] == name.rpartition("-")[2] for line in folder.lines):
        raise UnusableError("a duplicate")
    failing = await _failing_otherwise(hidden, code, solution, sandbox)
    record = await _tried(hidden, code, reference, sandbox)
    refused = {test.partition("::")[0] for test in failing}
    beside = {path: data for path, data in before.items() if path not in {*refused, *_code(before, solution)}}
    copy_folder(solution.code, source, folder.artifacts)
    copy_folder(solution.frame, source, folder.artifacts)
    statement = bug_statement(parent.package, parent.version, failing, len(failing))
    tree = stored({**beside, **code}, folder.artifacts)
    task = parent.model_copy(update={"id": name, "statement": statement, "tree": tree})
    change = f"what attempt {candidate.replace(' ', '/')} left; {solution.change}"
    return task, _further(solution, name, failing, change, record)


def _further(
    solution: MinedSolution, name: str, failing: Mapping[str, str], change: str, record: TrialRecord
) -> MinedSolution:
    """``solution`` of the task ``name``, which came of its own."""
    others = {*solution.fail_to_pass, *solution.pass_to_pass} - {*failing}
    return solution.model_copy(
        update={
            "id": name,
            "fail_to_pass": tuple(sorted(failing)),
            "pass_to_pass": tuple(sorted(others)),
            "change": change,
            "order": solution.order + 1,
            "parent": solution.id,
            "trials": record,
        }
    )


def _code(files: Mapping[str, bytes], solution: MinedSolution) -> dict[str, bytes]:
    """The code that counts among ``files``."""
    tree = SourceTree(files)
    return {path: files[path] for path in tree.code if tree.package_of(path) in solution.packages}


def _patches(code: Code) -> Iterator[Code | None]:
    """``code`` with one more mutation, drawn anew each time."""
    mutations = [each for path, data in sorted(code.items()) for each in mutations_of(path, data)]
    rng = random.Random(fingerprint(code))
    for mutation in rng.sample(mutations, len(mutations)):
        yield with_mutations(code, [mutation])


async def _tried(hidden: HiddenTests | HiddenValues, code: Code, reference: Code, sandbox: Sandbox) -> TrialRecord:
    """As ``trials``, and the reference as often, which must pass; else UnusableError."""
    record = await trials(hidden, code, _patches(code), sandbox)
    for _ in range(TRIALS):
        if not (await hidden.accept(reference, sandbox))[0]:
            raise UnusableError("its reference does not always pass")
    return record


async def _failing_otherwise(
    hidden: HiddenTests | HiddenValues, code: Code, solution: MinedSolution, sandbox: Sandbox
) -> dict[str, str]:
    """As ``_failing``, where some tests fail, not most, and others than before; else UnusableError."""
    failing = await _failing(hidden, code, sandbox)
    if not failing or 2 * len(failing) > len(hidden.tests):
        raise UnusableError("most tests fail" if failing else "no test fails")
    if {*failing} == {*solution.fail_to_pass}:
        raise UnusableError("it fails as before")
    return failing


async def _failing(hidden: HiddenTests | HiddenValues, code: Code, sandbox: Sandbox) -> dict[str, str]:
    """What fails on ``code``, each with a message.

    Raises:
        UnusableError: nothing can be said of it.
        DependencyError: the sandbox failed.
    """
    if isinstance(hidden, HiddenTests):
        run = await hidden.run(code, sandbox)
        _require_end(run.problem, run.sandbox_failed)
        failed = [test for test in hidden.tests if test not in run.passed]
        return {test: run.messages.get(test, "it does not run") for test in failed}
    values, problem, sandbox_failed = await values_of(hidden.modules, code, sandbox, hidden.seconds)
    _require_end(problem, sandbox_failed)
    return {
        f"{module.module.rpartition('.')[2]}: {call}": shown_difference(_title(module, call), expected, text)
        for module, texts in zip(hidden.modules, values, strict=True)
        for (call, expected), text in zip(module.calls, texts, strict=True)
        if not is_same(expected, text)
    }


def _require_end(problem: str, sandbox_failed: bool) -> None:
    if sandbox_failed:
        raise DependencyError("The sandbox", problem, "Try again.")
    if problem:
        raise UnusableError(problem)


def _title(module: ModuleCalls, call: str) -> str:
    """The class that ``call`` makes; empty for none."""
    title = _TITLE.search(module.prelude) if call.startswith("after(") else None
    return title[1] if title else ""
