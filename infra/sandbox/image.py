"""The folder of which the image of the Docker backends is made: executables and packages of this machine, interpreter,
libraries and our own code, and nothing else. ``python -m agent0.infra.sandbox.image FOLDER``
"""

import asyncio
import compileall
import os
import shutil
import sys
from pathlib import Path

from agent0.grading.math import symbolic
from agent0.infra.sandbox import rootfs
from agent0.infra.sandbox.backends.docker import INTERPRETER
from agent0.ports.sandbox import Root
from agent0.settings import SandboxSettings
from agent0.tools.builtin import run_tests
from agent0.verification import programs

ROOT = Root(
    modules=tuple(dict.fromkeys((*Root().modules, *run_tests.PYTEST, *symbolic.ROOT.modules))), trusted=programs.TRUSTED
)
"""What the packaged allowlists name, the tools and the verifiers. A call sees of it what its own root names."""
_FOLDERS = ("box", "dev", "etc", "proc", "sys", "tmp", "usr/bin", "opt/site")
_LEFT_OUT = shutil.ignore_patterns("site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "config-*")


async def build(folder: Path, root: Root = ROOT) -> None:
    """Lay the file tree of ``root`` out below ``folder``, which is empty or absent.

    Raises:
        SandboxUnavailableError, RootError: something that the allowlists name is not to be had.
    """
    for name in _FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("lib", "lib64", "bin"):
        if Path("/", name).is_symlink():
            (folder / "usr" / name).mkdir(exist_ok=True)
            (folder / name).symlink_to(f"usr/{name}")
    for name, target in rootfs.WORK_LINKS.items():
        (folder / name).symlink_to(target)
    for source, target in await rootfs.contents(root):
        _copy(Path(source), folder / target.lstrip("/"))
    interpreter = folder / INTERPRETER.lstrip("/")
    interpreter.symlink_to(next(path.name for path in interpreter.parent.iterdir()))
    compileall.compile_dir(folder / "opt", stripdir=str(folder), quiet=2)  # what is not compiled yet: nobody may later


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        library = target.name.startswith("python")
        shutil.copytree(source, target, ignore=_LEFT_OUT if library else None, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)
        target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)


if __name__ == "__main__":
    where = Path(sys.argv[1])
    asyncio.run(build(where))
    print(f"{where}: the files of the image {SandboxSettings().image}")  # noqa: T201 (a program for people)
