"""Attacks on the next call and on whoever reads the result."""

# ruff: noqa: E501 (hostile text is kept as it would come)

from tests.sandbox.attacks.table import attack

attack(
    "X01-plant-state",
    "python",
    r"""
import sympy, builtins, sys, os
builtins.EVIL = 1
sympy.EVIL = 1
sympy.sin = lambda x: 'pwned'
sys.modules['json'] = None
open('/box/evil', 'w').write('x')
open('/tmp/evil', 'w').write('x')
os.environ['EVIL'] = '1'
print('planted')
""",
)
attack(
    "X02-check-state",
    "python",
    r"""
import builtins, sympy, os, sys
bad = [hasattr(builtins, 'EVIL'), hasattr(sympy, 'EVIL'), os.path.exists('/box/evil'), os.path.exists('/tmp/evil'), 'EVIL' in os.environ, sys.modules.get('json', 1) is None]
print('ESCAPE' if any(bad) else 'BLOCKED', bad)
""",
    prints="BLOCKED",
)
attack(
    "X03-non-utf8-ansi",
    "python",
    r"""
import os
os.write(1, b'\xff\xfe\x00\x1b[2J\x1b]0;pwn\x07\x1b]52;c;ZXZpbA==\x07' + bytes(range(256)))
""",
)
attack(
    "X04-forge-status",
    "python",
    r"""
import os
os.write(1, b'{"state":"ok","rc":0}\n')
os.write(2, b'\x00\x00\x00\x10{"state":"ok"}')
for fd in range(3, 64):
    try:
        os.write(fd, b'{"state":"ok"}')
        print('ESCAPE')
    except OSError:
        pass
os._exit(42)
""",
    rc=42,
)
attack(
    "X05-pickle-bait",
    "python",
    r"""
class E:

    def __reduce__(s):
        import os
        return (os.system, ('touch /tmp/pwned',))
import pickle
open('/box/result.pkl', 'wb').write(pickle.dumps(E()))
print(pickle.dumps(E()))
""",
)
attack(
    "X06-weird-filenames",
    "python",
    r"""
import os
for n in (b'a\nb', b'\xff\xfe', b'-rf', b'$(id)', b'..a', b'con', b'a' * 255, b'\x1b[2J'):
    open(b'/box/' + n, 'w').write('x')
d = '/box'
for i in range(40):
    d += '/d'
    os.mkdir(d)
os.mkfifo('/box/fifo')
print('BLOCKED')
""",
    prints="BLOCKED",
)
attack(
    "X07-toctou-swap",
    "python",
    r"""
import os, threading, time
if os.fork() == 0:
    while 1:
        try:
            os.mkdir('/box/d')
            os.rmdir('/box/d')
            os.symlink('/', '/box/d')
            os.unlink('/box/d')
        except OSError:
            pass
time.sleep(0.3)
print('BLOCKED')
""",
    prints="BLOCKED",
)
attack(
    "X08-exit-variants",
    "python",
    r"""
import os, sys
sys.stdout.flush()
os.kill(os.getpid(), 11)
""",
    rc=-11,
)
attack(
    "X09-atexit-hang",
    "python",
    r"""
import atexit, time
atexit.register(lambda: time.sleep(99))
print('x')
""",
    states="timeout",
    wall=0.5,
)
attack(
    "X10-nondaemon-thread-hang",
    "python",
    r"""
import threading, time
threading.Thread(target=time.sleep, args=(99,)).start()
""",
    states="timeout",
    wall=0.5,
)
attack(
    "X11-close-fds-redirect",
    "python",
    r"""
import os
os.close(0)
os.close(1)
os.close(2)
os._exit(0)
""",
    rc=0,
)
attack(
    "X12-stop-self",
    "python",
    r"""
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
""",
    states="timeout",
    wall=0.5,
)
