"""A container engine on the PATH that this machine need not have: ``tests.sandbox.fake_engine``, told what its image
holds and how to misbehave."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from agent0.infra.sandbox import image, rootfs
from agent0.infra.sandbox.backends.docker import INTERPRETER
from agent0.infra.sandbox.inside import seccomp

IMAGE = "agent0-sandbox"


class Engine:
    """Its folders, and what was asked of it."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.state = folder / "bin", folder / "state"
        self.bin.mkdir()
        (self.state / "running").mkdir(parents=True)
        program = self.bin / "docker"
        fake = Path(__file__).with_name("fake_engine.py")
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {fake} "$@"\n')
        program.chmod(0o755)
        numbers = {name: int(number) for name, _, number in _listed()}
        self._told: dict[str, Any] = {"name": IMAGE, "bwrap": shutil.which("bwrap"), "numbers": numbers}
        self._told["image"] = asyncio.run(_image())
        self.misbehave()

    def misbehave(self, **how: Any) -> None:
        """``refuses_profiles``, or ``says`` these bytes (hex) in place of the container."""
        (self.state / "state.json").write_text(json.dumps({**self._told, **how}))

    @property
    def asked(self) -> list[list[str]]:
        """Every command line so far."""
        log = self.state / "asked.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def running(self) -> list[str]:
        """Names of containers."""
        return sorted(path.name for path in (self.state / "running").iterdir())

    def kill(self) -> None:
        """Every container dies, and nobody says a word."""
        for path in (self.state / "running").iterdir():
            pid = int(path.read_text())
            below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            for one in (*map(int, below), pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)


def _listed() -> list[tuple[str, str, str]]:
    return [entry.partition("=") for entry in (seccomp._ALLOWED + seccomp._GUARDED).split()]


async def _image() -> list[str]:
    """What the image holds, as options of bubblewrap: the very files of which the real one is made."""
    folders = ("/box", "/tmp", "/etc", "/sys", "/sys/kernel", "/usr", "/usr/bin", "/opt", "/opt/site")
    pairs = await rootfs.contents(image.ROOT)
    out = [word for name in folders for word in ("--dir", name)]
    out += rootfs._binds(pairs) + rootfs._links()
    return [*out, "--symlink", rootfs._PYTHON, INTERPRETER]
