"""Part of the rim: which adapter plays a model, a trainer, an embedder. One entry a provider; plugins add their own."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from agent0.assembly.routing import actor_limits as limits
from agent0.assembly.routing.billing import vendor_billing
from agent0.assembly.routing.server_probes import (
    check_anthropic,
    check_openai,
    probe_ollama,
    probe_openai,
    shared_folder,
)
from agent0.assembly.runtime.model_folders import (
    present_weights,
    require_file,
    require_folder,
    served_here,
    trainable_weights,
    trained_here,
    weights_of_model,
    why_untrainable,
)
from agent0.assembly.runtime.plugins import load_plugins
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError, DependencyError
from agent0.infra.embeddings.embedders import MiniLM, Ngram
from agent0.infra.models.calls.thinking import template_arguments
from agent0.infra.models.sampler import Sampler
from agent0.infra.models.scripted import Scripted, ScriptedTrainer, latency
from agent0.infra.models.transformers import PACKAGED, Transformers, check_folder, packaged, threads_of, tiny
from agent0.infra.training.lora_trainer import LoraTrainer
from agent0.infra.weights.gguf import check_folder as check_gguf_source
from agent0.infra.weights.gguf_header import is_gguf
from agent0.ports.models import Embedder, Model
from agent0.ports.storage import Artifacts
from agent0.ports.training import Trainer
from agent0.registry import Registry
from agent0.settings import ActorConfig, RunConfig, Settings

T = TypeVar("T")
EXTRA_LLAMACPP = "make setup EXTRAS=llamacpp"

OpenModel = Callable[[ActorConfig, Settings, Artifacts], Model]
OpenTrainer = Callable[[ActorConfig, Settings, Artifacts], Trainer]
OpenEmbedder = Callable[[Settings], Embedder]


@dataclass(frozen=True)
class Provider:
    """How a provider's models are opened and trained; ``train`` None: they cannot be trained here.

    ``prefill``: a turn can be made to begin with given text (the forced-tool control needs it). ``by_role``: what
    opens depends on the role too, so the roles never share one. ``check`` raises where this machine lacks the model,
    ``probe`` asks its server for a line on it, and raises where it cannot. ``folder``: of the weights that its adapters
    are trained on, which nothing else may serve with them. ``untrainable``: why turns of an actor as it is set cannot
    be trained on; empty where they can. ``whole``: adapters that hold all weights (rank 0) can be served. ``bias``:
    logits of single tokens can be changed (``Sampling.bias``). ``draws``: its teacher needs to be told a level.
    ``sized``: its context is that of ``num_ctx``. ``unswitched``: why an actor cannot think, or have its template
    rendered, as it is set; empty where it can. ``prepare``: makes what a training of an actor needs and what takes
    longer than a look; again it takes no time.
    """

    name: str
    open: OpenModel
    train: OpenTrainer | None = None
    prefill: bool = True
    by_role: bool = False
    check: Callable[[ActorConfig], None] | None = None
    folder: Callable[[ActorConfig], Path] | None = None
    probe: Callable[[ActorConfig, Settings], Awaitable[str]] | None = None
    untrainable: Callable[[ActorConfig], str] = lambda actor: ""
    whole: bool = True
    bias: bool = False
    draws: bool = False
    sized: bool = False
    unswitched: Callable[[ActorConfig], str] = limits.none
    prepare: Callable[[ActorConfig], object] | None = None


_providers = Registry[str, Provider]("providers")
_embedders = Registry[str, OpenEmbedder]("embedders")


def provider(entry: Provider) -> Provider:
    """Register a provider of models under its name; return it."""
    return _providers.add(entry.name, entry)


def embedder(name: str) -> Callable[[OpenEmbedder], OpenEmbedder]:
    """Return a decorator that registers ``open(settings)`` as the embedder ``name``."""
    return _embedders.adding(name, lambda open: open)


def providers() -> dict[str, Provider]:
    """Return every model provider by name, plugins included."""
    load_plugins()
    return _providers.all()


def embedders() -> dict[str, OpenEmbedder]:
    """Return every embedder by name, those of plugins included."""
    load_plugins()
    return _embedders.all()


def provider_of(actor: ActorConfig) -> Provider:
    """The provider that ``actor`` names.

    Raises:
        ConfigError: no such provider, or it has no switch that the actor sets.
    """
    provider = named("provider", actor.provider, providers())
    if why := provider.unswitched(actor):
        fix = "Leave it out, or name another provider."
        raise ConfigError(f"Provider {provider.name} cannot do what thinking or template_arguments asks.", why, fix)
    return provider


def check_models(run: RunConfig) -> None:
    """The models of a run must be on this machine, where it is to be carried here.

    Raises:
        ConfigError: a model that has to be named is not.
        DependencyError: its folder, or the packages it needs, are missing.
    """
    for actor in (*([run.teacher] if run.has_teacher else []), run.student):
        if check := provider_of(actor).check:
            check(actor)


def named(what: str, name: str, entries: Mapping[str, T]) -> T:
    """The entry ``name`` of ``entries``; raises ConfigError where there is none."""
    if name not in entries:
        raise ConfigError(
            f"There is no {what} {name!r}.", f"Known: {', '.join(entries)}.", nearest(name, list(entries))
        )
    return entries[name]


def _check_packages(_: ActorConfig) -> None:
    missing = [name for name in ("torch", "transformers", "peft") if find_spec(name) is None]
    if missing:
        why = f"Not installed: {', '.join(missing)}."
        raise DependencyError("The package that runs models", why, "make setup")


def _check_transformers(actor: ActorConfig) -> None:
    if not actor.model.strip():
        fix = "Set run.student.model and run.teacher.model to the folder of a saved model."
        raise ConfigError("Provider transformers needs the folder of a model.", "The setting model is empty.", fix)
    model = Path(actor.model).expanduser()
    if model.suffix == ".gguf":
        require_file(model)
    else:
        require_folder(model)
    check_folder(weights_of_model(model))
    _check_packages(actor)


def _check_scripted(actor: ActorConfig) -> None:
    latency(actor)


def _check_tiny(actor: ActorConfig) -> None:
    _packaged(actor)
    _check_packages(actor)


def _check_llamacpp(actor: ActorConfig) -> None:
    missing = [name for name in ("xllamacpp", "openai", "gguf") if find_spec(name) is None]
    if missing:
        raise DependencyError("llama.cpp's server", f"Not installed: {', '.join(missing)}.", EXTRA_LLAMACPP)
    if is_gguf(served_here(actor)):
        return require_file(served_here(actor))
    if actor.model not in PACKAGED:
        _check_transformers(actor)
    check_gguf_source(served_here(actor))
    _check_packages(actor)


def _packaged(actor: ActorConfig) -> Path:
    return packaged(actor.model)


def _saved(actor: ActorConfig) -> Path:
    """The folder of weights of provider transformers; ``Path()`` until those of a GGUF file are dequantised."""
    return present_weights(Path(actor.model).expanduser())


def _threads(model: Path, actor: ActorConfig, settings: Settings) -> int:
    return threads_of(model, actor.device, settings.models.threads)


def _tiny(actor: ActorConfig, settings: Settings, artifacts: Artifacts) -> Model:
    path = _packaged(actor)
    return tiny(artifacts, threads=_threads(path, actor, settings), max_batch=settings.models.max_batch, path=path)


def _transformers(actor: ActorConfig, settings: Settings, artifacts: Artifacts) -> Model:
    folder = weights_of_model(Path(actor.model).expanduser())
    return Transformers(
        folder,
        artifacts,
        name=Path(actor.model).name,
        threads=_threads(folder, actor, settings),
        max_batch=settings.models.max_batch,
        device=actor.device,
        quantization=actor.quantization,
        precision=actor.precision,
        template=template_arguments(actor),
        kept_mib=settings.models.kept_mib,
    )


def _train_tiny(actor: ActorConfig, settings: Settings, artifacts: Artifacts) -> Trainer:
    path, kept = _packaged(actor), settings.home / "training"
    return LoraTrainer(path, artifacts, threads=_threads(path, actor, settings), kept=kept)


def _train_lora(actor: ActorConfig, settings: Settings, artifacts: Artifacts) -> Trainer:
    folder = weights_of_model(Path(actor.model).expanduser())
    return LoraTrainer(
        folder,
        artifacts,
        kept=settings.home / "training",
        threads=_threads(folder, actor, settings),
        device=actor.device,
        quantization=actor.quantization,
        precision=actor.precision,
    )


def _ollama(actor: ActorConfig, settings: Settings, _: Artifacts) -> Model:
    from agent0.infra.models.ollama.provider import Ollama

    return Ollama(actor, settings.models.ollama_address(actor), free=not vendor_billing(actor, settings.router))


def _openai(actor: ActorConfig, settings: Settings, artifacts: Artifacts) -> Model:
    check_openai(actor)
    from agent0.infra.models.openai.several import opened

    free = not vendor_billing(actor, settings.router)  # the gateway asks again where each try has its price
    return opened(actor, artifacts, shared=shared_folder(settings), patient=free)


def _train_openai(actor: ActorConfig, settings: Settings, artifacts: Artifacts) -> Trainer:
    return _train_lora(actor.model_copy(update={"model": actor.tokenizer}), settings, artifacts)


def _anthropic(actor: ActorConfig, _: Settings, __: Artifacts) -> Model:
    check_anthropic(actor)
    from agent0.infra.models.anthropic.provider import Anthropic

    return Anthropic(actor)


def _llamacpp(actor: ActorConfig, settings: Settings, artifacts: Artifacts) -> Model:
    _check_llamacpp(actor)
    from agent0.infra.models.llama_cpp import LlamaCpp

    model, cache = served_here(actor), settings.home / "cache" / "gguf"
    return LlamaCpp(model, artifacts, actor, cache=cache, threads=_threads(model, actor, settings))


def _train_llamacpp(actor: ActorConfig, settings: Settings, artifacts: Artifacts) -> Trainer:
    return _train_lora(actor.model_copy(update={"model": str(trainable_weights(actor))}), settings, artifacts)


provider(Provider("tiny", _tiny, _train_tiny, check=_check_tiny, folder=_packaged, bias=True))
provider(
    Provider(
        "transformers",
        _transformers,
        _train_lora,
        check=_check_transformers,
        folder=_saved,
        bias=True,
        unswitched=limits.all_of_them,
    )
)
provider(
    Provider(
        "ollama",
        _ollama,
        prefill=False,
        by_role=True,
        probe=probe_ollama,
        sized=True,
        unswitched=limits.no_template,
    )
)
provider(Provider("anthropic", _anthropic, prefill=False, check=check_anthropic, unswitched=limits.anthropic))
provider(
    Provider(
        "openai",
        _openai,
        _train_openai,
        prefill=False,
        check=check_openai,
        folder=lambda actor: Path(actor.tokenizer).expanduser(),
        probe=probe_openai,
        untrainable=limits.untrainable_by_server,
        whole=False,
        unswitched=limits.all_of_them,
    )
)
provider(
    Provider(
        "llamacpp",
        _llamacpp,
        _train_llamacpp,
        check=_check_llamacpp,
        folder=trained_here,
        untrainable=why_untrainable,
        whole=False,
        sized=True,
        unswitched=limits.all_of_them,
        prepare=trainable_weights,
    )
)
provider(
    Provider(
        "scripted",
        lambda actor, _, artifacts: Scripted(artifacts, actor),
        lambda actor, _, artifacts: ScriptedTrainer(artifacts, actor),
        check=_check_scripted,
        draws=True,
    )
)
provider(Provider("sampler", lambda *_: Sampler(), draws=True))


@embedder("minilm")
def _minilm(_: Settings) -> Embedder:
    return MiniLM()


@embedder("ngram")
def _ngram(_: Settings) -> Embedder:
    return Ngram()
