"""Part of the rim: the address of the Ollama that a role's model is asked at, now and when its run began."""

from typing import TypeVar

from agent0.errors import bare_address
from agent0.settings import ActorConfig, RunConfig, Settings
from agent0.settings.process import ModelSettings

Actor = TypeVar("Actor", bound=ActorConfig)
USUAL = str(ModelSettings.model_fields["ollama_url"].default)


def ollama_address(actor: ActorConfig, settings: Settings) -> str:
    """Where the Ollama of ``actor`` is: what these settings say, else what its run was started with."""
    address = settings.models.ollama_url
    return actor.base_url if actor.base_url and address == USUAL else address


def with_addresses(settings: Settings) -> RunConfig:
    """The run of ``settings`` with the address of each role's Ollama, as it is recorded: who resumes the run asks the
    same server. One with a password in it stays out."""
    run = settings.run
    return run.model_copy(update={role: addressed(getattr(run, role), settings) for role in ("student", "teacher")})


def addressed(actor: Actor, settings: Settings) -> Actor:
    """``actor`` with the address of its Ollama, where that is not the usual one and no password stands in it: a server
    on another network is remote, whatever its models are called."""
    url = settings.models.ollama_url
    if actor.provider != "ollama" or actor.base_url or url in (USUAL, "") or bare_address(url) != url:
        return actor
    return actor.model_copy(update={"base_url": url})
