"""Part of the rim: the ledger of a log, with the caps that the settings name."""

from collections.abc import Mapping
from typing import get_args

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.config.loading import nearest
from agent0.errors import ConfigError
from agent0.events.budgets import BudgetScope
from agent0.infra.gateway.ledger import Account, Ledger
from agent0.infra.log.event_log import Log
from agent0.routing.budgets import Balance, Purpose, in_nano
from agent0.settings import RouterSettings, Settings

SCOPES: tuple[BudgetScope, ...] = get_args(BudgetScope)


def open_ledger(settings: Settings, log: Log) -> Ledger:
    """The ledger of ``log``, stamped by this process."""
    return Ledger(log, recorded, utc_now, settings.router.expiry_s)


def caps(router: RouterSettings) -> Mapping[BudgetScope, int | None]:
    """The caps that the settings name, in nano-dollars."""
    named: dict[BudgetScope, float | None] = {scope: getattr(router.caps, scope) for scope in SCOPES}
    return {scope: None if usd is None else in_nano(usd) for scope, usd in named.items()}


def scope_of(name: str) -> BudgetScope:
    """The scope that a user named.

    Raises:
        ConfigError: there is none of this name.
    """
    for scope in SCOPES:
        if scope == name:
            return scope
    scopes = f"Known: {', '.join(SCOPES)}."
    raise ConfigError(f"There is no budget of a {name!r}.", scopes, nearest(name, list(SCOPES)))


def name_of(settings: Settings, scope: BudgetScope, name: str) -> str:
    """``name``, or whose budget is meant where it is empty: today's, or that of the user whom the settings name.

    Raises:
        ConfigError: a run or provider has to be named.
    """
    if name:
        return name
    if scope == "day":
        return f"{utc_now():%Y-%m-%d}"
    if scope == "user":
        return settings.router.user
    raise ConfigError(f"Which {scope}?", fix=f"Name it: agent0 router budget show {scope} NAME")


async def change_cap(settings: Settings, scope: BudgetScope, name: str, usd: float | None, reason: str) -> Balance:
    """Raise, lower or remove (None) a cap by an entry of its own; the balance after it.

    Raises:
        ConfigError: it is below zero. DependencyError, LogError: the log cannot be written.
    """
    cap = None if usd is None else in_nano(usd)
    async with open_log(settings, make=True) as log:
        return await open_ledger(settings, log).set_cap(Account(scope, name), cap, Purpose(reason=reason))
