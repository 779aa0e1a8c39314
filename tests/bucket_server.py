"""A bucket in memory, over HTTP as S3 is spoken: what the real stores are asked for by us, with faults on demand."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import listening

_HEAD = "<Name>bucket</Name><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>"
_ENTRY = (
    "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>e</ETag>"
    "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
)


class Bucket:
    """``objects`` by key; ``requests`` that came, as (method, key). All that comes gets the status ``refuse`` where
    there is one; the next ``cuts`` requests end in the middle of their answer, or before there is any."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.requests: list[tuple[str, str]] = []
        self.refuse = self.cuts = 0
        self.lock = threading.Lock()

    def cut(self) -> bool:
        """Whether this request is to be cut."""
        with self.lock:
            self.cuts = max(0, self.cuts - 1)
            return self.cuts > 0

    def multipart(self, query: dict[str, str], key: str, body: bytes) -> bytes:
        """The answer to a request about an object that is sent in parts."""
        if "uploads" in query:
            self.parts[key] = {}
            return f"<R><UploadId>{key}</UploadId></R>".replace("R>", "InitiateMultipartUploadResult>").encode()
        if "partNumber" in query:
            self.parts[query["uploadId"]][int(query["partNumber"])] = body
            return b""
        parts = self.parts.pop(query["uploadId"], None)
        if parts is None:
            raise LookupError(key)
        self.objects[key] = b"".join(parts[number] for number in sorted(parts))
        return b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>"

    def listed(self, prefix: str) -> bytes:
        """All objects whose keys begin so."""
        entries = [_ENTRY.format(key=key, size=len(v)) for key, v in self.objects.items() if key.startswith(prefix)]
        return f"<ListBucketResult>{_HEAD}{''.join(entries)}</ListBucketResult>".encode()

    def delete(self, body: bytes) -> bytes:
        """Take away the keys that the request names."""
        keys = re.findall(r"<Key>(.*?)</Key>", body.decode())
        gone = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys if self.objects.pop(key, b"") is not None)
        return f"<DeleteResult>{gone}</DeleteResult>".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix("/bucket").lstrip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.bucket.requests.append((self.command, key))
        if self.bucket.refuse:
            self._answer(self.bucket.refuse)
        elif self.command != "GET" and self.bucket.cut():
            self._end()
        else:
            query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            self._of_bucket(query, key, body) if query else self._of_object(key, body)

    def _of_bucket(self, query: dict[str, str], key: str, body: bytes) -> None:
        if "list-type" in query:
            self._answer(200, self.bucket.listed(query.get("prefix", "")))
        elif "delete" in query:
            self._answer(200, self.bucket.delete(body))
        else:
            try:
                self._answer(200, self.bucket.multipart(query, key, body))
            except LookupError:
                self._answer(404)

    def _of_object(self, key: str, body: bytes) -> None:
        if self.command == "PUT":
            self.bucket.objects[key] = body
            self._answer(200)
        elif key not in self.bucket.objects:
            self._answer(404)
        elif self.command == "HEAD":
            self._answer(200, length=len(self.bucket.objects[key]))
        else:
            data = self.bucket.objects[key]
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1]
            place = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
            self._answer(206, part, place=place)

    def _answer(self, status: int, body: bytes = b"", length: int | None = None, place: str = "") -> None:
        self.send_response(status)
        headers = {"ETag": '"e"', "Last-Modified": formatdate(usegmt=True), "Content-Range": place}
        headers["Content-Length"] = str(len(body) if length is None else length)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if (status == 206 or b"Complete" in body) and self.bucket.cut():
            self.wfile.write(body[: len(body) // 2])
            self._end()
        else:
            self.wfile.write(body)

    def _end(self) -> None:
        self.close_connection = True
        self.connection.close()

    do_GET = do_PUT = do_POST = do_HEAD = _handle  # noqa: N815 - names of the base class


@contextmanager
def serving(bucket: Bucket) -> Iterator[str]:
    """Its address while it serves ``bucket``."""
    with listening(_Handler, bucket=bucket) as server:
        yield server.url
