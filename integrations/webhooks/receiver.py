"""Prints notices that Agent0 sends and signed: ``python receiver.py 8700``. AGENT0_TELEMETRY__WEBHOOK_SECRET is the
secret of both; the standard library is enough."""

import hashlib
import hmac
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("AGENT0_TELEMETRY__WEBHOOK_SECRET", "").encode()
LARGEST = 1_000_000
handled = set[str]()


def is_signed(signature: str, body: bytes) -> bool:
    """Whether ``signature``, `t=TIME,v1=HEX`, is that of ``body`` under the secret."""
    fields = dict(part.partition("=")[::2] for part in signature.split(","))
    expected = hmac.new(SECRET, fields.get("t", "").encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), fields.get("v1", "").encode())


class NoticeReceiver(BaseHTTPRequestHandler):
    """Takes each event once, whatever its sender sends again."""

    timeout = 30
    """Seconds in which a sender has to send."""

    def do_POST(self) -> None:
        """Print a notice, or refuse it with 401."""
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(int(length)) if length.isdecimal() and int(length) <= LARGEST else b""
        signed = bool(body) and is_signed(self.headers.get("Agent0-Signature", ""), body)
        if signed and (event := json.loads(body))["id"] not in handled:
            handled.add(event["id"])
            print(event["seq"], event["type"], event["run"], json.dumps(event["data"])[:200], flush=True)
        self.send_response(204 if signed else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *about: object) -> None:
        """Say nothing of single requests."""


if __name__ == "__main__":
    if not SECRET or not sys.argv[1:2] or not sys.argv[1].isdecimal() or int(sys.argv[1]) > 65_535:
        sys.exit(
            "AGENT0_TELEMETRY__WEBHOOK_SECRET=SECRET python receiver.py PORT: without a secret nothing is believed."
        )
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), NoticeReceiver).serve_forever()
