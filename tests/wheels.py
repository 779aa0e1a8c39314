"""Builds the wheel of this checkout, as `pip wheel .` would of a clone."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGED = ("agent0", "events", "handlers", "infra", "projections", "src", "pyproject.toml", "README.md", "LICENSE")


def wheel_of(place: Path) -> Path:
    """The wheel, below ``place``."""
    for name in PACKAGED:
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, place / "source" / name, symlinks=True, ignore=ignore)
        else:
            shutil.copy(ROOT / name, place / "source" / name)
    command = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "wheel", "--no-deps")
    command = (*command, "--no-build-isolation", "-w", str(place / "dist"), str(place / "source"))
    subprocess.run(command, check=True)
    [wheel] = (place / "dist").glob("agent0_train-*.whl")
    return wheel
