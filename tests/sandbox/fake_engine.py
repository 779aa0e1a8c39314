"""A container engine that takes our flags literally: it refuses a container that lacks one of the hardening flags, or
has one it does not know, and then really runs it, with bubblewrap, as those flags say. Run as ``docker`` from a PATH.

Its state is in the folder DOCKER_CONFIG: what the image holds, the containers that run, and how it is to misbehave.
"""

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

EXACT = {
    "--network": "none",
    "--cap-drop": "ALL",
    "--ipc": "none",
    "--hostname": "sbx",
    "--log-driver": "none",
    "--workdir": "/box",
    "--pull": "never",
}
FREE = ("--name", "--user", "--pids-limit", "--memory", "--memory-swap", "--cpus")
MANY = ("--security-opt", "--tmpfs", "--ulimit", "--env")
BARE = ("-i", "--rm", "--read-only")
TMPFS = {"/box": ("64m", 2048), "/tmp": ("16m", 512)}
SERVICES = {
    **{"accept4": 288, "bind": 49, "capset": 126, "chown": 92, "clone3": 435, "connect": 42, "fchown": 93},
    **{"fchownat": 260, "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446},
    **{"lchown": 94, "listen": 50, "mount": 165, "openat2": 437, "seccomp": 317, "sethostname": 170, "setgid": 106},
    **{"setgroups": 116, "setregid": 114, "setresgid": 119, "setresuid": 117, "setreuid": 113, "setuid": 105},
    **{"socket": 41, "sysinfo": 99, "umount2": 166, "unshare": 272},
    **{"sendmsg": 46, "statfs": 137, "fstatfs": 138},
}
"""Numbers of what an engine lets a container do beyond what a payload may."""


class RefusalError(Exception):
    """This container is not hardened as it must be."""


def parse(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """(flags, image and command) of a ``run``."""
    flags: dict[str, Any] = {name: [] for name in MANY}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name = words[at]
        if name in BARE:
            flags[name], at = True, at + 1
            continue
        if name in MANY:
            flags[name].append(words[at + 1])
        elif name in EXACT or name in FREE or name == "--runtime":
            flags[name] = words[at + 1]
        else:
            raise RefusalError(f"unknown flag: {name}")
        at += 2
    return flags, words[at:]


def check(flags: dict[str, Any], seccomp: dict[str, Any] | None) -> None:
    """Raises RefusalError where one hardening is missing or weaker than it must be."""
    lacking = [name for name in (*BARE, *EXACT, *FREE) if name not in flags]
    lacking += [name for name, wanted in EXACT.items() if flags.get(name, wanted) != wanted]
    own = {"nofile=256", f"fsize={64 << 20}"} if seccomp is None else set()
    user = flags.get("--user", "0:0").partition(":")[0]
    promises = {
        "a flag is missing or weaker: " + ", ".join(lacking): not lacking,
        "no-new-privileges is missing": "no-new-privileges" in flags["--security-opt"],
        "a limit is missing": {"core=0", *own} <= set(flags["--ulimit"]),
        "not the file systems of a sandbox": sorted(flags["--tmpfs"]) == [_tmpfs(path, user) for path in TMPFS],
        "a user whom others may be": user == "65534" if seccomp else 20_000 <= int(user) < 60_000,
        "another group": flags.get("--user") == f"{user}:{user}",
        "memory is not bounded": flags.get("--memory") == flags.get("--memory-swap"),
        "processes are not bounded": 0 < int(flags.get("--pids-limit", 0)) <= 4096,
        "unknown runtime": flags.get("--runtime", "runsc") == "runsc",
        "the profile allows what it does not name": seccomp is None or seccomp["defaultAction"] == "SCMP_ACT_ERRNO",
    }
    for what, kept in promises.items():
        if not kept:
            raise RefusalError(what)


def _tmpfs(path: str, user: str) -> str:
    size, inodes = TMPFS[path]
    return f"{path}:rw,exec,nosuid,nodev,size={size},nr_inodes={inodes},mode=0700,uid={user},gid={user}"


def profile(flags: dict[str, Any]) -> dict[str, Any] | None:
    """The system call profile that was given, if any."""
    for entry in flags["--security-opt"]:
        if entry.startswith("seccomp="):
            found: dict[str, Any] = json.loads(Path(entry.partition("=")[2]).read_text())
            return found
    return None


def compiled(seccomp: dict[str, Any] | None, numbers: dict[str, int]) -> bytes:
    """The profile in classic BPF; without one what engines do by themselves: nobody makes namespaces or mounts."""
    allow, refuse = (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)
    load = (0x20, 0, 0, 0)
    if seccomp is None:
        code = [load, (0x15, 0, 3, 56), (0x20, 0, 0, 16), (0x45, 0, 6, 0x7E020000), refuse]
        code += [(0x15, 1, 0, 272), (0x15, 0, 1, 165), refuse, (0x15, 0, 1, 435), (0x06, 0, 0, 0x00050026), allow]
        return b"".join(struct.pack("HBBI", *one) for one in code)
    (rule,) = seccomp["syscalls"]
    code = [load]
    for name in rule["names"]:
        if name not in numbers:
            raise RefusalError(f"a system call nobody knows: {name}")
        code += [(0x15, 0, 1, numbers[name]), allow]
    return b"".join(struct.pack("HBBI", *one) for one in [*code, refuse])


INIT = """
import ctypes, os, resource, sys
program, words = bytes.fromhex(sys.argv[1]), sys.argv[3:]
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if os.getuid() == 0:
    user = int(sys.argv[2])
    os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(len(program) // 8, program))):
    sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
os.execv(words[0], words)
"""


def container(state: dict[str, Any], flags: dict[str, Any], filter_: bytes, command: list[str]) -> list[str]:
    """Bubblewrap with what ``flags`` say."""
    out = [state["bwrap"], "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    out += ["--new-session", "--as-pid-1", "--clearenv", "--hostname", flags["--hostname"], "--cap-drop", "ALL"]
    if os.getuid() == 0:
        out += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        out += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    out += [*state["image"], "--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc", "--chdir", flags["--workdir"]]
    for path, size in (("/box", 64 << 20), ("/tmp", 16 << 20)):
        out += ["--size", str(size), "--perms", "0777", "--tmpfs", path]
    for name, text in (("resolv.conf", "nameserver 192.0.2.53\n"), ("hosts", "192.0.2.1 host.internal\n")):
        brought = Path(state["folder"], name)
        brought.write_text(text)
        out += ["--ro-bind", str(brought), f"/etc/{name}"]
    for entry in flags["--env"]:
        out += ["--setenv", *entry.split("=", 1)]
    return [
        *out,
        "--remount-ro",
        "/",
        "--",
        command[0],
        "-sBPc",
        INIT,
        filter_.hex(),
        flags["--user"].partition(":")[0],
        *command,
    ]


def run(state: dict[str, Any], words: list[str]) -> int:
    flags, (image, *command) = parse(words)
    seccomp = profile(flags)
    check(flags, seccomp)
    if state.get("refuses_profiles") and seccomp is not None:
        raise RefusalError("custom seccomp profiles are not allowed on this host")
    if image != state["name"]:
        raise RefusalError(f"No such image: {image}")
    if "says" in state:
        sys.stdout.buffer.write(bytes.fromhex(state["says"]))
        sys.stdout.buffer.flush()
        return 0
    words = container(state, flags, compiled(seccomp, {**state["numbers"], **SERVICES}), command)
    child = subprocess.Popen(words, env={})
    running = Path(state["folder"], "running", flags["--name"])
    running.write_text(str(child.pid))
    try:
        return child.wait()
    finally:
        running.unlink(missing_ok=True)


def kill(state: dict[str, Any], name: str) -> int:
    running = Path(state["folder"], "running", name)
    try:
        pid = int(running.read_text())
    except (OSError, ValueError):
        sys.stderr.write(f"Error response from daemon: No such container: {name}\n")
        return 1
    for below in [*_below(pid), pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(below, signal.SIGKILL)
    running.unlink(missing_ok=True)
    return 0


def _below(pid: int) -> list[int]:
    """The container's pid 1: bubblewrap without a parent would wait for it for ever."""
    with contextlib.suppress(OSError):  # it has ended already
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def main() -> int:
    folder = Path(os.environ["DOCKER_CONFIG"])
    state = {**json.loads((folder / "state.json").read_text()), "folder": str(folder)}
    with (folder / "asked.jsonl").open("a") as log:
        log.write(json.dumps(sys.argv[1:]) + "\n")
    try:
        if sys.argv[1] == "kill":
            return kill(state, sys.argv[2])
        if sys.argv[1] == "run":
            return run(state, sys.argv[2:])
        raise RefusalError(f"unknown command: {sys.argv[1]}")
    except RefusalError as why:
        sys.stderr.write(f"docker: Error response from daemon: {why}.\nSee 'docker run --help'.\n")
        return 125


if __name__ == "__main__":
    sys.exit(main())
