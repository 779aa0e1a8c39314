"""Servers that tests start on a free port of the loopback, each with a thread of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def listening(
    handler: type[BaseHTTPRequestHandler], kind: type[ThreadingHTTPServer] = ThreadingHTTPServer, **attributes: Any
) -> Iterator[Any]:
    """A server whose ``url`` is its address; its handler is without a log and has these ``attributes``."""
    quiet = type("Handler", (handler,), {"log_message": lambda *_: None, **attributes})
    server: Any = kind(("127.0.0.1", 0), quiet)
    server.daemon_threads, server.url = True, f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def pages() -> Iterator[str]:
    """The address of a server of files, which knows nothing of models."""
    with listening(SimpleHTTPRequestHandler) as server:
        yield server.url
