"""Attacks that leave a mark for calls that run beside them or later: on files that all calls share, and on what the
kernel keeps for the whole machine."""

from tests.sandbox.attacks.table import attack

SHARED = """\
import fcntl, os, struct
shared = ['/dev/null', '/dev/zero', '/dev/urandom', '/usr/bin/cat', '/opt/python/bin', os.__file__]
def ways(fd):
    whole = lambda kind: struct.pack('hhqqi4x', kind, 0, 0, 0, 0)
    yield 'flock', lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    yield 'shared flock', lambda: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    for name, command, kind in (('GETLK', 5, 1), ('SETLK', 6, 0), ('SETLK', 6, 1), ('OFD_GETLK', 36, 1),
                                ('OFD_SETLK', 37, 0), ('OFD_SETLK', 37, 1)):
        yield f'{name} {kind}', lambda command=command, kind=kind: fcntl.fcntl(fd, command, whole(kind))
def sensed():
    found = []
    for path in shared:
        for mode in (os.O_RDONLY, os.O_RDWR):
            try:
                fd = os.open(path, mode)
            except OSError:
                continue
            for name, lock in ways(fd):
                try:
                    lock()
                    found.append(f'{name} of {path}')
                except BlockingIOError:
                    found.append(f'{name} of {path} sees another one')
                except OSError:
                    pass
            os.close(fd)
    return found
"""

attack(
    "C01-lock-what-all-share",
    "python",
    f"""{SHARED}
found = sensed()
print('ESCAPE' if found else 'BLOCKED', found)
""",
    prints="BLOCKED",
)
attack(
    "C02-lock-while-a-thread-swaps-the-file",
    "python",
    r"""
import fcntl, os, threading
own, foreign = os.open('/box/own', os.O_RDWR | os.O_CREAT), os.open('/dev/null', os.O_RDWR)
target = os.dup(own)
def swap():
    while not done:
        os.dup2(foreign, target)
        os.dup2(own, target)
done = []
threading.Thread(target=swap).start()
seen = 0
for i in range(100):
    try:
        fcntl.flock(target, fcntl.LOCK_SH | fcntl.LOCK_NB)
        seen += 1
    except OSError:
        pass
done.append(1)
print('ESCAPE' if seen else 'BLOCKED', seen)
""",
    prints="BLOCKED",
    wall=30,
)
attack(
    "C03-share-descriptors-with-another-process",
    "python",
    r"""
for flags in (0x400 | 17, 0x400 | 0x100 | 17, 0x400 | 0x4000 | 17):
    r, e = sc(56, flags, 0, 0, 0, 0)
    if r == 0:
        os._exit(0)
    print('ESCAPE' if r > 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "C04-lease-notice-and-hint-on-what-all-share",
    "python",
    r"""
import fcntl
bad = []
for path in ('/dev/null', '/usr/bin/cat', '/usr/bin', os.__file__):
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        continue
    for command, value in ((1024, 0), (1025, 0), (1026, 1), (1035, 0), (1036, 0)):
        try:
            fcntl.fcntl(fd, command, value if command != 1036 else b'\x02' + bytes(7))
            bad.append((path, command))
        except OSError:
            pass
print('ESCAPE' if bad else 'BLOCKED', bad)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "C05-times-of-what-all-share",
    "python",
    r"""
import os
bad = []
for path in ('/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom', '/usr/bin/cat', os.__file__):
    if not os.path.exists(path):
        continue
    before = os.stat(path).st_mtime_ns
    for way in (lambda: os.utime(path), lambda: os.utime(os.open(path, os.O_RDWR))):
        try:
            way()
        except OSError:
            pass
    if os.stat(path).st_mtime_ns != before:
        bad.append(path)
open('/dev/null', 'w').write('it can still be written')
print('ESCAPE' if bad else 'BLOCKED', bad)
""",
    prints="BLOCKED",
)
attack(
    "C06-which-pages-are-in-memory",
    "python",
    r"""
import os
bad = []
fd = os.open(os.__file__, os.O_RDONLY)
try:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    bad.append('evicted')
except OSError:
    pass
try:
    os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
    bad.append('told')
except BlockingIOError:
    bad.append('told')
except OSError:
    pass
print('ESCAPE' if bad else 'BLOCKED', bad)
""",
    prints="BLOCKED",
)
attack(
    "C07-queues-segments-watches-keys",
    "python",
    r"""
bad = []
for name, number, *args in (
    ('shmget', 29, 4711, 4096, 0o1666), ('semget', 64, 4711, 1, 0o1666), ('msgget', 68, 4711, 0o1666),
    ('mq_open', 240, b'/x', 0o102, 0o666, 0), ('inotify_init', 253), ('inotify_init1', 294, 0),
    ('fanotify_init', 300, 0, 0), ('memfd_create', 319, b'x', 0), ('add_key', 248, b'user', b'a', b'b', 1, -4),
    ('request_key', 249, b'user', b'a', 0, -4), ('keyctl', 250, 0, -4, 1), ('cachestat', 451, 0, 0, 0, 0),
    ('sysinfo', 99, bytes(128)), ('lsm_list', 461, 0, 0, 0),
):
    r, e = sc(number, *args)
    if r != -1 or e not in (1, 38):
        bad.append((name, r, e))
try:
    s = socket.socket(socket.AF_UNIX)
    s.bind('\0agent0-channel')
    bad.append('abstract socket')
except OSError:
    pass
try:
    open('/dev/shm/mark', 'w').close()
    bad.append('/dev/shm')
except OSError:
    pass
for path in ('/proc/loadavg', '/proc/meminfo', '/proc/stat', '/proc/locks', '/proc/pressure/cpu', '/proc/sysvipc/shm'):
    if os.path.exists(path):
        bad.append(path)
print('ESCAPE' if bad else 'BLOCKED', bad)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "C08-locks-without-end",
    "python",
    r"""
import fcntl, os
fd = os.open('/dev/null', os.O_RDWR)
for _ in range(4):
    if os.fork() == 0:
        break
while True:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        print('ESCAPE')
    except OSError:
        pass
""",
    states="timeout",
    wall=1,
)
attack(
    "C09-descriptors-in-flight",
    "python",
    r"""
import array, os, socket
sent, keep = 0, []
for _ in range(8):
    a, b = socket.socketpair()
    keep += [a, b]
    try:
        a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 25))])
        sent += 25
    except OSError:
        pass
r, e = sc(307, keep[0].fileno(), bytes(64), 1, 0)
print('ESCAPE' if sent or (r, e) != (-1, 1) else 'BLOCKED', sent, r, e)
""",
    syscalls=True,
    prints="BLOCKED",
)
PIPES = """\
import os
def fill():
    held = []
    for _ in range(30):
        if os.fork() == 0:
            break
    try:
        while True:
            held.append(os.pipe())
    except OSError:
        return held
def capacity():
    r, w = os.pipe()
    os.set_blocking(w, False)
    try:
        return os.write(w, bytes(1 << 17))
    finally:
        os.close(r), os.close(w)
"""

attack(
    "C10-pipes-of-a-chosen-size",
    "python",
    r"""
import fcntl, os
r, w = os.pipe()
bad = []
for size in (4096, 1 << 20):
    try:
        bad.append(fcntl.fcntl(w, 1031, size))
    except OSError:
        pass
print('ESCAPE' if bad else 'BLOCKED', bad)
""",
    prints="BLOCKED",
)
attack(
    "C11-wait-on-a-word-that-all-share",
    "python",
    r"""
import ctypes, mmap, os, struct, time
size = os.stat(os.__file__).st_size
libc.mmap.restype = ctypes.c_void_p
place = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, os.open(os.__file__, os.O_RDONLY), ctypes.c_long(0))
value = ctypes.c_uint32.from_address(place).value
soon = struct.pack('qq', 0, 200_000_000)
bad = []
for name, op in (('WAIT', 0), ('WAIT_BITSET', 9), ('REALTIME', 0x100), ('BITSET_REALTIME', 0x109)):
    r, e = sc(202, ctypes.c_void_p(place), op, value, soon, None, -1)
    if r != -1 or e not in (11, 38):
        bad.append((name, r, e))
waiter = struct.pack('QQII', value, place, 2, 0)
r, e = sc(449, waiter, 1, 0, soon, 1)
if (r, e) != (-1, 1):
    bad.append(('waitv', r, e))
print('ESCAPE' if bad else 'BLOCKED', bad)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "C12-free-space-of-the-host",
    "python",
    r"""
import os
bad = []
for path in ('/', '/usr', '/usr/bin/cat', '/opt/python', '/dev', '/dev/null', os.__file__):
    for way in (os.statvfs, lambda path: os.statvfs(os.open(path, os.O_RDONLY))):
        try:
            bad.append((path, way(path).f_bfree))
        except OSError:
            pass
print('ESCAPE' if bad else 'BLOCKED', bad)
""",
    prints="BLOCKED",
)
