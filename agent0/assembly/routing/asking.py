"""Part of the rim: one question to a role's models, through the gateway, under the budgets."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent0.assembly.log.access import open_log
from agent0.assembly.routing.billing import check_routing
from agent0.assembly.runtime.model_ports import OpenModels
from agent0.errors import ConfigError
from agent0.events.values import Turn
from agent0.infra.gateway.streaming import streamed
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.models import GenerateRequest, Generation, Sampling
from agent0.settings import ActorConfig, Settings

ROLES = ("teacher", "student", "judge")


async def ask_role(settings: Settings, role: str, text: str) -> AsyncGenerator[str | Generation]:
    """Ask the model of ``role`` and those that stand in; the pieces of its turn as they are written, then the turn.

    Raises:
        ConfigError: no such role, or it has no model. StreamBrokenError: the turn broke off after a piece of it was
        given. Otherwise as ``agent0.ports.models.Model.generate``.
    """
    actor = actor_of(settings, role)
    if not actor.provider:
        setting = "run.verification.judge.provider" if role == "judge" else f"run.{role}.provider"
        fix = f"Name one: --set {setting}=ollama/MODEL; or ask another role: --role."
        raise ConfigError(f"The {role} has no model.", f"The setting {setting} is empty.", fix)
    check_routing(settings)
    sampling = Sampling(actor.temperature, max_tokens=actor.max_tokens)
    async with open_log(settings, make=True) as log:
        models = OpenModels(settings, FileArtifacts(settings.home), log)
        try:
            request = GenerateRequest((Turn(role="user", content=text),), sampling)
            async with aclosing(streamed(models.open(actor), request)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            await models.close()


def actor_of(settings: Settings, role: str) -> ActorConfig:
    """The settings of the model of ``role``.

    Raises:
        ConfigError: no such role.
    """
    actors: dict[str, ActorConfig] = {
        "teacher": settings.run.teacher,
        "student": settings.run.student.in_rollouts(),
        "judge": settings.run.verification.judge,
    }
    if role not in actors:
        raise ConfigError(f"There is no role {role!r}.", f"Known: {', '.join(actors)}.")
    return actors[role]
