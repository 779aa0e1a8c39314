"""Several processes, one per GPU, that run the same call together. ``accelerate launch`` starts them and sets each
one's rank. They connect to a socket in a folder that only its owner can open."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from agent0.infra.engine.worker_process import STOP_S, Worker, end_with, environment_of, serve

COMING_S = 300.0
"""Seconds that all have to come; importing torch from a cold disk takes a while."""
_LAUNCH = ("--multi_gpu", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")


class Crew(Worker):
    """A ``Worker`` of ``processes`` children: all hear each call, the first of them answers. Where one fails, the call
    fails, and all end."""

    def __init__(
        self,
        target: str,
        options: Mapping[str, object],
        *,
        processes: int,
        threads: int = 1,
        hear: Callable[[Any], None] = lambda _: None,
    ) -> None:
        super().__init__(target, options, threads=threads, hear=hear)
        self._processes, self._mates = processes, list[Connection]()

    def _ask(self, call: tuple[str, tuple[Any, ...]]) -> tuple[str, Any]:
        for mate in self._mates:
            mate.send(call)
        answers: dict[int, tuple[str, Any]] = {}
        while len(answers) < self._processes:
            waiting = {id(mate): rank for rank, mate in enumerate(self._mates) if rank not in answers}
            for ready in wait([self._mates[rank] for rank in waiting.values()]):
                rank = waiting[id(ready)]
                state, value = self._mates[rank].recv()
                if state == "error":  # the others may wait for it for ever
                    self._end()
                    return state, value
                if state != "news":
                    answers[rank] = (state, value)
                elif rank == 0:
                    self._hear(value)
        return answers[0]

    def _start(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="agent0-crew-"))
        try:
            with socket.socket(socket.AF_UNIX) as door:
                door.bind(str(folder / "door"))
                door.listen(self._processes)
                door.settimeout(0.5)
                count = ("--num_processes", str(self._processes), "--main_process_port", "0")
                launch = [sys.executable, "-m", "accelerate.commands.launch", *_LAUNCH, *count]
                self._child = subprocess.Popen(  # noqa: S603 - our own module
                    [*launch, "-m", __name__, str(folder / "door")],
                    env=environment_of(self._threads),
                    stdin=subprocess.DEVNULL,
                )
                self._mates = self._come(door)
        finally:
            shutil.rmtree(folder)
        self._connection = self._mates[0]
        for mate in self._mates:
            mate.send((self._target, self._options))

    def _come(self, door: socket.socket) -> list[Connection]:
        """Everybody's line, by rank; EOFError where not all come."""
        lines: dict[int, Connection] = {}
        for _ in range(int(COMING_S / 0.5)):
            if len(lines) == self._processes:
                return [lines[rank] for rank in range(self._processes)]
            if self._child is None or self._child.poll() is not None:
                break
            try:
                line = Connection(door.accept()[0].detach())
            except TimeoutError:
                continue
            lines[int(line.recv())] = line
        for line in lines.values():
            line.close()
        raise EOFError("not all of the training processes started")

    def _end(self) -> None:
        child, self._child, self._connection = self._child, None, None
        for mate in self._mates:  # a process whose line is closed ends by itself
            mate.close()
        self._mates = []
        if child:
            _ended(child)


def _ended(child: subprocess.Popen[bytes]) -> None:
    """Whose processes end by themselves; what does not is ended, by its launcher if that still listens."""
    for signal_ in (None, signal.SIGTERM, signal.SIGKILL):
        if signal_:
            child.send_signal(signal_)
        with suppress(subprocess.TimeoutExpired):
            child.wait(STOP_S)
            return


def _join(path: str) -> None:
    """One of the crew: come to the door, say who it is, answer calls until the line is closed."""
    for number in (signal.SIGINT, signal.SIGHUP):  # Ctrl-C and a closed terminal are the parent's to handle
        signal.signal(number, signal.SIG_IGN)
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    connection = Connection(line.detach())
    connection.send(os.environ["RANK"])
    end_with(connection)
    serve(connection)
    os._exit(0)  # there is nothing to put away, and threads of the process group would be waited for


if __name__ == "__main__":
    _join(sys.argv[1])
