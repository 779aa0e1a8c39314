"""Part of the rim: puts budgets, cache, guards and stand-ins before every model that needs them."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from agent0.assembly.routing.billing import SCOPES, USAGE, caps, open_ledger, stand_ins, summarizer_of, vendor_billing
from agent0.assembly.routing.strategies import entry_of, measure_of, rules_of
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.errors import ConfigError
from agent0.infra.gateway.batches import Batches
from agent0.infra.gateway.billed import Billed, Books, Remote
from agent0.infra.gateway.cache import AnswerCache, CachedModel
from agent0.infra.gateway.compression import Shortening, Store, Summaries, bm25
from agent0.infra.gateway.gateway import Gateway, Guards, Link, LocalLink, RemoteLink, TriedModel
from agent0.infra.gateway.pins import Pins
from agent0.infra.gateway.prices import Prices
from agent0.infra.gateway.rates import RateLimits
from agent0.infra.gateway.retries import Retries
from agent0.infra.gateway.strategy_gateway import Plan, StrategyGateway
from agent0.infra.log.event_log import Log
from agent0.infra.models.calls.batch_api import BatchApi
from agent0.ports.models import Model
from agent0.ports.storage import Artifacts
from agent0.routing.breaker import Breaker
from agent0.routing.compression import Compression
from agent0.settings import ActorConfig, RoutingConfig, Settings
from agent0.settings.router import CompressionSettings

Open = Callable[[ActorConfig], Model]

ROLES: Mapping[str, str] = {
    "TeacherConfig": "teacher",
    "StudentConfig": "student",
    "RoutedStudentConfig": "student",
    "JudgeConfig": "judge",
}


class Gates:
    """Opens models as roles play them: one that costs money, or has stand-ins, is behind a gateway.

    Without a log nothing can be charged: models that cost money are then refused where the settings name a cap, since
    no call may pass it by.
    """

    def __init__(self, settings: Settings, artifacts: Artifacts, log: Log | None, open: Open) -> None:
        self._settings, self._artifacts, self._log, self._open = settings, artifacts, log, open
        self._guards: dict[str, Guards] = {}
        self._books: Books | None = None
        self._cache: AnswerCache | None = None
        self._shortening: Shortening | None = None

    def put_before(self, actor: ActorConfig) -> Model:
        """The model of ``actor``, behind a gateway where it needs one.

        Raises:
            ConfigError: it costs money, a cap is named, and there is no log.
        """
        model, chain = self._open(actor), stand_ins(actor, self._settings.router)
        if self._log is None:
            return self._uncharged(actor, model)
        if not chain and not vendor_billing(actor, self._settings.router):
            return model
        role = ROLES.get(type(actor).__name__, "")
        links = [self._link(actor, model, role, self._log)]
        links += [self._link(fallback, self._open(fallback), "fallback", self._log) for fallback in chain]
        routing = getattr(actor, "routing", RoutingConfig())
        if not routing.strategy:
            return Gateway(links, model, self._settings.router.hold)
        entry, rules, measure = entry_of(routing.strategy), rules_of(routing), measure_of(routing, actor)
        plan = Plan(role, entry, rules, routing.right, routing.calibrators, measure)
        return StrategyGateway(links, model, plan, self._charged(self._log), self._settings.router.hold)

    def batches(self, actor: ActorConfig) -> Batches:
        """The way to the batches of the model of ``actor``, whose answers are kept; the caller closes it.

        Raises:
            ConfigError: it costs nothing, or there is no log to charge it to.
        """
        if self._log is None or actor.provider == "ollama" or not vendor_billing(actor, self._settings.router):
            what = f"The model {actor.provider}/{actor.model} has no batch API."
            raise ConfigError(what, "Vendors have one whose calls cost money.", "Ask it call by call.")
        role, books = ROLES.get(type(actor).__name__, ""), self._charged(self._log)
        remote, api = self._remote(actor, role), batch_api(actor)
        return Batches(api, self._open(actor), remote, books, self._opened_cache(), self._retries())

    def _remote(self, actor: ActorConfig, role: str) -> Remote:
        router = self._settings.router
        vendor, usage = vendor_billing(actor, router), USAGE[actor.provider]
        named = {"thinking": actor.thinking, "template": actor.template_arguments}
        setup = json.dumps({key: value for key, value in named.items() if value}, sort_keys=True)
        location, setup = actor.base_url, "" if setup == "{}" else setup
        return Remote(vendor, actor.model, role, router.user, caps(router), usage=usage, location=location, setup=setup)

    def close(self) -> None:
        """Close the cache."""
        if self._cache is not None:
            self._cache.close()

    def _link(self, actor: ActorConfig, model: Model, role: str, log: Log) -> Link:
        router = self._settings.router
        if not vendor_billing(actor, router):
            return LocalLink(model)
        remote, books = self._remote(actor, role), self._charged(log)
        played = ROLES.get(type(actor).__name__, "")
        cache = self._opened_cache() if played in router.cache.roles else None
        guards = self._guards_of(f"{remote.id} {actor.base_url}")
        return RemoteLink(Billed(model, remote, books), books, guards, cache, self._shared_shortening())

    def _charged(self, log: Log) -> Books:
        if self._books is None:
            router = self._settings.router
            ledger, pins = open_ledger(self._settings, log), Pins(log, router.pin)
            prices = Prices(router, self._settings.run.energy)
            self._books = Books(ledger, prices, log, self._artifacts, recorded, utc_now, pins)
        return self._books

    def _opened_cache(self) -> AnswerCache:
        if self._cache is None:
            self._cache = open_cache(self._settings)
        return self._cache

    def _shared_shortening(self) -> Shortening | None:
        """One for all models, so that each is sent the same summary of an output."""
        router = self._settings.router
        if self._shortening is None and router.compression.stages:
            writer, store = summarizer_of(router.compression, router), None
            if writer is not None and router.cache.roles:
                owner = f"{writer.provider} {writer.base_url}".rstrip()
                store = Store(self._opened_cache(), utc_now, owner, writer.model)
            self._shortening = shortening_of(router.compression, writer, self._open, store)
        return self._shortening

    def _guards_of(self, name: str) -> Guards:
        if name not in self._guards:
            plan = self._settings.router.retries
            breaker = Breaker(plan.breaker, plan.breaker_s)
            self._guards[name] = Guards(RateLimits(), breaker, self._retries())
        return self._guards[name]

    def _retries(self) -> Retries:
        plan = self._settings.router.retries
        return Retries(plan.tries, plan.longest_s)

    def _uncharged(self, actor: ActorConfig, model: Model) -> Model:
        router = self._settings.router
        vendor = vendor_billing(actor, router)
        if not vendor:
            return model
        if any(getattr(router.caps, scope) is not None for scope in SCOPES):
            what = f"Calls of {vendor} cost money, and this command charges no budget."
            raise ConfigError(what, "router.caps names a cap.", "Use a model on this machine, or take the cap away.")
        return TriedModel(model, self._retries(), router.hold)


def shortening_of(
    plan: CompressionSettings,
    summarizer: ActorConfig | None,
    open: Callable[[ActorConfig], Model],
    store: Store | None = None,
    within_s: float = 60.0,
) -> Shortening:
    """Make what shortens prompts as ``plan`` has it, with summaries by ``summarizer`` that take no more than
    ``within_s`` seconds; None: without."""
    rank = bm25 if "extractive" in plan.stages else None
    if summarizer is None:
        return Shortening(Compression(plan.longest, rank))
    summaries = Summaries(open(summarizer), plan.summarizer, plan.longest, store, within_s)
    return Shortening(Compression(plan.longest, rank, summaries.of), summaries)


def batch_api(actor: ActorConfig) -> BatchApi:
    """The batch API of the vendor of ``actor``.

    Raises:
        AuthError: the variable that holds the key is not set.
    """
    if actor.provider == "anthropic":
        from agent0.infra.models.anthropic.batches import AnthropicBatches

        return AnthropicBatches(actor)
    from agent0.infra.models.openai.batches import OpenAIBatches

    return OpenAIBatches(actor)


def open_cache(settings: Settings) -> AnswerCache:
    """The cache in the data folder; its file is made at the first look."""
    plan = settings.router.cache
    return AnswerCache(settings.home / "cache" / "answers.sqlite", plan.days, plan.mib)


@contextmanager
def _looked_into(settings: Settings) -> Iterator[AnswerCache]:
    cache = open_cache(settings)
    try:
        yield cache
    finally:
        cache.close()


def cached_models(settings: Settings) -> list[CachedModel]:
    """What is kept of each model; amounts in nano-dollars."""
    with _looked_into(settings) as cache:
        return cache.models()


def clear_cache(settings: Settings) -> int:
    """Drop all answers that are kept; returns how many there were."""
    with _looked_into(settings) as cache:
        return cache.clear()
