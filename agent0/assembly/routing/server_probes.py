"""Part of the rim: what servers of models are asked before a run: whether they have and do what it needs."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.routing.billing import vendor_billing
from agent0.assembly.validate.template_check import report_of
from agent0.errors import AuthError, ConfigError, DependencyError
from agent0.events.values import Capture
from agent0.infra.engine.folder_template import renderer
from agent0.settings import ActorConfig, RunConfig, Settings, StudentConfig

if TYPE_CHECKING:
    from agent0.infra.models.openai.provider import Profile

PROBE_S = 120.0
"""Seconds in which a server must answer when it is asked what it has: some load a model at the first request."""


async def probe_ollama(actor: ActorConfig, settings: Settings) -> str:
    """Return a line on the model of ``actor``, which has written a token after a tool's result; errors as
    ``agent0.infra.models.ollama`` has them."""
    from agent0.infra.models.ollama.probe import probe, try_chat
    from agent0.infra.models.ollama.provider import STUDENT, TEACHER

    usual, url = STUDENT if isinstance(actor, StudentConfig) else TEACHER, settings.models.ollama_address(actor)
    line = await probe(url, actor.model or usual)
    note = await try_chat(actor, url, free=not vendor_billing(actor, settings.router))
    return f"{line}; {note}" if note else line


async def probe_openai(actor: ActorConfig, settings: Settings) -> str:
    """Return a line on the model of ``actor``, whose server takes what a run asks of it: conversations, and where
    adapters are trained, those; errors as ``agent0.infra.models.openai.provider`` has them."""
    profile = await server_profile(actor, settings, trained_rank(actor, settings.run))
    return described(profile, actor) if profile else actor.base_url


async def server_profile(actor: ActorConfig, settings: Settings, rank: int) -> "Profile | None":
    """Ask the server of ``actor`` what it has and does, and with a ``rank`` whether it takes adapters of that rank.

    Returns None where the server asks for a key that is missing here, which is said elsewhere.

    Raises:
        DependencyError, TransientError, OperationError, AuthError: as ``OpenAIServers.check``.
    """
    from agent0.infra.models.openai.server_facts import key_of
    from agent0.infra.models.openai.several import opened

    overrides: dict[str, object] = {"timeout_s": min(actor.timeout_s, PROBE_S)}
    keyless = False
    try:
        key_of(actor)
    except AuthError:  # that it is missing is said already; whether the server is there can be seen without it
        overrides, keyless = overrides | {"key_env": ""}, True
    if not Path(actor.tokenizer).expanduser().is_dir():
        overrides |= {"tokenizer": ""}
    changed = actor.model_copy(update=overrides)
    server = opened(changed, artifact_store(settings), shared=shared_folder(settings))
    try:
        return await server.check(rank)
    except AuthError:
        if keyless:
            return None
        raise
    finally:
        await server.close()


KINDS = {"library": "Ollama", "organization_owner": "LM Studio", "vllm": "vLLM", "sglang": "SGLang"}
"""Servers by the owner that they state of a model."""
CAPTURED: Mapping[Capture, str] = {
    "tokens": "answers with token ids and log-probabilities",
    "logprobs": "answers with log-probabilities, without token ids",
    "text": "answers with text alone",
}


def described(profile: "Profile", actor: ActorConfig) -> str:
    """Say in one line what was found out about the server of ``actor``: its model, what comes back of a turn, its
    context and, where the server shows it, what its chat template makes of calls."""
    others = f"one of {len(profile.models)}" if len(profile.models) > 1 else "the only one it serves"
    kind = f"{KINDS.get(profile.kind, profile.kind)}; " if profile.kind else ""
    parts = [f"{profile.model} at {actor.base_url} ({kind}{others})", CAPTURED[profile.capture]]
    parts += [f"context {profile.context:,} tokens" if profile.context else "it does not say its context"]
    if profile.away:
        parts += [f"{' and '.join(profile.away)} is away: calls go to the others"]
    if profile.template and not profile.chat:
        parts += [str(report_of(renderer(profile.template, profile.specials)))]
    if (answers := profile.answers) and answers not in profile.model and profile.model not in answers:
        parts += [f"its answers name another model: {answers}"]
    return "; ".join(parts)


def shared_folder(settings: Settings) -> Path:
    """Where adapters lie for servers that read them by themselves."""
    return settings.home.absolute() / "cache" / "adapters"


def trained_rank(actor: ActorConfig, run: RunConfig) -> int:
    """The rank of the adapters that ``run`` trains for ``actor``; 0 where it trains none."""
    roles = [role for role, plays in (("student", run.student), ("teacher", run.teacher)) if plays == actor]
    return max((recipe.rank for role in roles if (recipe := run.training.learning(role))), default=0)


EXTRA_OPENAI, EXTRA_ANTHROPIC = "make setup EXTRAS=openai", "make setup EXTRAS=anthropic"


def check_openai(actor: ActorConfig) -> None:
    """The package, an address and the key of a server of OpenAI's API.

    Raises:
        DependencyError, ConfigError, AuthError: one of them is missing.
    """
    if find_spec("openai") is None:
        raise DependencyError("The package that talks to such servers", "Not installed: openai.", EXTRA_OPENAI)
    if not actor.base_url:
        fix = (
            "Name it: --base-url http://127.0.0.1:8000/v1 plays both roles; base_url of run.student, run.teacher or "
            "run.verification.judge plays one; router.servers.openai.base_url one that stands in."
        )
        raise ConfigError("Provider openai needs the address of a server.", "The setting base_url is empty.", fix)
    from agent0.infra.models.openai.server_facts import key_of

    key_of(actor)


def check_anthropic(actor: ActorConfig) -> None:
    """The package, a model's name and the key of Anthropic; errors as ``check_openai``."""
    if find_spec("anthropic") is None:
        raise DependencyError("The package that talks to Anthropic", "Not installed: anthropic.", EXTRA_ANTHROPIC)
    if not actor.model:
        fix = "Name a model: run.<role>.provider = anthropic/MODEL."
        raise ConfigError("Provider anthropic needs the name of a model.", "The setting model is empty.", fix)
    from agent0.infra.models.anthropic.provider import key_of

    key_of(actor)
