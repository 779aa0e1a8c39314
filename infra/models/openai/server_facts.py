"""What settings name of a server of OpenAI's API (address, key, model), and what it says of itself."""

import json
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from agent0.errors import AuthError, DependencyError, OperationError, OtherServerError, RefusedError
from agent0.infra.models.calls.refusals import unset
from agent0.infra.models.openai.dialects import ListedModel
from agent0.settings import ActorConfig

LACKS = (OperationError, OtherServerError)
"""What is raised where a server has no such path: some answer with a page."""
LOADED = (("/api/ps", "models", "context_length"), ("/api/v0/models", "data", "loaded_context_length"))
"""Where Ollama and LM Studio say with which context a model is loaded: path, list, field."""


def root_of(base_url: str) -> str:
    """The (first) address without the ``/v1`` that OpenAI's API lies under."""
    return base_url.partition(",")[0].strip().rstrip("/").removesuffix("/v1")


def key_of(actor: ActorConfig) -> str:
    """The key in the variable that ``actor.key_env`` names; empty where it names none.

    Raises:
        AuthError: that variable is not set.
    """
    if not actor.key_env:
        return ""
    if key := os.environ.get(actor.key_env, "").strip():
        return key
    raise AuthError(f"The key for {root_of(actor.base_url)} is missing.", *unset(actor.key_env))


def model_name(model: str) -> str:
    """The name of ``model`` in events: a file's name stands for its path, as llama.cpp names models."""
    return f"openai/{Path(model).name if model.startswith('/') else model}".rstrip("/")


def chosen_model(name: str, there: Sequence[str], root: str) -> str:
    """The model ``name`` of those that the server at ``root`` has, or its only one where none is named.

    Raises:
        RefusedError: it has no such model, or several and none is named; the error lists them.
    """
    listed = f"It has: {', '.join(there) or 'none'}."
    if not name and len(there) != 1:
        raise RefusedError(
            f"Which model of {root} is not said.", listed, "Set run.<role>.model to one of them, or name it by --model."
        )
    if name and name not in there:
        fix = "Set run.<role>.model to one of them, or name it by --model."
        raise RefusedError(f"The server at {root} has no model {name}.", listed, fix)
    return name or there[0]


def check_size(card: ListedModel, folder: Path, root: str) -> None:
    """Raises RefusedError where the server at ``root`` says that its model is of another width than that in ``folder``:
    models of one family spell tokens alike."""
    try:
        width = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("hidden_size")
    except (OSError, ValueError, AttributeError):
        return
    if card.width and isinstance(width, int) and width != card.width:
        why = f"Its hidden states have {card.width} numbers, those of the model in {folder} have {width}."
        raise RefusedError(f"The server at {root} serves another model.", why, "Set run.<role>.tokenizer.")


def require_same(answers: str, served: Sequence[str], root: str) -> None:
    """Raises DependencyError where one of the models that answers name as ``served`` is not the one that the server at
    ``root`` had at first, ``answers``; an empty name says nothing."""
    if other := next((name for name in served if name and answers and name != answers), ""):
        why = f"The server at {root} answers as {other[:80]!r} now."
        raise DependencyError(f"The model {answers[:80]!r}", why, "Serve that one again, or begin another run.")


async def loaded_context(ask: Callable[[str, str], Awaitable[Any]], model: str) -> int:
    """The context, in tokens, with which an Ollama or LM Studio has loaded ``model``; 0 where it does not say. ``ask``
    has method and path."""
    for path, rows, field in LOADED:
        try:
            for row in (await ask("GET", path))[rows]:
                size = row.get(field) if model in (row.get("id"), row.get("name"), row.get("model")) else 0
                if isinstance(size, int) and size > 0:
                    return size
        except (*LACKS, KeyError, TypeError, AttributeError):
            continue
    return 0
