"""Attacks by signals and by ways of starting processes that nobody waits for."""

from tests.sandbox.attacks.table import attack

attack(
    "S10-clone-with-another-parent",
    "python",
    r"""
import time
made = 0
for flags in 0x8000 | 17, 0x8000, 0, 10, 0x8000 | 9:
    r, e = sc(56, flags, 0, 0, 0, 0)
    if r == 0:
        os.setsid()
        time.sleep(982)
        os._exit(0)
    made += r > 0
print('made', made)
""",
    syscalls=True,
    prints="made",
)
attack(
    "S11-asynchronous-kill-of-pid-1",
    "python",
    r"""
import fcntl
for owner in 1, -1, os.getppid():
    for number in 9, 19, 31, 64:
        a, b = socket.socketpair()
        try:
            fcntl.fcntl(a, fcntl.F_SETOWN, owner)
            fcntl.fcntl(a, 10, number)
            fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
            if owner != -1:
                b.send(b'x')
        except OSError:
            pass
print('alive')
""",
    syscalls=True,
    prints="alive",
)
attack(
    "S12-pidfd-of-pid-1",
    "python",
    r"""
for pid in 1, os.getppid():
    fd, e = sc(434, pid, 0)
    for number in 9, 19, 15, 6:
        r, e = sc(424, fd, number, None, 0)
r, e = sc(438, fd, 0, 0)
print('ESCAPE' if r >= 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "S13-stopped-children-that-hold-memory",
    "python",
    r"""
import os, signal, time
for i in range(8):
    if os.fork() == 0:
        os.setsid()
        x = bytearray(8 << 20)
        os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(0.3)
print('done')
""",
    prints="done",
)
attack(
    "S14-children-of-a-last-breath",
    "python",
    r"""
import os, signal, time
def last(*_):
    for i in range(9):
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(981)
    os._exit(0)
signal.signal(signal.SIGTERM, last)
while True:
    time.sleep(9)
""",
    states="timeout",
    wall=1,
)
attack(
    "S15-flood-and-stay",
    "python",
    r"""
import os, time
for i in range(5):
    if os.fork() == 0:
        os.setsid()
        time.sleep(980)
while True:
    os.write(1, b'x' * 65536)
""",
    states="output_flood",
    wall=5,
)
attack(
    "S16-a-child-that-never-comes-back",
    "python",
    r"""
import time
code = bytes([0xF3, 0x90, 0xEB, 0xFC])  # pause; jump back
import mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(code)
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
""",
    syscalls=True,
    states="timeout",
    wall=0.5,
)
attack(
    "S17-timers-and-alarms",
    "python",
    r"""
import signal
made = 0
try:
    while made < 100000:
        r, e = sc(222, 0, None, b'\0' * 8)
        if r < 0:
            print('BLOCKED', e, made)
            break
        made += 1
    else:
        print('ESCAPE', made)
finally:
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
""",
    syscalls=True,
)
attack(
    "S18-real-time-signals-without-end",
    "python",
    r"""
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
sent = 0
for i in range(100000):
    r, e = sc(129, os.getpid(), 40, bytes([40, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]) + b'\0' * 116)
    if r < 0:
        print('BLOCKED', e, sent)
        break
    sent += 1
else:
    print('ESCAPE', sent)
""",
    syscalls=True,
    prints="BLOCKED",
)
