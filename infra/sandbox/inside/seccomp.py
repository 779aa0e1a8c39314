"""The system call filter: an allowlist in classic BPF, assembled by hand. Everything not named here is EPERM."""

import ctypes
import errno
import functools
import struct

from . import kernel

# Consciously absent, beside all that makes or enters namespaces: setsockopt (a buffer of a socket is no memory of a
# process, so nobody would count it), sync and syncfs (they make the host write everything it holds), sysinfo (load,
# free memory and number of processes of the whole machine, which other calls change).
_ALLOWED = """
    read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10 munmap=11 brk=12
    rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 pread64=17 pwrite64=18 readv=19 writev=20 access=21
    pipe=22 select=23 sched_yield=24 mremap=25 msync=26 mincore=27 madvise=28 dup=32 dup2=33 pause=34 nanosleep=35
    getitimer=36 alarm=37 setitimer=38 getpid=39 sendfile=40 sendto=44 recvfrom=45
    sendmsg=46 recvmsg=47 shutdown=48 getsockopt=55 getsockname=51 getpeername=52 fork=57
    vfork=58 execve=59 exit=60 wait4=61 kill=62 uname=63 fsync=74 fdatasync=75 truncate=76
    ftruncate=77 getdents=78 getcwd=79 chdir=80 fchdir=81 rename=82 mkdir=83 rmdir=84 creat=85 link=86 unlink=87
    symlink=88 readlink=89 chmod=90 fchmod=91 umask=95 gettimeofday=96 getrlimit=97 getrusage=98
    times=100 getuid=102 getgid=104 geteuid=107 getegid=108 setpgid=109 getppid=110 getpgrp=111 setsid=112
    getgroups=115 getresuid=118 getresgid=120 getpgid=121 getsid=124 capget=125 rt_sigpending=127
    rt_sigtimedwait=128 rt_sigqueueinfo=129 rt_sigsuspend=130 sigaltstack=131 mknod=133
    statfs=137 fstatfs=138 getpriority=140 sched_getparam=143 sched_getscheduler=145
    sched_get_priority_max=146 sched_get_priority_min=147 arch_prctl=158 setrlimit=160
    gettid=186 readahead=187 getxattr=191 lgetxattr=192 fgetxattr=193 listxattr=194 tkill=200 time=201 futex=202
    sched_getaffinity=204 epoll_create=213 getdents64=217 set_tid_address=218
    restart_syscall=219 timer_create=222 timer_settime=223 timer_gettime=224 timer_getoverrun=225
    timer_delete=226 clock_gettime=228 clock_getres=229 clock_nanosleep=230 exit_group=231 epoll_wait=232
    epoll_ctl=233 tgkill=234 waitid=247 openat=257 mkdirat=258 mknodat=259 newfstatat=262 unlinkat=263
    renameat=264 linkat=265 symlinkat=266 readlinkat=267 fchmodat=268 faccessat=269 pselect6=270 ppoll=271
    set_robust_list=273 get_robust_list=274 epoll_pwait=281 timerfd_create=283 eventfd=284
    fallocate=285 timerfd_settime=286 timerfd_gettime=287 eventfd2=290 epoll_create1=291 dup3=292 pipe2=293
    preadv=295 pwritev=296 getcpu=309 renameat2=316 getrandom=318 membarrier=324
    copy_file_range=326 pwritev2=328 statx=332 rseq=334 pidfd_send_signal=424 pidfd_open=434
    close_range=436 faccessat2=439 epoll_pwait2=441 futex_waitv=449 fchmodat2=452
"""

_NEW_NAMESPACE = 0x7E020000
"""Every CLONE_NEW flag that clone(2) takes."""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5451, 0x5450, 0x540F)
"""TCGETS TIOCGWINSZ FIONREAD FIONBIO FIOCLEX FIONCLEX TIOCGPGRP: nothing that writes to a terminal."""
_PRCTLS = (1, 2, 3, 15, 16, 21, 23, 38, 39, 0x53564D41)
"""PDEATHSIG (set, get), DUMPABLE (get), NAME (set, get), SECCOMP (get), CAPBSET (read), NO_NEW_PRIVS, VMA names."""
_FCNTLS = (*range(5), 8, 9, 1030, 1031, 1032, 1034)
"""Descriptors, flags, owners and pipe sizes: no lease on files of the host, no signal of one's choice."""
_RECORD_LOCKS = (5, 6, 7, 36, 37, 38)
"""F_GETLK, F_SETLK, F_SETLKW and the three of open file descriptions."""
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
_GUARDED += " fadvise64=221 utimes=235 utimensat=280 prlimit64=302 preadv2=327"
_TIMES = (132, 235, 280)
"""utime, utimes, utimensat."""
_ERRORS = ((41, errno.EAFNOSUPPORT), (435, errno.ENOSYS), (437, errno.ENOSYS))
"""socket (any family: a network namespace does not stop AF_VSOCK); clone3, openat2 (libc falls back)."""
_FILES, _THREAD = 0x400, 0x10000
"""CLONE_FILES, CLONE_THREAD."""
_CLONE, _FCNTL, _FLOCK, _FIRST_X32, _AUDIT_ARCH_X86_64 = 56, 72, 73, 0x40000000, 0xC000003E

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


def program(*, asks: bool = True, times: bool = True) -> list[Instruction]:
    """The filter as (code, jump if true, jump if false, operand). ``asks``: the listener decides on file locks, all
    fail with ENOLCK otherwise. ``times``: those of files may be set; otherwise such calls succeed and change nothing.
    """
    kill: Instruction = (_RETURN, 0, 0, _KILL_PROCESS)
    out: list[Instruction] = [(_LOAD, 0, 0, _ARCH), (_JUMP_EQ, 1, 0, _AUDIT_ARCH_X86_64), kill, (_LOAD, 0, 0, _NUMBER)]
    out += _if(_JUMP_GE, _FIRST_X32, [kill])
    for number, error in _ERRORS:
        out += _if(_JUMP_EQ, number, [(_RETURN, 0, 0, _ERRNO | error)])
    locks: list[Instruction] = [(_RETURN, 0, 0, _ASK if asks else _ERRNO | errno.ENOLCK)]
    records = [(_LOAD, 0, 0, _ARGUMENTS + 8), *(step for one in _RECORD_LOCKS for step in _if(_JUMP_EQ, one, locks))]
    out += _if(_JUMP_EQ, _FLOCK, locks) + _if(_JUMP_EQ, _FCNTL, [*records, (_LOAD, 0, 0, _NUMBER)])
    for rule in _ONLY_WITH:
        out += _only_with(*rule)
    out += _if(_JUMP_EQ, _CLONE, _clone())
    for allowed in (int(entry.partition("=")[2]) for entry in _ALLOWED.split()):
        out += _if(_JUMP_EQ, allowed, [(_RETURN, 0, 0, _ALLOW)])
    for number in _TIMES:
        out += _if(_JUMP_EQ, number, [(_RETURN, 0, 0, _ALLOW if times else _ERRNO)])
    return [*out, (_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def install(*, times: bool = True) -> int:
    """Filter this process and all it starts, for good. Needs no_new_privs. Returns the descriptor of the listener that
    is asked about file locks; -1 where the kernel knows none, and every lock fails.

    Raises:
        OSError: the kernel took no filter.
    """
    try:
        return _load(_NEW_LISTENER, asks=True, times=times)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EBUSY):
            raise
    _load(0, asks=False, times=times)
    return -1


@functools.cache
def _packed(*, asks: bool, times: bool) -> bytes:
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program(asks=asks, times=times))


def _load(flags: int, *, asks: bool, times: bool) -> int:
    packed = _packed(asks=asks, times=times)
    code = ctypes.create_string_buffer(packed, len(packed))
    head = struct.pack("HxxxxxxP", len(packed) // 8, ctypes.addressof(code))
    return kernel.syscall("install the system call filter", _SYS_SECCOMP, _SET_MODE_FILTER, flags, head)


def names() -> list[str]:
    """The system calls that the filter allows, with or without conditions, by name."""
    return [entry.partition("=")[0] for entry in (_ALLOWED + _GUARDED).split()]
