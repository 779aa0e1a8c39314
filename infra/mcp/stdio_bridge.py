"""The other end of an MCP server's pipes: runs in the sandbox beside the server, with the standard library alone, and
prints one JSON object. What comes from the server is passed on as it is; whoever reads it there believes none of it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Of the protocol with a handshake, the one offered first."""
STATELESS = "2026-07-28"
"""Of the protocol without one: every request says what the client is."""
CLIENT = {"name": "agent0", "version": "1"}
LONGEST_LINE, MOST_MESSAGES, MOST_PAGES, LONGEST_ANSWER = 1 << 20, 10_000, 20, 200_000


class ServerError(Exception):
    """The MCP server broke the protocol or returned an error."""


class RefusedRequestError(ServerError):
    """The MCP server answered a request with an error."""


class ServerProcess:
    """A server as a child process, asked one thing at a time."""

    def __init__(self, command: list[str]) -> None:
        argv = [sys.executable if command[0] in ("python", "python3") else command[0], *command[1:]]
        self._child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - the purpose
        self._number = self._seen = 0
        self._about: dict[str, object] = {}

    def begin(self) -> dict[str, object]:
        """Shake hands, or discover a server that refuses to; what it says of itself."""
        client = {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": CLIENT}
        try:
            answer = self.ask("initialize", client)
        except RefusedRequestError as refused:
            return self._discover(refused)
        if answer.get("protocolVersion") not in VERSIONS:
            raise ServerError(f"it speaks version {str(answer.get('protocolVersion'))[:40]!r}, which nobody here does")
        self._send({"method": "notifications/initialized"})
        return answer

    def _discover(self, refused: RefusedRequestError) -> dict[str, object]:
        about = {"protocolVersion": STATELESS, "clientInfo": CLIENT, "clientCapabilities": {}}
        self._about = {"_meta": {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}}
        try:
            answer = self.ask("server/discover", {})
        except RefusedRequestError:
            raise refused from None
        versions = answer.get("supportedVersions")
        if not isinstance(versions, list) or STATELESS not in versions:
            raise ServerError(f"it speaks versions {str(versions)[:80]}, which nobody here does")
        return answer

    def pages(self) -> list[dict[str, object]]:
        """Every page of its tools."""
        pages = [self.ask("tools/list", {})]
        while (cursor := pages[-1].get("nextCursor")) is not None:
            if len(pages) == MOST_PAGES:
                raise ServerError(f"it has more than {MOST_PAGES} pages of tools")
            pages.append(self.ask("tools/list", {"cursor": cursor}))
        return pages

    def ask(self, method: str, params: Mapping[str, object]) -> dict[str, object]:
        """Send a request and return its result. Requests of the server meanwhile are refused, its notifications
        skipped; an answer to another request ends it."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": {**params, **self._about}})
        while True:
            for message in self._messages():
                if "method" in message:
                    self._reply(message)
                elif message.get("id") == self._number:
                    return self._result(method, message)
                elif isinstance(message.get("id"), int):
                    raise ServerError(f"it answered request {message['id']}, which is answered or was never made")

    def _result(self, method: str, message: dict[str, object]) -> dict[str, object]:
        result = message.get("result")
        if not isinstance(result, dict):
            kind = RefusedRequestError if isinstance(message.get("error"), dict) else ServerError
            raise kind(f"{method}: {json.dumps(message.get('error'))[:500]}")
        return result

    def _reply(self, message: dict[str, object]) -> None:
        if "id" not in message:
            return
        if message["method"] == "ping":
            self._send({"id": message["id"], "result": {}})
        else:
            self._send({"id": message["id"], "error": {"code": -32601, "message": "not offered here"}})

    def _messages(self) -> list[dict[str, object]]:
        """What its next line holds; text that is no message is passed over."""
        assert self._child.stdout  # noqa: S101 - a pipe
        line = self._child.stdout.readline(LONGEST_LINE)
        self._seen += 1
        if not line:
            raise ServerError(f"it ended without an answer, status {self._child.wait()}")
        if self._seen > MOST_MESSAGES or (len(line) == LONGEST_LINE and line[-1:] != b"\n"):
            raise ServerError("it says far too much")
        try:
            parsed = json.loads(line)
        except (ValueError, RecursionError):
            return []
        return [message for message in (parsed if isinstance(parsed, list) else [parsed]) if isinstance(message, dict)]

    def _send(self, message: dict[str, object]) -> None:
        assert self._child.stdin  # noqa: S101 - a pipe
        try:
            self._child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._child.stdin.flush()
        except OSError as error:
            raise ServerError(f"it closed its input: {error}") from error


def converse(command: list[str], tool: str, arguments: dict[str, object]) -> dict[str, object]:
    """One conversation: list the tools where ``tool`` is empty, else call it."""
    try:
        server = ServerProcess(command)
        conversation: dict[str, object] = {"initialize": server.begin()}
        if tool:
            conversation["call"] = server.ask("tools/call", {"name": tool, "arguments": arguments})
        else:
            conversation["pages"] = server.pages()
    except ServerError as error:
        return {"problem": str(error)}
    except OSError as error:
        return {"problem": f"its command cannot be run: {error}"}
    return conversation if len(json.dumps(conversation)) <= LONGEST_ANSWER else {"problem": "its answer is too long"}


def main(request: str) -> None:
    """Run the conversation in ``request`` (JSON), print its outcome and exit without waiting for the server."""
    sys.stdout.write(json.dumps(converse(**json.loads(request))) + "\n")
    sys.stdout.flush()
    os._exit(0)
