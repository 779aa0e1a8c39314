"""How the memory of one call is bounded, as a sum over its processes: by the kernel where the call has a control group
to itself, else by adding up what they hold, again and again."""

import contextlib
import errno
import os
from collections.abc import Mapping, Sequence

_MARGIN = 1 << 20
_HELD = ("RssAnon", "RssShmem", "HugetlbPages")
_SOCKET_KIB = 208
"""What a socket may have on its way, by the kernel's default; nobody inside may change that."""


class ControlGroup:
    """A control group that this call alone uses, by the descriptors of its files. The limit is the kernel's."""

    tier = "cgroup"

    def __init__(self, files: Sequence[int], limit_bytes: int) -> None:
        """``files``: limit, usage, peak, events. Raises OSError where the limit that was written does not hold."""
        limit, usage, peak, _ = self._limit, self._usage, self._peak, self._events = files
        self._most, self._resets = 0, True
        try:
            os.pwrite(peak, b"0", 0)
        except OSError:
            self._resets = False  # an older kernel: then the largest sample counts
        self._kills = self._killed()
        bound = max(limit_bytes, self._number(usage) + _MARGIN)  # below what is there already, nothing could be said
        self._set(str(bound))
        if self._number(limit) != bound:
            raise OSError(errno.EIO, f"a memory limit of {bound} was written and {self._number(limit)} holds")

    def broken(self) -> bool:
        """Whether the kernel had to kill for it. One killed process leaves its siblings running: end them."""
        self._most = max(self._most, self._number(self._usage))
        return self._killed() > self._kills

    broke = broken
    """Whether it did before everything had ended: it may have been quicker than anybody could look."""

    def end(self, largest_kib: int) -> int:
        """Let go, for what is now read of the call's files is not the call's. Returns the peak in KiB."""
        peak = self._number(self._peak) if self._resets else max(self._most, self._number(self._usage))
        try:
            self._set("-1")
        except OSError:
            self._set("max")
        return peak >> 10

    def _set(self, value: str) -> None:
        os.pwrite(self._limit, value.encode(), 0)

    @staticmethod
    def _number(fd: int) -> int:
        return int(os.pread(fd, 64, 0))

    def _killed(self) -> int:
        lines = (line.split() for line in os.pread(self._events, 4096, 0).splitlines())
        return next(int(line[1]) for line in lines if line[0] == b"oom_kill")


class Watchdog:
    """Sums over all descendants of ``root`` (a pid of the namespace that ``proc``, a descriptor, shows), which is one
    that waits when this is made."""

    tier = "watchdog"

    def __init__(self, proc: int, root: int, limit_kib: int) -> None:
        self._proc, self._root, self._limit_kib = proc, root, limit_kib
        waiting = descendants(proc, root)
        self._most = self._first = self._used_kib(waiting)
        self._largest = max((largest for _, largest in waiting.values()), default=0)

    def broken(self) -> bool:
        """Whether the sum is above the limit now."""
        used = self._used_kib(descendants(self._proc, self._root)) + sockets_kib(self._proc, self._root)
        self._most = max(self._most, used)
        return used > self._limit_kib

    def _used_kib(self, sizes: Mapping[int, Sequence[int]]) -> int:
        """The cheap sum counts pages shared since a fork once per process. Only where that is above the limit is each
        page divided among those who share it, which costs about a millisecond a process."""
        total = sum(kib for kib, _ in sizes.values())
        if total <= self._limit_kib:
            return total
        return sum(_share(self._proc, pid, kib) for pid, (kib, _) in sizes.items())

    def broke(self) -> bool:
        """Nothing is left to be summed."""
        return False

    def end(self, largest_kib: int) -> int:
        """The peak in KiB: the largest sum that was held against the limit. What the largest process (``largest_kib``)
        grew by, perhaps between two looks, counts as far as the limit: some of it may be pages of the system's files,
        which the limit leaves out."""
        grown = max(0, largest_kib - self._largest)
        return max(self._most, min(self._limit_kib, self._first + grown))


def descendants(proc: int, root: int) -> dict[int, list[int]]:
    """Pid (of the outer namespace) -> [KiB of anonymous and shared memory now, KiB of any kind at most so far]."""
    parents: dict[int, int] = {}
    sizes: dict[int, list[int]] = {}
    for name in os.listdir(proc):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, KeyError):
                parents[int(name)], *sizes[int(name)] = _status(proc, name)
    below_root, todo = [], [root]
    while todo:
        parent = todo.pop()
        below = [pid for pid, above in parents.items() if above == parent]
        below_root += below
        todo += below
    return {pid: sizes[pid] for pid in below_root}


def sockets_kib(proc: int, root: int) -> int:
    """What the sockets in the network namespace of ``root`` may hold: buffers are in no process's memory."""
    try:
        used = _fields(proc, f"{root}/net/sockstat")["sockets"].split()
    except (OSError, KeyError):
        return 0
    return int(used[1]) * _SOCKET_KIB


def _fields(proc: int, path: str) -> dict[str, str]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    try:
        text = os.read(fd, 8192).decode(errors="replace")
    finally:
        os.close(fd)
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def _status(proc: int, name: str) -> tuple[int, int, int]:
    """(parent, KiB held, KiB resident at most)."""
    fields = _fields(proc, f"{name}/status")
    _, status = _holder(proc, name, fields)
    kib = [int(status.get(key, "0").split()[0]) for key in (*_HELD, "VmHWM")]
    return int(fields["PPid"]), sum(kib[:-1]), kib[-1]


def _holder(proc: int, name: str, fields: dict[str, str]) -> tuple[str, dict[str, str]]:
    """(path, status) of a thread that has the process's memory. ``fields`` is the status of its first one, which has
    none any more where it alone has ended; without any it is a process that has ended."""
    if _HELD[0] in fields:
        return name, fields
    folder = os.open(f"{name}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
    try:
        threads = os.listdir(folder)  # noqa: PTH208 (a descriptor)
    finally:
        os.close(folder)
    for path in (f"{name}/task/{thread}" for thread in threads if thread != name):
        with contextlib.suppress(OSError):
            status = _fields(proc, f"{path}/status")
            if _HELD[0] in status:
                return path, status
    return name, fields


def _share(proc: int, pid: int, resident_kib: int) -> int:
    """Proportional share in KiB, nothing for a process that has ended meanwhile; what was resident, hence never too
    little, where the kernel does not say."""
    try:
        path, fields = _holder(proc, str(pid), _fields(proc, f"{pid}/status"))
    except OSError:
        return 0
    if _HELD[0] not in fields:
        return 0
    try:
        shares = _fields(proc, f"{path}/smaps_rollup")
        return sum(int(shares[key].split()[0]) for key in ("Pss_Anon", "Pss_Shmem"))
    except (OSError, KeyError, ValueError):
        return resident_kib
