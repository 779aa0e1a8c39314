"""Search providers, one entry each, inside the proxy process. Only the provider's own server is asked, whatever a run
allows; redirects are not followed; the key leaves this process in one header and nowhere else."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from agent0.events.values import ToolState
from agent0.infra.web import egress_rules as rules
from agent0.infra.web.fetch import Guard, Limits, OutgoingRequest, answer_within, send
from agent0.ports.web import Hit, WebResponse

LONGEST_QUERY, MOST_HITS = 400, 20
LONGEST_TITLE, LONGEST_URL, LONGEST_TEXT = 200, 1000, 1000

Fields = tuple[str, str, str]


@dataclass(frozen=True)
class SearchProvider:
    """``path`` is asked below ``url`` (or below what a person set); ``results`` and ``fields`` say where title, address
    and text of its results stand."""

    url: str
    path: str
    query: Callable[[str, int], dict[str, str]]
    results: tuple[str, ...]
    fields: Fields
    key_header: str = ""
    hint: str = ""


PROVIDERS = {
    "searxng": SearchProvider(
        url="",
        path="/search",
        query=lambda query, _: {"q": query, "format": "json"},
        results=("results",),
        fields=("title", "url", "content"),
        hint="its settings.yml must list json under search.formats",
    ),
    "brave": SearchProvider(
        url="https://api.search.brave.com",
        path="/res/v1/web/search",
        query=lambda query, limit: {"q": query, "count": str(limit), "text_decorations": "false"},
        results=("web", "results"),
        fields=("title", "url", "description"),
        key_header="x-subscription-token",
        hint="set web.search_key to a valid key",
    ),
}


@dataclass(frozen=True)
class Engine:
    """A provider as a person set it up. ``url`` empty: the provider's own server."""

    provider: str
    url: str = ""
    key: str = field(default="", repr=False)

    async def search(self, query: str, limit: int, limits: Limits, guard: Guard) -> tuple[WebResponse, list[Hit]]:
        """Results, or an answer that says why there are none."""
        hits: list[Hit] = []

        async def ask() -> WebResponse:
            answer = await self._ask(query, limit, limits, guard)
            if answer.state is ToolState.OK:
                hits.extend(_hits(PROVIDERS[self.provider], json.loads(answer.body), limit, self.key))
            return answer

        try:
            answer = await answer_within(limits, ask)
        except RecursionError:
            answer = WebResponse(ToolState.ERROR)
        if answer.state is ToolState.ERROR:
            reason = answer.reason or "its answer cannot be read"
            return replace(answer, reason=f"the search provider failed: {reason}"), []
        return answer, hits

    async def _ask(self, query: str, limit: int, limits: Limits, guard: Guard) -> WebResponse:
        provider = PROVIDERS[self.provider]
        base = self.url or provider.url
        if not base:
            raise rules.EgressRefusedError(f"{self.provider} has no server of its own; set web.search_url")
        parameters = urlencode(provider.query(query[:LONGEST_QUERY].encode(errors="replace").decode(), limit))
        target = rules.target(f"{base.rstrip('/')}{provider.path}?{parameters}")
        headers = {"accept": "application/json"}
        if provider.key_header:
            headers[provider.key_header] = _key(self.key, target)
        if self.url:  # a person named this server, most often one of their own network
            guard = replace(guard, allowed=lambda _: True)
        return _judged(await send(OutgoingRequest(target, "GET", headers), limits, guard), provider)


def _key(key: str, target: rules.Target) -> str:
    if not key:
        raise rules.EgressRefusedError("the search provider needs a key; set web.search_key")
    if target.scheme != "https" and target.host not in ("127.0.0.1", "localhost", "::1"):
        raise rules.EgressRefusedError("a key is sent over https only; set web.search_url to an https address")
    return rules.headers({"accept": key})["accept"]


def _judged(answer: WebResponse, provider: SearchProvider) -> WebResponse:
    """``answer`` with a state that says what its status means."""
    status = answer.status
    if answer.state is ToolState.OUTPUT_FLOOD:
        return replace(answer, reason="the search provider's answer is too long")
    if answer.state is not ToolState.OK or status == 200:
        return answer
    if status in (401, 403):
        return WebResponse(ToolState.REFUSED, status, reason=f"the search provider refused ({status}): {provider.hint}")
    meanings = {429: ", too many searches, wait before the next", 422: ", it does not take this query"}
    return WebResponse(ToolState.ERROR, status, reason=f"status {status}{meanings.get(status, '')}")


def _hits(provider: SearchProvider, content: Any, limit: int, key: str) -> list[Hit]:
    """Results that have an address. Anything of another shape is left out; the key is never repeated."""
    for name in provider.results:
        content = content.get(name, {}) if isinstance(content, Mapping) else {}
    rows = [row for row in content if isinstance(row, Mapping)] if isinstance(content, list) else []
    hits = [_hit(row, provider.fields, key) for row in rows]
    return [hit for hit in hits if hit.url.startswith(("http://", "https://"))][:limit]


def _hit(row: Mapping[str, object], fields: Fields, key: str) -> Hit:
    texts = [text if isinstance(text := row.get(name), str) else "" for name in fields]
    title, url, text = (part.replace(key, "…") if key else part for part in texts)
    return Hit(title[:LONGEST_TITLE], url[:LONGEST_URL], text[:LONGEST_TEXT])
