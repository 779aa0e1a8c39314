"""Part of the rim: what callers hand to the Python API, refused where it is called and not deep inside."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from agent0.errors import ConfigError
from agent0.infra.storage.row_formats import DataFrame

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


class ArgumentKind(NamedTuple):
    """What an argument may be: its types, in words, an example, and what is refused though it is of these types."""

    types: tuple[type, ...]
    words: str
    example: str
    refused: tuple[type, ...] = ()
    optional: bool = False

    def holds(self, value: object) -> bool:
        """Whether ``value`` is of this kind."""
        if value is None:
            return self.optional
        if isinstance(value, Real) and not value >= 0:  # type: ignore[operator]  # NaN is neither
            return False
        return isinstance(value, self.types) and not isinstance(value, self.refused)


TEXT, PATH = ArgumentKind((str,), "text", '"text"'), ArgumentKind((str, Path), "path", '"folder/file"')
FLAG, COUNT = (
    ArgumentKind((bool,), "truth value", "True"),
    ArgumentKind((Integral,), "whole number from 0 on", "0", (bool,)),
)
SECONDS = ArgumentKind((Real,), "number of seconds", "60", (bool,))
FUNCTION = ArgumentKind((Callable,), "function", "print")  # type: ignore[arg-type]
SETTINGS = ArgumentKind((Mapping,), "mapping from keys to values", '{"run.tasks": 8}')
ROWS = ArgumentKind((str, Path, Iterable, DataFrame), "file or rows", '"rows.jsonl"', (bytes,))
FILES = ArgumentKind((Iterable,), "list of files", '["my_reward.py"]', (str, bytes, Mapping))
KINDS = (
    dict.fromkeys(("type", "task", "reason", "columns", "form", "attempt", "evaluation"), TEXT)
    | dict.fromkeys(("tag", "status", "text", "name", "sql", "url", "key"), TEXT)
    | dict.fromkeys(("follow", "hidden", "forks", "wait", "read_only"), FLAG)
    | dict.fromkeys(("at", "after", "limit"), COUNT)
    | dict.fromkeys(("home", "documents"), PATH._replace(optional=True))
    | dict.fromkeys(("questions", "heldout"), ROWS._replace(optional=True))
    | {"profile": TEXT._replace(optional=True), "adapter": PATH._replace(optional=True), "settings": SETTINGS}
    | {"timeout": SECONDS._replace(optional=True), "patience_s": SECONDS, "plugins": FILES}
    | {"callback": FUNCTION, "say": FUNCTION._replace(optional=True)}
)
"""Name of an argument -> what it may be, wherever the Python API has it."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Have ``function`` refuse arguments that are not of their ``KINDS``.

    Raises:
        ConfigError: from the function then, at its call.
    """
    signature = inspect.signature(function)
    spread = [name for name, each in signature.parameters.items() if each.kind is each.VAR_POSITIONAL]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError:  # names that it does not have: its own error says so
            return function(*args, **kwargs)
        for name, value in arguments.items():
            for each in value if name in spread else (value,):
                require_kind(name, each)
        return function(*args, **kwargs)

    return call


def checked_methods(cls: type[C]) -> type[C]:
    """Have the public methods of a class refuse arguments that are not of their ``KINDS``."""
    for name, method in [*vars(cls).items()]:
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(cls, name, checked(method))
    return cls


def require_kind(name: str, value: Any) -> None:
    """Require that ``value`` is what an argument called ``name`` may be.

    Raises:
        ConfigError: it is not.
    """
    kind = KINDS.get(name)
    if kind is None or (kind.holds(value) and not (kind is SETTINGS and not all(isinstance(k, str) for k in value))):
        return
    why = "It is None." if value is None else f"It is of type {type(value).__name__}."
    fix = f"Write {name}={kind.example}" + (" or leave it out." if kind.optional or name in ("at", "after") else "")
    raise ConfigError(f"{name} = {value!r:.60} is no {kind.words}.", why, fix)
