"""Part of the rim: environments of others as sources of tasks. An added one is a folder in the data folder, in the form
of mined tasks: ``run start --questions`` asks them, and a run names its digest."""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.mining.mined_folder import TASKS, LedgerLine, MinedFolder
from agent0.assembly.runtime import port_openers
from agent0.errors import Agent0Error, ConfigError, DependencyError, NotFoundError, OperationError
from agent0.evaluation.benchmarks.rows.question_rows import LONGEST
from agent0.events.values import HARBOR, ToolState
from agent0.infra.environments import ENVIRONMENTS
from agent0.infra.environments.tau2 import FOLDER, TAU2
from agent0.infra.storage.files import read_regular
from agent0.infra.storage.mined_tasks import is_mined, read_mined_tasks
from agent0.ports.sandbox import Sandbox
from agent0.settings import Settings
from agent0.tasks.harbor.reading import SCRIPT, SOLUTION, STATEMENT, HarborTask, read_harbor_task
from agent0.tools.snapshots import MOST_BYTES, MOST_FILES, save
from agent0.verification.repositories.harbor_tests import FULL, ROOT, harbor_reward, own_files, run_script
from agent0.verification.repositories.mined_task import MinedSolution, MinedTask, TrialRecord

CONFIG = "task.toml"
MOST_TASKS = 10_000
_name = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True)
class TriedTask:
    """A task folder, and why it is no task of the environment; empty where it is one."""

    name: str
    why: str = ""


@dataclass(frozen=True)
class AddedTasks:
    """An added environment: its folder, number of tasks, and the digest that runs name. ``problem``: why it cannot be
    read."""

    name: str
    path: Path
    tasks: int
    sha256: str
    problem: str = ""


async def add_harbor(
    settings: Settings, folder: Path, name: str, report: Callable[[str], None]
) -> tuple[Path, list[TriedTask]]:
    """Add the task folders of Harbor in ``folder``, or ``folder`` itself where it is a task, as environment ``name``.
    Its code runs in the sandbox alone: a task is one where its own solution gets the full reward and an untouched
    folder does not. Returns where they are and all that were tried; nothing is kept where none is a task.

    Raises:
        ConfigError: the name is none. NotFoundError: there is no task folder.
        OperationError: there is an environment of this name.
        DependencyError: there is no sandbox, or the disk cannot be written.
    """
    path = free_folder(settings, name)
    folders = _task_folders(folder)
    adding = path.with_name(f".{name}.adding")
    shutil.rmtree(adding, ignore_errors=True)
    sandbox = await port_openers.open_sandbox(settings.sandbox, label=HARBOR, root=ROOT)
    try:
        with MinedFolder.opened(adding) as target:
            tried = []
            for task_folder in folders:
                tried.append(await _add(task_folder, target, sandbox))
                report(f"  {tried[-1].name}: {tried[-1].why or 'added'}")
        if not all(task.why for task in tried):
            os.rename(adding, path)  # noqa: PTH104 (never over a folder that somebody made meanwhile)
    except OSError as error:
        raise DependencyError(f"The folder {path}", f"{error.strerror}.", "Free some space.") from error
    finally:
        await sandbox.close()
        shutil.rmtree(adding, ignore_errors=True)
    return path, tried


async def _add(folder: Path, target: MinedFolder, sandbox: Sandbox) -> TriedTask:
    """Read and try one task folder, and add it where it is a task."""
    try:
        task = read_harbor_task(folder.name, _files(folder))
    except Agent0Error as error:
        return TriedTask(folder.name, f"{error.what} {error.why}".strip())
    if len(_asked(task)) > LONGEST:
        why = f"it has {len(task.statement):,} characters; with ours {LONGEST:,} are the most"
        return TriedTask(task.name, f"{task.name}/{STATEMENT} cannot be used here: {why}")
    run = await run_script(SOLUTION, {**task.start, **task.solution}, sandbox, task.seconds)
    if run.state is not ToolState.OK:
        last_line = (run.stderr.strip() or run.reason).splitlines()[-1:]
        return TriedTask(task.name, f"its solution ends with {run.state.value}: {''.join(last_line)[:200]}")
    reference = own_files(run.files)
    solved = await harbor_reward(SCRIPT, reference, task.tests, sandbox, task.seconds)
    untouched = await harbor_reward(SCRIPT, task.start, task.tests, sandbox, task.seconds)
    if solved.reward is None or solved.reward < FULL:
        return TriedTask(task.name, f"its own solution does not get the reward {FULL:g}: {solved.why}")
    if untouched.reward is not None and untouched.reward >= FULL:
        return TriedTask(task.name, "an untouched folder gets the full reward")
    target.add(LedgerLine(package=task.name, candidate=task.name, task=task.name), *_stored(task, reference, target))
    return TriedTask(task.name)


def _asked(task: HarborTask) -> str:
    """What a student is asked for the task."""
    return f"{task.statement}\n\nYour work folder is /app. What you leave in it is judged."


def _stored(task: HarborTask, reference: Mapping[str, bytes], target: MinedFolder) -> tuple[MinedTask, MinedSolution]:
    tree, code, frame = (save(files, target.artifacts) for files in (task.start, reference, task.tests))
    assert tree and code and frame  # noqa: S101 - the instruction and the script are in them
    shown = MinedTask(
        id=task.name,
        kind="harbor",
        package=task.name,
        version="",
        licence="",
        statement=_asked(task),
        tree=tree,
    )
    hidden = MinedSolution(
        id=task.name,
        code=code,
        frame=frame,
        packages=(),
        modules=(),
        fail_to_pass=(),
        pass_to_pass=(),
        seconds=task.seconds,
        change="",
        sources=(),
        trials=TrialRecord(reference=1, empty=0, random=0),
        script=SCRIPT,
    )
    return shown, hidden


def _task_folders(folder: Path) -> list[Path]:
    folders = [folder] if (folder / CONFIG).is_file() else sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    if not folders:
        raise NotFoundError(f"{folder} has no task of Harbor.", f"There is no {CONFIG} in it, nor one folder below.")
    if len(folders) > MOST_TASKS:
        raise ConfigError(f"{folder} has more than {MOST_TASKS:,} tasks.")
    return [path.resolve() for path in folders]


def _files(folder: Path) -> dict[str, bytes]:
    """Every file of a task folder, by path in it; no link is followed.

    Raises:
        ConfigError: it holds a link, something that is no file, or too much.
    """
    files: dict[str, bytes] = {}
    size = 0
    for path in _walk(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise ConfigError(f"{folder.name}/{name} is a link.", "Links are not followed.", "Put the file there.")
        try:
            files[name] = read_regular(path, MOST_BYTES - size)
        except OSError as error:
            raise ConfigError(f"{folder.name}/{name} cannot be read.", f"{error.strerror}.") from error
        size += len(files[name])
        if len(files) > MOST_FILES:
            raise ConfigError(f"{folder.name} has more than {MOST_FILES:,} files.")
    return files


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        linked = [name for name in folders if Path(root, name).is_symlink()]
        yield from (Path(root, name) for name in sorted([*names, *linked]))


def environments(settings: Settings) -> list[AddedTasks]:
    """List every environment that was added to the data folder, by name."""
    paths = sorted((settings.home / ENVIRONMENTS).glob("[!.]*"))
    return [_read(path) for path in paths if is_mined(path)]


def _read(path: Path) -> AddedTasks:
    try:
        rows = read_mined_tasks(path)
    except ConfigError as error:
        return AddedTasks(path.name, path, 0, "", f"{error.what} {error.why}".strip())
    return AddedTasks(path.name, path, len(rows.text.splitlines()), rows.sha256)


def remove(settings: Settings, name: str) -> None:
    """Delete the environment ``name``, and with the last one of τ²-bench what all of these share; runs that asked it
    wait where they go on.

    Raises:
        NotFoundError: there is none. DependencyError: it cannot be deleted.
    """
    path = _environment_folder(settings, name, "See: agent0 env list")
    if not is_mined(path):
        names = [environment.name for environment in environments(settings)]
        raise NotFoundError(f"There is no environment {name}.", f"There are: {', '.join(names) or 'none'}.")
    try:
        shutil.rmtree(path)
        if not any(_is_of_tau2(other.path) for other in environments(settings)):
            shutil.rmtree(path.with_name(FOLDER), ignore_errors=True)
    except OSError as error:
        raise DependencyError(f"The folder {path}", f"{error.strerror}.") from error


def _is_of_tau2(path: Path) -> bool:
    """Whether the first task of an environment is an episode of τ²-bench."""
    first = min((path / TASKS).glob("*.json"), default=None)
    return first is not None and f'"url":"{TAU2}:'.encode() in first.read_bytes()


def free_folder(settings: Settings, name: str, fix: str = "agent0 env rm {name}, or --name another.") -> Path:
    """Where the environment ``name`` will be.

    Raises:
        ConfigError: the name is none. OperationError: there is an environment of this name, and ``fix`` says what then.
    """
    path = _environment_folder(settings, name)
    if path.exists():
        raise OperationError(f"There is an environment {name}.", "", fix.format(name=name))
    return path


def _environment_folder(settings: Settings, name: str, fix: str = "Give another with --name.") -> Path:
    if not _name.fullmatch(name):
        why = "A name is 1 to 63 lower-case letters, digits, dashes or underscores."
        raise ConfigError(f"{name[:80]!r} is no name of an environment.", why, fix)
    return settings.home / ENVIRONMENTS / name
