"""Installs what its arguments name, as ``pip install`` would, but by uv, which takes a fifth of pip's time; with
``--python PATH`` first it does so for that interpreter.

uv reads no configuration of pip, so where packages come from is handed on to it. Where pip is told anything else, where
there is no uv, or where uv fails, pip does it.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

FLAGS = {
    "index-url": "--index-url",
    "extra-index-url": "--extra-index-url",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
}
VARIABLES = {"cert": "SSL_CERT_FILE", "default-timeout": "UV_HTTP_TIMEOUT", "timeout": "UV_HTTP_TIMEOUT"}
PIPS_OWN = {
    "break-system-packages",
    "cache-dir",
    "compile",
    "disable-pip-version-check",
    "no-cache-dir",
    "no-color",
    "no-input",
    "no-warn-script-location",
    "prefer-binary",
    "progress-bar",
    "quiet",
    "require-virtualenv",
    "retries",
    "root-user-action",
    "verbose",
}
"""What says nothing about which packages are installed."""
SECTIONS = ("global.", "install.", ":env:.")
"""Those that ``pip install`` reads; what a later one says takes the place of what an earlier one says."""
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
UV = Path(sys.executable).with_name("uv")


def configured(listed: str) -> dict[str, str]:
    """Settings of ``pip install`` by name, from the lines that ``pip config list`` printed."""
    lines = dict(line.split("=", 1) for line in listed.splitlines() if "=" in line)
    return {
        name.removeprefix(section): str(ast.literal_eval(value))
        for section in SECTIONS
        for name, value in lines.items()
        if name.startswith(section)
    }


def for_uv(settings: dict[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """Flags and environment variables that tell uv the same; None if one of ``settings`` has no counterpart."""
    if set(settings) - set(FLAGS) - set(VARIABLES) - PIPS_OWN:
        return None
    flags = [
        argument for name in FLAGS for value in settings.get(name, "").split() for argument in (FLAGS[name], value)
    ]
    return flags, {variable: settings[name] for name, variable in VARIABLES.items() if name in settings}


def main(arguments: list[str]) -> int:
    """Install; returns the exit code of whichever did it last."""
    python = sys.executable
    if arguments[:1] == ["--python"]:
        _, python, *arguments = arguments
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True).stdout  # noqa: S603
    translated = for_uv(configured(listed))
    if translated and UV.exists():
        flags, variables = translated
        uv = [str(UV), "pip", "install", "--quiet", "--python", python]
        uv += ["--index-strategy", "unsafe-best-match", *flags, *arguments]  # all indexes count alike, as with pip
        if subprocess.run(uv, env={**variables, **os.environ}, check=False).returncode == 0:  # noqa: S603
            return 0
        sys.stderr.write("uv could not install this; pip tries\n")
    pip = [*PIP, "--python", python, "install", "--quiet", "--no-compile"]
    return subprocess.run([*pip, *arguments], check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
