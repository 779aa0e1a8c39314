"""The tests' end of the link. What the candidate answers counts as a value, never as a verdict: its objects are not
asked what plain data they equal, and it reaches nothing of the tests but what they handed to it."""

import _thread
import builtins
import enum
import io
import random
import re
import socket
import sys
import time
import types
from collections.abc import Mapping
from typing import Any

from . import values
from .lending import Message
from .link import EndedError, Link
from .proxies import ARITHMETIC, COMPARED, CONVERTED, Description, Proxy

_DECIDES = {*COMPARED, "__contains__", "isinstance", "issubclass", "poll", "start"}
"""Operations whose result shows nothing: who agrees with everything passes them."""
_STEPS = ("send", "throw", "asend", "athrow", "__next__", "__anext__")
_PUBLIC = re.compile(r"(?!_|gi_|cr_|ag_|tb_|f_|co_|func_)\w+\Z")
_CLOSED = (types.ModuleType, types.FrameType, types.TracebackType, types.CodeType, types.FunctionType, types.MethodType)
_OPEN = (
    "builtins", "_io", "collections", "queue", "_queue", "_random", "random", "re", "threading", "_thread", "types",
    "unittest.mock", "asyncio.queues", "asyncio.locks",
)  # fmt: skip
"""Modules of the classes whose public attributes a candidate may use, beside those that tests define."""
_SERVED = {
    "__call__", "__iter__", "__next__", "__len__", "__getitem__", "__setitem__", "__delitem__", "__contains__",
    "__enter__", "__exit__", "__aenter__", "__aexit__", "__aiter__", "__anext__", "__reversed__", "__bool__",
    "__hash__", "__repr__", "__str__", "__format__", *COMPARED, *ARITHMETIC, *CONVERTED,
}  # fmt: skip
_PLAIN = (int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict, range)
"""Classes whose objects cross by value: an object that stays at the other end is of none of them, unless too large."""
_WEIGHS = {
    "difference", "symmetric_difference", "intersection", "union", "issubset", "issuperset", "isdisjoint",
    "startswith", "endswith", "equals",
}  # fmt: skip
"""Methods of collections and texts that are handed what they are compared with."""
_RELATIVE = {
    f"__{side}{name}__" for name in ("sub", "truediv", "floordiv", "mod", "divmod", "xor") for side in ("", "r")
}
"""Operations that repeat what they are given: a difference of nothing, a ratio of one."""
_INPUT, _STDIN, _SEED = builtins.input, sys.stdin, random.seed


_STEERING = ("obj", "configure_mock", "attach_mock", "mock_add_spec")
"""Attributes by which an error or a mock of the tests would lead further than what was handed over."""


class ExpiredError(BaseException):
    """Raised where the tests and the candidate have used up their time."""


class JudgeLink(Link):
    """``own``: names of classes that tests speak of; ``names``: what they take of the candidate's ``module`` where
    they take all; ``deadline`` of the whole run. ``facts`` counts the values that
    the candidate answered, ``calls`` its calls; ``waited`` the seconds spent waiting for it; ``failed`` says that
    an assertion of the tests failed in a call by the candidate, which may have caught it."""

    internal = (EndedError, ExpiredError, values.UndecidedError, values.OpaqueError)

    def __init__(self, sock: socket.socket, class_names: list[str], wall_s: float) -> None:
        super().__init__(sock, "t")
        self.own, self.ended, self.opaque = frozenset(class_names), "", ""
        self.facts = self.calls = 0
        self.waited = 0.0
        self.deadline = time.monotonic() + wall_s
        self.failed = False
        self.module: Any = None
        self.names: list[str] = []
        self._steps: set[int] = set()
        self._differences: set[int] = set()
        self._seed: list[str] = []
        self._turn = _thread.RLock()

    def ask(self, op: str, target: Any, *positional: Any, **named: Any) -> Any:
        """See ``Link``. An error that would end a loop of the tests as if all were done is none of the program's."""
        if time.monotonic() > self.deadline:
            raise ExpiredError
        self.calls += op == "call" and isinstance(target, Proxy)
        try:
            with self._turn:
                value = super().ask(op, target, *positional, **named)
        except (StopIteration, StopAsyncIteration, GeneratorExit) as error:
            self.facts += 1
            steps = op in ("__next__", "__anext__", "result") or getattr(target, "_number_", -1) in self._steps
            if steps and not isinstance(error, GeneratorExit):
                raise
            raise RuntimeError(f"the program raised {type(error).__name__}") from None
        except EndedError as error:
            self.ended = self.ended or str(error)
            raise
        except (values.OpaqueError, values.UndecidedError):
            raise
        except BaseException:
            self.facts += 1
            raise
        self.facts += op not in _DECIDES and not isinstance(value, Proxy)
        return value

    def arguments(self, target: Any, positional: tuple[Any, ...], named: Mapping[str, object]) -> Message:
        """See ``Link``. What tests hand over and what cannot cross is not the program's fault."""
        try:
            return super().arguments(target, positional, named)
        except values.OpaqueError as error:
            raise values.UndecidedError(f"an argument of the tests is {error}") from error

    def seed(self, *arguments: Any) -> None:
        """In the place of ``random.seed``: the program draws from there on, too."""
        _SEED(*arguments)
        self._seed = [values.pack(list(arguments))]

    def send(self, message: Message) -> None:
        """See ``Link``; says what tests have seeded, and whether something is in the place of standard input."""
        seed, self._seed = self._seed, []
        replaces_input = builtins.input is not _INPUT or sys.stdin is not _STDIN
        super().send({**message, "seed": seed, "input": replaces_input})

    def receive(self) -> Message:
        """See ``Link``. What was printed is printed here, where tests may look at it."""
        began = time.monotonic()
        try:
            message = super().receive()
        finally:
            self.waited += time.monotonic() - began
        sys.stdout.write(str(message.get("printed", "")))
        return message

    def refresh(self, message: Message) -> None:
        """See ``Lender``. What cannot be read was forged."""
        try:
            super().refresh(message)
        except self.internal:
            raise
        except BaseException as error:
            self.ended = f"what it says of lent objects makes no sense: {error}"[:200]
            raise EndedError(self.ended) from error

    def answer(self, message: Message) -> Message:
        """See ``Link``. A forged request is the end: something is asked of no object that tests have handed out, as of
        a class that only has a name."""
        target = message.get("target")
        if target is not None and not (isinstance(target, list) and target[:1] == ["yours"]):
            raise EndedError("its request is to an object that it was not given")
        try:
            return super().answer(message)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise EndedError(f"its request makes no sense: {error}"[:200]) from error

    def decode(self, value: Any) -> Any:
        """See ``Decoder``. What cannot be read was forged."""
        try:
            return super().decode(value)
        except (EndedError, ExpiredError):
            raise
        except BaseException as error:
            self.ended = f"its answer makes no sense: {error}"[:200]
            raise EndedError(self.ended) from error

    # what tests do with objects of the candidate

    def attribute(self, target: Any, name: str) -> Any:
        """See ``Link``. Who takes all names gets those that stand; and no object is asked how it compares."""
        if name == "__all__":
            return self.names
        if name in _WEIGHS and target is not self.module and not self._is_own(target):
            raise self._unknown(target)
        before = set(self._proxies) if name in _STEPS else set()
        value = super().attribute(target, name)
        if name in _STEPS and isinstance(value, Proxy) and value._number_ not in before:
            self._steps.add(value._number_)
        return value

    def stand_in(self, number: int, about: Description) -> Any:
        """See ``Link``. What says that it is plain data, and did not cross as that, was forged."""
        value = super().stand_in(number, about)
        if isinstance(value, Proxy) and not about["size"] and _is_plain(value._about_["class"]):
            raise EndedError("it gives plain data that does not cross")
        return value

    def special(self, target: Any, name: str, positional: tuple[Any, ...], named: Mapping[str, object]) -> Any:
        """See ``Link``. Only objects of classes that tests speak of are asked to compare or to compute."""
        if name in ("__eq__", "__ne__"):
            return self._equal(target, positional[0]) == (name == "__eq__")
        if name == "__hash__" and not self._is_own(target):
            return hash(("proxy", target._number_))
        if name == "__contains__" and not self._is_own(target):
            return any(item is positional[0] or item == positional[0] for item in target)
        self._refuse(target, name, positional)
        value = super().special(target, name, positional, named)
        if name in ("__exit__", "__aexit__") and isinstance(positional[1], AssertionError):
            return _unheeded(value) if name == "__aexit__" else False  # a test that failed has failed
        if name in (*ARITHMETIC, *CONVERTED):
            self._doubt(target, name, positional, value)
        return bool(value) if name == "__bool__" else value

    def _refuse(self, target: Any, name: str, positional: tuple[Any, ...]) -> None:
        """Raise where ``target`` is not asked."""
        large = target._about_["size"] and name not in ("__len__", "__bool__")
        beside = name in COMPARED and not isinstance(positional[0], Proxy)
        foreign = name in (*COMPARED, *ARITHMETIC, *CONVERTED) and not self._is_own(target)
        if large or beside or foreign:
            raise self._unknown(target)

    def _doubt(self, target: Any, name: str, positional: tuple[Any, ...], value: Any) -> None:
        """A difference or ratio to a number repeats what the candidate was given, and so does what is computed from
        it."""
        is_repeated = name in _RELATIVE and _is_number(positional[0])
        if not is_repeated and target._number_ not in self._differences:
            return
        if _is_number(value):
            raise self._unknown(target)
        if isinstance(value, Proxy):
            self._differences.add(value._number_)

    def _equal(self, left: Any, right: Any) -> bool:
        if left is right or right is None:
            return left is right
        if left._about_["size"] and not isinstance(right, Proxy):
            values.pack(right)  # it is small enough to cross
            return False
        if self._is_own(left) and isinstance(right, Proxy) and self._is_own(right):
            return super().special(left, "__eq__", (right,), {}) is True
        raise self._unknown(left if not self._is_own(left) else right if isinstance(right, Proxy) else left)

    def _is_own(self, value: Any) -> bool:
        return value._about_["name"] in self.own

    def _unknown(self, value: Any) -> values.OpaqueError:
        self.opaque = self.opaque or value._about_["size"] or str(value._about_["name"])[:100]
        return values.OpaqueError(self.opaque)

    # what the candidate does with objects of the tests

    def perform(self, op: str, target: Any, positional: list[Any], named: Mapping[str, object]) -> Any:
        """See ``Link``. Served are calls, public attributes and items of what tests handed out."""
        if op in ("input", "readline", "read"):
            return builtins.input(*positional) if op == "input" else getattr(sys.stdin or io.StringIO(), op)()
        if op == "get" and not (len(positional) == 1 and self._may_get(target, str(positional[0]))):
            raise AttributeError(positional[0])
        if op == "set" and not (type(target).__module__ == "__main__" and _PUBLIC.match(str(positional[0]))):
            raise AttributeError(positional[0])
        if op not in ("call", "get", "set", "isinstance", "start", "poll", "result", "dir") and op not in _SERVED:
            raise AttributeError(op)
        try:
            return super().perform(op, target, positional, named)
        except AssertionError as error:
            self.failed = self.failed or "_there_" not in vars(error)
            raise

    @staticmethod
    def _may_get(target: Any, name: str) -> bool:
        kind = target if isinstance(target, type) else type(target)
        opened = kind.__module__ == "__main__" or (kind is not target and kind.__module__ in _OPEN)
        if isinstance(target, BaseException) and kind.__module__ != "__main__":
            return name == "args"
        is_public = bool(_PUBLIC.match(name)) and name not in _STEERING
        return is_public and opened and not isinstance(target, _CLOSED)


async def _unheeded(value: Any) -> bool:
    await value
    return False


def _is_plain(kind: Any) -> bool:
    return kind is not None and issubclass(kind, _PLAIN) and not issubclass(kind, enum.Enum)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex) and not isinstance(value, Proxy)
