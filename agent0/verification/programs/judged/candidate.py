"""The candidate's process: runs its source, then does what the tests' process asks for.

It shares a process with untrusted code, which may forge whatever is sent from here. It sees arguments only, so all it
could forge is a value that is right.
"""

import _thread
import ast
import builtins
import enum
import functools
import inspect
import io
import os
import random
import socket
import sys
import types
from collections.abc import Mapping
from typing import Any

from . import values
from .lending import Message
from .link import EndedError, Link
from .proxies import Description
from .request_text import CandidateRequest

_SOLUTION = "Solution"
MOST_PRINTED = 500_000


class Printed(io.StringIO):
    """Standard output: what was printed since it was last taken."""

    def take(self) -> str:
        """Return what was printed, and begin anew."""
        text = self.getvalue()[:MOST_PRINTED]
        self.seek(0)
        self.truncate()
        return text


class CandidateLink(Link):
    """The candidate's end. Objects of classes among ``class_names`` cross as references although they may be plain
    data."""

    def __init__(self, sock: socket.socket, module: types.ModuleType, class_names: list[str]) -> None:
        super().__init__(sock, "c")
        self._turn = _thread.RLock()
        self._module, self._own = module, frozenset(class_names)
        self.asked_for_input = False
        sys.stdout = self._out = Printed()

    def keeps(self, value: Any) -> bool:
        """See ``Encoder``."""
        kind = type(value)
        return kind.__name__ in self._own and kind.__module__ == self._module.__name__

    def ask(self, op: str, target: Any, *positional: Any, **named: Any) -> Any:
        """See ``Link``; one thread after the other."""
        with self._turn:
            return super().ask(op, target, *positional, **named)

    def defined(self, value: Any) -> Any:
        """Encode what the program calls by a name; a class stays here, wherever it is from."""
        plain = not isinstance(value, type) or issubclass(value, BaseException)
        return self.expressed(value) if plain else self.named(value)

    def stand_in(self, number: int, about: Description) -> Any:
        """A function of the tests is one here, too: programs look at its name and its parameters."""
        return _function(self, number, about) if about.get("kind") == "function" else super().stand_in(number, about)

    def answer(self, message: Message) -> Message:
        """See ``Link``."""
        self.asked_for_input = bool(message.get("input"))
        for seed in message.get("seed", ()):
            random.seed(*values.unpack(seed))
        return super().answer(message)

    def send(self, message: Message) -> None:
        """See ``Link``; adds what was printed."""
        super().send({**message, "printed": self._out.take()})


def _function(link: Link, number: int, about: Description) -> Any:
    there = link.placed(number)

    def plain(*positional: Any, **named: Any) -> Any:
        return link.ask("call", there, *positional, **named)

    async def awaited(*positional: Any, **named: Any) -> Any:
        return await plain(*positional, **named)

    function: Any = awaited if about["async"] else plain
    function.__name__ = function.__qualname__ = about["title"]
    function.__doc__ = about["doc"]
    kinds = list(inspect._ParameterKind)
    parameters = [
        inspect.Parameter(name, kinds[kind], default=None if default else inspect.Parameter.empty)
        for name, kind, default in about["signature"]
    ]
    function.__signature__ = inspect.Signature(parameters)
    link.functions[function] = number
    return function


class _Input(io.TextIOBase):
    """Standard input: what tests have put in its place, else nothing."""

    def __init__(self, link: CandidateLink) -> None:
        self._link = link

    def readline(self, *_: Any) -> str:  # type: ignore[override]
        return str(self._link.ask("readline", None)) if self._link.asked_for_input else ""

    def read(self, *_: Any) -> str:
        return str(self._link.ask("read", None)) if self._link.asked_for_input else ""

    def ask(self, prompt: object = "") -> str:
        """In the place of ``input``."""
        if not self._link.asked_for_input:
            raise EOFError("EOF when reading a line")
        return str(self._link.ask("input", None, prompt))


def main(request: CandidateRequest) -> None:
    """Run ``request``'s source, say what it defines, and serve until the other end is gone."""
    sys.setrecursionlimit(5000)
    random.seed(0)
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.modules["candidate"] = module = types.ModuleType("candidate")  # as an import would: classes look it up
    sys.argv[:] = ["candidate.py"]
    link = CandidateLink(channel, module, request["own"])
    sys.stdin = input_stream = _Input(link)
    builtins.input = input_stream.ask
    try:
        broken = _run(request["source"], vars(module))
        definitions = {name: vars(module)[name] for name in request["names"] if name in vars(module)}
        link.shared = {name: kind for name in request["shared"] if isinstance(kind := vars(module).get(name), type)}
        definitions |= _methods(vars(module).get(_SOLUTION), request["names"], definitions)
        vars(module).update(definitions)
        if broken and len(definitions) < len(request["names"]):
            link.send({"broken": broken})
            return
        names = {name: link.defined(value) for name, value in definitions.items()}
        link.send({"names": names, "module": link.refer(module), "shared": list(link.shared)})
        while True:
            link.send(link.answer(link.receive()))
    except EndedError:
        return


def _run(source: str, names: dict[str, object]) -> str:
    """Run ``source``; returns why it does not run, empty where it does. A statement of the program's own script that
    fails, perhaps for want of input, is left out; nothing is run after an exit."""
    try:
        body = compile(source, "candidate.py", "exec", ast.PyCF_ONLY_AST).body  # type: ignore[attr-defined]
        plain: list[ast.stmt] = [
            statement
            for statement in body
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        ]
        flags = compile(ast.Module(plain, []), "candidate.py", "exec").co_flags & _FUTURE
    except BaseException as error:
        return _error_text(error)
    failed = ""
    for statement in body:
        if statement in plain:
            continue
        try:
            exec(compile(ast.Module([statement], []), "candidate.py", "exec", flags, True), names)  # noqa: S102
        except Exception as error:
            failed = failed or _error_text(error)
            if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
                return failed
        except BaseException as error:
            return failed or _error_text(error)
    return failed


_FUTURE = functools.reduce(
    lambda flags, name: flags | getattr(__import__("__future__"), name).compiler_flag,
    __import__("__future__").all_feature_names,
    0,
)


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _methods(solution: Any, names: list[str], defined: Mapping[str, object]) -> dict[str, object]:
    """What ``class Solution`` defines of ``names`` that the program itself does not."""
    if not isinstance(solution, type) or isinstance(solution, enum.EnumMeta):
        return {}
    return {name: _method(solution, name) for name in names if name not in defined and hasattr(solution, name)}


def _method(solution: type, name: str) -> Any:
    @functools.wraps(getattr(solution, name))
    def function(*positional: Any, **named: Any) -> Any:
        return getattr(solution(), name)(*positional, **named)

    return function
