"""The wire of an environment's process: a connection to its socket is an episode, a request and its answer are a line
of JSON each. What the environment prints goes to its log; the process ends with whoever started it."""

import json
import os
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

LONGEST_ERROR = 300
Begin = Callable[[int], Any]
"""From a number to an episode: its ``question``, its ``tools`` as mappings, and ``step(tool, arguments)``, which gives
text, reward, done and refused."""


class EpisodeServer(socketserver.ThreadingUnixStreamServer):
    """Takes as many connections at once as a run makes: one too many would be lost, not refused."""

    daemon_threads, request_queue_size = True, 1024


def serve(address: str, about: Mapping[str, object], begin: Begin) -> None:
    """Serve episodes at the socket ``address`` until standard input ends. ``about``: name, version, how many tasks
    there are, and the address of a wire of its own."""

    class EpisodeHandler(socketserver.StreamRequestHandler):
        """One connection, and the episode that it began."""

        def handle(self) -> None:
            """Answer its requests, one after the other."""
            episode: Any = None
            for line in self.rfile:
                request = json.loads(line)
                try:
                    if request["kind"] == "open":
                        episode = begin(request["task"])
                        answer: object = {"question": episode.question, "tools": episode.tools}
                    elif request["kind"] == "step":
                        answer = episode.step(request["tool"], request["arguments"])
                    else:
                        answer = about
                    reply = {"answer": answer}
                except Exception as error:
                    reply = {"error": f"{type(error).__name__}: {error}"[:LONGEST_ERROR]}
                self.wfile.write(json.dumps({"id": request["id"], **reply}).encode() + b"\n")

    server = EpisodeServer(address, EpisodeHandler)
    ready = os.dup(1)
    os.dup2(2, 1)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.write(ready, b"\n")
    sys.stdin.buffer.read()
    os._exit(0)
