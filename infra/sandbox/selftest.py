"""Live probes: each promise of the sandbox is tried from the inside before a call runs in it. A failed probe refuses
the sandbox."""

import asyncio
import json
from dataclasses import dataclass
from typing import Protocol

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox.inside.calling import SandboxProcessError
from agent0.infra.sandbox.inside.payload import ENVIRONMENT, PYTHON_ENVIRONMENT
from agent0.infra.sandbox.roots import EVERYTHING
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult


@dataclass(frozen=True)
class Probe:
    """One promise tried: ``detail`` is what was seen."""

    name: str
    ok: bool
    detail: str


class MissedProbeError(SandboxUnavailableError):
    """A promise did not hold when it was tried. On a machine that has much else to do it may be kept the next time."""


class Executes(Protocol):
    """Anything that runs calls: one fork server, one container, or one start per call."""

    async def execute(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` in a fresh sandbox process.

        Raises:
            WorldError: no sandbox process, or one that ended without a word.
        """
        ...


_ENVIRONMENT = sorted(ENVIRONMENT | PYTHON_ENVIRONMENT)
_INSIDE = f"""
import ctypes, json, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
def refused(*call):
    ctypes.set_errno(0)
    return libc.syscall(*call) == -1, os.strerror(ctypes.get_errno())
def no_socket():
    try:
        socket.socket(socket.AF_INET)
    except OSError as error:
        return True, str(error)
    return False, 'a socket was made'
def no_write(*folders):
    made = []
    for folder in folders:
        try:
            open(folder + '/x', 'w').close()
            made.append(folder)
        except OSError:
            pass
    return not made, ' '.join(made) or 'none'
def no_fork():
    children = []
    try:
        for _ in range(64):
            child = os.fork()
            if child == 0:
                os.read(gate[0], 1)
                os._exit(0)
            children.append(child)
    except OSError as error:
        return True, f'{{len(children)}} then {{error}}'
    finally:
        os.close(gate[1])
    return False, '64 processes'
def capabilities():
    data = ctypes.create_string_buffer(24)
    libc.capget(struct.pack('Ii', 0x20080522, 0), data)
    return not any(data.raw), data.raw.hex()
def sees(path):
    try:
        return os.path.lexists(path) and (not os.path.isdir(path) or bool(os.listdir(path)))
    except OSError:
        return False
def value(got, wanted):
    return got == wanted, str(got)
gate = os.pipe()
hidden = [p for p in ('/etc/shadow', '/root', '/home', '/run', '/var', '/sys') if sees(p)]
out = dict(
    no_network=no_socket(),
    no_new_user_namespace=refused(272, 0x10000000),
    no_mount=refused(165, b'none', b'/tmp', b'tmpfs', 0, None),
    no_host_files=(not hidden, ' '.join(hidden) or 'none'),
    read_only_system=no_write('/usr', '/usr/bin', '/opt/python', '/opt/site', '/dev', '/dev/shm', '/proc', '/'),
    clean_environment=value(sorted(os.environ), {_ENVIRONMENT!r}),
    seccomp_filter=value(libc.prctl(21, 0, 0, 0, 0), 2),
    no_new_privileges=value(libc.prctl(39, 0, 0, 0, 0), 1),
    no_capabilities=capabilities(),
    process_limit=no_fork(),
)
"""
_COMPUTES = {
    "sympy": ("str(__import__('sympy').diff('x**2', 'x'))", "2*x"),
    "numpy": ("float(__import__('numpy').ones(3).sum())", 3.0),
}


def _within(root: Root) -> str:
    """The probing program: what every sandbox process must refuse, and what the packages of ``root`` must do."""
    works = [("6 * 7", 42), *(_COMPUTES[name] for name in root.modules if name in _COMPUTES)]
    codes = ", ".join(code for code, _ in works)
    return f"{_INSIDE}out['computes'] = value([{codes}], {[value for _, value in works]!r})\nprint(json.dumps(out))\n"


_INTERPRETERS = "for n in {11..19}; do : < /opt/python/bin/python3.$n && echo readable; done 2>/dev/null"


async def inspect(within: Executes, root: Root = EVERYTHING) -> list[Probe]:
    """Eleven probes from inside one sandbox process (a few milliseconds). Run on every new backend."""
    result = await _run(within, SandboxCall("python", _within(root), wall_s=10.0, root=root))
    if result.state is not ToolState.OK:
        return [Probe("computes", False, _observed(result))]
    return [Probe(name, bool(ok), str(detail)) for name, (ok, detail) in json.loads(result.stdout).items()]


async def limits(within: Executes, root: Root = EVERYTHING) -> list[Probe]:
    """Memory and time are enforced (about half a second), and the shell, where there is one, finds what is listed."""
    greed = "kept = []\nwhile True: kept.append(bytearray(4 << 20))"
    greedy = SandboxCall("python", greed, wall_s=10.0, mem_mib=128, root=root)
    endless = SandboxCall("python", "while True: pass", wall_s=0.1, root=root)
    absent = " ".join(name for name in ("python3", "su", "mount") if name not in root.executables)
    shell = SandboxCall("shell", f"echo $((6 * 7)); command -v {absent}; {_INTERPRETERS}", root=root)
    calls = [greedy, endless, *([shell] if "bash" in root.executables else [])]
    memory, time, *shell_results = await asyncio.gather(*(_run(within, call) for call in calls))
    return [
        Probe("memory_limit", memory.state is ToolState.MEMORY, _observed(memory)),
        Probe("time_limit", time.state is ToolState.TIMEOUT, _observed(time)),
        *(Probe("shell_allowlist", result.stdout == "42\n", _observed(result)) for result in shell_results),
    ]


def require(probes: list[Probe]) -> None:
    """Require that every probe passed.

    Raises:
        MissedProbeError: a probe failed; the message names each.
    """
    missed = [f"{p.name} ({p.detail})" for p in probes if not p.ok]
    if missed:
        raise MissedProbeError(
            "The sandbox",
            f"its self-test missed: {', '.join(missed)}.",
            "See `agent0 doctor`; nothing runs without it.",
        )


async def _run(within: Executes, call: SandboxCall) -> SandboxResult:
    try:
        return await within.execute(call)
    except SandboxProcessError as error:
        raise MissedProbeError("The sandbox", f"{error}.", "See `agent0 doctor`.") from error


def _observed(result: SandboxResult) -> str:
    return (
        f"{result.state.value} after {result.wall_s:.2f} s, {result.peak_mem_mib:.0f} MiB: "
        + (result.stderr.strip().splitlines() or [result.stdout.strip()])[-1]
    )
