"""Part of the rim: the domains of τ²-bench as sources of tasks. Their code is installed and runs in an environment of
its own; a task is an episode of it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.environments.added import free_folder
from agent0.assembly.environments.episodes import keep
from agent0.errors import NotFoundError
from agent0.events.episodes import Episode
from agent0.infra.environments import ENVIRONMENTS
from agent0.infra.environments.tau2 import FOLDER, TAU2, WHEEL, TaskData, Tau2, check_domain, install_tau2, python_of
from agent0.settings import Settings
from agent0.tools.episode import tools_digest
from agent0.verification.repositories.mined_task import EpisodeTask

RESPOND = "respond_to_user"


@dataclass(frozen=True)
class AddedDomain:
    """A domain as an environment: its name, its folder, how many tasks it has."""

    name: str
    path: Path
    tasks: int


async def add_tau2(
    settings: Settings, domains: tuple[str, ...], split: str, modelled: bool, say: Callable[[str], None]
) -> list[AddedDomain]:
    """Install τ²-bench where it is not yet, and add the tasks of each of ``domains`` that are in ``split`` (empty: all)
    as an environment. ``modelled``: a model plays the user of those that have one.

    Raises:
        ConfigError: there is no such domain. NotFoundError: there is no such split.
        OperationError: there is an environment of this name.
        DependencyError: it cannot be installed or started, or the disk cannot be written.
        EnvironmentFaultError: what it answers is no task.
    """
    named = {f"{TAU2}-{domain}{'-' if split else ''}{split}{'-model' * modelled}": domain for domain in domains}
    for domain in domains:
        check_domain(domain)
    paths = [free_folder(settings, name, "agent0 env rm {name}") for name in named]
    installed = settings.home / ENVIRONMENTS / FOLDER
    if not python_of(installed).is_file():
        say(f"Installing {WHEEL}: its code will run as you, in processes that see no key, in no sandbox.")
    await asyncio.to_thread(install_tau2, installed)
    tau2 = Tau2(installed)
    try:
        return [await _add(tau2, path, domain, split, modelled) for path, domain in zip(paths, domains, strict=True)]
    finally:
        await tau2.close()


async def _add(tau2: Tau2, path: Path, domain: str, split: str, modelled: bool) -> AddedDomain:
    listed, program = await tau2.tasks(domain)
    splits = sorted({name for task in listed for name in task.splits})
    if split and split not in splits:
        raise NotFoundError(f"{domain} has no split {split[:40]!r}.", f"It has: {', '.join(splits)}.")
    numbers = [number for number, task in enumerate(listed) if not split or split in task.splits]
    like = Episode(url=f"{TAU2}:{domain}", seed=numbers[0], question="", action="", program=program)
    async with tau2.opened(like) as session:
        like = like.model_copy(update={"tools": tools_digest(session.tools)})
    tasks = [_task(listed[number], number, like, domain, modelled) for number in numbers]
    await asyncio.to_thread(keep, path, tasks)
    return AddedDomain(path.name, path, len(tasks))


def _task(listed: TaskData, number: int, like: Episode, domain: str, modelled: bool) -> EpisodeTask:
    update = {"seed": number, "action": RESPOND if listed.user else ""}
    if modelled and listed.user:
        update["user"] = "\n\n".join(listed.user)
    episode = like.model_copy(update=update)
    return EpisodeTask(
        id=f"{domain}-{number:04}", environment=domain, version=WHEEL, statement=listed.question, episode=episode
    )
