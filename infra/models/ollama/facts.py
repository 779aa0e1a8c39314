"""What an Ollama server says of one of its models (``/api/show``, ``/api/ps``), and what follows for how it is asked.

A server rewrites the files that it is given, so a model is known by what is said of it here, never by the digest of a
file. Rules as read in ollama/ollama at fb30760.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from agent0.errors import OperationError
from agent0.infra.models.calls.streams import UNREADABLE
from agent0.infra.models.llama_server import authorities
from agent0.infra.models.ollama import CLOUD, is_cloud
from agent0.infra.models.ollama.registry import blob_of

LEVELS = ("low", "medium", "high")
ALWAYS_THINKS = ("gptoss", "gpt-oss")
"""Families that cannot but think: they take a level, and ``false`` breaks them."""
ASK_S = 5.0
FAILURES: tuple[type[Exception], ...] = (httpx.HTTPError, OSError, *UNREADABLE)


@dataclass(frozen=True)
class ModelFacts:
    """``capabilities`` and ``family`` as the server names them; ``stops``: the model's own stop texts; ``base``: what
    its weights are known by, which models that share a runner have in common; ``adapter`` of it; ``remote``: the host
    that computes it, where that is another. All is empty where the server says nothing."""

    capabilities: tuple[str, ...] = ()
    family: str = ""
    stops: tuple[str, ...] = ()
    base: str = ""
    adapter: str = ""
    remote: str = ""


def read_facts(shown: Mapping[str, Any], model: str) -> ModelFacts:
    """Read an answer of ``/api/show``; errors as ``UNREADABLE`` has them."""
    details, modelfile = shown.get("details") or {}, str(shown.get("modelfile") or "")
    remote = str(shown.get("remote_host") or "") or (CLOUD if shown.get("remote_model") or is_cloud(model) else "")
    return ModelFacts(
        tuple(map(str, shown.get("capabilities") or ())),
        str(details.get("family") or ""),
        tuple(_stops(str(shown.get("parameters") or ""))),
        blob_of(modelfile, "FROM") or str(details.get("parent_model") or "") or model,
        blob_of(modelfile, "ADAPTER"),
        remote,
    )


async def look(url: str, model: str) -> ModelFacts:
    """Ask the server at ``url`` about ``model``; what cannot be had is empty."""
    try:
        async with httpx.AsyncClient(base_url=url, timeout=ASK_S, verify=authorities()) as client:
            reply = await client.post("/api/show", json={"model": model})
            return read_facts(reply.json(), model) if reply.status_code == 200 else ModelFacts()
    except FAILURES:
        return ModelFacts()


async def window_of(url: str, model: str) -> int:
    """The context window that ``model`` was loaded with, as ``/api/ps`` says; 0 where it does not."""
    for row in await _rows(url, "/api/ps"):
        if model in (row.get("name"), row.get("model"), str(row.get("name")).removesuffix(":latest")):
            size = row.get("context_length")
            return size if isinstance(size, int) else 0
    return 0


async def names(url: str) -> list[str]:
    """The models that the server has, as ``/api/tags`` lists them; none where it does not answer."""
    return [str(row.get("name")) for row in await _rows(url, "/api/tags") if row.get("name")]


def think(setting: str, facts: ModelFacts, model: str) -> bool | str:
    """What the field ``think`` says, which a server sets by itself where it is missing: by default off, and of a family
    that cannot but think its lowest level.

    Raises:
        OperationError: the model cannot do what ``setting`` asks.
    """
    level = {"on": "medium", "minimal": "low", "": "low"}.get(setting, setting)
    if facts.family in ALWAYS_THINKS:
        if setting == "off":
            fix = "Set run.<role>.thinking to low, medium or high."
            why = f"Its family is {facts.family}."
            raise OperationError(f"The model {model} of Ollama cannot but think.", why, fix)
        return level
    if setting in ("", "off"):
        return False
    if facts.capabilities and "thinking" not in facts.capabilities:
        why = f"It can: {', '.join(facts.capabilities)}."
        raise OperationError(f"The model {model} of Ollama does not think.", why, "Leave run.<role>.thinking empty.")
    return True if setting == "on" else level


async def _rows(url: str, path: str) -> list[Mapping[str, Any]]:
    try:
        async with httpx.AsyncClient(base_url=url, timeout=ASK_S, verify=authorities()) as client:
            reply = (await client.get(path)).json()
            return [row for row in reply["models"] if isinstance(row, dict)]
    except FAILURES:
        return []


def _stops(parameters: str) -> list[str]:
    """The texts of lines like ``stop    "<|im_end|>"``."""
    reply = []
    for line in parameters.splitlines():
        key, _, rest = line.strip().partition(" ")
        if key == "stop" and (text := rest.strip()):
            reply.append(str(json.loads(text)) if text.startswith('"') and text.endswith('"') else text)
    return reply
