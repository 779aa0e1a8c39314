"""One row an attack: what it runs and what must be seen of it. A program that gets through prints ESCAPE."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SYSCALLS = """\
import os, sys, ctypes, socket, errno
libc = ctypes.CDLL(None, use_errno=True)
def sc(n, *a):
    r = libc.syscall(n, *a)
    return r, ctypes.get_errno()
"""
CAP = 256 << 10
"""Bytes kept of each output."""
PATIENCE_S = 30.0
"""What a call may take beyond its limit, start of a fork server included, on a machine that has other things to do."""


@dataclass(frozen=True)
class Attack:
    """``states`` it may end in, a text it ``prints``, an ``rc``, whether it ``fails``, files that are ``unkept``.

    {FOLDER}, {PORT}, {NAME} and {READ64} stand for the canaries: their folder, TCP port, abstract name, and the
    base64 of a command that reads the secret. Never may it print ESCAPE or the secret, nor end the next call.
    """

    id: str
    kind: Literal["python", "shell"]
    code: str
    states: frozenset[str]
    prints: str
    wall: float
    mem: int
    rc: int | None
    fails: bool
    unkept: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """What an entry point said of one attack. ``files`` of which only names are known have no contents; ``manifest``
    names the work folder where the entry point stores it; ``took`` is seconds as the caller saw them."""

    state: str
    rc: int | None
    stdout: str
    stderr: str
    reason: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    manifest: str | None = None
    took: float = 0.0

    def __str__(self) -> str:
        return f"{self.state} rc={self.rc} {self.reason} {self.stdout[:300]!r} {self.stderr[-300:]!r}"


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
    mem: int = 512,
    rc: int | None = None,
    fails: bool = False,
    unkept: str = "",
) -> None:
    """Add a row. ``syscalls`` puts a raw ``sc(number, ...)`` in front."""
    text = SYSCALLS * syscalls + code.strip("\n")
    states_ = frozenset(states.split())
    ATTACKS.append(Attack(id, kind, text, states_, prints, wall, mem, rc, fails, tuple(unkept.split())))


def faults(attack: Attack, seen: Seen, secret: str) -> list[str]:
    """What went otherwise than it must; empty where the attack came to nothing."""
    read = seen.stdout + seen.stderr + seen.reason
    wrong = {
        f"state {seen.state}, not {' or '.join(sorted(attack.states))}": seen.state not in attack.states,
        "it got through": "ESCAPE" in seen.stdout,
        f"it did not print {attack.prints}": attack.prints not in seen.stdout,
        f"rc {seen.rc}, not {attack.rc}": attack.rc not in (None, seen.rc),
        "rc 0": attack.fails and seen.rc == 0,
        # a byte that is no text becomes four characters
        "more output than the cap": max(len(seen.stdout), len(seen.stderr)) > 4 * CAP,
        "the secret was read": secret in read or any(secret.encode() in data for data in seen.files.values()),
        f"it took {seen.took:.0f} s, its limit was {attack.wall:.0f} s": seen.took > attack.wall + PATIENCE_S,
    }
    return [what for what, is_so in wrong.items() if is_so] + [
        f"{name} was kept" for name in attack.unkept if name in seen.files
    ]
