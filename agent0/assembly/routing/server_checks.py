"""Part of the rim: what asking a server of a vendor's API takes on this machine."""

from importlib.util import find_spec

from agent0.errors import ConfigError, DependencyError
from agent0.settings import ActorConfig

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
            "Set base_url of its role (run.student, run.teacher, run.verification.judge), as http://127.0.0.1:8000/v1;"
            " of a model that stands in: router.servers.openai.base_url."
        )
        raise ConfigError("Provider openai needs the address of a server.", "The setting base_url is empty.", fix)
    from agent0.infra.models.openai.provider import key_of

    key_of(actor)


def check_anthropic(actor: ActorConfig) -> None:
    """The package, a model's name and the key of Anthropic; errors as ``check_openai``."""
    if find_spec("anthropic") is None:
        raise DependencyError("The package that talks to Anthropic", "Not installed: anthropic.", EXTRA_ANTHROPIC)
    if not actor.model:
        fix = "Name one: run.<role>.provider = anthropic/MODEL."
        raise ConfigError("Provider anthropic needs the name of a model.", "The setting model is empty.", fix)
    from agent0.infra.models.anthropic.provider import key_of

    key_of(actor)
