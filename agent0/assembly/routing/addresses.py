"""Part of the rim: the address of the Ollama that a role's model is asked at, now and when its run began."""

from agent0.errors import bare_address
from agent0.settings import ActorConfig, RunConfig, Settings
from agent0.settings.process import ModelSettings

USUAL = str(ModelSettings.model_fields["ollama_url"].default)


def ollama_address(actor: ActorConfig, settings: Settings) -> str:
    """Where the Ollama of ``actor`` is: what these settings say, else what its run was started with."""
    given = settings.models.ollama_url
    return actor.base_url if actor.base_url and given == USUAL else given


def with_addresses(settings: Settings) -> RunConfig:
    """The run of ``settings`` with the address of each role's Ollama, as it is recorded: who resumes the run asks the
    same server. One with a password in it stays out."""
    url, run = settings.models.ollama_url, settings.run
    roles = {role: getattr(run, role) for role in ("student", "teacher")}
    named = {
        role: actor.model_copy(update={"base_url": url})
        for role, actor in roles.items()
        if actor.provider == "ollama" and not actor.base_url and url not in (USUAL, "") and bare_address(url) == url
    }
    return run.model_copy(update=named)
