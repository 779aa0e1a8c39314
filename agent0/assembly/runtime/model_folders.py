"""Part of the rim: the folders and files of models on this machine, and what provider llamacpp trains of them."""

from pathlib import Path

from agent0.assembly.routing import actor_limits as limits
from agent0.config.catalogue import catalogue_model
from agent0.errors import DependencyError
from agent0.infra.engine.memory_need import is_plain
from agent0.infra.models.transformers import PACKAGED
from agent0.infra.weights.dequantise import configuration, dequantised, folder_of, has_weights, unusable
from agent0.infra.weights.gguf_header import is_gguf
from agent0.infra.weights.model_config import ModelKind
from agent0.settings import ActorConfig


def require_folder(folder: Path) -> None:
    """Raises DependencyError where ``folder``, of a saved model, is not there, with the command that downloads one."""
    if folder.is_dir():
        return
    if entry := catalogue_model(str(folder)):
        size = f"{entry.bytes >> 20:,} MiB, " if entry.bytes else ""
        why = f"It is not stored here ({size}licence {entry.licence})."
        raise DependencyError(f"The model {folder}", why, f"agent0 model get {folder}")
    owner = "Qwen" if folder.name.startswith("Qwen") else "OWNER"
    fix = f"hf download {owner}/{folder.name} --local-dir {folder}. Or: Name a folder that a model was saved to."
    raise DependencyError(f"The model {folder.name}", f"There is no folder {folder.absolute()}.", fix)


def require_file(file: Path) -> None:
    """Raises DependencyError where the GGUF ``file`` is not there, is none, or is cut short."""
    fix = f"hf download OWNER/REPOSITORY {file.name} --local-dir {file.parent}. Or: Name a file that is there."
    if not file.is_file():
        raise DependencyError(f"The model {file.name}", f"There is no file {file.absolute()}.", fix)
    with file.open("rb") as content:
        if content.read(4) != b"GGUF":
            raise DependencyError(f"The model {file.name}", "Its first bytes are not those of a GGUF file.", fix)
    unusable(file)


def served_here(actor: ActorConfig) -> Path:
    """The folder or GGUF file that provider llamacpp serves."""
    return PACKAGED.get(actor.model) or Path(actor.model).expanduser()


def present_weights(model: Path) -> Path:
    """The folder of weights of a folder or GGUF file; ``Path()`` until those of a file are dequantised."""
    if not is_gguf(model):
        return model
    return folder_of(model) if has_weights(model) else Path()


def weights_of_model(model: Path) -> Path:
    """The folder of weights of a folder or GGUF file, whose weights are dequantised once."""
    return dequantised(model) if is_gguf(model) else model


def is_packable(file: Path) -> bool:
    """Whether our own engine computes the model of a GGUF ``file`` with its matrices packed; not where it is none."""
    try:
        return not unusable(file) and is_plain(ModelKind.model_validate(configuration(file)))
    except (DependencyError, OSError):
        return False


def trained_here(actor: ActorConfig) -> Path:
    """The folder of weights of provider llamacpp; of a GGUF file ``Path()`` until they are dequantised."""
    return present_weights(served_here(actor))


def trainable_weights(actor: ActorConfig) -> Path:
    """The folder of weights that adapters of provider llamacpp are trained on."""
    return weights_of_model(served_here(actor))


def why_untrainable(actor: ActorConfig) -> str:
    """Why an actor of provider llamacpp cannot be trained on, as it is set; empty where it can."""
    model = served_here(actor)
    try:
        why = unusable(model) if is_gguf(model) else ""
    except DependencyError as error:
        return str(error)
    except OSError as error:
        return f"{model} cannot be read: {error.strerror}."
    return f"{model.name} can be served, not trained: {why}" if why else limits.sampled_otherwise(actor)
