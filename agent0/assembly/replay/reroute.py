"""Part of the rim: a run's routed questions, read from the log and routed again."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from agent0.assembly.log.access import open_log
from agent0.assembly.routing.strategies import entry_of, rules_of
from agent0.errors import NotFoundError
from agent0.events.models import CallRouted, ModelCalled
from agent0.experiments.reroute import reroute
from agent0.infra.gateway.prices import Prices
from agent0.infra.log.event_log import Log
from agent0.settings import RoutingConfig, Settings

Priced = Literal["as-run", "settings"]
BLIND = (
    "Answers that were never requested; whether another answer would have been right, and what the run would have done "
    "with it."
)


@dataclass(frozen=True)
class Reroute:
    """What is asked: a run, the role whose questions are routed again, by which rules and prices."""

    run: str
    role: str
    routing: RoutingConfig
    prices: Priced = "as-run"


async def reroute_run(settings: Settings, request: Reroute) -> dict[str, object]:
    """Route the questions of a run again; nothing is asked and nothing written. Amounts in nano-dollars.

    Raises:
        NotFoundError: no strategy routed questions of this role in the run.
        ConfigError: no such strategy.
    """
    entry, rules = entry_of(request.routing.strategy), rules_of(request.routing)
    async with open_log(settings) as log:
        routed, calls = await _read(log, request)
    if not routed:
        fix = "Only a role with run.<role>.routing.strategy routes; shadow records the answers of all its models."
        raise NotFoundError(f"No questions of the {request.role} were routed in {request.run}.", fix=fix)
    costs = _costs(settings, calls) if request.prices == "settings" else {}
    figures = asdict(reroute(routed, entry, rules, costs))
    then = ", ".join(dict.fromkeys(event.strategy for event in routed))
    return {
        "run": request.run,
        "role": request.role,
        "then": then,
        "strategy": entry.name,
        **figures,
        "cannot know": BLIND,
    }


async def _read(log: Log, request: Reroute) -> tuple[list[CallRouted], list[tuple[ModelCalled, Any]]]:
    routed: list[CallRouted] = []
    calls: list[tuple[ModelCalled, Any]] = []
    async for recorded in log.read(request.run, (CallRouted.__name__, ModelCalled.__name__)):
        match recorded.event:
            case CallRouted() as event if event.role == request.role:
                routed.append(event)
            case ModelCalled() as event if event.tokens and not event.error and event.cache != "hit":
                calls.append((event, recorded.time))
    return routed, calls


def _costs(settings: Settings, calls: list[tuple[ModelCalled, Any]]) -> dict[tuple[str, str], int]:
    """What recorded tokens cost by the present price table and ``router.prices``."""
    prices, out = Prices(settings.router), {}
    for event, at in calls:
        if event.tokens and (price := prices.of(event.provider, event.requested_model, event.tokens, at)):
            out[event.route, f"{event.provider}/{event.requested_model}"] = price.amount
    return out
