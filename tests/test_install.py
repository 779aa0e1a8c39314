"""Packages come from where pip is told to take them, whoever installs."""

import subprocess
import sys
from pathlib import Path

import pytest

import install

LISTED = """\
:env:.extra-index-url='https://c.example/simple https://d.example/simple'
:env:.disable-pip-version-check='1'
global.cert='/etc/ours.pem'
global.extra-index-url='https://a.example/simple'
global.index-url='https://a.example/simple'
install.find-links='/wheels'
install.index-url='https://b.example/simple'
list.format='freeze'
"""


def test_uv_is_told_what_pip_would_read() -> None:
    flags, variables = install.for_uv(install.configured(LISTED)) or ([], {})
    pairs = list(zip(flags[::2], flags[1::2], strict=True))
    assert pairs == [
        ("--index-url", "https://b.example/simple"),
        ("--extra-index-url", "https://c.example/simple"),
        ("--extra-index-url", "https://d.example/simple"),
        ("--find-links", "/wheels"),
    ]
    assert variables == {"SSL_CERT_FILE": "/etc/ours.pem"}


def test_what_has_no_counterpart_is_left_to_pip() -> None:
    for line in ("global.no-index='true'", ":env:.proxy='http://p.example'", "install.only-binary=':all:'"):
        assert install.for_uv(install.configured(LISTED + line + "\n")) is None


def test_nothing_configured_is_nothing_told() -> None:
    assert install.for_uv(install.configured("")) == ([], {})


def test_another_interpreter_is_installed_for_by_uv_and_where_that_fails_by_pip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, int(command[0] == str(tmp_path)), stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(install, "UV", tmp_path)
    assert install.main(["--python", "/other/python", "package"]) == 0
    _, by_uv, by_pip = commands
    assert (by_uv[0], by_pip[0]) == (str(tmp_path), sys.executable)
    for command in (by_uv, by_pip):
        assert command[command.index("--python") + 1] == "/other/python" and command[-1] == "package"


def test_the_package_is_found_without_an_import_hook(tmp_path: Path) -> None:
    """Type checkers of users, who stand in any folder, follow paths and no hooks."""
    asked = (
        "import sys; from importlib.machinery import PathFinder; print(PathFinder.find_spec('agent0', sys.path).origin)"
    )
    done = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).resolve() == Path(install.__file__).parent / "agent0" / "__init__.py"
