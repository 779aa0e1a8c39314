"""Hosts in network namespaces of one machine: each has an address, a name and a link of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.clusters import Host
from tests.patience import PATIENCE_S

SWITCH = "10.77.0.254"
"""The address of the process that made the network, which reaches every host."""
_INSIDE = "--inside"
_READY = 'ip link set lo up && hostname "$0" && echo ready && exec sleep infinity'


def enter_switch(module: str) -> None:
    """Begin this process again in a network namespace of its own, where it may make hosts: as root of a user namespace
    unless it is root. ``module``: what was run with ``python -m``. Returns in the new process.

    Raises:
        OSError: there is no ``unshare`` (package util-linux).
    """
    if _INSIDE in sys.argv:
        sys.argv.remove(_INSIDE)
        return
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    command = ["unshare", *user, "--net", "--uts", "--", sys.executable, "-m", module, *sys.argv[1:], _INSIDE]
    os.execvp(command[0], command)


@dataclass(frozen=True)
class NetworkHost(Host):
    """A host with a link to the switch; ``link`` is the switch's end of it."""

    link: str = ""

    def connect(self, up: bool) -> None:
        """Plug the host in, or pull its link."""
        _ip("link", "set", self.link, "up" if up else "down")


@contextmanager
def network(names: Sequence[str]) -> Iterator[dict[str, NetworkHost]]:
    """Make hosts of these names, at 10.77.0.1 and on; they are gone when this ends.

    Raises:
        RuntimeError: a host did not come up; ``ip`` says why.
    """
    _ip("link", "add", "switch", "type", "bridge")
    _ip("addr", "add", f"{SWITCH}/24", "dev", "switch")
    _ip("link", "set", "switch", "up")
    _ip("link", "set", "lo", "up")
    spaces: list[subprocess.Popen[str]] = []
    try:
        hosts = {}
        for number, name in enumerate(names, 1):
            spaces.append(_space(name))
            hosts[name] = _plugged(number, spaces[-1].pid)
        yield hosts
    finally:
        for space in spaces:
            space.kill()
            space.wait(PATIENCE_S)
        _ip("link", "delete", "switch")


def _space(name: str) -> subprocess.Popen[str]:
    """A process that holds the namespaces of a host."""
    command = ["unshare", "--net", "--uts", "--", "sh", "-c", _READY, name]
    space = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert space.stdout
    if space.stdout.readline().strip() != "ready":
        raise RuntimeError(f"The host {name} did not come up.")
    return space


def _plugged(number: int, pid: int) -> NetworkHost:
    link, address = f"link{number}", f"10.77.0.{number}"
    prefix = ("nsenter", f"--target={pid}", "--net", "--uts", "--")
    _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    _ip("link", "set", link, "master", "switch", "up")
    for words in (("addr", "add", f"{address}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
        _run(*prefix, "ip", *words)
    return NetworkHost(address, prefix, link)


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
