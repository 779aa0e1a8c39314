"""Two calls at once have nothing to talk through; and what a call locks in its own folder is locked."""

import asyncio
import os

import pytest

from agent0.events.values import ToolState
from agent0.infra.sandbox import Bubblewrap
from agent0.infra.sandbox.backends.cold import ColdBubblewrap
from agent0.ports.sandbox import SandboxCall
from tests.sandbox.attacks.channels import PIPES, SHARED
from tests.sandbox.test_backends import SETTINGS

BOTH = f"""{SHARED}
import time
end, found = time.monotonic() + 1, set()
while time.monotonic() < end:
    found |= set(sensed())
print(sorted(found))
"""
FULL = f"""{PIPES}
import time
held = fill()
time.sleep(2)
"""
ROOM = f"""{PIPES}
import time
end, seen = time.monotonic() + 2, set()
while time.monotonic() < end:
    seen.add(capacity())
print(sorted(seen))
"""
EXCLUSIVE = """
import fcntl, os, sqlite3, struct
db = sqlite3.connect('a.db', isolation_level=None)
print(*db.execute('PRAGMA journal_mode=WAL').fetchone())
db.execute('CREATE TABLE t(n)')
held = open('held', 'w')
fcntl.flock(held, fcntl.LOCK_EX)
fcntl.lockf(open('/tmp/held', 'w'), fcntl.LOCK_EX)
db.execute('BEGIN IMMEDIATE')
if os.fork() == 0:
    try:
        fcntl.flock(open('held', 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print('flock excludes', flush=True)
    try:
        sqlite3.connect('a.db', timeout=0).execute('BEGIN IMMEDIATE')
    except sqlite3.OperationalError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
db.execute('INSERT INTO t VALUES (7)')
db.execute('COMMIT')
print(db.execute('SELECT n FROM t').fetchone()[0])
"""
JOINED = """
import ctypes
libc = ctypes.CDLL(None)
thread, left = ctypes.c_ulong(), ctypes.c_void_p()
begin = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: libc.usleep(200_000) or 7)
print(libc.pthread_create(ctypes.byref(thread), None, begin, None))
print(libc.pthread_join(thread, ctypes.byref(left)), left.value)
"""


async def _ended(sandbox: Bubblewrap | ColdBubblewrap, *codes: str) -> list[tuple[ToolState, str]]:
    ended = await asyncio.gather(*(sandbox.call(SandboxCall("python", code, {}, 20.0)) for code in codes))
    return [(one.state, one.stdout or one.stderr + one.reason) for one in ended]


@pytest.mark.asyncio(loop_scope="session")
async def test_two_calls_at_once_see_no_lock_of_each_other(sandbox: Bubblewrap) -> None:
    assert await _ended(sandbox, BOTH, BOTH) == [(ToolState.OK, "[]\n")] * 2


@pytest.mark.skipif(os.getuid() != 0, reason="calls of a user without rights share what the kernel counts by user")
@pytest.mark.asyncio(loop_scope="session")
async def test_pipes_of_one_call_leave_those_of_another_their_size(sandbox: Bubblewrap) -> None:
    assert await _ended(sandbox, FULL, ROOM) == [(ToolState.OK, ""), (ToolState.OK, "[65536]\n")]


@pytest.mark.asyncio(loop_scope="session")
async def test_files_of_the_call_itself_are_locked_as_ever(sandbox: Bubblewrap) -> None:
    said = "wal\nflock excludes\ndatabase is locked\n7\n"
    assert await _ended(sandbox, EXCLUSIVE) == [(ToolState.OK, said)]


@pytest.mark.asyncio(loop_scope="session")
async def test_threads_of_the_call_itself_are_waited_for_as_ever(sandbox: Bubblewrap) -> None:
    assert await _ended(sandbox, JOINED) == [(ToolState.OK, "0\n0 7\n")]


@pytest.mark.slow  # part of make knockout
async def test_neither_with_one_bubblewrap_a_call() -> None:
    sandbox = ColdBubblewrap(SETTINGS)
    try:
        one, two, own = await _ended(sandbox, BOTH, BOTH, EXCLUSIVE)
    finally:
        await sandbox.close()
    assert (one, two) == ((ToolState.OK, "[]\n"),) * 2
    assert own == (ToolState.OK, "wal\nflock excludes\ndatabase is locked\n7\n")
