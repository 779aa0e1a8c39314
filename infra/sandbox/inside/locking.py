"""Decide which files a payload may lock, and end its waits on words that processes may share. Files of the machine are
shared by all calls, so a lock on one, or a wait on a word of one, would be a covert channel between them. The kernel
asks here about every lock and every such wait. Only files on the call's own two file systems may be locked; who waits
is made to look again after a moment, for it cannot be known whose word it is."""

import contextlib
import errno
import fcntl
import os
import struct

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE = struct.Struct("=QII iIQ6Q")
"""id, thread, flags; number, architecture, instruction pointer, arguments."""
_ANSWER = struct.Struct("=QqiI")
_MOST_KNOWN = 64
"""Processes whose folders are held open."""
_SET_FLAGS, _SAME_CPU = 0x40082104, 1
_FUTEX = 202
_GO_ON = 1
"""SECCOMP_USER_NOTIF_FLAG_CONTINUE."""


class Locks:
    """The listener of one payload's filter. ``proc``: descriptor of a /proc that shows it; ``folders``: what lies on
    their file systems may be locked."""

    def __init__(self, listener: int, proc: int, folders: tuple[str, ...]) -> None:
        self.listener, self._proc = listener, proc
        with contextlib.suppress(OSError):  # since Linux 6.6; only quicker
            fcntl.ioctl(listener, _SET_FLAGS, struct.pack("=Q", _SAME_CPU))
        self._known: dict[int, int] = {}
        self._waits: list[int] = []
        self._own = {os.stat(folder).st_dev for folder in folders}  # noqa: PTH116

    def answer(self) -> None:
        """Decide on the one that waits. One that was killed meanwhile needs no answer."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notice)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EINTR):
                raise
            return
        number, thread, _, call, _, _, fd, *_ = _NOTICE.unpack(notice)
        if call == _FUTEX:
            self._waits.append(number)
        elif self._allowed(thread, fd & 0xFFFFFFFF):
            self._say(number, 0, _GO_ON)
        else:
            self._say(number, -errno.ENOLCK)

    def end_waits(self) -> None:
        """Have all who wait look again, as after a wake for nothing."""
        for number in self._waits:
            self._say(number, -errno.EAGAIN)
        self._waits.clear()

    def _say(self, number: int, error: int, flags: int = 0) -> None:
        try:
            fcntl.ioctl(self.listener, _SEND, bytearray(_ANSWER.pack(number, 0, error, flags)))
        except OSError as failure:
            if failure.errno not in (errno.ENOENT, errno.EINTR):
                raise

    def _allowed(self, thread: int, fd: int) -> bool:
        """Whether descriptor ``fd`` is a file of the call's own, and stays it until the kernel goes on: its process has
        no other thread, and shares its descriptors with none (the filter sees to that)."""
        try:
            return self._looked(self._known[thread], fd)
        except (KeyError, OSError):  # not seen before, or another process had that number
            pass
        try:
            self._find(thread)
            return self._looked(self._known[thread], fd)
        except OSError:
            return False  # its number is that of a thread that does not lead its process

    def _looked(self, folder: int, fd: int) -> bool:
        """``folder``: /proc of the process; nothing is there any more once it has ended."""
        threads = os.stat("task", dir_fd=folder).st_nlink - 2
        return threads == 1 and os.stat(f"fd/{fd}", dir_fd=folder).st_dev in self._own

    def _find(self, thread: int) -> None:
        """Open its folder in a /proc that may count otherwise."""
        if len(self._known) >= _MOST_KNOWN or thread in self._known:
            for folder in self._known.values():
                os.close(folder)
            self._known.clear()
        pidfd = os.pidfd_open(thread)
        try:
            with open(os.open(f"self/fdinfo/{pidfd}", os.O_RDONLY, dir_fd=self._proc), encoding="ascii") as info:  # noqa: PTH123
                outer = next(line.split()[1] for line in info if line.startswith("Pid:"))
        finally:
            os.close(pidfd)
        self._known[thread] = os.open(outer, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc)
