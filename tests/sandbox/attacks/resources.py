"""Attacks on memory, disk, descriptors, processes, time and output."""

from tests.sandbox.attacks.table import attack

attack(
    "R01-fork-bomb",
    "python",
    r"""
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    states="timeout error memory",
    wall=0.7,
)
attack(
    "R02-shell-fork-bomb",
    "shell",
    r"""
:(){ :|:& };:; sleep 0.4; echo done
""",
    states="timeout ok error memory",
    wall=1,
)
attack(
    "R03-mem-bomb",
    "python",
    r"""
b = []
while True:
    b.append(bytearray(10 << 20))
""",
    states="memory",
    mem=256,
)
attack(
    "R04-mem-one-shot",
    "python",
    r"""
try:
    x = bytearray(8 << 30)
    print('ESCAPE got 8G')
except MemoryError:
    print('BLOCKED')
""",
    prints="BLOCKED",
)
attack(
    "R05-mem-multi-proc",
    "python",
    r"""
import os, time
for i in range(12):
    try:
        if os.fork() == 0:
            x = bytearray(200 << 20)
            time.sleep(5)
            os._exit(0)
    except OSError:
        break
time.sleep(5)
print('ESCAPE 2.4G held')
""",
    states="memory",
    mem=256,
    wall=4,
)
attack(
    "R06-disk-fill",
    "python",
    r"""
n = 0
try:
    with open('/box/f', 'wb') as f:
        while n < 1 << 30:
            n += f.write(b'x' * (1 << 20))
except OSError as e:
    print('BLOCKED', e.errno, n >> 20)
if n > 200 << 20:
    print('ESCAPE')
""",
    prints="BLOCKED",
)
attack(
    "R07-disk-many-files",
    "python",
    r"""
n = 0
try:
    for i in range(200000):
        open('/box/%d' % i, 'w').close()
        n += 1
except OSError as e:
    print('BLOCKED', e.errno, n)
if n > 100000:
    print('ESCAPE')
""",
    prints="BLOCKED",
)
attack(
    "R08-fd-exhaust",
    "python",
    r"""
import os
f = []
try:
    for i in range(100000):
        f.append(os.open('/dev/null', 0))
    print('ESCAPE')
except OSError as e:
    print('BLOCKED', e.errno, len(f))
""",
    prints="BLOCKED",
)
attack(
    "R09-infinite-loop",
    "python",
    r"""
while True:
    pass
""",
    states="timeout",
    wall=0.5,
)
attack(
    "R10-sleep-past",
    "python",
    r"""
import time
while 1:
    try:
        time.sleep(100)
    except BaseException:
        pass
""",
    states="timeout",
    wall=0.5,
)
attack(
    "R11-ignore-sigterm",
    "python",
    r"""
import signal
for s in range(1, 65):
    try:
        signal.signal(s, signal.SIG_IGN)
    except Exception:
        pass
while 1:
    pass
""",
    states="timeout",
    wall=0.5,
)
attack(
    "R12-graceful-sigterm",
    "python",
    r"""
import signal, time, sys

def h(*a):
    print('GRACE', flush=True)
    sys.exit(3)
signal.signal(signal.SIGTERM, h)
time.sleep(30)
""",
    states="timeout",
    prints="GRACE",
    wall=1,
)
attack(
    "R13-stdout-flood",
    "python",
    r"""
import sys
while 1:
    sys.stdout.write('A' * 65536)
""",
    states="output_flood",
    wall=2,
)
attack(
    "R14-stderr-flood",
    "python",
    r"""
import os
while 1:
    os.write(2, b'E' * 65536)
""",
    states="output_flood",
    wall=2,
)
attack(
    "R15-huge-single-line",
    "python",
    r"""
print('x' * (50 << 20))
""",
    states="output_flood",
)
attack(
    "R16-catastrophic-c-call",
    "python",
    r"""
10 ** 10 ** 9
""",
    states="timeout ok error memory",
    wall=0.5,
)
attack(
    "R17-regex-bomb",
    "python",
    r"""
import re
re.match('(a+)+$', 'a' * 40 + 'b')
""",
    states="timeout",
    wall=0.5,
)
attack(
    "R18-recursion-segv",
    "python",
    r"""
import sys
sys.setrecursionlimit(10 ** 9)

def f():
    f()
f()
""",
    states="ok error memory",
    fails=True,
)
attack(
    "R19-thread-bomb",
    "python",
    r"""
import threading, time
n = 0
try:
    for i in range(5000):
        threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
        n += 1
    print('ESCAPE', n)
except BaseException as e:
    print('BLOCKED', n)
""",
    prints="BLOCKED",
    wall=3,
)
attack(
    "R20-cpu-split-procs",
    "python",
    r"""
import os, time
for i in range(8):
    try:
        if os.fork() == 0:
            while 1:
                pass
    except OSError:
        pass
time.sleep(60)
""",
    states="timeout",
    wall=0.5,
)
attack(
    "R21-memfd-bomb",
    "python",
    r"""
fd, e = sc(319, b'x', 0)
if fd < 0:
    print('BLOCKED', e)
else:
    n = 0
    try:
        while n < 3 << 30:
            n += os.write(fd, b'y' * (1 << 20))
        print('ESCAPE')
    except OSError as ex:
        print('BLOCKED', ex)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "R22-shm-bomb",
    "python",
    r"""
r, e = sc(29, 0, 1 << 32, 896)
print('ESCAPE' if r >= 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "R23-core-dump",
    "python",
    r"""
import os, signal
if os.fork() == 0:
    os.abort()
os.wait()
print([f for f in os.listdir('/box')])
print('ESCAPE' if any(('core' in f for f in os.listdir('/box'))) else 'BLOCKED')
""",
    prints="BLOCKED",
)
attack(
    "R24-raise-rlimit",
    "python",
    r"""
import resource
for n in ('AS', 'NPROC', 'NOFILE', 'FSIZE', 'CPU', 'CORE'):
    r = getattr(resource, 'RLIMIT_' + n)
    try:
        resource.setrlimit(r, (resource.RLIM_INFINITY,) * 2)
        print('ESCAPE', n)
    except (ValueError, OSError):
        print('BLOCKED')
""",
    prints="BLOCKED",
)
attack(
    "R25-mlock",
    "python",
    r"""
b = ctypes.create_string_buffer(64 << 20)
r, e = sc(149, b, 64 << 20)
print('ESCAPE' if r == 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "R26-pipe-buffers",
    "python",
    r"""
import os, fcntl
p = []
tot = 0
try:
    while 1:
        r, w = os.pipe()
        p.append((r, w))
        fcntl.fcntl(w, 1031, 1 << 20)
        os.set_blocking(w, False)
        try:
            while 1:
                tot += os.write(w, b'z' * 65536)
        except BlockingIOError:
            pass
except OSError as e:
    print('BLOCKED', e.errno, tot >> 20)
if tot > 512 << 20:
    print('ESCAPE')
""",
    prints="BLOCKED",
)
