"""Whether each layer carries weight: take one away at a time, in a copy, self-test switched off, and see which attacks
then get through. Nothing of it can leave bubblewrap's own namespaces, and processes stay limited.

    python -m benchmarks.knockout [--layer NAME ...] [--jobs 2] [--json]

Exit 1 where a layer is not missed by any attack: alone, or where another covers it, together with that one.
"""

import argparse
import asyncio
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent0.errors import SandboxUnavailableError
from agent0.infra.sandbox import Bubblewrap, rootfs, selftest
from agent0.infra.sandbox.inside import kernel
from agent0.settings import SandboxSettings
from tests.sandbox import campaign as campaigns
from tests.sandbox.attacks import ATTACKS
from tests.sandbox.campaign import SECRET, VARIABLE, Campaign, canaries, through_engine

NO_TMP = """
_mount = kernel.mount
def _mount_less(source, target, *rest):
    if target not in ("/tmp", payload.WORK):
        _mount(source, target, *rest)
kernel.mount = _mount_less
"""
NO_PROC = """
_mount, _covered = kernel.mount, _cover
def _mount_less(source, target, *rest):
    if target != "/proc":
        _mount(source, target, *rest)
def _cover(path):
    if path != "/proc":
        _covered(path)
kernel.mount = _mount_less
"""
NO_LIMITS = "_LIMITS.clear()\n_LIMITS[resource.RLIMIT_NPROC] = 256  # the machine must stand\n"
NO_TIMER = (
    "_timed = _watch\ndef _watch(memory, child, start, wall_s, *rest):\n"
    "    return _timed(memory, child, start, wall_s + 45, *rest)\n"
)
NO_SYSTEM = "_covered = _cover\ndef _cover(path):\n    if not path.startswith('/opt'):\n        _covered(path)\n"
NO_NNP = (
    "_prctl = prctl\ndef prctl(option, *args):\n    if option != PR_SET_NO_NEW_PRIVS:\n        _prctl(option, *args)\n"
)


@dataclass(frozen=True)
class Layer:
    """``inside``: file and what is put at its end; ``words``: of bubblewrap, and what stands in their place; ``host``:
    module, name and value. ``covered``: other layers that hold the same ground, so that nothing is seen of this one
    alone; ``kept`` names what holds it and cannot be taken away. ``only``: attacks that are run, all where none is
    named."""

    name: str
    inside: tuple[tuple[str, str], ...] = ()
    words: tuple[tuple[str, str], ...] = ()
    host: tuple[tuple[str, str, object], ...] = ()
    covered: tuple[str, ...] = ()
    kept: str = ""
    only: tuple[str, ...] = field(default=())


def _without(flag: int) -> tuple[tuple[str, str], ...]:
    return (("kernel.py", f"FRESH &= ~{flag:#x}"),)


CALLING = "agent0.infra.sandbox.inside.calling"
HANGING = ("R10-sleep-past", "R11-ignore-sigterm", "X12-stop-self")
LAYERS = (
    Layer("nothing (control)"),
    Layer("system call filter", (("seccomp.py", "def install(**_): ..."),)),
    Layer("locks of own files only", (("locking.py", "Locks._allowed = lambda *_: True"),)),
    Layer(
        "waits on words of one process only",
        (("seccomp.py", "_WAITS = ()\ndef _futex(): return [(_RETURN, 0, 0, _ALLOW)]"),),
        only=("C11-wait-on-a-word-that-all-share",),
    ),
    Layer("times of devices", (("kernel.py", "def keep_times(path): ..."),)),
    Layer("capabilities", (("kernel.py", "def drop_capabilities() -> None: ..."),)),
    Layer("no new privileges", (("kernel.py", NO_NNP),), kept="bubblewrap, which sets it for all below itself"),
    Layer("resource limits", (("payload.py", NO_LIMITS), ("shim.py", "resource.prlimit = lambda *_: None"))),
    Layer("memory watchdog", (("memory.py", "Watchdog.broken = lambda self: False"),)),
    Layer("wall timer inside", (("shim.py", NO_TIMER),)),
    Layer("deadline outside", host=((CALLING, "SLACK_S", 120.0),), covered=("wall timer inside",), only=HANGING),
    Layer("Landlock", (("landlock.py", "def restrict(*_, **__): return 0"),), covered=("read-only root",)),
    Layer(
        "read-only root",
        words=(("--remount-ro /", ""), ("--dir /dev ", "--perms 1777 --dir /dev ")),
        covered=("Landlock",),
    ),
    Layer(
        "network namespace", _without(0x40000000), (("--unshare-net", ""),), covered=("system call filter", "Landlock")
    ),
    Layer("process namespace", _without(0x20000000)),
    Layer("user namespace", _without(0x10000000)),
    Layer("mount namespace", _without(0x20000)),
    Layer(
        "private /box and /tmp",
        (("shim.py", NO_TMP),),
        tuple((f"--dir {folder} ", f"--perms 1777 --tmpfs {folder} ") for folder in ("/box", "/tmp")),
    ),
    Layer("private /proc", (("shim.py", NO_PROC),)),
    Layer("no interpreter for the shell", (("shim.py", NO_SYSTEM),)),
    Layer(
        "clean environment",
        (("payload.py", "type(os.environ).clear = lambda self: None"),),
        (("--clearenv", "--clearenv --setenv AGENT0_SECRET canary"),),
    ),
    Layer("closed descriptors", (("payload.py", "os.closerange = lambda *_: None"),)),
    Layer(
        "links are not followed",
        (
            (
                "shim.py",
                "os.O_NOFOLLOW = 0\n_stat = os.stat\n"
                "os.stat = lambda path, dir_fd=None, follow_symlinks=True: _stat(path, dir_fd=dir_fd)",
            ),
        ),
    ),
    Layer("harvest after death", (("shim.py", "def _end_everything() -> None: ..."),)),
    Layer("output cap", host=((CALLING, "OUTPUT_CAP", 1 << 40),)),
    Layer("end of a flood", host=((CALLING, "FLOOD", 1 << 60),)),
)


NAMES = {layer.name: layer for layer in LAYERS}
LIMIT_S = 900.0
WORKERS = 2


def take_away(layers: Sequence[Layer], folder: Path) -> None:
    """From now on this process makes sandboxes without ``layers``, from a copy in ``folder``, and tests none.

    Raises:
        LookupError: a file, word or name is not there any more: the layer is described wrongly.
    """
    inside = shutil.copytree(rootfs.INSIDE, folder / "inside", ignore=shutil.ignore_patterns("__pycache__"))
    for file, text in (one for layer in layers for one in layer.inside):
        if not (inside / file).is_file():
            raise LookupError(file)
        with (inside / file).open("a") as end:
            end.write(f"\n{text}\n")
    rootfs.INSIDE = inside
    _change_words([one for layer in layers for one in layer.words])
    for module, name, value in (one for layer in layers for one in layer.host):
        if not hasattr(found := importlib.import_module(module), name):
            raise LookupError(f"{module}.{name}")
        setattr(found, name, value)
    selftest.require = lambda probes: None


def _change_words(changes: Sequence[tuple[str, str]]) -> None:
    original = rootfs.command

    async def command(*given: Any, **named: Any) -> list[str]:
        text = "\0".join(await original(*given, **named))
        for old, new in changes:
            old = "\0" + old.strip().replace(" ", "\0") + "\0"
            if old not in text:
                raise LookupError(old)
            text = text.replace(old, "\0" + "".join(f"{word}\0" for word in new.split()), 1)
        return text.split("\0")

    rootfs.command = command


async def attacked(only: Sequence[str]) -> dict[str, Any]:
    """What gets through this process's sandbox: faults by attack, and what was done to the host. Where it does not
    even start, or serves nobody, it is ``closed``."""
    chosen = [attack for attack in ATTACKS if not only or attack.id in only]
    workers = 1 if len(chosen) < 2 * campaigns.WIDTH else WORKERS
    settings = SandboxSettings(backend="zygote-bwrap", workers=workers, cgroup="never")
    sandbox = Bubblewrap(settings, "knockout")
    others: frozenset[int] = frozenset()
    os.environ[VARIABLE] = SECRET
    with canaries() as planted:
        try:
            await sandbox.start()
            found = await campaigns.run(through_engine(sandbox), chosen, planted, others)
        except SandboxUnavailableError as error:
            return {"red": {}, "wounds": [], "closed": str(error)}
        finally:
            await sandbox.close()
    red = {attack.id: faults for attack in chosen if (faults := found.faults(attack))}
    return {"red": red, "wounds": found.wounds, "closed": _closed(found)}


def _closed(found: Campaign) -> str:
    """Why nothing was served, empty where something was."""
    served = [seen for seen in (*found.seen.values(), *found.next.values()) if seen.state in ("ok", "error")]
    return "" if served else next(seen.reason for seen in found.seen.values())


def alone(names: Sequence[str], only: Sequence[str] = ()) -> dict[str, Any]:
    """``attacked`` without the layers of ``names``, in a process of its own."""
    asked = json.dumps([list(names), list(only), os.getpid()])
    words = [sys.executable, "-m", "benchmarks.knockout", "--inner", asked]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise RuntimeError(f"without {', '.join(names)}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _inner(text: str) -> int:
    names, only, owner = json.loads(text)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != owner:
        return 1  # it ended before that was in force
    layers = [NAMES[name] for name in names]
    with tempfile.TemporaryDirectory(prefix="agent0-knockout-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        take_away(layers, Path(folder))
        print(json.dumps(asyncio.run(attacked(only))))
    return 0


def judged(
    layer: Layer, found: dict[str, Any], both: dict[str, Any] | None, cover: dict[str, Any] | None
) -> dict[str, Any]:
    """One row: which attacks succeed without ``layer``, or, where it is covered, in addition without its cover."""
    red = {**found["red"], **{wound: ["host"] for wound in found["wounds"]}}
    row = {"layer": layer.name, "closed": found["closed"], "red": red, "covered": "", "more": {}}
    if layer.covered and both and cover:
        known = {**cover["red"], **{wound: ["host"] for wound in cover["wounds"]}}
        more = {**both["red"], **{wound: ["host"] for wound in both["wounds"]}}
        row |= {
            "covered": " and ".join(layer.covered),
            "more": {key: value for key, value in more.items() if key not in known},
        }
    row["kept"] = layer.kept
    row["carries"] = bool(red or found["closed"] or row["more"] or layer.kept)
    return row


def run(names: Sequence[str], jobs: int) -> list[dict[str, Any]]:
    """Rows of the table, in the order of ``LAYERS``."""
    layers = [NAMES[name] for name in names]
    wanted = {(layer.name,): layer.only for layer in layers}
    for layer in layers:
        if layer.covered:
            wanted[layer.covered] = wanted.get(layer.covered, layer.only)
            wanted[layer.name, *layer.covered] = layer.only
    with ThreadPoolExecutor(jobs) as pool:
        answers = dict(zip(wanted, pool.map(lambda item: _told(*item), wanted.items()), strict=True))
    return [
        judged(layer, answers[layer.name,], answers.get((layer.name, *layer.covered)), answers.get(layer.covered))
        for layer in layers
    ]


def _told(names: tuple[str, ...], only: tuple[str, ...]) -> dict[str, Any]:
    found = alone(names, only)
    count = len(found["red"]) + len(found["wounds"])
    print(f"without {' and '.join(names)}: {found['closed'] or f'{count} succeed'}", file=sys.stderr)
    for attack, faults in list(found["red"].items())[:40]:
        print(f"  {attack}: {'; '.join(faults)[:300]}", file=sys.stderr)
    return found


def shown(row: dict[str, Any]) -> str:
    """One line for people."""
    if row["closed"]:
        return f"fails closed: {row['closed'][:90]}"
    if row["red"]:
        return f"{len(row['red'])} succeed: {_list(row['red'])}"
    if row["kept"]:
        return f"redundant, covered by {row['kept']}"
    if row["covered"]:
        more = row["more"]
        return f"redundant, covered by {row['covered']}; without either {len(more)} more succeed: {_list(more)}"
    return "nothing succeeds"


def _list(red: dict[str, Any]) -> str:
    ids = [name.partition("-")[0] if name[:1].isupper() else name for name in red]
    return " ".join(ids[:12]) + (f" and {len(ids) - 12} more" if len(ids) > 12 else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layer", action="append", choices=list(NAMES))
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inner", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inner:
        return _inner(chosen.inner)
    rows = run(chosen.layer or list(NAMES), chosen.jobs)
    if chosen.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(f"{row['layer']:30} {shown(row)}")
    control = next((row for row in rows if row["layer"] == LAYERS[0].name), None)
    if control and (control["red"] or control["closed"]):
        return 1
    return 0 if all(row["carries"] for row in rows if row is not control) else 1


if __name__ == "__main__":
    sys.exit(main())
