"""The command lines of a container engine, Docker or Podman: what a hardened container is, flag by flag."""

import json
import os
import secrets
import shutil
from pathlib import Path

from agent0.errors import SandboxUnavailableError
from agent0.infra.sandbox.inside import seccomp
from agent0.settings import SandboxSettings

FIX = (
    "Install Docker or Podman (sandbox.engine) and make the image: "
    "docker build -f infra/images/sandbox.Dockerfile -t agent0-sandbox ."
)
INTERPRETER = "/opt/python/bin/python3"
USER = 65534
_FIRST_USER, _USERS = 20_000, 40_000
"""Of containers for one call, each another: a user's processes are counted over all containers of this machine. Engines
without root rights of their own have no numbers above 65,535."""
_BROKER = "import sys; sys.path.insert(0, '/opt'); from inside.broker import main; main()"
_ONCE = "import sys; sys.path.insert(0, '/opt'); from inside.once import main; main('/proc')"
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "LD_LIBRARY_PATH": "/opt/python/lib",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/bin",
    "PYTHONHASHSEED": "0",
    "PYTHONHOME": "/opt/python",
    "PYTHONPATH": "/opt/site",
}
_ENGINE = (
    *("accept4", "bind", "capset", "chown", "clone3", "connect", "fchown", "fchownat", "landlock_add_rule"),
    *("landlock_create_ruleset", "landlock_restrict_self", "lchown", "listen", "mount", "openat2", "seccomp"),
    *("sendmsg", "statfs", "fstatfs"),
    *("sethostname", "setgid", "setgroups", "setregid", "setresgid", "setresuid", "setreuid", "setuid", "socket"),
    *("sysinfo", "umount2", "unshare"),
)
"""Beside what a payload may do: what the engine, the broker and the fork server need to make sandbox processes."""
_PASSED_ON = (
    *("PATH", "HOME", "XDG_RUNTIME_DIR", "CONTAINER_HOST", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
    *("DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
)
_BESIDE_MIB, _BESIDE_A_CALL_MIB = 512, 320
"""Memory of broker and fork server, and of each call beside its own: work folder, /tmp, and both on their way."""
_PROCESSES = 48
"""Of one call: more than it may have (its own limit comes first) with the ones that watch over it."""


def profile() -> str:
    """System calls of the whole container, in the engine's own format. Payloads get the stricter filter of theirs."""
    rule = {"names": sorted({*seccomp.names(), *_ENGINE}), "action": "SCMP_ACT_ALLOW"}
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ERRNO",
            "defaultErrnoRet": 1,
            "architectures": ["SCMP_ARCH_X86_64"],
            "syscalls": [rule],
        }
    )


def engine(settings: SandboxSettings) -> str:
    """Path of the engine's client.

    Raises:
        SandboxUnavailableError: there is none.
    """
    path = shutil.which(settings.engine)
    if path is None:
        raise SandboxUnavailableError("The sandbox", f"{settings.engine} is not on the PATH.", FIX)
    return path


def environment() -> dict[str, str]:
    """What the client needs to find its engine, and nothing else of ours."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


def name() -> str:
    """Return a new, unique name for a sandbox container."""
    return f"agent0-sandbox-{os.getpid()}-{secrets.token_hex(6)}"


def _hardened(
    settings: SandboxSettings, container: str, user: int, *, memory_mib: int, processes: int, cpus: int
) -> list[str]:
    out = ["run", "-i", "--rm", "--pull", "never", "--name", container, "--network", "none", "--read-only"]
    out += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", f"{user}:{user}", "--ipc", "none"]
    out += ["--hostname", "sbx", "--log-driver", "none", "--workdir", "/box", "--ulimit", "core=0"]
    for path, size, inodes in (("/box", 64, 2048), ("/tmp", 16, 512)):  # noqa: S108
        out += [
            "--tmpfs",
            f"{path}:rw,exec,nosuid,nodev,size={size}m,nr_inodes={inodes},mode=0700,uid={user},gid={user}",
        ]
    out += ["--pids-limit", str(processes), "--memory", f"{memory_mib}m", "--memory-swap", f"{memory_mib}m"]
    out += ["--cpus", str(cpus)]
    for key, value in _ENVIRONMENT.items():
        out += ["--env", f"{key}={value}"]
    return [*out, *(["--runtime", settings.runtime] if settings.runtime else [])]


def broker(settings: SandboxSettings, container: str, places: int, seccomp_file: Path) -> list[str]:
    """A long-lived container that serves ``places`` calls at once."""
    flags = _hardened(
        settings,
        container,
        USER,
        memory_mib=places * (settings.mem_mib + _BESIDE_A_CALL_MIB) + _BESIDE_MIB,
        processes=places * _PROCESSES + 16,
        cpus=min(places, os.cpu_count() or 1),
    )
    security = ["--security-opt", f"seccomp={seccomp_file}"]
    return [engine(settings), *flags, *security, settings.image, INTERPRETER, "-sBPc", _BROKER]


def once(settings: SandboxSettings, container: str, mem_mib: int) -> list[str]:
    """A container for one call, with the engine's own system call profile."""
    memory = mem_mib + _BESIDE_A_CALL_MIB
    user = _FIRST_USER + secrets.randbelow(_USERS)
    flags = _hardened(settings, container, user, memory_mib=memory, processes=_PROCESSES, cpus=1)
    limits = ["--ulimit", "nofile=256", "--ulimit", f"fsize={64 << 20}"]
    return [engine(settings), *flags, *limits, settings.image, INTERPRETER, "-sBPc", _ONCE]


def kill(settings: SandboxSettings, container: str) -> list[str]:
    """End a container, whatever its client is doing."""
    return [engine(settings), "kill", container]
