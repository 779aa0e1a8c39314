"""Serves ``OllamaServer`` over HTTP on a loopback port, where it can be killed and come back."""

import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent0.ports.storage import Artifacts
from tests.ollama_server import Lines, OllamaServer


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True

    def __init__(self, *given: Any) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left, or a server that was killed, is no defect; tests see all else by what they get."""


class _Handler(BaseHTTPRequestHandler):
    ollama: OllamaServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        answers = {
            "/api/version": {"version": self.ollama.version},
            "/api/tags": self.ollama.tags(),
            "/api/ps": self.ollama.loaded(),
        }
        found = answers.get(self.path)
        self._send(200 if found else 404, found or {"error": "not found"})

    def do_HEAD(self) -> None:
        digest = self.path.removeprefix("/api/blobs/")
        self.send_response(200 if digest in self.ollama.blobs else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        content = self._content()
        if self.path.startswith("/api/blobs/"):
            self._send(*self.ollama.blob(self.path.removeprefix("/api/blobs/"), content))
            return
        body = json.loads(content)
        if self.path == "/api/chat":
            status, answer = self.ollama.chat(body, self._gone)
            self._send(status, answer) if isinstance(answer, dict) else self._stream(answer)
            return
        routes = {
            "/api/show": self.ollama.show,
            "/api/generate": self.ollama.generate,
            "/api/create": self.ollama.create,
        }
        self._send(*(routes[self.path](body) if self.path in routes else (404, {"error": "not found"})))

    def _content(self) -> bytes:
        """The request's body; what is streamed comes in chunks."""
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _gone(self) -> bool:
        """Whether the client has closed its end."""
        try:
            waiting = select.select([self.connection], [], [], 0)[0]
            return bool(waiting) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def _send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, lines: Lines | Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            data = (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Tests read ``asked`` instead."""


class Running:
    """A server that listens on a free loopback port, and can be killed and come back there."""

    def __init__(self, ollama: OllamaServer) -> None:
        self._handler = type("Handler", (_Handler,), {"ollama": ollama})
        self._address = ("127.0.0.1", 0)
        self.start()
        ollama.url = "http://{}:{}".format(*self._address)

    def start(self) -> None:
        """Listen."""
        self._server = _Server(self._address, self._handler)
        self._address = self._server.server_address[:2]  # type: ignore[assignment]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def kill(self) -> None:
        """Listen no more, and cut every connection in the middle of whatever it carries."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for connection in list(self._server.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def serving(artifacts: Artifacts, **options: Any) -> Iterator[OllamaServer]:
    """A server on a free loopback port."""
    ollama = OllamaServer(artifacts, **options)
    with running(ollama):
        yield ollama


@contextmanager
def running(ollama: OllamaServer) -> Iterator[Running]:
    """``ollama`` on a free loopback port, under a hand that can kill it."""
    run = Running(ollama)
    try:
        yield run
    finally:
        if ollama.stall:
            ollama.stall.set()
        run.kill()
