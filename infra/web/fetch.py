"""One request, redirects included, inside the proxy process: each name is resolved once, every address it has is
checked, and the connection is made to exactly such an address. Body, answer and time are limited."""

import asyncio
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from urllib.parse import urljoin

import httpx

from agent0.events.values import ToolState
from agent0.infra.web import egress_rules as rules
from agent0.infra.web.egress_rules import EgressRefusedError, Target
from agent0.ports.web import WebRequest, WebResponse

AGENT = "agent0"
MOST_ADDRESSES = 4
CONNECT_S = 5.0
SHOWN_HEADERS = ("content-type", "content-language", "etag", "last-modified", "location", "retry-after")
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class Limits:
    """Of one request: seconds and redirects in all, bytes of body and of answer."""

    timeout_s: float
    max_bytes: int
    redirects: int


async def resolve(host: str, port: int) -> list[str]:
    """Resolve ``host`` to all of its IP addresses, without duplicates."""
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def is_strange(address: str) -> bool:
    """Whether ``address`` is public and none of this machine's own: what listens there is for neighbours."""
    return rules.is_public(address) and not _is_own(address)


def _is_own(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:  # nothing is sent: the kernel only picks a route
        try:
            probe.connect((address, 9))
        except OSError:
            return False
        return bool(probe.getsockname()[0] == address)


@cache
def _authorities() -> ssl.SSLContext:
    """The packaged certificate authorities, read once: that takes longer than most requests."""
    return httpx.create_ssl_context(trust_env=False)


@dataclass(frozen=True)
class Guard:
    """How names become addresses, which of them may be connected to, and whose certificates count."""

    resolve: Callable[[str, int], Awaitable[list[str]]] = resolve
    allowed: Callable[[str], bool] = is_strange
    tls: ssl.SSLContext = field(default_factory=_authorities)


@dataclass(frozen=True)
class OutgoingRequest:
    """One HTTP request as it is sent: checked target, method, headers, body."""

    target: Target
    method: str
    headers: Mapping[str, str]
    body: bytes = b""


async def fetch(request: WebRequest, limits: Limits, guard: Guard) -> WebResponse:
    """Make an untrusted request within all rules. Never raises for what the requester or the server does."""
    return await answer_within(limits, lambda: _fetch(request, limits, guard))


async def answer_within(limits: Limits, make: Callable[[], Awaitable[WebResponse]]) -> WebResponse:
    """Run ``make`` within ``limits.timeout_s`` and return its failures as answers."""
    try:
        async with asyncio.timeout(limits.timeout_s):
            return await make()
    except EgressRefusedError as error:
        return WebResponse(ToolState.REFUSED, reason=str(error))
    except TimeoutError:
        return WebResponse(ToolState.TIMEOUT, reason=f"there was no whole answer within {limits.timeout_s:g} s")
    except (httpx.TransportError, httpx.InvalidURL, OSError, zlib.error, ValueError, UnicodeError) as error:
        return WebResponse(ToolState.ERROR, reason=_reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return "no connection, or no valid certificate"
    if isinstance(error, zlib.error):
        return "the answer is compressed in a way that cannot be read"
    return f"the server did not answer as one should ({type(error).__name__})"


async def _fetch(request: WebRequest, limits: Limits, guard: Guard) -> WebResponse:
    if len(request.body) > limits.max_bytes:
        raise EgressRefusedError(f"the body is longer than {limits.max_bytes} bytes")
    target = rules.target(request.url)
    call = OutgoingRequest(
        target, rules.method(request.method, request.methods), rules.headers(request.headers), request.body
    )
    for _ in range(limits.redirects + 1):
        rules.check_host(call.target, request.hosts)
        answer = await send(call, limits, guard)
        if answer.status not in _REDIRECTS or "location" not in answer.headers:
            return answer
        call = _redirected(call, answer)
        rules.method(call.method, request.methods)
    raise EgressRefusedError(f"more than {limits.redirects} redirects")


def _redirected(call: OutgoingRequest, answer: WebResponse) -> OutgoingRequest:
    """The next request, as browsers make it; it is checked like the first one."""
    location = answer.headers["location"]
    rules.plain(location)
    target = rules.target(urljoin(call.target.url, location))
    if call.target.scheme == "https" and target.scheme == "http":
        raise EgressRefusedError("a redirect from https to http is not followed")
    if answer.status in (307, 308) or call.method in ("GET", "HEAD"):
        return replace(call, target=target)
    kept = {name: value for name, value in call.headers.items() if name != "content-type"}
    return OutgoingRequest(target, "GET", kept)


async def send(call: OutgoingRequest, limits: Limits, guard: Guard) -> WebResponse:
    """One request and its answer, without rules on host, method and headers.

    Raises:
        RefusedError: an address of the host may not be connected to.
        httpx.TransportError, OSError, zlib.error: no answer.
    """
    addresses = await _addresses(call.target, guard)
    for number, address in enumerate(addresses, 1):
        try:
            return await _send_to(address, call, limits, guard)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if number == len(addresses):
                raise
    raise socket.gaierror("no address")


async def _addresses(target: Target, guard: Guard) -> list[str]:
    addresses = await guard.resolve(target.host, target.port)
    if not all(guard.allowed(address) for address in addresses):
        raise EgressRefusedError(f"{target.host} is not, or not only, at addresses of the open internet")
    return addresses[:MOST_ADDRESSES]


async def _send_to(address: str, call: OutgoingRequest, limits: Limits, guard: Guard) -> WebResponse:
    """A connection of its own to ``address``; server name, certificate and Host header are those of the name."""
    url = httpx.URL(scheme=call.target.scheme, host=address, port=call.target.port, raw_path=call.target.path.encode())
    headers = {"user-agent": AGENT, "accept": "*/*", **call.headers}
    headers |= {"host": call.target.authority, "accept-encoding": "gzip, deflate", "connection": "close"}
    extensions: dict[str, object] = {"sni_hostname": call.target.host, "timeout": {"connect": CONNECT_S}}
    content = call.body or None
    request = httpx.Request(call.method, url, headers=headers, content=content, extensions=extensions)
    async with httpx.AsyncHTTPTransport(verify=guard.tls, trust_env=False) as transport:
        response = await transport.handle_async_request(request)
        try:
            return await _read(response, call, limits.max_bytes)
        finally:
            await response.aclose()


async def _read(response: httpx.Response, call: OutgoingRequest, limit: int) -> WebResponse:
    shown = {name: response.headers[name] for name in SHOWN_HEADERS if name in response.headers}
    answer = WebResponse(ToolState.OK, response.status_code, shown, url=call.target.url)
    if response.status_code in _REDIRECTS and "location" in shown:
        return answer  # its body says nothing more
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip", "x-gzip", "deflate"):
        return replace(answer, state=ToolState.ERROR, reason="the answer is compressed in a way that cannot be read")
    body, cut = await _body(response, coding != "identity", limit)
    if cut:
        reason = f"the answer is longer than {limit} bytes"
        return replace(answer, state=ToolState.OUTPUT_FLOOD, body=body, reason=reason)
    return replace(answer, body=body)


async def _body(response: httpx.Response, compressed: bool, limit: int) -> tuple[bytes, bool]:
    """(the first ``limit`` bytes, whether there are more). A bomb is never unpacked further than that."""
    out, received = bytearray(), 0
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    async for chunk in response.aiter_raw():
        received += len(chunk)
        out += unpack.decompress(chunk, limit + 1 - len(out)) if compressed else chunk
        if max(received, len(out)) > limit:
            return bytes(out[:limit]), True
    return bytes(out), False
