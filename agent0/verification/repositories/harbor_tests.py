"""Runs the scripts of a Harbor task in the sandbox, on a work folder that is its ``/app``, and reads the reward.

Files of its tests are the task's, whatever a student wrote in their place. There is no network.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from agent0.events.values import ToolState
from agent0.ports.sandbox import Root, Sandbox, SandboxCall, SandboxResult
from agent0.tasks.harbor.reading import OWN
from agent0.tools.builtin.run_tests import PYTEST
from agent0.tools.snapshots import Files

MEM_MIB = 1024
ROOT = Root(modules=tuple(dict.fromkeys((*Root().modules, *PYTEST))))
"""What scripts have: the packaged executables and packages, Python and its test runner."""
FULL = 1.0
"""The reward of a task that is solved."""
REWARD_JSON, REWARD_TEXT = "logs/verifier/reward.json", "logs/verifier/reward.txt"
_NOBODYS_FAULT = (ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR, ToolState.REFUSED)
_COMMANDS = {
    "pytest": """#!/bin/bash
words=()
while [ $# -gt 0 ]; do
    case "$1" in --ctrf) shift ;; --ctrf=*) ;; *) words+=("$1") ;; esac
    shift
done
exec python3 -m pytest "${words[@]}"
""",
    "uvx": """#!/bin/bash
until [ "$1" = pytest ] || [ $# = 0 ]; do shift; done
exec "$@"
""",
}
"""What the usual script of tests calls, by the test runner that is here; nobody reads the report of ``--ctrf``."""
_rewards = TypeAdapter(dict[str, float])
_PROGRAM = """import os, subprocess, sys
os.makedirs("logs/verifier", exist_ok=True)
os.makedirs("/tmp/bin")
for name in ("python", "python3"):
    os.symlink(sys.executable, f"/tmp/bin/{{name}}")
for name, text in {commands!r}.items():
    with open(f"/tmp/bin/{{name}}", "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as command:
        command.write(text)
path = "/tmp/bin:" + os.environ.get("PATH", "/usr/bin")
script = ["bash", "/" + {script!r}]
env = {{**os.environ, "PATH": path, "PYTEST_ADDOPTS": "--no-header"}}  # which would ask for versions of packages
sys.exit(subprocess.run(script, cwd="/app", env=env, stdin=subprocess.DEVNULL).returncode)
"""


@dataclass(frozen=True)
class HarborReward:
    """What tests gave: a finite ``reward``, None where they gave none, and ``why``, which may be the sandbox."""

    reward: float | None
    why: str
    sandbox_failed: bool = False


def own_files(files: Files) -> dict[str, bytes]:
    """The files of a work folder without those in the places of the task's own."""
    return {path: data for path, data in files.items() if path.partition("/")[0] not in OWN}


async def run_script(script: str, files: Files, sandbox: Sandbox, seconds: float) -> SandboxResult:
    """Run ``script``, a path in ``files``, with bash in ``/app``, which holds ``files``.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    program = _PROGRAM.format(script=script, commands=_COMMANDS)
    return await sandbox.call(SandboxCall("python", program, files, wall_s=seconds, mem_mib=MEM_MIB, root=ROOT))


async def harbor_reward(script: str, work: Files, tests: Files, sandbox: Sandbox, seconds: float) -> HarborReward:
    """Run the tests of a task on the work folder; errors as for ``run_script``."""
    result = await run_script(script, {**own_files(work), **tests}, sandbox, seconds)
    if result.state in _NOBODYS_FAULT:
        return HarborReward(None, f"the sandbox: {result.state.value} {result.reason}".strip(), sandbox_failed=True)
    if result.state is ToolState.TIMEOUT:
        return HarborReward(None, "its tests hang")
    return reward_in(result.files)


def reward_in(files: Mapping[str, bytes]) -> HarborReward:
    """Read the reward that tests wrote: a number, or JSON with a number named ``reward`` or alone."""
    if (data := files.get(REWARD_JSON)) is not None:
        try:
            rewards = _rewards.validate_json(data, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            return HarborReward(None, f"reward.json: {'.'.join(map(str, first['loc']))} {first['msg']}".strip())
        if len(rewards) != 1 and "reward" not in rewards:
            return HarborReward(None, f"reward.json has {len(rewards)} numbers, and none is named reward")
        return _finite(rewards.get("reward", next(iter(rewards.values()))))
    if (data := files.get(REWARD_TEXT)) is None:
        return HarborReward(None, "its tests wrote no reward")
    try:
        return _finite(float(data.decode()))
    except ValueError:
        return HarborReward(None, f"reward.txt is no number: {data[:40]!r}")


def _finite(reward: float) -> HarborReward:
    if not math.isfinite(reward):
        return HarborReward(None, f"its reward is {reward}")
    return HarborReward(reward, f"reward {reward:g}")
