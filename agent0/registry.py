"""The one way to register: entries by key, found by importing the modules of named packages once, at the first look."""

import importlib
import pkgutil
from collections.abc import Callable, Hashable, Iterable
from traceback import walk_tb
from types import CodeType, FrameType
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])

REGISTRIES: "list[Registry[Any, Any]]" = []
"""Every registry of this process, in the order in which they were made."""

LOADED: dict[str, str] = {}
"""Files of users whose declarations this process has registered: name without .py -> sha256."""


PREFIX = "agent0_plugin_"
"""What the modules' names of such files begin with."""


class TakenError(ValueError):
    """A name is registered already, by something else."""


class Registry(Generic[K, V]):
    """Entries by key.

    Args:
        what: the plural of what is registered, for the error about a name that is taken.
        packages: dotted names of packages whose modules register entries when they are imported.
        order: key of the order in which ``all`` gives entries, from an entry's key and the entry; by key if None.
        same: whether a new entry may replace the held one of its key. None: the last one registered holds.
    """

    def __init__(
        self,
        what: str,
        *packages: str,
        order: Callable[[K, V], Any] | None = None,
        same: Callable[[V, V], bool] | None = None,
    ) -> None:
        self.entries: dict[K, V] = {}
        self.what = what
        self._packages = packages
        self._order: Callable[[K, V], Any] = order or (lambda key, _: key)
        self._same = same
        self.loaded = False
        self._seen: list[tuple[K, V]] = []
        self._sorted: dict[K, V] = {}
        """What was registered at the last look, in order: handlers look several times an event."""
        REGISTRIES.append(self)

    def add(self, key: K, entry: V) -> V:
        """Register ``entry`` under ``key``; returns it.

        Raises:
            TakenError: the key is taken by another entry, where entries may not be replaced.
        """
        if self._same and key in self.entries and not self._same(self.entries[key], entry):
            raise TakenError(f"two {self.what} are named {key}")
        self.entries[key] = entry
        return entry

    def adding(self, key: K, make: Callable[[F], V]) -> Callable[[F], F]:
        """A decorator that registers what ``make`` makes of a function, and returns the function itself."""

        def register(function: F) -> F:
            self.add(key, make(function))
            return function

        return register

    def all(self) -> dict[K, V]:
        """Every entry by key, in order, after importing the modules that register them."""
        if not self.loaded:
            for package in self._packages:
                import_all(package)
            self.loaded = True
        if (entries := list(self.entries.items())) != self._seen:
            self._seen = entries
            self._sorted = dict(sorted(entries, key=lambda item: self._order(*item)))
        return self._sorted.copy()


def import_all(package: str) -> None:
    """Import every module that lies directly in the package of this dotted name, by name."""
    for module in sorted(m.name for m in pkgutil.iter_modules(importlib.import_module(package).__path__)):
        importlib.import_module(f"{package}.{module}")


def declared_in(function: Callable[..., Any]) -> str:
    """Where a function is declared: ``plugin my_reward.py`` for a user's file, else the dotted name of its module."""
    module = str(getattr(function, "__module__", ""))
    return f"plugin {module.removeprefix(PREFIX)}.py" if module.startswith(PREFIX) else module


def raised_in(error: BaseException) -> str:
    """Which declaration of a user's file an error was raised in: ``family twice of plugin my_family.py, solve, line
    5``. Where the file registered none of the functions, the file, its function and line; empty where no file of a
    user's took part."""
    return standing_in(walk_tb(error.__traceback__))


def standing_in(stack: Iterable[tuple[FrameType, int]]) -> str:
    """Which declaration of a user's file the innermost of such frames belongs to, as ``raised_in`` says it. ``stack``:
    frames with their lines, the outermost first."""
    frames = [
        (frame.f_code, line, str(frame.f_globals["__name__"]))
        for frame, line in stack
        if str(frame.f_globals.get("__name__", "")).startswith(PREFIX)
    ]
    if not frames:
        return ""
    code, line, module = frames[-1]
    file = f"plugin {module.removeprefix(PREFIX)}.py"
    for code_object, _, _ in frames:
        if owner := _owner(code_object):
            what, function = owner
            return f"{what} of {file}{f', {function}' if function else ''}, line {line}"
    return f"{file}, {code.co_name}, line {line}"


def is_defect(error: Exception) -> bool:
    """Whether a function of a user's file raised ``error`` by itself, so that another try gives the same: an exception
    of Python's own, or one raised by a line of the file. What a file system or the network says may pass."""
    if isinstance(error, OSError | MemoryError) or not raised_in(error):
        return False
    *_, (last, _) = walk_tb(error.__traceback__)
    return type(error).__module__ == "builtins" or str(last.f_globals.get("__name__", "")).startswith(PREFIX)


def _owner(code: CodeType) -> tuple[str, str] | None:
    """The registered entry that has a function of this code, and the field that holds it, where it has several."""
    for registry in REGISTRIES:
        for entry in registry.entries.values():
            held_by = {name: getattr(function, "__wrapped__", function) for name, function in _fields(entry).items()}
            codes = {name: function.__code__ for name, function in held_by.items() if hasattr(function, "__code__")}
            if field := next((name for name, function in codes.items() if function is code), ""):
                kind = {"families": "family"}.get(registry.what, registry.what.removesuffix("s"))
                return f"{kind} {getattr(entry, 'name', '')}".rstrip(), field if len(codes) > 1 else ""
    return None


def _fields(entry: object) -> dict[str, Any]:
    return getattr(entry, "__dict__", {})
