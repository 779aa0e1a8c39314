"""Attacks that try to outlive their call, or to end what watches them."""

from tests.sandbox.attacks.table import attack

attack(
    "S01-daemon-double-fork",
    "python",
    r"""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(987)
    os._exit(0)
print('parent done')
""",
)
attack(
    "S02-setsid-nohup",
    "shell",
    r"""
setsid nohup sleep 986 >/dev/null 2>&1 & disown; (setsid sleep 985 &) ; echo ok
""",
)
attack(
    "S03-survive-timeout",
    "python",
    r"""
import os, time
for i in range(5):
    if os.fork() == 0:
        os.setsid()
        time.sleep(984)
while 1:
    pass
""",
    states="timeout",
    wall=0.5,
)
attack(
    "S04-hold-stdout-after-exit",
    "python",
    r"""
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(983)
os._exit(0)
""",
)
attack(
    "S05-kill-parent",
    "python",
    r"""
import os, signal
for p in (1, os.getppid(), 0, -1):
    for s in (9, 19, 15, 2):
        try:
            if p == -1 and s in (9, 19):
                continue
            if p == 0:
                continue
            os.kill(p, s)
        except OSError:
            pass
print('alive')
""",
)
attack(
    "S06-kill-all",
    "python",
    r"""
import os
os.kill(-1, 9)
print('still')
""",
)
attack(
    "S07-ptrace-parent",
    "python",
    r"""
r, e = sc(101, 16, 1, 0, 0)
print('ESCAPE' if r == 0 else 'BLOCKED', e)
r, e = sc(101, 0, 0, 0, 0)
print('ESCAPE traceme' if r == 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "S08-process_vm_readv-1",
    "python",
    r"""
b = ctypes.create_string_buffer(64)
r, e = sc(310, 1, b, 0, b, 0, 0)
print('ESCAPE' if r >= 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "S09-prlimit-other",
    "python",
    r"""
import struct
r, e = sc(302, 1, 7, struct.pack('QQ', 0, 0), None)
print('ESCAPE' if r == 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
