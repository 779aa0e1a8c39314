"""Part of the rim: what this process has not, which handlers need for a run. It then takes none of their messages."""

import asyncio
import importlib.util
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from agent0.assembly.runtime.providers import provider_of
from agent0.errors import Agent0Error, AuthError, DependencyError
from agent0.events.base import Event
from agent0.infra.log.streams import Reactor
from agent0.settings import ActorConfig, RunConfig

if TYPE_CHECKING:
    from agent0.handlers import Handler
    from agent0.run.lifecycle import RunState

CARD_S = 10.0  # a driver that does not answer by then is no driver
EMBEDDER = ("sentence_transformers", "faiss")


async def lacks(
    handlers: Mapping[str, "Handler"], reactor: Reactor, basis: "RunState | Event | None"
) -> DependencyError | None:
    """What this process has not, of what ``reactor``, one of its ``handlers``, needs for the run with the state
    ``basis``, or for a task that was submitted: a file of a user, a package, the key of a vendor, the folder of a
    model, a graphics card. None where it has everything."""
    from agent0.handlers import require_plugins

    config = getattr(basis, "config", None)
    if config is None:
        return None
    handler, run = handlers[reactor.name], config if isinstance(config, RunConfig) else RunConfig.recorded(config)
    looks: list[Callable[[], None]] = [partial(require_plugins, run)] if handler.plugins else []
    looks += [partial(_check_actor, actor) for actor in _actors(handler, run)]
    if "embedders" in handler.ports:
        looks.append(partial(_check_embedder, run))
    for look in looks:
        try:
            await asyncio.to_thread(look)
        except DependencyError as error:
            return error
        except AuthError as error:
            return DependencyError("a key of a vendor", f"{error.what} {error.why}".strip(), error.fix)
        except Agent0Error:
            continue  # what no process can mend, the reaction itself records
    return None


def _actors(handler: "Handler", run: RunConfig) -> list[ActorConfig]:
    judge = run.verification.judge
    by_role = {"student": run.student, "teacher": run.teacher, **({"judge": judge} if judge.provider else {})}
    return [by_role[role] for role in handler.roles if role in by_role]


def _check_actor(actor: ActorConfig) -> None:
    provider = provider_of(actor)
    if provider.check:
        provider.check(actor)
    local = provider.folder is not None
    if local and actor.device.startswith("cuda") and not _has_card():
        fix = "Start `agent0 handlers run` on a machine that has one, or name another device."
        raise DependencyError("a graphics card", f"The run names the device {actor.device}.", fix)


def _has_card() -> bool:
    """Whether the driver lists a card. The tool alone says nothing: it stays where a driver was taken away."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    try:
        listing = subprocess.run([tool, "-L"], capture_output=True, timeout=CARD_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listing.returncode == 0 and listing.stdout.startswith(b"GPU ")


def _check_embedder(run: RunConfig) -> None:
    missing = [name for name in EMBEDDER if importlib.util.find_spec(name) is None]
    if run.curriculum.embedder == "minilm" and missing:
        raise DependencyError("the embedding model", f"Not installed: {', '.join(missing)}.", "make setup")
