"""What answers with pages at a model's address is a server of another kind: it is away, and no try has failed."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from agent0.errors import DependencyError, OtherServerError
from agent0.infra.models.anthropic.provider import Anthropic
from agent0.infra.models.ollama.provider import Ollama
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.ports.models import Model
from agent0.settings import ActorConfig
from tests.conformance_model import ask
from tests.loopback import listening
from tests.openai_server import actor

PAGE = b"<!doctype html><title>Router</title>"


class Pages(BaseHTTPRequestHandler):
    """Answers everything with the same page."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    do_GET = do_POST = answer  # noqa: N815 (as the library names them)


@pytest.fixture(params=[200, 404])
def pages(request: pytest.FixtureRequest) -> Iterator[str]:
    with listening(Pages) as server:
        server.status = request.param
        yield server.url


def anthropic(url: str) -> Model:
    return Anthropic(ActorConfig(provider="anthropic", model="m", base_url=url, key_env="A_KEY", timeout_s=5))


def ollama(url: str) -> Model:
    return Ollama(ActorConfig(provider="ollama", model="m", timeout_s=5), url)


@pytest.mark.parametrize("make", [lambda url: OpenAIServer(actor(url)), anthropic])
async def test_a_page_is_no_answer_of_a_model(pages: str, make: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "k")
    model: Model = make(pages)
    with pytest.raises(
        OtherServerError, match=r"a server of another kind: a page \(text/html, status (200|404)\) came"
    ):
        await model.generate(ask())
    await model.close()


@pytest.mark.parametrize("pages", [200], indirect=True)
async def test_a_page_is_no_answer_of_ollama(pages: str) -> None:
    model = ollama(pages)
    with pytest.raises(OtherServerError, match=r"is another server\. Set models\.ollama_url"):
        await model.generate(ask())
    await model.close()


class Redirects(BaseHTTPRequestHandler):
    """Sends every request on to the server ``elsewhere``, which counts those that come."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        server: Any = self.server
        server.came += 1
        self.send_response(200 if server.elsewhere is None else server.status)
        if server.elsewhere is not None:
            self.send_header("location", f"http://127.0.0.1:{server.elsewhere.server_port}{self.path}")
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST = answer  # noqa: N815 (as the library names them)


@pytest.mark.parametrize("status", [301, 307, 308])
@pytest.mark.parametrize("make", [lambda url: OpenAIServer(actor(url)), anthropic, ollama])
async def test_no_redirection_is_followed(make: Any, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a key nor a prompt goes where a server sends them."""
    monkeypatch.setenv("A_KEY", "k")
    with listening(Redirects) as second, listening(Redirects) as first:
        for server, following in ((first, second), (second, None)):
            server.elsewhere, server.status, server.came = following, status, 0
        model: Model = make(first.url)
        with pytest.raises(DependencyError):
            await model.generate(ask())
        assert first.came and not second.came
        await model.close()
