"""The root file system a sandbox sees, as a bubblewrap command line. What is not listed here does not exist inside."""

import asyncio
import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from agent0.errors import SandboxUnavailableError
from agent0.settings import PolicyConfig

INSIDE = Path(__file__).with_name("inside")
UID = 64999
"""What root becomes before anything runs: no account has this number, and limits on processes do not bind root."""
EXECUTABLES = PolicyConfig().executables
"""The shell's allowlist. The boundary is that no other executable exists; those absent on this machine are left out."""
MODULES = ("mpmath", "numpy", "numpy.libs", "sympy")
"""What of the environment's site-packages code may import beside the standard library."""
PRELOADED = "collections,fractions,itertools,json,math,random,re,sympy,numpy.linalg,numpy.random"
Bind = tuple[str, str]
_DEVICES = ("null", "zero", "full", "random", "urandom")
_PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_START = "import sys; sys.path.insert(0, '/opt'); from inside.zygote import main; main({}, {}, {!r})"


async def command() -> list[str]:
    """Bubblewrap with the whole file system; ``interpreter`` goes behind it.

    Raises:
        SandboxUnavailableError: bubblewrap is missing, or this machine is of another kind.
    """
    found = shutil.which("bwrap")
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise SandboxUnavailableError(
            "The sandbox", f"it runs on Linux on x86-64, this is {sys.platform} on {platform.machine()}.", "Use WSL2."
        )
    if found is None:
        raise SandboxUnavailableError(
            "The sandbox", "bubblewrap (bwrap) is not on the PATH.", "Install it: apt-get install bubblewrap"
        )
    words = [*_isolation(), *_binds([*await _system(), *_python()]), *_links(), "--remount-ro", "/"]
    return [found, *words, "--"]


def interpreter(control_fd: int) -> list[str]:
    """What runs inside: a zygote that talks on ``control_fd``."""
    return [f"/opt/python/bin/{_PYTHON}", "-sBPc", _START.format(control_fd, UID, PRELOADED)]


def _isolation() -> list[str]:
    """Namespaces and environment. Root needs no user namespace and must not use one: in it, it would stay root."""
    out = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    out += ["--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", "--hostname", "sbx", "--cap-drop", "ALL"]
    if os.getuid() == 0:
        out += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        out += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    variables = {"LANG": "C.UTF-8", "LD_LIBRARY_PATH": "/opt/python/lib", "OPENBLAS_NUM_THREADS": "1"}
    variables |= {"PATH": "/usr/bin", "PYTHONHASHSEED": "0", "PYTHONHOME": "/opt/python", "PYTHONPATH": "/opt/site"}
    for name, value in variables.items():
        out += ["--setenv", name, value]
    for folder in ("/box", "/tmp", "/dev", "/dev/shm"):  # noqa: S108 (each call covers them with its own)
        out += ["--dir", folder]
    for name in _DEVICES:
        out += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    return [*out, "--proc", "/proc", "--chdir", "/"]


async def _system() -> list[Bind]:
    """Executables of the allowlist and the libraries they, the interpreter and numpy load."""
    programs = {
        name: os.path.realpath(found) for name in EXECUTABLES if (found := shutil.which(name, path="/usr/bin:/bin"))
    }
    out = [(path, f"/usr/bin/{name}") for name, path in programs.items()]
    loaded = [*programs.values(), os.path.realpath(sys.executable)]
    loaded += [str(p) for p in _standard_library().glob("lib-dynload/*.so") if "tkinter" not in p.name]
    loaded += [str(p) for p in _package("numpy").rglob("*.so")]
    own = (str(_standard_library()), str(_package("numpy").parent))
    for path in sorted(await _libraries(loaded)):
        if path.startswith(own):
            continue
        parent = os.path.realpath(os.path.dirname(path))  # noqa: PTH120
        system = parent.startswith(("/usr/", "/lib"))
        out.append((path, f"{parent if system else '/opt/python/lib'}/{os.path.basename(path)}"))  # noqa: PTH119
    return out


async def _libraries(files: Iterable[str]) -> set[str]:
    """Absolute paths of what the dynamic loader would load for ``files``."""
    found = shutil.which("ldd", path="/usr/bin:/bin")
    if found is None:
        raise SandboxUnavailableError("The sandbox", "ldd is not in /usr/bin.", "Install it: apt-get install libc-bin")
    bare = {"PATH": "/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec(
        found, *files, env=bare, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    text, _ = await process.communicate()
    lines = [line.split() for line in text.decode().splitlines() if line.startswith("\t")]
    return {word for line in lines for word in line if word.startswith("/")}


def _python() -> list[Bind]:
    """Interpreter, standard library and the packages of MODULES, each at a place of its own under /opt."""
    site = _package("sympy").parent
    out = [(os.path.realpath(sys.executable), f"/opt/python/bin/{_PYTHON}"), (str(INSIDE), "/opt/inside")]
    out.append((str(_standard_library()), f"/opt/python/lib/{_PYTHON}"))
    return out + [(str(site / name), f"/opt/site/{name}") for name in MODULES if (site / name).exists()]


def _binds(pairs: list[Bind]) -> list[str]:
    """Read-only binds; folders above them first, or bubblewrap makes those unreadable for anyone but root."""
    folders = {str(parent) for _, target in pairs for parent in Path(target).parents}
    out = [word for folder in sorted(folders - {"/"}) for word in ("--dir", folder)]
    return out + [word for source, target in pairs for word in ("--ro-bind", source, target)]


def _links() -> list[str]:
    """Merged-/usr links, and an empty folder over packages that belong to the interpreter and not to us."""
    merged = [name for name in ("lib", "lib64", "bin") if Path("/", name).is_symlink()]
    out = [word for name in merged for word in ("--symlink", f"usr/{name}", f"/{name}")]
    if (_standard_library() / "site-packages").is_dir():
        hidden = f"/opt/python/lib/{_PYTHON}/site-packages"
        out += ["--tmpfs", hidden, "--remount-ro", hidden]
    return out


def _standard_library() -> Path:
    return Path(sysconfig.get_path("stdlib")).resolve()


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SandboxUnavailableError("The sandbox", f"the package {name} is not installed.", f"pip install {name}")
    return Path(spec.origin).parent
