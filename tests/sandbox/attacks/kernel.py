"""Attacks on the system call surface."""

from tests.sandbox.attacks.table import attack

_NUMBERS = (
    ("unshare-user", 272, r"0x10000000"),
    ("unshare-ns", 272, r"0x20000"),
    ("setns", 308, r"0,0"),
    ("bpf", 321, r"0,b'\0'*128,128"),
    ("perf_event_open", 298, r"b'\0'*128,0,-1,-1,0"),
    ("userfaultfd", 323, r"0"),
    ("io_uring_setup", 425, r"8,b'\0'*120"),
    ("keyctl", 250, r"0,-3,1"),
    ("add_key", 248, r"b'user',b'a',b'b',1,-3"),
    ("request_key", 249, r"b'user',b'a',None,-3"),
    ("init_module", 175, r"b'x',1,b''"),
    ("finit_module", 313, r"0,b'',0"),
    ("kexec_load", 246, r"0,0,0,0"),
    ("reboot", 169, r"0xfee1dead,672274793,0x89abcdef,0"),
    ("swapon", 167, r"b'/x',0"),
    ("acct", 163, r"b'/box/a'"),
    ("syslog", 103, r"3,b'x'*10,10"),
    ("iopl", 172, r"3"),
    ("modify_ldt", 154, r"0,b'x'*16,16"),
    ("sethostname", 170, r"b'x',1"),
    ("clock_settime", 227, r"0,b'\0'*16"),
    ("open_by_handle_at", 304, r"-100,b'\0'*32,0"),
    ("fanotify_init", 300, r"0,0"),
    ("quotactl", 179, r"0,0,0,0"),
    ("name_to_handle", 303, r"-100,b'/',b'\0'*16,b'\0'*8,0"),
    ("pidfd_getfd", 438, r"0,0,0"),
    ("kcmp", 312, r"1,1,0,0,0"),
    ("seccomp", 317, r"1,0,b'\0'*16"),
    ("process_madvise", 440, r"0,0,0,0,0"),
    ("move_pages", 279, r"0,0,0,0,0,0"),
    ("vmsplice", 278, r"1,b'\0'*16,1,0"),
    ("ptrace", 101, r"0,0,0,0"),
    ("memfd_secret", 447, r"0"),
    ("landlock_create", 444, r"None,0,1"),
    ("mseal_ok", 462, r"0,0,0"),
)
attack(
    "K01-dangerous-syscalls",
    "python",
    f"""
bad = []
for name, number, text in {_NUMBERS!r}:
    r, e = sc(number, *eval('(' + text + ',)'))
    if e not in (1, 38) or r >= 0:
        bad.append((name, r, e))
print('ESCAPE' if bad else 'BLOCKED', bad)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "K02-clone-newuser",
    "python",
    r"""
r, e = sc(56, 268435456 | 17, 0, 0, 0, 0)
if r == 0:
    os._exit(0)
print('ESCAPE' if r > 0 else 'BLOCKED', e)
r, e = sc(435, b'\x00' * 88, 88)
if r == 0:
    os._exit(0)
print('ESCAPE' if r > 0 else 'BLOCKED', e)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "K03-x32-abi",
    "python",
    r"""
import signal
p = os.fork()
if p == 0:
    r, e = sc(1073741824 + 39)
    os._exit(0 if r > 0 else 7)
s = os.waitpid(p, 0)[1]
print('ESCAPE' if s == 0 else 'BLOCKED', s)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "K04-int80",
    "python",
    r"""
import mmap
p = os.fork()
if p == 0:
    m = mmap.mmap(-1, 4096, prot=7)
    m.write(bytes([184, 20, 0, 0, 0, 205, 128, 195]))
    f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
    os._exit(0 if f() > 0 else 7)
s = os.waitpid(p, 0)[1]
print('ESCAPE' if s == 0 else 'BLOCKED', s)
""",
    syscalls=True,
    prints="BLOCKED",
)
attack(
    "K05-tiocsti",
    "python",
    r"""
import fcntl
for req in (21522, 21532, 21539):
    for fd in (0, 1, 2):
        try:
            fcntl.ioctl(fd, req, b'x')
            print('ESCAPE', hex(req))
        except OSError as e:
            print('BLOCKED', e.errno)
""",
    prints="BLOCKED",
)
attack(
    "K06-caps-nnp",
    "python",
    r"""
import ctypes, struct
libc = ctypes.CDLL(None)
d = ctypes.create_string_buffer(24)
libc.capget(struct.pack('Ii', 537396514, 0), d)
print('ESCAPE' if any(d.raw) else 'BLOCKED', libc.prctl(39, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0))
print('BLOCKED' if libc.prctl(39, 0, 0, 0, 0) == 1 else 'ESCAPE nnp')
""",
    prints="BLOCKED",
)
