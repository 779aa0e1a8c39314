"""What both tables of traces are measured with: a data folder, and the environments of the libraries."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
AGENT0 = Path(sys.executable).with_name("agent0")


@dataclass(frozen=True)
class Library:
    """Who reads a format: its packages in the table, the folder of its environment, the file's ending, what of an
    attempt comes back (nothing: it is only written)."""

    packages: str
    folder: str
    ending: str = "jsonl"
    returns: tuple[str, ...] = ("reward", "correct", "answer", "trajectory")


REWARD, NOTHING = ("reward",), ()
LIBRARIES: Mapping[str, Library] = {
    "atif": Library("harbor 0.25.0, atif 1.8.0", "atif"),
    "inspect": Library("inspect-ai 0.3.285", "inspect", "eval"),
    "openenv": Library("openenv 0.10.0", "atif"),
    "verifiers": Library("verifiers 0.1.14", "results"),
    "verifiers-trace": Library("verifiers 0.4.0", "verifiers"),
    "openai-chat": Library("openai 2.54.0", "verifiers"),
    "parquet": Library("datasets 5.2.0", "trl", "parquet"),
    "trl": Library("trl 1.16.0", "trl", returns=REWARD),
    "trl-messages": Library("trl 1.16.0", "trl", returns=NOTHING),
    "trl-preference": Library("trl 1.16.0", "trl", returns=NOTHING),
    "trl-prompt": Library("trl 1.16.0", "trl", returns=NOTHING),
    "trl-unpaired": Library("trl 1.16.0", "trl", returns=("correct",)),
    "trl-stepwise": Library("trl 1.16.0", "trl", returns=NOTHING),
    "pi": Library("trackio 0.43.0", "trl", returns=NOTHING),
}


@dataclass(frozen=True)
class Bench:
    """Where everything is: a data folder, a folder of files, and the environments of the libraries."""

    home: Path
    files: Path
    libraries: Path

    def agent0(self, *words: str) -> bytes:
        """Run one command; returns what it wrote."""
        env = {**os.environ, "AGENT0_HOME": str(self.home)}
        done = subprocess.run([AGENT0, *words], env=env, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"agent0 {' '.join(words)}: {done.stderr.decode()[-2000:]}")
        return done.stdout

    def rows(self, run: str) -> list[Any]:
        """The attempts of ``run`` as we export them."""
        return [json.loads(line) for line in self.agent0("trajectory", "export", run).splitlines()]

    def library(self, verb: str, kind: str, source: Path, out: Path) -> int:
        """Let the library of ``kind`` read or write; returns how many traces it did."""
        python = self.libraries / LIBRARIES[kind].folder / "bin" / "python"
        command = [python, "-P", HERE / "trace_libraries.py", verb, kind, source, out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{kind}: {LIBRARIES[kind].packages} does not {verb} it: {done.stderr[-2000:]}")
        return int(done.stdout.split()[-1])
