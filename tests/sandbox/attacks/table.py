"""One row an attack: what it runs and what must be seen of it. A program that gets through prints ESCAPE."""

from dataclasses import dataclass
from typing import Literal

SYSCALLS = """\
import os, sys, ctypes, socket, errno
libc = ctypes.CDLL(None, use_errno=True)
def sc(n, *a):
    r = libc.syscall(n, *a)
    return r, ctypes.get_errno()
"""


@dataclass(frozen=True)
class Attack:
    """``states`` it may end in, a text it ``prints``, an ``rc``. {FOLDER}, {PORT} and {NAME} stand for the canaries."""

    id: str
    kind: Literal["python", "shell"]
    code: str
    states: frozenset[str]
    prints: str
    wall: float
    rc: int | None
    fails: bool


ATTACKS: list[Attack] = []


def attack(
    id: str,
    kind: Literal["python", "shell"],
    code: str,
    *,
    syscalls: bool = False,
    states: str = "ok error",
    prints: str = "",
    wall: float = 10,
    rc: int | None = None,
    fails: bool = False,
) -> None:
    """Add a row. ``syscalls`` puts a raw ``sc(number, ...)`` in front."""
    text = SYSCALLS * syscalls + code.strip("\n")
    ATTACKS.append(Attack(id, kind, text, frozenset(states.split()), prints, wall, rc, fails))
