"""The files of the image are enough for the interpreter and the shell, and nothing more is there."""

import asyncio
import shutil
import subprocess
from pathlib import Path

from agent0.infra.sandbox import image, roots
from agent0.infra.sandbox.backends import docker
from agent0.ports.sandbox import Root
from agent0.verification.programs import TRUSTED


def test_an_image_is_whole_and_holds_nothing_else(tmp_path: Path) -> None:
    asyncio.run(image.build(tmp_path / "image", Root(("bash",), ("mpmath",), TRUSTED)))
    words = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-pid",
        "--unshare-net",
        "--ro-bind",
        str(tmp_path / "image"),
        "/",
    ]
    words += [word for item in docker._ENVIRONMENT.items() for word in ("--setenv", *item)]
    code = (
        "import sys, asyncio, ctypes, sqlite3, mpmath; sys.path.insert(0, '/opt'); from inside import asking, broker;"
    )
    code += "print(asking.inventory(), sorted(__import__('os').listdir('/')), mpmath.mpf(2));"
    versions = roots.versions(Root(trusted=TRUSTED))
    code += f"print(asking.differing({versions}) or 'same', asking.differing({dict.fromkeys(versions, 'other')}))"
    told = _output([*words, "--clearenv", *words[6:], "--", docker.INTERPRETER, "-sBPc", code])
    folders = ["app", "bin", "box", "dev", "etc", "lib", "lib64", "logs", "opt", "proc", "solution", "sys", "tests"]
    folders += ["tmp", "usr"]
    assert told.startswith(
        f"{{'executables': ['bash'], 'modules': ['judged', 'mpmath']}} {folders} 2.0\nsame judged of"
    )
    assert _output([*words, "--", "/usr/bin/bash", "-c", "echo $((6 * 7))"]) == "42\n"


def _output(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={})
    assert done.returncode == 0, done.stderr
    return done.stdout
