"""Models of an Ollama server as things: files handed over as blobs, models created from them, looked at and probed."""

import re
from collections.abc import AsyncIterator, Sequence
from math import log
from pathlib import Path
from typing import Any, Literal

import httpx

from agent0.errors import Agent0Error, DependencyError, OperationError, TransientError
from agent0.evaluation.serving_parity import DecodedToken
from agent0.events.values import Turn
from agent0.infra.models.llama_server import FAILURES, WrittenText, client_of, refused
from agent0.infra.storage.files import file_digest

OLDEST, ADAPTERS_GONE = (0, 30, 0), (0, 34, 1)
"""From the first on, llama.cpp's own server computes every model; from the second on, no adapters are taken in."""
QUANTISED = ("F16", "Q8_0", "Q4_K_S", "Q4_K_M")
"""What a server quantises a float32 model to."""
DISK, FULL = "disk space of the Ollama server", "no space left on device"
CHUNK = 1 << 20
_number = re.compile(r"\d+")


class OllamaModels:
    """The models of the Ollama server at ``url``: create, list, delete, run."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = client_of(url)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def version(self) -> str:
        """As it says it.

        Raises:
            DependencyError: nothing answers.
        """
        return str((await self.request("GET", "/api/version"))["version"])

    async def takes_adapters(self) -> bool:
        """Whether it can be given an adapter apart from its base; a build without a number may not.

        Raises:
            DependencyError: it is too old to be given either.
        """
        version = await self.version()
        if way_of(version) == "none":
            why = f"{self._url} is {version}, not 0.30 or newer."
            fix = "Update Ollama, or serve the exported files with llama-server."
            raise DependencyError("An Ollama that serves such models", why, fix)
        return way_of(version) == "adapter"

    async def has(self, name: str) -> bool:
        """Whether it has a model ``name``; errors as for ``request``."""
        try:
            return (await self._client.post("/api/show", json={"model": name})).status_code == 200
        except httpx.HTTPError as error:
            raise refused(error, self._url) from error

    async def put(self, path: Path) -> str:
        """Hand over a file unless the server has it; its digest as the server names it.

        Raises:
            OperationError: what arrived is not what was sent.
        """
        digest = f"sha256:{file_digest(path)}"
        try:
            head = await self._client.head(f"/api/blobs/{digest}")
            if head.status_code == 200:
                return digest
            reply = await self._client.post(f"/api/blobs/{digest}", content=_chunks(path))
        except httpx.HTTPError as error:
            raise refused(error, self._url) from error
        if reply.status_code not in (200, 201):
            raise _refusal(reply, f"the file {path.name}")
        return digest

    async def create(self, name: str, **fields: Any) -> None:
        """Make model ``name`` from ``files`` or ``from``, with ``adapters``, ``parameters``, ``template`` …

        Raises:
            OperationError: the server says no; nothing is made then.
            DependencyError: it ended while it made the model, or its disk is full.
        """
        body = {"model": name, "stream": False, **{key: value for key, value in fields.items() if value}}
        try:
            reply = await self.request("POST", "/api/create", body, timeout=None)
        except TransientError as error:
            raise _ended(name, error.why) from error
        except DependencyError as error:
            raise error if error.dependency == DISK else _ended(name, error.why) from error
        if reply.get("status") != "success":
            raise OperationError(f"Ollama did not make {name}.", f"It said: {reply.get('error', reply)}"[:300])

    async def show(self, name: str) -> dict[str, Any]:
        """What it says of model ``name``.

        Raises:
            OperationError: there is none.
        """
        return await self.request("POST", "/api/show", {"model": name, "verbose": False})

    async def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        """What it answers to a request.

        Raises:
            DependencyError, TransientError, OperationError: nothing, not in time, or a refusal.
        """
        try:
            reply = await self._client.request(method, path, json=body, **options)
            answer = reply.json()
        except FAILURES as error:
            raise refused(error, self._url) from error
        if reply.status_code != 200 or not isinstance(answer, dict):
            raise _refusal(reply, path)
        return answer


class OllamaServed:
    """The model ``name`` of the server at ``url``, probed by text: Ollama takes no token ids. ``base``: the name that
    its base has there, where it does not say so itself."""

    kind = "ollama"

    def __init__(self, url: str, name: str, base: str = "") -> None:
        self._server, self._name, self._base = OllamaModels(url), name, base

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()

    async def digest(self) -> tuple[str, str]:
        """Of the adapter's blob that its Modelfile names."""
        digest = blob_of(str((await self._server.show(self._name)).get("modelfile", "")), "ADAPTER")
        return (
            digest,
            "ADAPTER of its Modelfile" if digest else "its Modelfile names no adapter (a merged model has none)",
        )

    async def rendered(self, turns: Sequence[Turn]) -> str | None:
        """The prompt that the server's template makes of ``turns``; None where the server cannot show it, as where
        llama.cpp renders."""
        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        body = {"model": self._name, "messages": messages, "stream": False, "_debug_render_only": True}
        reply = await self._server.request("POST", "/api/chat", body | {"options": {"num_predict": 1}})
        rendered_text = (reply.get("_debug_info") or {}).get("rendered_template")
        return str(rendered_text) if rendered_text else None

    async def write(self, prompt: Sequence[int], text: str, count: int, adapted: bool) -> WrittenText | None:
        """Greedily after ``text``, which no template touches; without the adapter where its base has a name."""
        name = self._name
        if not adapted:
            name = self._base or str(((await self._server.show(name)).get("details") or {}).get("parent_model", ""))
        if not name or name.startswith(("/", ".")):
            return None
        options = {"temperature": 0, "num_predict": count, "repeat_penalty": 1.0, "seed": 0}
        body = {"model": name, "prompt": text, "raw": True, "stream": False, "logprobs": True, "top_logprobs": 20}
        reply = await self._server.request("POST", "/api/generate", body | {"options": options})
        steps = tuple(
            DecodedToken(
                str(token["token"]),
                _logprob(token["logprob"]),
                {str(o["token"]): _logprob(o["logprob"]) for o in token.get("top_logprobs") or ()},
            )
            for token in reply.get("logprobs") or ()
        )
        return WrittenText(str(reply.get("response", "")), steps)


def blob_of(modelfile: str, command: str) -> str:
    """The sha256 that a Modelfile names after ``FROM`` or ``ADAPTER``; empty where it names none."""
    for line in modelfile.splitlines():
        keyword, _, rest = line.strip().partition(" ")
        if keyword.upper() == command and (match := re.search(r"sha256[-:]([0-9a-f]{64})", rest)):
            return match[1]
    return ""


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _logprob(value: Any) -> float:
    """Some versions put a probability where the logarithm is zero."""
    logprob = float(value)
    return logprob if logprob <= 0 else min(0.0, log(logprob))


def way_of(version: str) -> Literal["none", "adapter", "merged"]:
    """How a server of ``version`` is given a trained model; a build without a number takes it merged, as all do."""
    numbers = tuple(int(n) for n in _number.findall(version)[:3])
    if (0, 0, 0) < numbers < OLDEST:
        return "none"
    return "adapter" if OLDEST <= numbers < ADAPTERS_GONE else "merged"


def _ended(name: str, why: str) -> DependencyError:
    fix = f"Start it again, see `ollama show {name}`, then push again."
    return DependencyError("Ollama", f"It ended while it made {name}: {why}", fix)


def _refusal(reply: httpx.Response, what: str) -> Agent0Error:
    try:
        message = reply.json().get("error", "")
    except (ValueError, AttributeError):
        message = reply.text
    why = f"Status {reply.status_code}: {message}"[:300]
    if FULL in str(message):
        fix = "Free some where OLLAMA_MODELS is; what was handed over goes when the server starts again."
        return DependencyError(DISK, why, fix)
    fix = "See what it has: ollama list" if reply.status_code == 404 else ""
    return OperationError(f"Ollama refused {what}.", why, fix)
