"""Part of the rim: what servers of models are asked before a run: whether they have and do what it needs."""

from pathlib import Path

from agent0.assembly.routing.addresses import ollama_address
from agent0.assembly.routing.billing import vendor_billing
from agent0.errors import AuthError
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.settings import ActorConfig, RunConfig, Settings, StudentConfig

PROBE_S = 30.0
"""Seconds in which a server must answer when it is asked what it has."""


async def probe_ollama(actor: ActorConfig, settings: Settings) -> str:
    """Return a line on the model of ``actor``, which has written a token after a tool's result; errors as
    ``agent0.infra.models.ollama`` has them."""
    from agent0.infra.models.ollama.probe import probe, try_chat
    from agent0.infra.models.ollama.provider import STUDENT, TEACHER

    usual, url = STUDENT if isinstance(actor, StudentConfig) else TEACHER, ollama_address(actor, settings)
    line = await probe(url, actor.model or usual)
    note = await try_chat(actor, url, free=not vendor_billing(actor, settings.router))
    return f"{line}; {note}" if note else line


async def probe_openai(actor: ActorConfig, settings: Settings) -> str:
    """Return a line on the model of ``actor``, whose server takes what a run asks of it: conversations, and where
    adapters are trained, those; errors as ``agent0.infra.models.openai.provider`` has them."""
    from agent0.infra.models.openai.provider import OpenAIServer, key_of

    overrides: dict[str, object] = {"timeout_s": min(actor.timeout_s, PROBE_S)}
    keyless = False
    try:
        key_of(actor)
    except AuthError:  # that it is missing is said already; whether the server is there can be seen without it
        overrides, keyless = overrides | {"key_env": ""}, True
    if not Path(actor.tokenizer).expanduser().is_dir():
        overrides |= {"tokenizer": ""}
    changed = actor.model_copy(update=overrides)
    server = OpenAIServer(changed, FileArtifacts(settings.home), shared=shared_folder(settings))
    try:
        profile = await server.check(trained_rank(actor, settings.run))
    except AuthError:
        if keyless:
            return actor.base_url
        raise
    finally:
        await server.close()
    return f"{profile.model} at {actor.base_url}"


def shared_folder(settings: Settings) -> Path:
    """Where adapters lie for servers that read them by themselves."""
    return settings.home.absolute() / "cache" / "adapters"


def trained_rank(actor: ActorConfig, run: RunConfig) -> int:
    """The rank of the adapters that ``run`` trains for ``actor``; 0 where it trains none."""
    roles = [role for role, plays in (("student", run.student), ("teacher", run.teacher)) if plays == actor]
    return max((recipe.rank for role in roles if (recipe := run.training.learning(role))), default=0)
