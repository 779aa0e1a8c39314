"""Runs the check of a repository, a command line such as ``pytest -q``, in the sandbox on a copy of its files. There is
no network, and nothing beside the copy can be written."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent0.events.values import ToolState
from agent0.ports.sandbox import Root, Sandbox, SandboxCall
from agent0.tools.builtin.run_tests import PYTEST
from agent0.tools.snapshots import Files

MEM_MIB = 1024
SHOWN = 6_000
"""Characters of the end of its output that are kept."""
NO_TESTS = "it finds no tests"
_NO_TESTS_RC, _STOPPED_RC, _NO_COMMAND_RC = 5, (2, 3, 4), 127
"""Exit codes: of pytest that collects nothing; of pytest that is interrupted or called wrongly; of bash."""
_NOBODYS_FAULT = (ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR, ToolState.REFUSED)
_NETWORK = re.compile(r"name resolution|Name or service not known|Network is unreachable|gaierror")
_OUTSIDE = re.compile(r"(?:Read-only file system|Permission denied|No such file or directory): '(/[^'\n]{1,200})")
_COMMAND = re.compile(r"line \d+: ([^\s:]{1,80}): command not found")
_PACKAGE = re.compile(r"No module named '?([A-Za-z_]\w{0,79})")
_PASSED = re.compile(r"\b(\d{1,7}) passed\b")
_PROGRAM = """import json, os, subprocess, sys, tempfile
os.makedirs("/tmp/bin")
for name in ("python", "python3"):
    os.symlink(sys.executable, "/tmp/bin/" + name)
here = os.getcwd()
paths = [here, os.path.join(here, "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
env = {{**os.environ, "PATH": "/tmp/bin:" + os.environ.get("PATH", "/usr/bin:/bin"), "PYTHONPATH": ":".join(paths)}}
env |= {{"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": "-p no:cacheprovider"}}
script = 'pytest() {{ python -m pytest "$@"; }}\\n' + {check!r}
with tempfile.TemporaryFile(dir="/tmp") as out:
    run = subprocess.run(["bash", "-c", script], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    out.seek(max(0, out.seek(0, 2) - {shown}))
    print(json.dumps([run.returncode, out.read().decode(errors="replace")]))
"""


class SandboxFailedError(Exception):
    """The sandbox itself failed; the message says how."""


def quoted(path: str) -> str:
    """Write ``path`` as a word of a command line, whatever it is made of."""
    return "'" + path.replace("'", "'\\''") + "'"


@dataclass(frozen=True)
class CheckRun:
    """How a check ended: its exit code ``rc`` (None: it did not end by itself) and the end of its ``output``.
    ``problem``: why it says nothing about the code, empty where it does, which may be the sandbox."""

    rc: int | None = None
    output: str = ""
    problem: str = ""
    sandbox_failed: bool = False

    @property
    def passes(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.rc == 0

    @property
    def tests(self) -> int | None:
        """How many tests passed, by pytest's last line; None where there is no such line."""
        counts = _PASSED.findall(self.output)
        return int(counts[-1]) if counts else None

    @property
    def summary(self) -> str:
        """Its last line, or its problem."""
        lines = self.output.strip().splitlines()
        return self.problem or (lines[-1].strip("= ")[:160] if lines else f"exit code {self.rc}")


@dataclass(frozen=True)
class RepositoryCheck:
    """A command line that takes ``seconds`` at most and may import the packages ``modules``."""

    command: str
    seconds: float
    modules: Sequence[str] = ()

    async def run(self, files: Files, sandbox: Sandbox) -> CheckRun:
        """Run it in a folder that holds ``files``.

        Raises:
            SandboxUnavailableError: there is no sandbox.
        """
        root = Root(modules=tuple(dict.fromkeys((*PYTEST, *self.modules))))
        program = _PROGRAM.format(check=self.command, shown=SHOWN)
        result = await sandbox.call(
            SandboxCall("python", program, files, wall_s=self.seconds, mem_mib=MEM_MIB, root=root)
        )
        if result.state in _NOBODYS_FAULT:
            why = f"the sandbox: {result.state.value} {result.reason}".strip()
            return CheckRun(problem=why, sandbox_failed=result.state is not ToolState.REFUSED)
        if result.state is ToolState.TIMEOUT:
            return CheckRun(problem=f"it did not end within {self.seconds:g} s")
        try:
            rc, output = json.loads(result.stdout)
        except ValueError:
            return CheckRun(problem=f"it ended its own runner: {result.state.value} {result.reason}".strip())
        return CheckRun(int(rc), str(output), _problem(int(rc), str(output), files))


def _problem(rc: int, output: str, files: Files) -> str:
    """Why the check says nothing about the code of ``files``; empty where it does."""
    if not rc:
        return ""
    if rc == _NO_COMMAND_RC and (command := _COMMAND.search(output)):
        return f"it needs the command {command[1]}, which the sandbox does not have"
    if rc == _NO_TESTS_RC and "no tests ran" in output:
        return NO_TESTS
    if _NETWORK.search(output):
        return "it needs the network, which the sandbox does not have"
    if outside := _OUTSIDE.search(output):
        return f"it uses {outside[1]}, outside of its folder, which the sandbox does not let it"
    modules = {part.removesuffix(".py") for path in files for part in path.removeprefix("src/").split("/")[:1]}
    if lacking := [name for name in _PACKAGE.findall(output) if name not in modules]:
        return f"it needs the package {lacking[0]}, which the sandbox does not have"
    if rc in _STOPPED_RC and "unrecognized arguments" in output:
        return f"pytest cannot be called so: {output.strip().splitlines()[0][:120]}"
    return ""
