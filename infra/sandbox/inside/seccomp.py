"""The system call filter: an allowlist in classic BPF, assembled by hand. Everything not named here is EPERM."""

import ctypes
import errno
import struct

from . import kernel

# Consciously absent, beside all that makes or enters namespaces: setsockopt (a buffer of a socket is no memory of a
# process, so nobody would count it), sync and syncfs (they make the host write everything it holds).
_ALLOWED = """
    read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10 munmap=11 brk=12
    rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 pread64=17 pwrite64=18 readv=19 writev=20 access=21
    pipe=22 select=23 sched_yield=24 mremap=25 msync=26 mincore=27 madvise=28 dup=32 dup2=33 pause=34 nanosleep=35
    getitimer=36 alarm=37 setitimer=38 getpid=39 sendfile=40 sendto=44 recvfrom=45
    sendmsg=46 recvmsg=47 shutdown=48 getsockopt=55 getsockname=51 getpeername=52 fork=57
    vfork=58 execve=59 exit=60 wait4=61 kill=62 uname=63 flock=73 fsync=74 fdatasync=75 truncate=76
    ftruncate=77 getdents=78 getcwd=79 chdir=80 fchdir=81 rename=82 mkdir=83 rmdir=84 creat=85 link=86 unlink=87
    symlink=88 readlink=89 chmod=90 fchmod=91 umask=95 gettimeofday=96 getrlimit=97 getrusage=98 sysinfo=99
    times=100 getuid=102 getgid=104 geteuid=107 getegid=108 setpgid=109 getppid=110 getpgrp=111 setsid=112
    getgroups=115 getresuid=118 getresgid=120 getpgid=121 getsid=124 capget=125 rt_sigpending=127
    rt_sigtimedwait=128 rt_sigqueueinfo=129 rt_sigsuspend=130 sigaltstack=131 utime=132 mknod=133
    statfs=137 fstatfs=138 getpriority=140 sched_getparam=143 sched_getscheduler=145
    sched_get_priority_max=146 sched_get_priority_min=147 arch_prctl=158 setrlimit=160
    gettid=186 readahead=187 getxattr=191 lgetxattr=192 fgetxattr=193 listxattr=194 tkill=200 time=201 futex=202
    sched_getaffinity=204 epoll_create=213 getdents64=217 set_tid_address=218
    restart_syscall=219 fadvise64=221 timer_create=222 timer_settime=223 timer_gettime=224 timer_getoverrun=225
    timer_delete=226 clock_gettime=228 clock_getres=229 clock_nanosleep=230 exit_group=231 epoll_wait=232
    epoll_ctl=233 tgkill=234 utimes=235 waitid=247 openat=257 mkdirat=258 mknodat=259 newfstatat=262 unlinkat=263
    renameat=264 linkat=265 symlinkat=266 readlinkat=267 fchmodat=268 faccessat=269 pselect6=270 ppoll=271
    set_robust_list=273 get_robust_list=274 utimensat=280 epoll_pwait=281 timerfd_create=283 eventfd=284
    fallocate=285 timerfd_settime=286 timerfd_gettime=287 eventfd2=290 epoll_create1=291 dup3=292 pipe2=293
    preadv=295 pwritev=296 getcpu=309 renameat2=316 getrandom=318 membarrier=324
    copy_file_range=326 preadv2=327 pwritev2=328 statx=332 rseq=334 pidfd_send_signal=424 pidfd_open=434
    close_range=436 faccessat2=439 epoll_pwait2=441 futex_waitv=449 fchmodat2=452
"""

_NEW_NAMESPACE = 0x7E020000
"""Every CLONE_NEW flag that clone(2) takes."""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5451, 0x5450, 0x540F)
"""TCGETS TIOCGWINSZ FIONREAD FIONBIO FIOCLEX FIONCLEX TIOCGPGRP: nothing that writes to a terminal."""
_PRCTLS = (1, 2, 3, 15, 16, 21, 23, 38, 39, 0x53564D41)
"""PDEATHSIG (set, get), DUMPABLE (get), NAME (set, get), SECCOMP (get), CAPBSET (read), NO_NEW_PRIVS, VMA names."""
_FCNTLS = (*range(10), 36, 37, 38, 1030, 1031, 1032, 1034)
"""Descriptors, flags, owners, record locks and pipe sizes: no lease on files of the host, no signal of one's choice."""
_ONLY_WITH = (
    # number, argument, accepted values, error otherwise
    (16, 1, _IOCTLS, errno.ENOTTY),  # ioctl
    (53, 0, (1,), errno.EAFNOSUPPORT),  # socketpair: AF_UNIX
    (72, 1, _FCNTLS, errno.EPERM),  # fcntl
    (135, 0, (0, 0xFFFFFFFF), errno.EPERM),  # personality: keep or ask
    (157, 0, _PRCTLS, errno.EPERM),  # prctl
    (203, 0, (0,), errno.EPERM),  # sched_setaffinity: oneself
    (302, 0, (0,), errno.EPERM),  # prlimit64: oneself
)
_GUARDED = "ioctl=16 socketpair=53 clone=56 fcntl=72 personality=135 prctl=157 sched_setaffinity=203"
_GUARDED += " prlimit64=302"
_ERRORS = ((41, errno.EAFNOSUPPORT), (435, errno.ENOSYS), (437, errno.ENOSYS))
"""socket (any family: a network namespace does not stop AF_VSOCK); clone3, openat2 (libc falls back)."""
_CLONE, _FIRST_X32, _AUDIT_ARCH_X86_64 = 56, 0x40000000, 0xC000003E

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_SYS_SECCOMP, _SET_MODE_FILTER = 317, 1

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


def program() -> list[Instruction]:
    """The filter as (code, jump if true, jump if false, operand)."""
    kill: Instruction = (_RETURN, 0, 0, _KILL_PROCESS)
    out: list[Instruction] = [(_LOAD, 0, 0, _ARCH), (_JUMP_EQ, 1, 0, _AUDIT_ARCH_X86_64), kill, (_LOAD, 0, 0, _NUMBER)]
    out += _if(_JUMP_GE, _FIRST_X32, [kill])
    for number, error in _ERRORS:
        out += _if(_JUMP_EQ, number, [(_RETURN, 0, 0, _ERRNO | error)])
    for rule in _ONLY_WITH:
        out += _only_with(*rule)
    forbidden: list[Instruction] = [(_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    clone: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS), *_if(_JUMP_ANY_BIT, _NEW_NAMESPACE, forbidden)]
    out += _if(_JUMP_EQ, _CLONE, [*clone, (_RETURN, 0, 0, _ALLOW)])
    for entry in _ALLOWED.split():
        out += _if(_JUMP_EQ, int(entry.partition("=")[2]), [(_RETURN, 0, 0, _ALLOW)])
    return [*out, *forbidden]


_packed = b"".join(struct.pack("HBBI", *instruction) for instruction in program())


def install() -> None:
    """Filter this process and all it starts, for good. Needs no_new_privs.

    Raises:
        OSError: the kernel took no filter.
    """
    code = ctypes.create_string_buffer(_packed, len(_packed))
    head = struct.pack("HxxxxxxP", len(_packed) // 8, ctypes.addressof(code))
    kernel.syscall("install the system call filter", _SYS_SECCOMP, _SET_MODE_FILTER, 0, head)


def names() -> list[str]:
    """The system calls that the filter allows, with or without conditions, by name."""
    return [entry.partition("=")[0] for entry in (_ALLOWED + _GUARDED).split()]
