"""Agent0 as separate processes: started, killed and stopped by a test, in a data folder of their own."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.plugins import known_handlers
from agent0.config.loading import load
from agent0.errors import ErrorKind
from agent0.events.base import Recorded
from agent0.infra.log.nats_server import Server
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]

_NAMED = {
    "teacher": ("propose_task", "screen_task"),
    "student": ("attempt_task", "continue_attempt", "evaluate_checkpoint", "evaluate_item"),
    "verifier": ("verify_result",),
    "rewarder": ("assign_reward",),
    "trainer": ("train_checkpoint", "judge_checkpoint"),
}
_LEFT = sorted(set(known_handlers()) - {name for names in _NAMED.values() for name in names})

KINDS = {
    "runner": ("handlers", "run", *_LEFT),
    **{kind: ("handlers", "run", *names) for kind, names in _NAMED.items()},
    "projector": ("projections", "run"),
}
"""Kind of process -> its command; together they run every handler once."""


class Crew:
    """Processes of one data folder, whose commands begin with ``prefix``. ``settings`` are AGENT0_* names without
    theirs."""

    def __init__(self, home: Path, prefix: Sequence[str] = (), **settings: str) -> None:
        self.home, self.prefix = home, tuple(prefix)
        home.mkdir(parents=True, exist_ok=True)
        own = {f"AGENT0_{name}": value for name, value in settings.items()}
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "AGENT0_HOME": str(home),
            "AGENT0_PROFILE": "scripted",
            "AGENT0_SANDBOX__WORKERS": "1",  # each costs a second of a processor at every start
            **own,
        }
        self.settings = load(env=self.env)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands = dict(KINDS)

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        """SIGTERM to all; whatever does not end by itself is an error, and is killed."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        try:
            for process in self.running.values():
                process.wait(PATIENCE_S)
        finally:
            for process in self.running.values():
                process.kill()
                process.wait()
            self.kill_server()

    def start(self, kind: str, *arguments: str) -> None:
        """Begin ``agent0 arguments`` (those of last time, else of the kind, where there are none); it writes to
        ``<kind>.log``."""
        self._commands[kind] = arguments or self._commands[kind]
        command = [*self.prefix, sys.executable, "-m", "agent0", *self._commands[kind]]
        with (self.home / f"{kind}.log").open("ab") as told:
            self.running[kind] = subprocess.Popen(command, env=self.env, cwd=self.home, stdout=told, stderr=told)

    def revive(self) -> None:
        """As a container engine would: what could not start because the log was away is started again."""
        for kind, process in list(self.running.items()):
            if process.poll() is not None:
                assert process.returncode == ErrorKind.DEPENDENCY.exit_code, (
                    f"{kind} ended by itself: {self.said(kind)}"
                )
                self.start(kind)

    def kill(self, kind: str) -> None:
        """kill -9."""
        self.revive()
        process = self.running.pop(kind)
        process.kill()
        process.wait()

    def kill_server(self) -> bool:
        """kill -9 of the log's server; False where none runs."""
        pid = Server(self.settings.nats, self.home / "nats").pid
        if pid:
            assert str(self.home) in Path(f"/proc/{pid}/cmdline").read_text(), "that is not our server"
            os.kill(pid, signal.SIGKILL)
        return bool(pid)

    def said(self, kind: str) -> str:
        """The end of what a process wrote."""
        return (self.home / f"{kind}.log").read_text(errors="replace")[-3000:]

    def tell(self, *arguments: str, code: int = 0) -> Any:
        """Run one command to its end; its standard output, as JSON where it is some."""
        command = [*self.prefix, sys.executable, "-m", "agent0", *arguments]
        done = subprocess.run(command, env=self.env, cwd=self.home, capture_output=True, timeout=PATIENCE_S)
        assert done.returncode == code, (arguments, done.returncode, done.stderr.decode()[-3000:])
        return json.loads(done.stdout) if "--json" in arguments else done.stdout.decode()

    async def facts(self, run: str) -> list[Recorded]:
        """Everything the log holds of ``run``."""
        async with open_log(self.settings, "reader") as log:
            return [recorded async for recorded in log.read(run)]


def halt(pid: int) -> None:
    """Stop a process, and see that all of its threads stand: the signal is only on its way when kill returns."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    while any(stat.read_text().rpartition(")")[2].split()[0] != "T" for stat in threads.glob("*/stat")):
        os.sched_yield()


def interrupt_main() -> None:
    """As Ctrl-C does: a signal to the main thread, whatever it waits for."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
