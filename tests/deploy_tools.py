"""Programs that check what is deployed: `make chart` fetches them; without them a test is skipped, and says so."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FETCHED = ROOT / "build" / "deploy" / "bin"


def tool(name: str) -> str:
    """Path of a program, fetched or on PATH; skips the test where there is neither."""
    path = shutil.which(name, path=f"{FETCHED}{os.pathsep}{os.environ['PATH']}")
    return path or pytest.skip(f"{name} is not here: make chart fetches it")


def tell(*command: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code."""
    merged = {**os.environ, **(env or {})}
    return subprocess.run(command, capture_output=True, text=True, env=merged, cwd=cwd, timeout=300)
