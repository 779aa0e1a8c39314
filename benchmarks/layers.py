"""The layers of the sandbox, and how each is taken away in a copy of it: lines put at the end of a file of what runs
inside, words changed in bubblewrap's command line, values changed on the host."""

from dataclasses import dataclass, field

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
