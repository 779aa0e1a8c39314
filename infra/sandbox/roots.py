"""Find what a root names on this machine: executables, packages, and the modules that a fork server imports
beforehand."""

import importlib.util
import shutil
import sys
from pathlib import Path

from agent0.infra.sandbox.inside import asking
from agent0.ports.sandbox import Root
from agent0.settings import PolicyConfig

Bind = tuple[str, str]
"""(path on this machine, path inside)."""
EVERYTHING = Root()
"""The packaged allowlists."""
PACKAGED = frozenset(PolicyConfig().executables)
"""Of these, what this machine lacks is left out: the list is ours and longer than most machines."""
LIBRARY = (
    "ast,bisect,cmath,collections,contextlib,copy,dataclasses,datetime,decimal,enum,fractions,functools,heapq,"
    "inspect,itertools,json,math,operator,pathlib,pickle,random,re,statistics,string,typing,uuid"
)
"""Of the standard library, imported for every root: what programs and their tests use most. Each fork of a call copies
what is here, so what brings much along and is used seldom is not: ``asyncio``, ``threading``, ``tempfile``."""
_COMPANIONS = {"_pytest": "py.py"}
"""What a package cannot do without and ships at the top level under another name."""
_PRELOADED = {"sympy": "sympy", "numpy": "numpy.linalg,numpy.random", "pytest": "pytest,_pytest.assertion.rewrite"}


class RootError(Exception):
    """A root cannot be had on this machine. The message says what is missing and what to do."""


def preloaded(root: Root) -> str:
    """Modules that a fork server of ``root`` imports before its first call, with commas between."""
    ours = [f"{folder.name}.{path.stem}" for folder in _trusted(root) for path in sorted(folder.glob("[!_]*.py"))]
    return ",".join([LIBRARY, *(_PRELOADED[name] for name in root.modules if name in _PRELOADED), *ours])


def importable(root: Root) -> list[str]:
    """Names by which code imports the packages of ``root``, the trusted ones among them."""
    return [*root.modules, *(folder.name for folder in _trusted(root))]


def versions(root: Root) -> dict[str, str]:
    """Digests of the trusted packages of ``root``, by the names under which they are imported."""
    return {folder.name: asking.version(str(folder)) for folder in _trusted(root)}


def _trusted(root: Root) -> list[Path]:
    """Folders of the trusted packages of ``root``: parts of Agent0 and nothing else."""
    folders = []
    for name in root.trusted:
        try:
            spec = importlib.util.find_spec(name) if name.startswith("agent0.") else None
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.submodule_search_locations:
            raise RootError(f"{name!r} is no package of Agent0. Name the folder of one with its dots.")
        folders.append(Path(spec.submodule_search_locations[0]))
    return folders


def programs(root: Root) -> dict[str, str]:
    """Name -> real path of the executables of ``root``.

    Raises:
        RootError: one is not on this machine, and it is not of the packaged list.
    """
    search = f"/usr/bin:/bin:{Path(sys.executable).parent}"
    out = {}
    for name in root.executables:
        if not name or "/" in name or "\0" in name or name in (".", ".."):
            raise RootError(f"{name!r} is no name of an executable. Name it as the shell would, without a path.")
        path = shutil.which(name, path=search)
        if path is not None:
            out[name] = str(Path(path).resolve())
        elif name not in PACKAGED:
            raise RootError(f"The executable {name} is not in {search}. Install it, or take it off the allowlist.")
    return out


def packages(root: Root) -> list[Bind]:
    """The packages of ``root``, with the folders of libraries some keep beside themselves, below /opt/site.

    Raises:
        RootError: one is not installed beside the running interpreter, or a trusted one is not ours.
    """
    paths_of_packages = []
    for name in root.modules:
        if not name.isidentifier():
            raise RootError(f"{name!r} is no name of a package. Name the top level: numpy, not numpy.linalg.")
        paths = _package(name)
        if not paths:
            raise RootError(
                f"The package {name} is not installed beside {sys.executable}. "
                f"Install it (pip install {name}), or take it off the allowlist."
            )
        paths_of_packages += paths
    return [(str(path), f"/opt/site/{path.name}") for path in (*paths_of_packages, *_trusted(root))]


def _package(name: str) -> list[Path]:
    """Where ``name`` is imported from, first of all; only folders of installed packages are searched, never our own."""
    for site in map(Path, sys.path):
        if site.name not in ("site-packages", "dist-packages"):
            continue
        if (site / name).is_dir():
            beside = (site / f"{name}.libs", site / _COMPANIONS.get(name, f"{name}.libs"))
            return [site / name, *(path for path in dict.fromkeys(beside) if path.exists())]
        single = [site / f"{name}.py", *site.glob(f"{name}.*.so"), site / f"{name}.so"]
        if there := [path for path in single if path.is_file()]:
            return there[:1]
    return []
