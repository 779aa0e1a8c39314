"""The root file system a sandbox sees, as a bubblewrap command line. What is not listed here does not exist inside."""

import asyncio
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from agent0.errors import SandboxUnavailableError
from agent0.infra.sandbox import roots
from agent0.infra.sandbox.roots import EVERYTHING, Bind
from agent0.ports.sandbox import Root

INSIDE = Path(__file__).with_name("inside")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_START = "import sys; sys.path.insert(0, '/opt'); from inside.fork_server import main; main({}, {!r}, guests={})"
_LOADER = "/lib64/ld-linux-x86-64.so.2"
WORK_LINKS = {"app": "box", **{name: f"box/{name}" for name in ("logs", "solution", "tests")}}
"""Where programs made for others' containers look for the work folder and what is in it: links at the top."""
_loads: dict[tuple[str, int], frozenset[str]] = {}
"""Libraries by (file, time of its last change): the loader takes longer to ask than a fork server to start."""


async def command(root: Root = EVERYTHING, more: Sequence[str] = ()) -> list[str]:
    """Bubblewrap with the whole file system of ``root`` and ``more`` of its options; ``interpreter`` goes behind it.

    Raises:
        SandboxUnavailableError: bubblewrap is missing, or this machine is of another kind.
        RootError: this machine lacks something that ``root`` names.
    """
    bwrap = shutil.which("bwrap")
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise SandboxUnavailableError(
            "The sandbox", f"it runs on Linux on x86-64, this is {sys.platform} on {platform.machine()}.", "Use WSL2."
        )
    if bwrap is None:
        raise SandboxUnavailableError(
            "The sandbox", "bubblewrap (bwrap) is not on the PATH.", "Install it: apt-get install bubblewrap"
        )
    options = [*_isolation(), *_binds(await contents(root)), *_links(), *more, "--remount-ro", "/"]
    return [bwrap, *options, "--"]


async def contents(root: Root = EVERYTHING) -> list[Bind]:
    """Everything that exists for ``root``.

    Raises:
        SandboxUnavailableError, RootError: as ``command`` does.
    """
    programs, packages = roots.programs(root), roots.packages(root)
    return [*await _system(programs, packages), *_python(), *packages]


def interpreter(control_fd: int, root: Root = EVERYTHING) -> list[str]:
    """What runs inside: a fork server of ``root`` that talks on ``control_fd``."""
    return python(_START.format(control_fd, roots.preloaded(root), bool(root.trusted)))


def python(program: str) -> list[str]:
    """Return the command line that runs ``program`` with the interpreter inside the sandbox."""
    return [f"/opt/python/bin/{_PYTHON}", "-sBPc", program]


def _isolation() -> list[str]:
    """Namespaces and environment. Root needs no user namespace and must not use one: in it, it would stay root.

    Not ``--die-with-parent``: who ends a bubblewrap that still prepares its child leaves that child waiting for ever.
    It is never ended before what runs inside has said a word, and that ends with its owner by itself.
    """
    out = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    out += ["--new-session", "--as-pid-1", "--clearenv", "--hostname", "sbx", "--cap-drop", "ALL"]
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
    for folder in ("/usr", "/usr/bin", "/opt", "/opt/site"):  # they are there where a root names nothing, too
        out += ["--dir", folder]
    for name in _DEVICES:
        out += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    return [*out, "--proc", "/proc", "--chdir", "/"]


async def _system(programs: dict[str, str], packages: list[Bind]) -> list[Bind]:
    """``programs`` and the libraries that they, the interpreter and ``packages`` load."""
    loaded = [*programs.values(), os.path.realpath(sys.executable)]
    loaded += [str(p) for p in _standard_library().glob("lib-dynload/*.so") if "tkinter" not in p.name]
    for source, _ in packages:
        loaded += [source] if source.endswith(".so") else [str(p) for p in Path(source).rglob("*.so")]
    packaged = (str(_standard_library()), *(str(Path(source).parent) for source, _ in packages))
    out = [(path, f"/usr/bin/{name}") for name, path in programs.items()]
    for path in sorted(await _libraries(loaded)):
        if path.startswith(packaged):
            continue
        parent = os.path.realpath(os.path.dirname(path))  # noqa: PTH120
        system = parent.startswith(("/usr/", "/lib"))
        out.append((path, f"{parent if system else '/opt/python/lib'}/{os.path.basename(path)}"))  # noqa: PTH119
    return out


async def _libraries(files: Iterable[str]) -> set[str]:
    """Absolute paths of what the dynamic loader would load for ``files``."""
    keys = [(path, Path(path).stat().st_mtime_ns) for path in files]
    unknown = [path for path, changed in keys if (path, changed) not in _loads]
    if unknown:
        libraries = await _ask_loader(unknown)
        _loads.update({key: libraries.get(key[0], frozenset()) for key in keys if key not in _loads})
    return {library for key in keys for library in _loads[key]}


async def _ask_loader(files: list[str]) -> dict[str, frozenset[str]]:
    """The loader itself where it is at its usual place: ``ldd`` asks the same of it in six times the time."""
    ldd = shutil.which("ldd", path="/usr/bin:/bin")
    if Path(_LOADER).exists():
        command_line = ["/bin/sh", "-c", f'for file; do echo "$file:"; {_LOADER} --list "$file"; done', "sh", *files]
    elif ldd is not None:
        command_line = [ldd, *files, "/dev/null"]  # of one file alone it does not say which
    else:
        raise SandboxUnavailableError("The sandbox", "ldd is not in /usr/bin.", "Install it: apt-get install libc-bin")
    process = await asyncio.create_subprocess_exec(
        *command_line, env={"PATH": "/usr/bin:/bin"}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    text, _ = await process.communicate()
    out: dict[str, set[str]] = {}
    about: set[str] = set()
    for line in text.decode(errors="replace").splitlines():
        if not line.startswith("\t"):
            about = out.setdefault(line.removesuffix(":"), set())
        about |= {token for token in line.split() if line.startswith("\t") and token.startswith("/")}
    return {path: frozenset(libraries) for path, libraries in out.items()}


def _python() -> list[Bind]:
    """Interpreter, standard library and our own code, each at a place of its own under /opt."""
    out = [(os.path.realpath(sys.executable), f"/opt/python/bin/{_PYTHON}"), (str(INSIDE), "/opt/inside")]
    return [*out, (str(_standard_library()), f"/opt/python/lib/{_PYTHON}")]


def _binds(pairs: list[Bind]) -> list[str]:
    """Read-only binds; folders above them first, or bubblewrap makes those unreadable for anyone but root."""
    folders = {str(parent) for _, target in pairs for parent in Path(target).parents}
    out = [option for folder in sorted(folders - {"/"}) for option in ("--dir", folder)]
    return out + [option for source, target in pairs for option in ("--ro-bind", source, target)]


def _links() -> list[str]:
    """Links of a merged /usr and into the work folder, an empty folder over packages of the interpreter."""
    merged = [name for name in ("lib", "lib64", "bin") if Path("/", name).is_symlink()]
    links = {name: f"usr/{name}" for name in merged} | WORK_LINKS
    out = [option for name, target in links.items() for option in ("--symlink", target, f"/{name}")]
    if (_standard_library() / "site-packages").is_dir():
        hidden = f"/opt/python/lib/{_PYTHON}/site-packages"
        out += ["--tmpfs", hidden, "--remount-ro", hidden]
    return out


def _standard_library() -> Path:
    return Path(sysconfig.get_path("stdlib")).resolve()
