"""Part of the rim: which models cost money and by which vendor's prices, and which models stand in for others."""

from collections.abc import Iterator, Mapping
from typing import get_args

from agent0.assembly.log.access import open_log
from agent0.assembly.routing.strategies import check_strategy
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError, UnknownPriceError
from agent0.events.budgets import DOLLAR, BudgetScope
from agent0.events.values import Usage
from agent0.infra.gateway.ledger import Account, Ledger
from agent0.infra.gateway.prices import Prices, vendor_of
from agent0.infra.log.event_log import Log
from agent0.infra.models.ollama import CLOUD, is_cloud
from agent0.routing.budgets import Balance, Purpose, in_nano
from agent0.settings import ActorConfig, RouterSettings, RoutingConfig, ServerSettings, Settings
from agent0.settings.router import CompressionSettings

USAGE: Mapping[str, tuple[str, str]] = {
    "openai": ("openai", "chat"),
    "anthropic": ("anthropic", "default"),
    "ollama": ("openai", "chat"),
}
"""Providers whose models may cost money -> the format in which they count tokens, as the price table names it."""
MEASURE = "Measure it: agent0 router compress RUN/CHECKPOINT"


def vendor_billing(actor: ActorConfig, router: RouterSettings) -> str:
    """Name the vendor that charges for calls of ``actor``; empty where they are free.

    A server on this machine or in a private network is free, unless ``router.prices`` names ``<provider>/<model>``. A
    model of Ollama whose name says that it is computed in the cloud is not, wherever its server is.
    """
    if actor.provider not in USAGE:
        return ""
    if actor.provider == "ollama" and is_cloud(actor.model):
        return CLOUD
    if actor.provider == "anthropic" and not actor.base_url:
        return "anthropic"
    named = actor.provider if f"{actor.provider}/{actor.model}" in router.prices else ""
    return next(filter(None, map(vendor_of, actor.addresses)), named)


def stand_ins(actor: ActorConfig, router: RouterSettings) -> list[ActorConfig]:
    """The models that stand in for that of ``actor``, in order; they sample as it does.

    Raises:
        ConfigError: a name is no ``provider/model``.
    """
    why, alone = "run.<role>.fallback is a list of them.", {"tokenizer": "", "fallback": ()}
    return [
        actor.model_copy(update={**_provider_fields(name, router, why), **alone})
        for name in getattr(actor, "fallback", ())
    ]


def summarizer_of(plan: CompressionSettings, router: RouterSettings) -> ActorConfig | None:
    """The model that writes the summaries of ``plan``; None: it has none.

    Raises:
        ConfigError: it is not named, costs money, or is named for nothing.
    """
    name = plan.summarizer
    if "summary" not in plan.stages:
        if name and plan.stages:
            fix = 'Add "summary" to router.compression.stages, or leave it out.'
            raise ConfigError(f"router.compression.summarizer = {name} has no effect.", "No stage is summary.", fix)
        return None
    if not name:
        fix = 'Name one that costs nothing: --summarizer, or router.compression.summarizer = "ollama/MODEL".'
        raise ConfigError("No model writes the summaries.", "A stage is summary.", fix)
    actor = ActorConfig(
        **_provider_fields(name, router, "router.compression.summarizer names the one that writes summaries.")
    )
    if vendor := vendor_billing(actor, router):
        what = f"router.compression.summarizer = {name} is refused."
        raise ConfigError(what, f"{vendor} charges for its calls.", "Name a model that costs nothing, as ollama/MODEL.")
    return actor


def check_compression(plan: CompressionSettings) -> None:
    """Prompts are compressed only where that was measured, and loses little enough.

    Raises:
        ConfigError: it was not, or loses more.
    """
    if not plan.stages:
        return
    what = f"router.compression.stages = {', '.join(plan.stages)} is refused."
    if "summary" in plan.stages and plan.measured_summarizer != plan.summarizer:
        why = f"Summaries by {plan.summarizer or 'no model'} are set, by {plan.measured_summarizer or 'none'} measured."
        raise ConfigError(what, why, f"{MEASURE} --stage summary --summarizer {plan.summarizer or 'PROVIDER/MODEL'}")
    if plan.loss95 is None:
        raise ConfigError(what, "What it costs in accuracy was not measured.", MEASURE)
    if plan.loss95 > plan.most_loss:
        why = f"It may lose {100 * plan.loss95:.1f} points of accuracy, and most_loss is {100 * plan.most_loss:.1f}."
        raise ConfigError(what, why, "Keep more (longest), leave it off, or raise router.compression.most_loss.")


def _provider_fields(name: str, router: RouterSettings, why: str) -> dict[str, str]:
    """Settings of the model ``name`` and of where it is asked; raises ConfigError, because of ``why``, where it names
    none."""
    provider, slash, model = name.partition("/")
    if not slash or not provider:
        fix = "Write provider/model, as anthropic/claude-sonnet-5.5."
        raise ConfigError(f"{name!r} names no model.", why, fix)
    server = router.servers.get(name) or router.servers.get(provider) or ServerSettings()
    return {"provider": provider, "model": model, "base_url": server.base_url, "key_env": server.key_env}


def actors_of(settings: Settings) -> dict[str, ActorConfig]:
    """Every model that a run of ``settings`` may ask, by role; those that stand in are numbered."""
    run = settings.recorded_run
    teacher = {"teacher": run.teacher} if run.has_teacher else {}
    judge = {"judge": run.verification.judge} if run.verification.judge.provider else {}
    named: dict[str, ActorConfig] = {"student": run.student.in_rollouts(), **teacher, **judge}
    return {**named, **dict(_numbered(named, settings.router))}


def _numbered(named: Mapping[str, ActorConfig], router: RouterSettings) -> Iterator[tuple[str, ActorConfig]]:
    for role, actor in named.items():
        for number, stand_in in enumerate(stand_ins(actor, router), 1):
            yield f"{role} fallback {number}", stand_in


def check_routing(settings: Settings) -> None:
    """What may be asked must have a price where a budget is capped, and nothing may stand in where that is refused.

    Raises:
        ConfigError: ``router.pin`` refuses what a fallback is for; prompts would be compressed in a way that was not
            measured, or by a summary that costs money.
        UnknownPriceError: nobody knows what a model costs, and the settings name a cap.
    """
    router, judge = settings.router, settings.run.verification.judge
    check_compression(router.compression)
    summarizer_of(router.compression, router)
    if not judge.provider and (judge.fallback or judge.routing.strategy):
        fix = "Set run.verification.judge.provider, or leave them out."
        raise ConfigError("The judge's fallback and routing have no effect.", "No judge is named.", fix)
    student, named = settings.run.student, ("teacher", "student", "judge")
    check_strategy("student", student.distil_routing, len(student.distil_from))
    for role, actor in actors_of(settings).items():
        routing, count = getattr(actor, "routing", RoutingConfig()), len(getattr(actor, "fallback", ()))
        check_strategy(role, routing if role in named else RoutingConfig(), count)
        if router.pin == "refuse" and count and not routing.strategy:
            why = "router.pin = refuse holds a run to one model."
            raise ConfigError(f"The {role}'s fallback has no effect.", why, "Take one of the two away.")
        _check_price(actor, router)


def _check_price(actor: ActorConfig, router: RouterSettings) -> None:
    vendor = vendor_billing(actor, router)
    capped = [scope for scope in SCOPES if getattr(router.caps, scope) is not None]
    if not vendor or not capped:
        return
    name = f"{vendor}/{actor.model}"
    if Prices(router).rates(vendor, actor.model, utc_now()) is None:
        why = f"router.caps.{capped[0]} caps a budget, and the price table does not have this model."
        fix = f'Name its prices by the setting router.prices."{name}" (input, output: US dollars a million tokens).'
        raise UnknownPriceError(f"Nobody knows what a call to {name} costs.", why, fix)


SCOPES: tuple[BudgetScope, ...] = get_args(BudgetScope)


def open_ledger(settings: Settings, log: Log) -> Ledger:
    """The ledger of ``log``, stamped by this process."""
    return Ledger(log, recorded, utc_now, settings.router.expiry_s)


async def spent_usd(settings: Settings, log: Log, run: str, actor: ActorConfig, usage: Usage) -> float | None:
    """US dollars that the tokens of ``run`` cost: what its budget was charged, else ``usage`` at the price of
    ``actor``; None: the price is not known."""
    await log.queue.join()
    spent = (await open_ledger(settings, log).balance(Account("run", run))).spent
    vendor = vendor_billing(actor, settings.router)
    if vendor and Prices(settings.router).rates(vendor, actor.model, utc_now()) is None:
        return None
    read, written = actor.price
    return spent / DOLLAR if spent else (read * usage.prompt_tokens + written * usage.completion_tokens) / 1_000_000


def price_of(settings: Settings, actor: ActorConfig) -> tuple[float, float]:
    """US dollars for a million tokens that ``actor`` reads, and writes: of the settings, else of the price table; zeros
    where the price is not known, or the model runs on a machine of the user's."""
    vendor = vendor_billing(actor, settings.router)
    if any(actor.price) or not vendor:
        return actor.price
    rates = Prices(settings.router).rates(vendor, actor.model, utc_now())
    return (float(rates.read) / 1000, float(rates.written) / 1000) if rates else (0.0, 0.0)  # nano-dollars a token


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
