"""Part of the rim: one mined task outside of a run: its work folder is written out, and a changed one judged."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from agent0.assembly.mining.mined_folder import SOLUTIONS, TASKS
from agent0.assembly.runtime import port_openers
from agent0.errors import DependencyError, NotFoundError, OperationError
from agent0.events.base import Value
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.files import read_regular
from agent0.settings import SandboxSettings
from agent0.tools.snapshots import MOST_FILES, load
from agent0.verification.repositories import hidden_tests
from agent0.verification.repositories.mined_task import MinedSolution, MinedTask, hidden_tests_of
from agent0.verification.repositories.source_tree import LARGEST

V = TypeVar("V", bound=Value)


def read_mined(mined: Path, folder: str, task: str, kind: type[V]) -> V:
    """Read what ``folder`` of the mined tasks has of ``task``.

    Raises:
        NotFoundError: there is no such task.
        OperationError: its file is damaged.
    """
    names = {path.stem: path for path in sorted((mined / folder).glob("*.json"))}
    if task not in names:
        fix = f"There are {len(names)}, such as {next(iter(names))}." if names else "See: agent0 task mine --help"
        raise NotFoundError(f"{mined} has no task {task!r}.", "", fix)
    try:
        return kind.model_validate_json(names[task].read_bytes())
    except (OSError, ValueError) as error:
        raise OperationError(f"{names[task]} cannot be read.", "It is damaged.", "Mine it again.") from error


def unpack(mined: Path, task_id: str, into: Path) -> MinedTask:
    """Write the work folder of a task to ``into``, which is empty or not there yet.

    Raises:
        OperationError: something is in ``into``.
        DependencyError: it cannot be written.
        NotFoundError, LogError: the task or a file of it is missing or damaged.
    """
    task = read_mined(mined, TASKS, task_id, MinedTask)
    files = load(task.tree, FileArtifacts(mined))
    try:
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()):
            raise OperationError(f"{into} is not empty.", "", "Name a new folder.")
        for name, data in files.items():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            (into / name).write_bytes(data)
    except OSError as error:
        raise DependencyError(f"The folder {into}", f"{error.strerror}.", "Name another.") from error
    return task


async def judge(mined: Path, task_id: str, work: Path, settings: SandboxSettings) -> tuple[bool, str]:
    """Whether the hidden tests of a task pass on the files in ``work``, and why not; nothing of it runs elsewhere than
    in the sandbox.

    Raises:
        NotFoundError, LogError: task, folder or a file of the task is missing or damaged.
        OperationError: the folder holds too much.
        SandboxUnavailableError: there is no sandbox, or it failed.
    """
    solution = read_mined(mined, SOLUTIONS, task_id, MinedSolution)
    hidden = hidden_tests_of(solution, FileArtifacts(mined))
    files = dict(_files(work))
    sandbox = await port_openers.open_sandbox(settings, label="mining", root=hidden_tests.ROOT)
    try:
        accepted, why = await hidden.accept(files, sandbox)
    finally:
        await sandbox.close()
    if accepted is None:
        raise DependencyError("The sandbox", why, "Try again.")
    return accepted, why


def _files(work: Path) -> Iterator[tuple[str, bytes]]:
    """Python files of a folder, by path; no link is followed."""
    if not work.is_dir():
        raise NotFoundError(f"There is no folder {work}.", "", "agent0 task unpack writes one.")
    count = 0
    for folder, _, names in os.walk(work):
        for path in (Path(folder, name) for name in names if name.endswith((".py", ".txt"))):
            if path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > MOST_FILES:
                raise OperationError(f"{work} has more than {MOST_FILES:,} Python files.")
            try:
                yield path.relative_to(work).as_posix(), read_regular(path, LARGEST)
            except OSError as error:
                raise OperationError(f"{path} cannot be read.", f"{error.strerror}.") from error
