"""What commands with ``--model`` take alike: a model that is named alone brings its provider with it."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.runtime.model_folders import is_packable
from agent0.config.catalogue import serving_provider
from agent0.settings.roles import PACKAGED_MODELS

TINY = "tiny"
"""The packaged model, as people name it, and its provider."""
BOTH = ("student", "teacher")
SERVED = "openai"
"""The provider, and the profile, of a server that speaks OpenAI's API."""
Model = Annotated[
    str | None,
    typer.Option(help="Of student and teacher: a name that `agent0 model get` stored, a GGUF file, a folder; or tiny."),
]

BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="A server of OpenAI's API plays student and teacher: vLLM, SGLang, llama.cpp, LM Studio, Ollama's /v1; "
        "once for each of several with the same model. Without --profile that is openai; --model is a name there.",
    ),
]
KeyEnv = Annotated[
    str | None, typer.Option("--key-env", metavar="VARIABLE", help="Environment variable with that server's key.")
]


def model_or_server(model: str | None, base_url: list[str] | None, key_env: str | None) -> dict[str, str | None]:
    """Return the flags of ``flags.settings`` for the ``model`` of both roles: one of the server of OpenAI's API at
    ``base_url``, or of several, where that is named."""
    values = {"base_url": ",".join(base_url) if base_url else None, "key_env": key_env}
    server = {f"run__{role}__{name}": value for role in BOTH for name, value in values.items()}
    return {**model_flags(model, SERVED if base_url else None, *BOTH), **server}


def profile_of(profile: str | None, base_url: list[str] | None) -> str | None:
    """The ``profile`` that is named, else that of a server where its ``base_url`` is."""
    return profile or (SERVED if base_url else None)


def packaged_name(model: str) -> bool:
    """Whether ``model`` is one that comes with Agent0."""
    return model == TINY or (model != "" and model in PACKAGED_MODELS)


def model_flags(model: str | None, provider: str | None = None, *roles: str) -> dict[str, str | None]:
    """Return the flags of ``flags.settings`` for the ``model`` of ``roles``. ``provider`` defaults to tiny for a
    packaged model, to that of the catalogue for a GGUF file, to transformers for a folder, to the entry's for a name of
    the catalogue, and to the profile's for any other name."""
    if model and not provider:
        path = Path(model).expanduser()
        if packaged_name(model):
            model, provider = ("" if model == TINY else model), TINY
        elif path.is_file() or path.suffix == ".gguf":
            model, provider = str(path.absolute()), _provider_of(path)
        elif path.is_dir():
            model, provider = str(path.absolute()), "transformers"
    values = {"provider": provider, "model": model}
    return {f"run__{role}__{name}": value for role in roles for name, value in values.items()}


def _provider_of(file: Path) -> str:
    return serving_provider(is_packable(file), file.stat().st_size if file.is_file() else 0)[0]
