"""Part of the rim: one question to a role's models, through the gateway, under the budgets."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TypedDict

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.routing.billing import check_routing, stand_ins, vendor_billing
from agent0.assembly.routing.strategies import entry_of, rules_of
from agent0.assembly.runtime.model_ports import OpenModels
from agent0.assembly.runtime.stamping import utc_now
from agent0.errors import ConfigError
from agent0.events.base import sha256
from agent0.events.values import Turn
from agent0.infra.gateway.billed import prompt_bytes
from agent0.infra.gateway.prices import Prices
from agent0.infra.gateway.streaming import streamed
from agent0.ports.models import GenerateRequest, Generation, Sampling
from agent0.routing.budgets import most_cost
from agent0.routing.strategies import Answer, Option
from agent0.routing.walk import RecordedQuestion, walk
from agent0.settings import ActorConfig, JudgeConfig, RouterSettings, Settings, TeacherConfig
from agent0.settings.roles import RoutedStudentConfig

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
        models = OpenModels(settings, artifact_store(settings), log)
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


class PricedModel(TypedDict):
    """A candidate model: ``most`` is the upper bound of a call's cost, beside its accuracy; None where not measured."""

    model: str
    most: int | None
    right: float | None


class DryRoute(TypedDict):
    """How a strategy would route one question; ``steps``: ``ask``, ``give`` and ``reason`` each. Nano-dollars."""

    role: str
    strategy: str
    models: Sequence[PricedModel]
    steps: Sequence[Mapping[str, str]]
    most: int


def dry_route(settings: Settings, role: str, text: str, confidence: float | None) -> DryRoute:
    """The models that ``text`` could be asked of, and the steps that the role's strategy would take if each answered
    differently with ``confidence``.

    Raises:
        ConfigError: no such role, or it has no strategy.
    """
    actor = _actor(settings, role)
    check_routing(settings)
    request = GenerateRequest((Turn(role="user", content=text),), Sampling(max_tokens=actor.max_tokens))
    chain = [actor, *stand_ins(actor, settings.router)]
    options = tuple(_option(link, request, settings.router, actor.routing.right) for link in chain)
    answers = {option.model: Answer(option.model, option.model, confidence, option.cost) for option in options}
    draw = int(sha256(text)[:8], 16) / 2**32
    walked = walk(
        entry_of(actor.routing.strategy).decide, RecordedQuestion(options, answers, draw), rules_of(actor.routing)
    )
    return {
        "role": role,
        "strategy": actor.routing.strategy,
        "models": [{"model": option.model, "most": option.cost, "right": option.right} for option in options],
        "steps": [{"ask": step.ask, "give": step.give, "reason": step.reason} for step in walked.steps],
        "most": walked.cost,
    }


_PLACES = {
    "judge": "run.verification.judge.routing",
    "teacher": "run.teacher.routing",
    "student": "run.student.distil_routing",
}


def _actor(settings: Settings, role: str) -> TeacherConfig | JudgeConfig | RoutedStudentConfig:
    student = settings.run.student.in_rollouts()
    configured: dict[str, TeacherConfig | JudgeConfig | RoutedStudentConfig] = {
        **({"student": student} if isinstance(student, RoutedStudentConfig) else {}),
        "teacher": settings.run.teacher,
        "judge": settings.run.verification.judge,
    }
    if role not in configured:
        fix = "A student has one where run.student.distil_from names models."
        raise ConfigError(f"A {role!r} has no strategy.", f"Known: {', '.join(configured)}.", fix)
    if not configured[role].routing.strategy:
        raise ConfigError(f"The {role} has no strategy.", "", f"Set {_PLACES[role]}.strategy: agent0 router strategies")
    return configured[role]


def _option(actor: ActorConfig, request: GenerateRequest, router: RouterSettings, right: dict[str, float]) -> Option:
    vendor = vendor_billing(actor, router)
    name = f"{vendor or actor.provider}/{actor.model}".rstrip("/")
    if not vendor:
        return Option(name, 0, right.get(name))
    rates = Prices(router).rates(vendor, actor.model, utc_now())
    if rates is None:
        return Option(name, None, right.get(name))
    most = most_cost(prompt_bytes(request), request.sampling.max_tokens, rates.read, rates.written, rates.fee)
    return Option(name, most, right.get(name))
