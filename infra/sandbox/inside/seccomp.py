"""The system call filters, in classic BPF, assembled by hand: one that asks about locks and waits, and an allowlist.
Everything not named here is EPERM."""

import ctypes
import errno
import functools
import struct

from . import kernel

# Consciously absent, beside all that makes or enters namespaces: setsockopt (a buffer of a socket is no memory of a
# process, so nobody would count it), sync and syncfs (they make the host write everything it holds), sysinfo (load,
# free memory and number of processes of the whole machine, which other calls change), statfs and fstatfs (free disk
# space of the host), sendmsg (descriptors under way are counted by user over all calls, and one call could use up the
# count), futex_waitv (on words of files that all calls share).
_ALLOWED = """
    read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10 munmap=11 brk=12
    rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 pread64=17 pwrite64=18 readv=19 writev=20 access=21
    pipe=22 select=23 sched_yield=24 mremap=25 msync=26 mincore=27 madvise=28 dup=32 dup2=33 pause=34 nanosleep=35
    getitimer=36 alarm=37 setitimer=38 getpid=39 sendfile=40 sendto=44 recvfrom=45
    recvmsg=47 shutdown=48 getsockopt=55 getsockname=51 getpeername=52 fork=57
    vfork=58 execve=59 exit=60 wait4=61 kill=62 uname=63 fsync=74 fdatasync=75 truncate=76
    ftruncate=77 getdents=78 getcwd=79 chdir=80 fchdir=81 rename=82 mkdir=83 rmdir=84 creat=85 link=86 unlink=87
    symlink=88 readlink=89 chmod=90 fchmod=91 umask=95 gettimeofday=96 getrlimit=97 getrusage=98
    times=100 getuid=102 getgid=104 geteuid=107 getegid=108 setpgid=109 getppid=110 getpgrp=111 setsid=112
    getgroups=115 getresuid=118 getresgid=120 getpgid=121 getsid=124 capget=125 rt_sigpending=127
    rt_sigtimedwait=128 rt_sigqueueinfo=129 rt_sigsuspend=130 sigaltstack=131 mknod=133
    getpriority=140 sched_getparam=143 sched_getscheduler=145
    sched_get_priority_max=146 sched_get_priority_min=147 arch_prctl=158 setrlimit=160
    gettid=186 readahead=187 getxattr=191 lgetxattr=192 fgetxattr=193 listxattr=194 tkill=200 time=201
    sched_getaffinity=204 epoll_create=213 getdents64=217 set_tid_address=218
    restart_syscall=219 timer_create=222 timer_settime=223 timer_gettime=224 timer_getoverrun=225
    timer_delete=226 clock_gettime=228 clock_getres=229 clock_nanosleep=230 exit_group=231 epoll_wait=232
    epoll_ctl=233 tgkill=234 waitid=247 openat=257 mkdirat=258 mknodat=259 newfstatat=262 unlinkat=263
    renameat=264 linkat=265 symlinkat=266 readlinkat=267 fchmodat=268 faccessat=269 pselect6=270 ppoll=271
    set_robust_list=273 get_robust_list=274 epoll_pwait=281 timerfd_create=283 eventfd=284
    fallocate=285 timerfd_settime=286 timerfd_gettime=287 eventfd2=290 epoll_create1=291 dup3=292 pipe2=293
    preadv=295 pwritev=296 getcpu=309 renameat2=316 getrandom=318 membarrier=324
    copy_file_range=326 pwritev2=328 statx=332 rseq=334 pidfd_send_signal=424 pidfd_open=434
    close_range=436 faccessat2=439 epoll_pwait2=441 fchmodat2=452
"""

_NEW_NAMESPACE = 0x7E020000
"""Every CLONE_NEW flag that clone(2) takes."""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5451, 0x5450, 0x540F)
"""TCGETS TIOCGWINSZ FIONREAD FIONBIO FIOCLEX FIONCLEX TIOCGPGRP: nothing that writes to a terminal."""
_PRCTLS = (1, 2, 3, 15, 16, 21, 23, 38, 39, 0x53564D41)
"""PDEATHSIG (set, get), DUMPABLE (get), NAME (set, get), SECCOMP (get), CAPBSET (read), NO_NEW_PRIVS, VMA names."""
_FCNTLS = (*range(5), 8, 9, 1030, 1032, 1034)
"""Descriptors, flags, owners, the size of a pipe (get): no lease on files of the host, no signal of one's choice."""
_RECORD_LOCKS = (5, 6, 7, 36, 37, 38)
"""F_GETLK, F_SETLK, F_SETLKW and the three of open file descriptions."""
_WAITS, _WAKES, _PRIVATE = (0, 9, 0x109), (1, 3, 4, 5, 10), 0x80
"""FUTEX_WAIT, FUTEX_WAIT_BITSET and that by the clock of the day; all that wakes; the flag of a word of one process."""
_ADVICE = (0, 1, 2, 3, 5)
"""Of fadvise64, all but DONTNEED, which takes pages of files that others share out of memory."""
_ONLY_WITH = (
    # number, argument, accepted values, error otherwise
    (16, 1, _IOCTLS, errno.ENOTTY),  # ioctl
    (53, 0, (1,), errno.EAFNOSUPPORT),  # socketpair: AF_UNIX
    (72, 1, _FCNTLS, errno.EPERM),  # fcntl
    (135, 0, (0, 0xFFFFFFFF), errno.EPERM),  # personality: keep or ask
    (157, 0, _PRCTLS, errno.EPERM),  # prctl
    (203, 0, (0,), errno.EPERM),  # sched_setaffinity: oneself
    (221, 3, _ADVICE, errno.EPERM),  # fadvise64
    (302, 0, (0,), errno.EPERM),  # prlimit64: oneself
    (327, 5, (0,), errno.EOPNOTSUPP),  # preadv2: RWF_NOWAIT says which pages of a shared file are in memory
)
_GUARDED = "ioctl=16 socketpair=53 clone=56 fcntl=72 flock=73 utime=132 personality=135 prctl=157 sched_setaffinity=203"
_GUARDED += " futex=202 fadvise64=221 utimes=235 utimensat=280 prlimit64=302 preadv2=327"
_TIMES = (132, 235, 280)
"""utime, utimes, utimensat."""
_ERRORS = ((41, errno.EAFNOSUPPORT), (435, errno.ENOSYS), (437, errno.ENOSYS))
"""socket (any family: a network namespace does not stop AF_VSOCK); clone3, openat2 (libc falls back)."""
_FILES, _THREAD = 0x400, 0x10000
"""CLONE_FILES, CLONE_THREAD."""
_CLONE, _FCNTL, _FLOCK, _FUTEX = 56, 72, 73, 202
_FIRST_X32, _AUDIT_ARCH_X86_64 = 0x40000000, 0xC000003E

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO, _ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_SYS_SECCOMP, _SET_MODE_FILTER, _NEW_LISTENER = 317, 1, 8

Instruction = tuple[int, int, int, int]


def _if(test: int, value: int, then: list[Instruction]) -> list[Instruction]:
    """``then`` where ``test`` holds of the loaded word, else go on behind it."""
    return [(test, 0, len(then), value), *then]


def _only_with(number: int, argument: int, accepted: tuple[int, ...], error: int) -> list[Instruction]:
    """Low 32 bits suffice: each of these arguments is an int to the kernel."""
    body: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument)]
    for value in accepted:
        body += _if(_JUMP_EQ, value, [(_RETURN, 0, 0, _ALLOW)])
    return _if(_JUMP_EQ, number, [*body, (_RETURN, 0, 0, _ERRNO | error)])


def _clone() -> list[Instruction]:
    """No new namespace, and no process that shares descriptors with another: threads alone do."""
    forbidden: list[Instruction] = [(_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    shares = [*_if(_JUMP_ANY_BIT, _THREAD, [(_RETURN, 0, 0, _ALLOW)]), *forbidden]
    body = [(_LOAD, 0, 0, _ARGUMENTS), *_if(_JUMP_ANY_BIT, _NEW_NAMESPACE, forbidden)]
    return [*body, *_if(_JUMP_ANY_BIT, _FILES, shares), (_RETURN, 0, 0, _ALLOW)]


def _any(values: tuple[int, ...], then: list[Instruction]) -> list[Instruction]:
    """``then`` where the loaded word is one of ``values``."""
    return [step for value in values for step in _if(_JUMP_EQ, value, then)]


def _locks_and_waits(lock: int, wait: int) -> list[Instruction]:
    """What becomes of a lock of a file, and of a wait on a word that processes may share. Behind it, the number of the
    system call is loaded as before."""
    locks: list[Instruction] = [(_RETURN, 0, 0, lock)]
    second: Instruction = (_LOAD, 0, 0, _ARGUMENTS + 8)
    again: Instruction = (_LOAD, 0, 0, _NUMBER)
    out = _if(_JUMP_EQ, _FLOCK, locks)
    out += _if(_JUMP_EQ, _FCNTL, [second, *_any(_RECORD_LOCKS, locks), again])
    return out + _if(_JUMP_EQ, _FUTEX, [second, *_any(_WAITS, [(_RETURN, 0, 0, wait)]), again])


def asking() -> list[Instruction]:
    """The filter whose listener decides on locks of files and on waits; it allows everything else."""
    return [(_LOAD, 0, 0, _NUMBER), *_locks_and_waits(_ASK, _ASK), (_RETURN, 0, 0, _ALLOW)]


def program(*, asks: bool = True, times: bool = True) -> list[Instruction]:
    """The allowlist as (code, jump if true, jump if false, operand). ``asks``: another filter asks about locks and
    waits; otherwise each lock fails with ENOLCK, and each wait is over at once. ``times``: those of files may be set;
    otherwise such calls succeed and change nothing."""
    kill: Instruction = (_RETURN, 0, 0, _KILL_PROCESS)
    out: list[Instruction] = [(_LOAD, 0, 0, _ARCH), (_JUMP_EQ, 1, 0, _AUDIT_ARCH_X86_64), kill, (_LOAD, 0, 0, _NUMBER)]
    out += _if(_JUMP_GE, _FIRST_X32, [kill])
    for number, error in _ERRORS:
        out += _if(_JUMP_EQ, number, [(_RETURN, 0, 0, _ERRNO | error)])
    refused = (_ALLOW, _ALLOW) if asks else (_ERRNO | errno.ENOLCK, _ERRNO | errno.EAGAIN)
    out += _locks_and_waits(*refused)
    for rule in _ONLY_WITH:
        out += _only_with(*rule)
    out += _if(_JUMP_EQ, _CLONE, _clone()) + _if(_JUMP_EQ, _FUTEX, _futex())
    for allowed in (int(entry.partition("=")[2]) for entry in _ALLOWED.split()):
        out += _if(_JUMP_EQ, allowed, [(_RETURN, 0, 0, _ALLOW)])
    for number in _TIMES:
        out += _if(_JUMP_EQ, number, [(_RETURN, 0, 0, _ALLOW if times else _ERRNO)])
    return [*out, (_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def _futex() -> list[Instruction]:
    """Anything with a word of one process; with one that processes may share, what wakes: nobody waits there."""
    allow: list[Instruction] = [(_RETURN, 0, 0, _ALLOW)]
    body = [(_LOAD, 0, 0, _ARGUMENTS + 8), *_if(_JUMP_ANY_BIT, _PRIVATE, allow), *_any(_WAKES, allow)]
    return [*body, (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]


def listen() -> int:
    """Have locks and waits of this process, and of all it starts, asked about, for good. Needs no_new_privs. Returns
    the descriptor of the listener; -1 where the kernel knows none.

    Raises:
        OSError: the kernel took no filter.
    """
    try:
        return _load(_NEW_LISTENER, _packed(None, True))
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EBUSY):
            raise
    return -1


def install(*, asks: bool, times: bool = True) -> None:
    """Allow this process, and all it starts, what ``program`` allows and nothing else, for good. Needs no_new_privs.

    Raises:
        OSError: the kernel took no filter.
    """
    _load(0, _packed(asks, times))


def prepare() -> None:
    """Assemble every filter, so that processes which are forked from this one need not."""
    for asks in (None, True, False):
        _packed(asks, True)


@functools.cache
def _packed(asks: bool | None, times: bool) -> bytes:
    instructions = asking() if asks is None else program(asks=asks, times=times)
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def _load(flags: int, packed: bytes) -> int:
    code = ctypes.create_string_buffer(packed, len(packed))
    head = struct.pack("HxxxxxxP", len(packed) // 8, ctypes.addressof(code))
    return kernel.syscall("install the system call filter", _SYS_SECCOMP, _SET_MODE_FILTER, flags, head)


def names() -> list[str]:
    """The system calls that the filter allows, with or without conditions, by name."""
    return [entry.partition("=")[0] for entry in (_ALLOWED + _GUARDED).split()]
