"""Slots: control groups in which the kernel bounds memory and processes of one call at a time, as a sum over its tree.

A slot is made and joined once, before any call, by the process that will clone the calls' sandbox processes: moving a
process for every call would hold up every fork of the machine. Where no such group can be made there is none, and a
watchdog bounds memory instead.
"""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_PROCESSES = 48
"""Of a slot: more than a call may have (its own limit comes first) with the two that watch over it."""
_PREFIX = "agent0-"
_TRIAL = 1 << 30
_REMOVAL_S = 2.0


@dataclass(frozen=True)
class Layout:
    """File names of one version of control groups, and what is written once to keep memory out of swap."""

    limit: str
    usage: str
    peak: str
    events: str
    no_swap: tuple[str, str]


V1 = Layout(
    *("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"),
    ("memory.swappiness", "0"),
)
V2 = Layout("memory.max", "memory.current", "memory.peak", "memory.events", ("memory.swap.max", "0"))


@dataclass(frozen=True)
class Base:
    """A folder in which groups can be made: of memory, and (version 1 keeps them apart) of processes, if any."""

    memory: Path
    layout: Layout
    processes: Path | None = None


class Slot:
    """One group. Made by ``slots``; ``adopt`` puts a process in, ``remove`` gives everything back."""

    def __init__(self, base: Base, name: str) -> None:
        self._layout = base.layout
        self.folders = [base.memory / name]
        if base.processes is not None and base.processes != base.memory:
            self.folders.append(base.processes / name)

    def make(self) -> None:
        """Create it, and try that what is written is what holds.

        Raises:
            OSError: this machine does not let us, or writes limits to the wind.
        """
        for folder in self.folders:
            folder.mkdir()
        memory = self.folders[0]
        _hold(memory / self._layout.limit, _TRIAL)
        with contextlib.suppress(FileNotFoundError):  # without swap there is nothing to keep memory out of
            memory.joinpath(self._layout.no_swap[0]).write_text(self._layout.no_swap[1])
        if (self.folders[-1] / "pids.max").exists():
            _hold(self.folders[-1] / "pids.max", MAX_PROCESSES)

    def adopt(self, pid: int) -> None:
        """Move a process here, with all it will ever fork.

        Raises:
            OSError: it did not arrive.
        """
        for folder in self.folders:
            members = folder / "cgroup.procs"
            members.write_text(str(pid))
            if str(pid) not in members.read_text().split():
                raise OSError(f"process {pid} is not in {folder}")

    def open(self) -> list[int]:
        """Descriptors for whoever watches a call: limit (writable), usage, peak (writable), events. To be closed."""
        memory, layout = self.folders[0], self._layout
        files = [(layout.limit, os.O_RDWR), (layout.usage, os.O_RDONLY)]
        files += [(layout.peak, os.O_RDWR), (layout.events, os.O_RDONLY)]
        out: list[int] = []
        try:
            for name, mode in files:
                out.append(_open(memory / name, mode, memory / layout.usage))
        except OSError:
            for fd in out:
                os.close(fd)
            raise
        return out

    async def remove(self) -> None:
        """Remove it once its last process has ended, which takes a moment after a kill."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _REMOVAL_S
        while left := [folder for folder in self.folders if not _removed(folder)]:
            if loop.time() > deadline:
                break
            self.folders = left
            await asyncio.sleep(0.005)
        _live.discard(self.folders[0].name)


_live: set[str] = set()
_numbers = itertools.count(1)


def slots(count: int) -> list[Slot]:
    """``count`` slots, or none at all where this machine does not give as many. Groups of dead owners are removed."""
    groups: list[Slot] = []
    for base in bases():
        try:
            sweep(base)
            for _ in range(count):
                slot = Slot(base, f"{_PREFIX}{os.getpid()}-{_born(os.getpid())}-{next(_numbers)}")
                _live.add(slot.folders[0].name)
                groups.append(slot)
                slot.make()
        except (OSError, ValueError):
            discard(groups)
            groups = []
        else:
            return groups
    return []


def discard(unused: list[Slot]) -> None:
    """Remove the control groups of slots that no process ever joined."""
    for slot in unused:
        _live.discard(slot.folders[0].name)
        for folder in slot.folders:
            _removed(folder)


def sweep(base: Base) -> None:
    """Remove groups whose owner is gone, and our own that nobody uses; those with processes stay by themselves."""
    for parent in {base.memory, base.processes or base.memory}:
        for folder in parent.glob(f"{_PREFIX}*-*-*"):
            pid, born, _ = folder.name.removeprefix(_PREFIX).split("-", 2)
            mine = pid == str(os.getpid())
            if folder.name not in _live and (mine or not pid.isdigit() or _born(int(pid)) != born):
                _removed(folder)


def bases(proc: Path = Path("/proc/self")) -> Iterator[Base]:
    """Where groups might be made, nearest to our own first: version 1 below our own, version 2 beside or above it,
    where memory is already given out to groups."""
    own_groups = {names: path for _, names, path in (line.split(":", 2) for line in _lines(proc / "cgroup"))}
    mounts = list(_mounts(proc))
    memory = next(
        (path for kind, names, path in _places(own_groups, mounts) if kind == "cgroup" and "memory" in names), None
    )
    if memory is not None:
        for pids in (path for kind, names, path in _places(own_groups, mounts) if kind == "cgroup" and "pids" in names):
            yield Base(memory[-1], V1, pids[-1])
        yield Base(memory[-1], V1)
        return
    for _, _, path in (hierarchy for hierarchy in _places(own_groups, mounts) if hierarchy[0] == "cgroup2"):
        for folder in reversed(path):
            if "memory" in "".join(_lines(folder / "cgroup.subtree_control")).split():
                yield Base(folder, V2, folder)


def _places(
    own_groups: dict[str, str], mounts: list[tuple[str, str, Path, str]]
) -> Iterator[tuple[str, list[str], list[Path]]]:
    """(kind, controllers, folders from the mount down to our own group) of every hierarchy that shows our group."""
    for kind, root, mount, options in mounts:
        for names, path in own_groups.items():
            controllers = [name for name in names.split(",") if name]
            fits = not controllers if kind == "cgroup2" else bool(set(controllers) & set(options.split(",")))
            if fits and (path + "/").startswith(root.rstrip("/") + "/"):
                below = [part for part in path[len(root.rstrip("/")) :].split("/") if part]
                yield kind, controllers, [mount.joinpath(*below[:n]) for n in range(len(below) + 1)]


def _mounts(proc: Path) -> Iterator[tuple[str, str, Path, str]]:
    """(kind, root of the mount within its hierarchy, mount point, options) of every mounted hierarchy."""
    for line in _lines(proc / "mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            yield kind, before.split(" ")[3], Path(before.split(" ")[4]), options


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _hold(path: Path, value: int) -> None:
    path.write_text(str(value))
    if path.read_text().strip() != str(value):
        raise OSError(f"{path} took {value} and says {path.read_text().strip()}")


def _open(path: Path, mode: int, instead: Path) -> int:
    """``instead`` where an old kernel does not have ``path``."""
    try:
        return os.open(path, mode | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(instead, os.O_RDONLY | os.O_CLOEXEC)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _born(pid: int) -> str:
    """When a process started, in ticks since the machine did; empty where there is none (or it is a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return fields[19] if fields[0] not in "ZX" else ""
