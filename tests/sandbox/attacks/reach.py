"""Attacks on what is outside: other processes, the network, files of the host."""

# ruff: noqa: E501 (hostile text is kept as it would come)

from tests.sandbox.attacks.table import attack

attack(
    "P01-proc-other-environ",
    "python",
    r"""
import os, glob
hit = []
for p in glob.glob('/proc/[0-9]*/environ') + ['/proc/1/environ', '/proc/self/environ']:
    try:
        if b'AGENT0_SECRET' in open(p, 'rb').read():
            hit.append(p)
    except OSError:
        pass
print('ESCAPE' if hit or 'AGENT0_SECRET' in os.environ else 'BLOCKED', hit)
""",
    prints="BLOCKED",
)
attack(
    "P02-proc-pids",
    "python",
    r"""
import os
ps = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())] if os.path.isdir('/proc') else []
print('ESCAPE' if ps else 'BLOCKED', ps)
""",
    prints="BLOCKED",
)
attack(
    "P03-proc-1-mem",
    "python",
    r"""
import os
for f in ('mem', 'maps', 'fd', 'root', 'cwd', 'environ'):
    p = '/proc/1/' + f
    try:
        os.listdir(p) if f in ('fd', 'root', 'cwd') else open(p, 'rb').read(1)
        print('ESCAPE', f)
    except OSError as e:
        print('BLOCKED', e.errno)
""",
    prints="BLOCKED",
)
attack(
    "P04-proc-sys-write",
    "python",
    r"""
for p in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/kernel/hostname', '/proc/self/uid_map', '/proc/self/oom_score_adj', '/sys/kernel/uevent_helper', '/sys/fs/cgroup/release_agent'):
    try:
        f = open(p, 'w')
        f.write('-500' if 'oom' in p else 'x')
        f.flush()
        print('ESCAPE', p)
    except OSError as e:
        print('BLOCKED', p, e.errno)
""",
    prints="BLOCKED",
)
attack(
    "P05-env-clean",
    "python",
    r"""
import os
bad = [k for k in os.environ if any((s in k for s in ('SECRET', 'TOKEN', 'KEY', 'SSH', 'DOCKER', 'NATS')))]
print('ESCAPE' if bad else 'BLOCKED', sorted(os.environ))
""",
    prints="BLOCKED",
)
attack(
    "P06-inherited-fds",
    "python",
    r"""
import os
x = []
for i in range(3, 1024):
    try:
        os.fstat(i)
        x.append(i)
    except OSError:
        pass
print('ESCAPE' if x else 'BLOCKED', x)
""",
    prints="BLOCKED",
)
attack(
    "P07-frames-zygote-globals",
    "python",
    r"""
import sys, gc, socket
bad = [o for o in gc.get_objects() if isinstance(o, socket.socket)]
live = []
for o in bad:
    try:
        o.send(b'x')
        live.append(o)
    except OSError:
        pass
print('ESCAPE' if live else 'BLOCKED', len(bad))
""",
    prints="BLOCKED",
)
attack(
    "N01-tcp-loopback-nats",
    "python",
    r"""
import socket
try:
    s = socket.create_connection(('127.0.0.1', {PORT}), 1)
    s.send(b'CONNECT {}')
    print('ESCAPE')
except OSError as e:
    print('BLOCKED', e)
""",
    prints="BLOCKED",
)
attack(
    "N02-dns",
    "python",
    r"""
import socket
try:
    print('ESCAPE', socket.getaddrinfo('localhost.localdomain.example', 80))
except OSError as e:
    print('BLOCKED', e)
""",
    prints="BLOCKED",
)
attack(
    "N03-raw-families",
    "python",
    r"""
import socket
ok = []
for f in (1, 2, 10, 16, 17, 31, 38, 40, 44):
    for t in (1, 2, 3):
        try:
            socket.socket(f, t)
            ok.append((f, t))
        except OSError:
            pass
print('ESCAPE' if ok else 'BLOCKED', ok)
""",
    prints="BLOCKED",
)
attack(
    "N04-unix-path-socket",
    "python",
    r"""
import socket
try:
    s = socket.socket(1)
    s.connect('{FOLDER}/listen.sock')
    print('ESCAPE')
except OSError as e:
    print('BLOCKED', e)
""",
    prints="BLOCKED",
)
attack(
    "N05-abstract-socket",
    "python",
    r"""
import socket
try:
    s = socket.socket(1)
    s.connect('\x00{NAME}')
    print('ESCAPE')
except OSError as e:
    print('BLOCKED', e)
""",
    prints="BLOCKED",
)
attack(
    "N06-bash-dev-tcp",
    "shell",
    r"""
(echo hi > /dev/tcp/127.0.0.1/{PORT}) 2>/dev/null && echo ESCAPE || echo BLOCKED
""",
    prints="BLOCKED",
)
attack(
    "F01-read-secret-paths",
    "python",
    r"""
import os
hit = []
for p in ('/etc/shadow', '/etc/passwd', '/root/.bashrc', '{FOLDER}/secret.txt', '/srv/secret', '/home', '/var/log', '/proc/cmdline', '/run'):
    try:
        os.listdir(p) if os.path.isdir(p) else open(p).read(1)
        hit.append(p)
    except OSError:
        pass
print('ESCAPE' if hit else 'BLOCKED', hit)
""",
    prints="BLOCKED",
)
attack(
    "F02-dotdot",
    "python",
    r"""
import os
for p in ('../../../..{FOLDER}/secret.txt', '/box/..{FOLDER}/secret.txt', '..//..//etc/shadow'):
    try:
        open(p).read()
        print('ESCAPE', p)
    except OSError as e:
        print('BLOCKED', e.errno)
""",
    prints="BLOCKED",
)
attack(
    "F03-symlink-out-harvest",
    "python",
    r"""
import os
os.symlink('{FOLDER}/secret.txt', '/box/leak')
os.symlink('/', '/box/rootlink')
print('BLOCKED')
""",
    prints="BLOCKED",
)
attack(
    "F04-hardlink-interp",
    "python",
    r"""
import os, sys
try:
    os.link(os.path.realpath(sys.executable), '/box/py')
    print('ESCAPE')
except OSError as e:
    print('BLOCKED', e.errno)
""",
    prints="BLOCKED",
)
attack(
    "F05-write-interp-sitepkgs",
    "python",
    r"""
import os, sys, sympy
for p in (sys.executable, os.path.dirname(sympy.__file__) + '/evil.py', os.__file__, '/opt/sbx/zygote.py', '/usr/bin/x', '/x', '/lib/x', '/dev/x', '/dev/pts/x', '/box/../x'):
    try:
        open(p, 'ab').write(b'#')
        print('ESCAPE', p)
    except OSError as e:
        print('BLOCKED', e.errno)
""",
    prints="BLOCKED",
)
attack(
    "F06-remount-rw",
    "python",
    r"""
for a in ((b'none', b'/usr', b'', 32 | 4096, None), (b'none', b'/', b'', 32, None), (b'tmpfs', b'/usr', b'tmpfs', 0, None)):
    r = libc.mount(*a)
    print('ESCAPE' if r == 0 else 'BLOCKED', ctypes.get_errno())
for t in (b'/proc', b'/box', b'/tmp'):
    r = libc.umount2(t, 2)
    print('ESCAPE' if r == 0 else 'BLOCKED', ctypes.get_errno())
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "F07-newmount-api",
    "python",
    r"""
for n, a in ((428, (-100, b'/', 1)), (430, (b'tmpfs', 0)), (433, (-100, b'/', 0)), (155, (b'/box', b'/box')), (161, (b'/box',)), (442, (-100, b'/', 0, 0, 0))):
    r, e = sc(n, *a)
    print('ESCAPE %d' % n if r >= 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "F08-chroot-breakout",
    "python",
    r"""
os.mkdir('/box/c')
fd = os.open('/', os.O_RDONLY)
try:
    os.chroot('/box/c')
    print('ESCAPE chroot')
except OSError as e:
    print('BLOCKED', e.errno)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "F09-mknod-dev",
    "python",
    r"""
import os, stat
for m, d in ((stat.S_IFBLK, os.makedev(254, 0)), (stat.S_IFCHR, os.makedev(1, 1))):
    try:
        os.mknod('/box/d%d' % m, m | 438, d)
        print('ESCAPE')
    except OSError as e:
        print('BLOCKED', e.errno)
""",
    prints="BLOCKED",
)
attack(
    "F10-dev-access",
    "python",
    r"""
import os
bad = []
for d in ('vda', 'mem', 'kmem', 'kmsg', 'fuse', 'kvm', 'loop0', 'loop-control', 'vsock', 'userfaultfd', 'net/tun', 'nvidia0', 'console', 'port'):
    try:
        os.open('/dev/' + d, os.O_RDWR)
        bad.append(d)
    except OSError:
        pass
print('ESCAPE' if bad else 'BLOCKED', bad)
""",
    prints="BLOCKED",
)
attack(
    "F11-dev-shm-persist",
    "python",
    r"""
import os
try:
    open('/dev/shm/x', 'w').write('a')
    print('ESCAPE')
except OSError as e:
    print('BLOCKED', e.errno)
""",
    prints="BLOCKED",
)
attack(
    "F12-setuid-bins",
    "shell",
    r"""
for b in su sudo mount umount passwd chsh newgrp newuidmap firejail pkexec; do p=$(command -v $b) && { $p --version </dev/null >/dev/null 2>&1; }; done; id -u; cat /etc/shadow 2>/dev/null && echo ESCAPE; grep -q . /etc/shadow 2>/dev/null && echo ESCAPE; echo BLOCKED
""",
    prints="BLOCKED",
)
attack(
    "F13-suid-own",
    "python",
    r"""
import os, shutil
shutil.copy('/usr/bin/id', '/box/id')
os.chmod('/box/id', 3565)
import subprocess
print(subprocess.run(['/box/id', '-u'], capture_output=True, text=True).stdout.strip())
print('BLOCKED' if os.geteuid() != 0 else 'ESCAPE')
""",
    prints="BLOCKED",
)
attack(
    "F14-openat2-handle",
    "python",
    r"""
import struct
r, e = sc(437, -100, b'/etc/shadow', struct.pack('QQQ', 0, 0, 0), 24)
print('ESCAPE' if r >= 0 else 'BLOCKED', e)
r, e = sc(304, -100, b'x', 0)
print('ESCAPE' if r >= 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
