"""Who is running below whom."""

from collections.abc import Container
from pathlib import Path


def descendants(root: int, without: Container[int] = ()) -> list[int]:
    """Pids below ``root``, nearest first; neither those in ``without`` nor what is below them."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    out: list[int] = []
    todo = [root]
    while todo:
        above = todo.pop(0)
        found = sorted(pid for pid, parent in parents.items() if parent == above and pid not in without)
        out += found
        todo += found
    return out
