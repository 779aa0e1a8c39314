"""What tests hold in place of the candidate's functions, classes and objects.

Plain results cross as data and are compared here. An object stays in the candidate's process; what tests do with it
becomes a further call there. It is never asked what it is equal to: only whether it equals another of its kind.
"""

import builtins
from typing import Any

from . import values
from .operators import Operators

MOST_CALLS = 5000


class ResultNeeded(BaseException):
    """Raised to stop a run of the tests that needs a result which is not known yet."""


class ArgumentError(values.OpaqueError):
    """Tests pass an argument that is no plain data, perhaps an object of their own."""


class Calls:
    """The calls of one run of the tests. ``known`` has results by call, in the order in which they were carried out;
    ``asked`` the calls of this run in theirs.

    ``exploring``: an unknown result does not end the run. Once an object is called, results depend on all calls before:
    they are known only as long as this run asks for the same ones in the same order.
    """

    def __init__(self, known: dict[str, Any], own: list[str], exploring: bool) -> None:
        self.known, self.own, self.exploring = known, own, exploring
        self.asked: list[str] = []
        self._order = list(known) if any(map(refers, known)) else []
        self._strict, self._astray = bool(self._order), False
        self._times: dict[str, int] = {}

    def __call__(self, name: str, /, *positional: Any, **named: Any) -> Any:
        """The result of the call; something that agrees with everything where it is not known."""
        try:
            asked = values.numbered([name, list(positional), named], self._times)
        except values.OpaqueError as error:
            if not self.exploring:
                raise ArgumentError(str(error)) from error
            return Anything()  # it is called with a result that is not known yet
        self.asked.append(asked)
        if self._strict and self._order[len(self.asked) - 1 : len(self.asked)] != [asked]:
            self._astray = True
        if asked in self.known and not self._astray:
            return self._replayed(asked, positional)
        if not self.exploring or len(self.asked) > MOST_CALLS:
            raise ResultNeeded
        return Probe(self, asked, name[:1].isupper()) if name[:1] in "." or name[:1].isupper() else Anything()

    def _replayed(self, asked: str, positional: tuple[Any, ...]) -> Any:
        known = self.known[asked]
        if kind := known.get("kind"):
            plain = {**known, "kind": ""}
            return self._later(plain, asked) if kind == "coroutine" else self._yielded(plain, asked)
        if "raised" in known:
            raise self._error(*known["raised"])
        if "opaque" not in known:
            for before, after in zip(positional, values.unpack(known["after"]), strict=False):
                _become(before, after)
            return values.unpack(known["value"])
        if known["opaque"] in values.SIZES:
            return TooLarge(known["opaque"], bool(known["true"]), known.get("length"))
        return Remote(self, asked, known)

    async def _later(self, known: dict[str, Any], asked: str) -> Any:
        return self._outcome(known, asked)

    async def _yielded(self, known: dict[str, Any], asked: str) -> Any:
        for item in self._outcome(known, asked):
            yield item

    def _outcome(self, known: dict[str, Any], asked: str) -> Any:
        if "raised" in known:
            raise self._error(*known["raised"])
        return values.unpack(known["value"]) if "value" in known else Remote(self, asked, known)

    def _error(self, base: str, text: str, lineage: list[str]) -> BaseException:
        """The error that tests know by its own name, else its builtin one."""
        kind = getattr(builtins, base, RuntimeError)
        plain = kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError
        own = next((self.errors[name] for name in lineage if name in self.errors), None)
        kind = own or (type(lineage[0], (plain,), {}) if lineage else plain)
        made: BaseException = kind(text)
        return made

    errors: dict[str, type[Exception]] = {}  # noqa: RUF012 (replaced for each run)
    """Errors of the candidate that tests catch by name."""


def refers(call: str) -> bool:
    """Whether a packed call is made on, or given, an object of the candidate's process."""
    return '["result", "' in call or '["name", "' in call


class Anything:
    """Stands for an unknown result: agrees with every comparison and supports every operation."""

    def __call__(self, *_: Any, **__: Any) -> "Anything":
        return self

    def __getattr__(self, name: str) -> "Anything":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self) -> Any:
        return iter((self, self))

    def __await__(self) -> Any:
        return self
        yield

    def _same(self, *_: Any) -> "Anything":
        return self

    def _true(self, *_: Any) -> bool:
        return True

    __hash__ = object.__hash__
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = _true
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __floordiv__ = __mod__ = __pow__ = __rpow__ = __neg__ = __abs__ = __round__ = __getitem__ = _same
    __len__ = __int__ = __index__ = lambda _: 1

    def __float__(self) -> float:
        return 1.0


class Asking:
    """What is done with it is asked of the candidate's process, by ``_calls``."""

    _calls: Calls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._calls(".get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self._calls(".set", self, name, value)

    def __call__(self, /, *positional: Any, **named: Any) -> Any:
        return self._calls(".call", self, *positional, **named)


class Distant(Asking, values.Reference):
    """Something that stays in the candidate's process: attributes and calls are asked for there."""

    def __init__(self, calls: Calls, kind: str, what: str) -> None:
        super().__init__(kind, what)
        self._calls = calls

    __hash__ = object.__hash__


class StandIn(Distant):
    """Stands in for one function or class of the candidate."""

    def __init__(self, calls: Calls, name: str) -> None:
        super().__init__(calls, "name", name)
        self._name = name

    def __call__(self, /, *positional: Any, **named: Any) -> Any:
        return self._calls(self._name, *positional, **named)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Distant) and bool(self._calls(".isinstance", value, self))

    def __getitem__(self, key: Any) -> Any:
        return self._calls(".item", self, key)

    def __iter__(self) -> Any:
        return _items(self._calls(".list", self))

    def __len__(self) -> Any:
        return self._calls(".len", self)


class Remote(Distant, Operators):
    """A result that is no plain data. Only an object of a class that tests name is asked to compare or compute."""

    def __init__(self, calls: Calls, asked: str, known: dict[str, Any]) -> None:
        super().__init__(calls, "result", values.digest(asked))
        self._kind, self._true, self._handed = known["opaque"], bool(known["true"]), refers(asked)
        self._own, self._length = self._kind in calls.own, known.get("length")

    def __bool__(self) -> bool:
        return bool(self._calls(".bool", self)) if self._own else self._true

    def __eq__(self, other: object) -> bool:
        return bool(
            self._with(".eq", other) if isinstance(other, values.Reference) or other is None else self._with("")
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _with(self, operation: str, *others: Any) -> Any:
        if not self._own or not operation:
            raise (ArgumentError if self._handed else values.OpaqueError)(self._kind)
        return self._calls(operation, self, *others)

    def __str__(self) -> str:
        return str(self._calls(".str", self))

    def __repr__(self) -> str:
        return str(self._calls(".repr", self))

    def __format__(self, _: str) -> str:
        return str(self)

    def __len__(self) -> Any:
        return self._calls(".len", self)

    def __iter__(self) -> Any:
        return _items(self._calls(".list", self))

    def __next__(self) -> Any:
        return self._calls(".next", self)

    def __getitem__(self, key: Any) -> Any:
        return self._calls(".item", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._calls(".setitem", self, key, value)

    def __delitem__(self, key: Any) -> None:
        self._calls(".delitem", self, key)

    def __hash__(self) -> int:
        return int(self._with(".hash"))

    def __contains__(self, item: Any) -> bool:
        return bool(self._with(".in", item))

    def __float__(self) -> float:
        raise (ArgumentError if self._handed else values.OpaqueError)(self._kind)

    def __enter__(self) -> Any:
        return self._calls(".enter", self)

    def __exit__(self, kind: Any, error: Any, _: Any) -> bool:
        return bool(self._calls(".exit", self, *_described(kind, error)))

    async def __aenter__(self) -> Any:
        return await self._calls(".aenter", self)

    async def __aexit__(self, kind: Any, error: Any, _: Any) -> bool:
        return bool(await self._calls(".aexit", self, *_described(kind, error)))


class Probe(Asking, Anything, values.Reference):
    """Stands for the unknown result of a class or an object: what tests do with it is noted, so that it can be asked
    for. ``made``: a class made it, so it is an object for certain."""

    def __init__(self, calls: Calls, asked: str, made: bool) -> None:
        values.Reference.__init__(self, "result", values.digest(asked))
        self._calls, self._made = calls, made

    def __enter__(self) -> "Probe":
        self._noted(".enter")
        return self

    def __exit__(self, *_: Any) -> None:
        self._noted(".exit", None, "")

    async def __aenter__(self) -> "Probe":
        self._noted(".aenter")
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._noted(".aexit", None, "")

    def _noted(self, operation: str, *others: Any) -> None:
        if self._made:
            self._calls(operation, self, *others)

    def __str__(self) -> str:
        self._noted(".str")
        return ""

    def __repr__(self) -> str:
        self._noted(".repr")
        return ""

    def __len__(self) -> int:
        self._noted(".len")
        return 1

    def __iter__(self) -> Any:
        self._noted(".list")
        return iter((Anything(), Anything()))

    def __contains__(self, item: Any) -> bool:
        self._noted(".in", item)
        return True

    def __getitem__(self, key: Any) -> Any:
        return self._calls(".item", self, key) if self._made else self

    def __setitem__(self, key: Any, value: Any) -> None:
        self._noted(".setitem", key, value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, values.Reference) or other is None:
            self._noted(".eq", other)
        return True

    __hash__ = object.__hash__


class TooLarge:
    """Plain data that is too much to cross: its truth value and length are known, and that it equals nothing small."""

    def __init__(self, kind: str, true: bool, length: "int | None") -> None:
        self._kind, self._true, self._length = kind, true, length

    def __bool__(self) -> bool:
        return self._true

    def __len__(self) -> int:
        return self._unknown() if self._length is None else self._length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TooLarge | values.Reference):
            try:
                values.pack(other)
            except values.OpaqueError:
                return bool(self._unknown())
            return False
        return bool(self._unknown())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _unknown(self, *_: Any) -> Any:
        raise values.OpaqueError(self._kind)

    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __getitem__ = __iter__ = __call__ = __float__ = _unknown


def _described(kind: Any, error: Any) -> tuple[Any, str]:
    """An error by its class's name and its text."""
    return (None if kind is None else kind.__name__), ("" if error is None else str(error))


def _items(held: Any) -> Any:
    """The items of a list, one by one where they stay in the candidate's process."""
    return map(held.__getitem__, range(held._length or 0)) if isinstance(held, Remote) else iter(held)


def _become(before: Any, after: Any) -> None:
    """A call may change lists, dictionaries and sets that it was given."""
    if type(before) is not type(after) or before == after:
        return
    if isinstance(before, list):
        before[:] = after
    elif isinstance(before, (dict, set)):
        before.clear()
        before.update(after)
