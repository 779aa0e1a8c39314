"""Part of the rim: puts a budget before every model that costs money."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agent0.assembly.routing.budgets import SCOPES, caps, open_ledger
from agent0.assembly.runtime.stamping import now, recorded
from agent0.errors import ConfigError
from agent0.ports.models import Model
from agent0.settings import ActorConfig, RouterSettings, Settings

if TYPE_CHECKING:
    from infra.log.event_log import Log

Gate = Callable[[ActorConfig, Model], Model]
"""(actor, its model) -> the same model behind the budgets, where it costs money."""

ROLES: Mapping[str, str] = {"TeacherConfig": "teacher", "StudentConfig": "student", "JudgeConfig": "judge"}


def vendor_billing(actor: ActorConfig, router: RouterSettings) -> str:
    """Name the vendor that charges for calls of ``actor``; empty where they are free.

    A server on this machine or in a private network is free, unless ``router.prices`` names ``openai/<model>``.
    """
    if actor.provider != "openai":
        return ""
    from infra.gateway.prices import vendor_of

    named = "openai" if f"openai/{actor.model}" in router.prices else ""
    return vendor_of(actor.base_url) or named


def gate_of(settings: Settings, log: "Log | None") -> Gate:
    """What puts a model behind the budgets of ``log``. Without one it refuses models that cost money where the settings
    name a cap: no call may pass it by."""
    if log is None:
        return lambda actor, model: _uncapped(settings, actor, model)
    from infra.gateway.gateway import Gateway, Remote
    from infra.gateway.prices import Prices

    ledger, prices, held = open_ledger(settings, log), Prices(settings.router), log

    def gated(actor: ActorConfig, model: Model) -> Model:
        vendor = vendor_billing(actor, settings.router)
        if not vendor:
            return model
        role = ROLES.get(type(actor).__name__, "fallback")
        remote = Remote(vendor, actor.model, role, settings.router.user, caps(settings.router))
        return Gateway(model, remote, ledger, prices, held, recorded, now)

    return gated


def _uncapped(settings: Settings, actor: ActorConfig, model: Model) -> Model:
    vendor = vendor_billing(actor, settings.router)
    if vendor and any(getattr(settings.router.caps, scope) is not None for scope in SCOPES):
        what = f"Calls of {vendor} cost money, and this command charges no budget."
        raise ConfigError(what, "router.caps names a cap.", "Use a model on this machine, or take the cap away.")
    return model
