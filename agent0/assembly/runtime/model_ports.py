"""Part of the rim: the ports of models, trainers and embedders, each opened once and shared."""

import json
from collections.abc import Hashable
from typing import Any

from agent0.assembly.routing.gate import Gates
from agent0.assembly.runtime.providers import embedders, named, provider_of
from agent0.errors import ConfigError
from agent0.infra.gateway.batches import Batches
from agent0.infra.log.event_log import Log
from agent0.ports.models import Embedder, Model
from agent0.ports.storage import Artifacts
from agent0.ports.training import Trainer
from agent0.settings import ActorConfig, Settings


class OpenModels:
    """The ``Models`` port: one open model for each set of weights, shared by all roles. One that costs money or has
    stand-ins is behind a gateway, which charges the budgets of ``log``."""

    def __init__(self, settings: Settings, artifacts: Artifacts, log: Log | None = None) -> None:
        self._settings, self._artifacts = settings, artifacts
        self._open: dict[Hashable, Model] = {}
        self._gated: dict[Hashable, Model] = {}
        self._gates = Gates(settings, artifacts, log, self._model)

    def open(self, actor: ActorConfig) -> Model:
        """The model of ``actor``; both roles share one where their weights are the same."""
        actor = self._settings.models.addressed(actor)
        role = (weights_of(actor), type(actor).__name__, getattr(actor, "fallback", ()), _routing(actor))
        if role not in self._gated:
            self._gated[role] = self._gates.put_before(actor)
        return self._gated[role]

    def _model(self, actor: ActorConfig) -> Model:
        key = weights_of(actor)
        if key not in self._open:
            self._open[key] = provider_of(actor).open(actor, self._settings, self._artifacts)
        return self._open[key]

    def batches(self, actor: ActorConfig) -> Batches:
        """The way to the batches of the model of ``actor``; the caller closes it.

        Raises:
            ConfigError: it has none.
        """
        return self._gates.batches(actor)

    async def close(self) -> None:
        """Close every model."""
        self._gated.clear()
        self._gates.close()
        await _close(self._open)


class OpenTrainers:
    """The ``Trainers`` port: opens one trainer per set of weights."""

    def __init__(self, settings: Settings, artifacts: Artifacts) -> None:
        self._settings, self._artifacts = settings, artifacts
        self._open: dict[Hashable, Trainer] = {}

    def open(self, actor: ActorConfig) -> Trainer:
        """The trainer of ``actor``'s model."""
        actor = actor.as_trained
        provider = provider_of(actor)
        if provider.train is None:
            fix = "Choose another provider, or set run.training.<role>.enabled = false."
            raise ConfigError(f"Models of provider {provider.name} cannot be trained here.", fix=fix)
        key = weights_of(actor)
        if key not in self._open:
            self._open[key] = provider.train(actor, self._settings, self._artifacts)
        return self._open[key]

    async def close(self) -> None:
        """End the processes of those that have one."""
        await _close(self._open)


class OpenEmbedders:
    """The ``Embedders`` port: opens each embedder once, at its first use."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: dict[Hashable, Embedder] = {}

    def open(self, name: str) -> Embedder:
        """The embedder ``name``, made at the first call."""
        if name not in self._open:
            opener = named("embedder", name, embedders())
            self._open[name] = opener(self._settings)
        return self._open[name]

    async def close(self) -> None:
        """End the processes of those that have one."""
        await _close(self._open)


def weights_of(actor: ActorConfig) -> Hashable:
    """Everything that makes two actors need two models, as a key of them."""
    role = type(actor).__name__ if provider_of(actor).by_role else ""
    return (
        role,
        actor.provider,
        actor.model,
        actor.device,
        actor.quantization,
        actor.precision,
        actor.num_ctx,
        actor.timeout_s,
        actor.parallel,
        actor.base_url,
        actor.key_env,
        actor.tokenizer,
        actor.thinking,
        json.dumps(actor.template_arguments, sort_keys=True),
    )


def _routing(actor: ActorConfig) -> str:
    """How it chooses between models, as text."""
    routing = getattr(actor, "routing", None)
    return routing.model_dump_json() if routing else ""


async def _close(ports: dict[Hashable, Any]) -> None:
    while ports:
        _, port = ports.popitem()
        if close := getattr(port, "close", None):
            await close()
