"""Attacks on what is carried from one call to the next: names, sizes, links and rights of the files left behind."""

from tests.sandbox.attacks.table import attack

attack(
    "H01-names-longer-than-a-report",
    "python",
    r"""
import os
fd = os.open('/box', os.O_RDONLY)
for i in range(14):
    os.mkdir(b'\xff' * 250, dir_fd=fd)
    fd = os.open(b'\xff' * 250, os.O_RDONLY, dir_fd=fd)
for i in range(1800):
    os.close(os.open(b'\xff' * 240 + b'%d' % i, os.O_WRONLY | os.O_CREAT, dir_fd=fd))
print('done')
""",
    prints="done",
)
attack(
    "H02-name-that-grows-when-escaped",
    "python",
    r"""
open(b'/box/' + b'\xff' * 200, 'w').close()
open(b'/box/' + b'\x01' * 250, 'w').close()
print('done')
""",
    prints="done",
)
attack(
    "H03-names-that-collide-when-escaped",
    "python",
    r"""
import os
open(b'/box/\xff', 'w').write('a')
os.mkdir(rb'/box/\xff')
open(rb'/box/\xff/b', 'w').write('b')
open(b'/box/\xfe', 'w').write('a')
open(rb'/box/\xfe', 'w').write('b')
print('done')
""",
    prints="done",
)
attack(
    "H04-sparse-files-that-swell",
    "python",
    r"""
for i in range(1490):
    with open('/box/%d' % i, 'wb') as f:
        f.truncate(41000)
print('done')
""",
    prints="done",
)
attack(
    "H05-links-to-the-system",
    "python",
    r"""
import os
for name, target in ('a', '/opt/inside/shim.py'), ('b', '/usr/bin/bash'), ('c', '/dev/zero'), ('d', '/opt/inside'):
    os.symlink(target, '/box/' + name)
os.mkdir('/box/e')
os.symlink('../../opt/inside/shim.py', '/box/e/f')
print('done')
""",
    prints="done",
    unkept="a b c d d/shim.py e/f",
)
attack(
    "H06-fifos-and-loops",
    "python",
    r"""
import os
os.mkfifo('/box/fifo')
os.symlink('.', '/box/loop')
os.symlink('self', '/box/self')
os.link('/box/fifo', '/box/other')
if os.fork() == 0:
    open('/box/fifo', 'w').write('x' * 99999)
print('done')
""",
    prints="done",
    unkept="fifo loop self other",
)
attack(
    "H07-rights-taken-away",
    "python",
    r"""
import os
os.makedirs('/box/a/b')
open('/box/a/b/c', 'w').write('x')
open('/box/d', 'w').write('x')
for path in '/box/a/b/c', '/box/d', '/box/a/b', '/box/a', '/box', '/tmp':
    os.chmod(path, 0)
print('done')
""",
    prints="done",
)
attack(
    "H08-modules-for-the-next-call",
    "python",
    r"""
names = 'sitecustomize usercustomize json encodings main __main__ sympy numpy os conftest pytest frames payload'
for name in names.split():
    open('/box/%s.py' % name, 'w').write('print("ESCAPE")\nraise SystemExit(9)\n')
open('/box/x.pth', 'w').write('import os; os._exit(9)\n')
open('/box/pyvenv.cfg', 'w').write('home = /box\n')
open('/box/.pythonrc', 'w').write('print("ESCAPE")\n')
print('done')
""",
    prints="done",
)
attack(
    "H09-shell-startup-for-the-next-call",
    "shell",
    r"""
for f in .bashrc .bash_profile .profile .inputrc .bash_env; do echo 'echo ESCAPE; exit 9' > /box/$f; done
mkdir -p /box/usr/bin; printf '#!/usr/bin/bash\necho ESCAPE\n' > /box/ls; chmod 755 /box/ls; ls > /dev/null; echo done
""",
    prints="done",
)
attack(
    "H10-as-much-as-fits",
    "python",
    r"""
import os
n = 0
try:
    for i in range(3000):
        os.makedirs('/box/%d' % (i // 9), exist_ok=True)
        with open('/box/%d/%d' % (i // 9, i), 'wb', buffering=0) as f:
            n += f.write(bytes(44000))
except OSError as e:
    print('BLOCKED', e.errno, n)
""",
    prints="BLOCKED",
)
attack(
    "H11-deep-folders",
    "python",
    r"""
import os
os.chdir('/box')
for i in range(1000):
    os.mkdir('d')
    os.chdir('d')
open('f', 'w').write('deep')
print('done')
""",
    prints="done",
)
attack(
    "H12-a-database-that-lies",
    "python",
    r"""
import pickle, sqlite3, zipfile
db = sqlite3.connect('/box/data.db')
db.executescript('create table t(a); pragma writable_schema=on;')
db.execute("update sqlite_master set sql='create table t(a, a, a' || char(27) || '[2J', rootpage=99999")
db.commit()
with zipfile.ZipFile('/box/up.zip', 'w') as z:
    z.writestr('../../../../..{FOLDER}/planted', 'x')
class E:
    def __reduce__(self):
        return (print, ('ESCAPE',))
pickle.dump(E(), open('/box/data.pkl', 'wb'))
print('done')
""",
    prints="done",
)
attack(
    "H13-a-file-that-changes-while-it-is-read",
    "python",
    r"""
import os, time
open('/box/f', 'wb').write(b'x' * (1 << 20))
if os.fork() == 0:
    os.setsid()
    while True:
        try:
            os.truncate('/box/f', 0)
            os.truncate('/box/f', 60 << 20)
            os.rename('/box/f', '/box/g')
            os.symlink('/opt/inside/shim.py', '/box/f')
            os.unlink('/box/f')
            os.rename('/box/g', '/box/f')
        except OSError:
            pass
time.sleep(0.2)
print('done')
""",
    prints="done",
)
attack(
    "H14-many-names-that-change-while-they-are-read",
    "python",
    r"""
import os, time
open('/box/f', 'wb').write(bytes(1 << 18))
for i in range(230):
    os.link('/box/f', '/box/%d' % i)
if any([os.fork() == 0 for _ in range(4)]):
    os.setsid()
    fd = os.open('/box/f', os.O_RDWR)
    while True:
        os.ftruncate(fd, 0)
        os.ftruncate(fd, 1 << 18)
time.sleep(0.2)
print('done')
""",
    prints="done",
)
