"""Models that another program serves, asked what they write: llama.cpp's server through its own HTTP API."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

import httpx

from agent0.errors import Agent0Error, DependencyError, OperationError, TransientError
from agent0.evaluation.serving_parity import DecodedToken
from agent0.events.values import Turn
from agent0.infra.models.calls.streams import UNREADABLE
from agent0.infra.storage.files import file_digest

FAILURES: tuple[type[Exception], ...] = (httpx.HTTPError, *UNREADABLE)
TIMEOUT = httpx.Timeout(120.0, connect=5.0)
SEEN = 50
"""How many of the likeliest tokens a server is asked for at each place."""

FORCED = 1000.0
"""Added to a token's logit when it is chosen; what is told of its probability is from before."""


@dataclass(frozen=True)
class WrittenText:
    """What a served model wrote. ``steps`` is empty where the server gives no log-probabilities."""

    text: str
    steps: tuple[DecodedToken, ...] = ()


class ServedModel(Protocol):
    """One model that a server serves: token ids and their text in, a greedy continuation out."""

    kind: str

    async def digest(self) -> tuple[str, str]:
        """The sha256 of the adapter file that the server has, empty where it does not say; and a line that explains
        it."""
        ...

    async def rendered(self, turns: Sequence[Turn]) -> str | None:
        """The prompt that the server's chat template makes of ``turns``; None where the server cannot show it."""
        ...

    async def write(self, prompt: Sequence[int], text: str, count: int, adapted: bool) -> WrittenText | None:
        """What it writes after ``prompt``, which spells ``text``; None where it cannot leave its adapter out."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class LlamaServer:
    """The one model that a llama.cpp server at ``url`` has loaded, with the adapters that it was started with."""

    kind = "llama.cpp"

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = client_of(url)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def adapters(self) -> dict[int, Path]:
        """The files of its adapters by their ids."""
        listed = await self._request("GET", "/lora-adapters")
        return {int(adapter["id"]): Path(adapter["path"]) for adapter in listed}

    async def digest(self) -> tuple[str, str]:
        """Of its one adapter's file, where that is on this machine."""
        adapters = await self.adapters()
        if len(adapters) != 1:
            return "", f"it has {len(adapters)} adapters loaded (a merged model has none)"
        [path] = adapters.values()
        return (file_digest(path), str(path)) if path.is_file() else ("", f"{path} is not on this machine")

    async def rendered(self, turns: Sequence[Turn]) -> str | None:
        """The text that its chat template makes of ``turns``."""
        body = {"messages": [{"role": turn.role, "content": turn.content} for turn in turns]}
        return str((await self._request("POST", "/apply-template", body))["prompt"])

    async def tokenized(self, text: str) -> list[int]:
        """The ids that it cuts ``text`` into."""
        body = {"content": text, "add_special": False, "parse_special": True}
        return list((await self._request("POST", "/tokenize", body))["tokens"])

    async def write(self, prompt: Sequence[int], text: str, count: int, adapted: bool) -> WrittenText | None:
        """Greedily after the token ids ``prompt``, with its adapters or without."""
        scales = dict.fromkeys(await self.adapters(), float(adapted))
        return None if not adapted and not scales else await self.go_on(prompt, count, scales)

    async def go_on(
        self,
        prompt: Sequence[int],
        count: int,
        scales: Mapping[int, float],
        alternatives: int = SEEN,
        forced: int | None = None,
    ) -> WrittenText:
        """What it writes greedily after the token ids ``prompt``, with its adapters at ``scales``; or only ``forced``.

        The server tells nothing of a last token that ends within a character.
        """
        body = {
            "prompt": list(prompt),
            "n_predict": count,
            "temperature": 0,
            "n_probs": alternatives,
            "post_sampling_probs": False,
            "cache_prompt": False,
            "lora": [{"id": key, "scale": value} for key, value in scales.items()],
            "logit_bias": [] if forced is None else [[forced, FORCED]],
        }
        reply = await self._request("POST", "/completion", body)
        steps = tuple(
            DecodedToken(
                int(p["id"]), float(p["logprob"]), {int(o["id"]): float(o["logprob"]) for o in p["top_logprobs"]}
            )
            for p in reply.get("completion_probabilities", ())
        )
        return WrittenText(str(reply["content"]), steps)

    async def _request(self, method: str, path: str, body: Any = None) -> Any:
        try:
            reply = await self._client.request(method, path, json=body)
            answer = reply.json()
        except FAILURES as error:
            raise refused(error, self._url) from error
        if reply.status_code != 200:
            message = answer.get("error", answer) if isinstance(answer, dict) else answer
            raise OperationError(f"The server at {self._url} refused {path}.", f"It said: {message}"[:300])
        return answer


@cache
def authorities() -> ssl.SSLContext:
    """Whose certificates count, read once: that takes longer than a short request."""
    return httpx.create_ssl_context()


def client_of(url: str) -> httpx.AsyncClient:
    """Open an HTTP client of the server at ``url``; whoever opened it closes it."""
    return httpx.AsyncClient(base_url=url, timeout=TIMEOUT, verify=authorities())


async def kind_of(url: str) -> str:
    """``ollama`` or ``llama.cpp``: what answers at ``url``.

    Raises:
        DependencyError: nothing does, or something else.
    """
    async with client_of(url) as client:
        for path, key, kind in (("/api/version", "version", "ollama"), ("/props", "chat_template", "llama.cpp")):
            try:
                reply = await client.get(path)
                answer = reply.json() if reply.status_code == 200 else None
            except FAILURES as error:
                raise refused(error, url) from error
            if isinstance(answer, dict) and key in answer:
                return kind
    raise DependencyError(
        "A server of models", f"What answers at {url} is neither Ollama nor llama.cpp's server.", "Name another --url."
    )


def refused(error: Exception, url: str) -> Agent0Error:
    """An error of the connection as one of ours."""
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return TransientError("The server of models took too long.", f"At {url}.")
    if isinstance(error, httpx.TransportError | httpx.InvalidURL):
        fix = "Run `ollama serve`, or llama-server with the exported files, or name another --url."
        return DependencyError("A server of models", f"Nothing answers at {url}.", fix)
    return TransientError("The server's answer could not be read.", f"{type(error).__name__}: {error}"[:300])


def spelt(folder: Path, ids: Sequence[int]) -> str:
    """The text of token ids of the model in ``folder``, control tokens included."""
    return str(_tokenizer(folder / "tokenizer.json").decode(list(ids), skip_special_tokens=False))


@lru_cache(maxsize=2)
def _tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415 - of an extra

    return Tokenizer.from_file(str(path))
