"""A wheel puts one name on the path, and what a user calls `events`, `infra` or `configs` is never taken for ours."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.wheels import wheel_of

THEIRS = ("events.py", "handlers/__init__.py", "infra/__init__.py", "projections/__init__.py", "configs/__init__.py")
SCRIPT = """
import sys
sys.path.append({dependencies!r})  # what a wheel depends on; no .pth of it is read
import agent0
from agent0.config.loading import load
from agent0.events.base import Event
from agent0 import handlers, infra, projections
assert load("tiny", env={{}}).run.iterations > 0  # profiles are data of the package
import configs, events
folder = __import__("handlers")
assert {{module.__dict__.get("OURS") for module in (configs, events, folder)}} == {{"a user's"}}
assert all(module.__file__.startswith({site!r}) for module in (agent0, handlers, infra, projections)), agent0.__file__
print(*agent0.__all__)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's files, as an installation has them."""
    place = tmp_path_factory.mktemp("wheel")
    command = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps", "--no-index")
    subprocess.run([*command, "--no-compile", "--target", str(place / "site"), str(wheel_of(place))], check=True)
    return place / "site"


def test_a_wheel_has_one_name(site: Path) -> None:
    names = {path.name for path in site.iterdir()} - {"bin"}
    assert names == {"agent0", "agent0_train-0.1.0.dist-info"}


def test_what_a_user_calls_events_does_no_harm(site: Path, tmp_path: Path) -> None:
    for name in THEIRS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('OURS = "a user\'s"\n')
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(dependencies=sysconfig.get_path("purelib"), site=str(site)))
    environment = {"PYTHONPATH": str(site), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-S", str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "reward_set" in done.stdout
