"""Attacks on how memory and files are counted."""

from tests.sandbox.attacks.table import attack

attack(
    "R27-memory-of-a-thread's-children",
    "python",
    r"""
import os, threading, time
heard, said = os.pipe()
def spread():
    for i in range(8):
        if os.fork() == 0:
            x = bytearray(150 << 20)
            os.write(said, b'x')
            time.sleep(9)
            os._exit(0)
threading.Thread(target=spread).start()
for i in range(8):
    os.read(heard, 1)
time.sleep(1)
print('ESCAPE 1.2 GB held')
""",
    states="memory",
    mem=256,
)
attack(
    "R28-many-folders-in-harvest",
    "python",
    r"""
import os
try:
    for i in range(5000):
        os.makedirs('/box/%d/a' % i)
    print('ESCAPE')
except OSError as e:
    print('BLOCKED', e.errno)
""",
    prints="BLOCKED",
)
attack(
    "R29-sparse-file-in-harvest",
    "python",
    r"""
f = open('/box/f', 'wb')
try:
    f.truncate(1 << 40)
    print('ESCAPE')
except OSError as e:
    print('BLOCKED', e.errno)
f.truncate(60 << 20)
""",
    prints="BLOCKED",
)
