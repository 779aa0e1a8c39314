"""A call with a guest: two processes in one sandbox, of which one cannot look into the other."""

import json

import pytest

from agent0.events.values import ToolState
from agent0.infra.sandbox import Bubblewrap, open_sandbox
from agent0.ports.sandbox import Root, SandboxCall
from agent0.settings import SandboxSettings
from agent0.verification.programs import TRUSTED

in_the_sandbox = pytest.mark.asyncio(loop_scope="session")
ROOTS = (Root(), Root(modules=(), trusted=TRUSTED))
CALL = """
import os, socket
SECRET = "held" + "-by-the-call-alone"
peer = socket.socket(fileno=0)
peer.sendall(f"{os.getpid()}\\n".encode())
print(peer.makefile().read(), flush=True)
"""
GUEST = """
import ctypes, gc, json, os, socket
peer = socket.socket(fileno=os.dup(0))
other = int(peer.recv(99))
found = {"read": [], "killed": [], "open": []}
for name in ("mem", "environ", "maps", "cmdline", "fd/1", "root"):
    try:
        with open(f"/proc/{other}/{name}", "rb") as file:
            found["read"].append([name, len(file.read(9))])
    except OSError:
        pass
libc = ctypes.CDLL(None)
found["traced"] = libc.ptrace(16, other, 0, 0)
found["held"] = any(type(one) is str and one == "held" + "-by-the-call-alone" for one in gc.get_objects())
found["open"] = [fd for fd in range(3, 64) if fd != peer.fileno() and os.path.exists(f"/proc/self/fd/{fd}")]
print("nobody reads this")
peer.sendall(json.dumps(found).encode())
"""


def _check(state: ToolState, printed: str) -> None:
    assert state is ToolState.OK, printed
    found = json.loads(printed)
    assert (found["read"], found["traced"], found["held"], found["open"]) == ([], -1, False, [])


@pytest.mark.parametrize("root", ROOTS, ids=["asked for", "made ahead"])
@in_the_sandbox
async def test_a_guest_reads_nothing_of_the_call(sandbox: Bubblewrap, root: Root) -> None:
    result = await sandbox.call(SandboxCall("python", CALL, guest=GUEST, root=root))
    _check(result.state, result.stdout)


@in_the_sandbox
async def test_a_guest_of_a_cold_call_does_not_either() -> None:
    cold = await open_sandbox(SandboxSettings(backend="bwrap-cold"))
    try:
        result = await cold.call(SandboxCall("python", CALL, guest=GUEST))
    finally:
        await cold.close()
    _check(result.state, result.stdout)


CHANGES = """
import socket
from judged import judge, values
found = [vars(module).get("changed") for module in (judge, values)]
judge.changed = values.changed = True
peer = socket.socket(fileno=0)
"""
COUNTS = """
import os
def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
print(sum(map(is_there, range(2, 20))))
"""


@in_the_sandbox
async def test_what_is_imported_ahead_is_changed_for_nobody_else(sandbox: Bubblewrap) -> None:
    """Neither for the other process of a call nor for a later call of the same fork server."""
    guest, call = f"{CHANGES}peer.sendall(repr(found).encode())", f"{CHANGES}print(peer.makefile().read(), found)"
    for _ in range(3):
        result = await sandbox.call(SandboxCall("python", call, guest=guest, root=ROOTS[1]))
        assert result.stdout == "[None, None] [None, None]\n", result


@in_the_sandbox
async def test_a_call_without_a_guest_has_none_where_one_was_made_ahead(sandbox: Bubblewrap) -> None:
    result = await sandbox.call(SandboxCall("python", COUNTS, root=ROOTS[1]))
    assert (result.state, result.stdout) == (ToolState.OK, "1\n"), result


@pytest.mark.parametrize("root", ROOTS, ids=["asked for", "made ahead"])
@in_the_sandbox
async def test_a_guest_begins_without_what_the_call_is_sent(sandbox: Bubblewrap, root: Root) -> None:
    """A fork has all memory there is; nothing of the call is in it yet."""
    search = """
import ctypes, os, re, socket
found = 0
with open("/proc/self/maps") as maps:
    for line in maps:
        start, end = (int(one, 16) for one in line.split()[0].split("-"))
        if line.split()[1].startswith("rw") and "[v" not in line:
            found += len(re.findall(b"zebra[-]crossing", ctypes.string_at(start, end - start)))  # not this word itself
socket.socket(fileno=os.dup(0)).sendall(b"%d" % found)
"""
    call = "import socket\nprint(socket.socket(fileno=0).makefile().read())\n# zebra-crossing"
    result = await sandbox.call(SandboxCall("python", call, guest=search, root=root))
    assert result.stdout.strip() in ("0", ""), "nothing, or there is no list of what could be searched"


@in_the_sandbox
async def test_limits_are_those_of_both_and_a_guest_ends_with_its_call(sandbox: Bubblewrap) -> None:
    hungry = "held = [bytearray(1 << 20) for _ in range(4000)]\nwhile True: pass"
    waits = "import socket\nsocket.socket(fileno=0).recv(1)\nimport time\ntime.sleep(60)"
    greedy = await sandbox.call(SandboxCall("python", waits, guest=hungry, wall_s=3.0, mem_mib=128))
    assert greedy.state in (ToolState.MEMORY, ToolState.TIMEOUT)
    done = await sandbox.call(SandboxCall("python", "print(1)", guest="import time\ntime.sleep(60)", wall_s=20.0))
    assert (done.state, done.stdout) == (ToolState.OK, "1\n") and done.wall_s < 15.0


@in_the_sandbox
async def test_a_shell_has_no_guest(sandbox: Bubblewrap) -> None:
    result = await sandbox.call(SandboxCall("shell", "ls", guest="pass"))
    assert result.state is ToolState.REFUSED and "guest" in result.reason
