"""One end of the socket between tests and candidate: asks the other end to do something with an object that lives
there, and does here what the other end asks for meanwhile.

Plain data crosses by value. Anything else stays where it is and a ``Proxy`` crosses. Lists, dictionaries and objects of
classes that both ends have are lent: they cross by value, and later messages report what became of them.
"""

import json
import socket
import struct
import types
from collections.abc import Callable, Mapping
from typing import Any

from . import values
from .errors import Errors
from .lending import LENT, Lender, Message
from .operations import OPERATIONS, described, special
from .proxies import SPECIAL, Description, Proxy, proxy

_LENGTH = struct.Struct("!I")
MOST_BYTES = 4 * values.LONGEST


class Placed:
    """Object number ``number`` of the other end, and no more than that."""

    def __init__(self, number: int) -> None:
        self._number_ = number


class EndedError(BaseException):
    """The other end is gone, or said what makes no sense."""


class Link(Lender):
    """One end, on ``sock``; ``side`` marks what it lends. ``internal`` errors are no answer to the other end."""

    internal: tuple[type[BaseException], ...] = (EndedError,)

    def __init__(self, sock: socket.socket, side: str) -> None:
        super().__init__(side)
        self._sock = sock
        self.errors = Errors(self)
        self._exported: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._proxies: dict[int, Any] = {}
        self.functions: dict[Any, int] = {}
        self._loop: Any = None
        self._known: dict[str, Callable[..., Any]] = {
            "yours": self._exported.__getitem__,
            "class": values.class_of,
            "raised": self.errors.decode,
            "error": self.errors.mirror,
            "row": lambda name, items: self.shared[name](*map(self.decode, items)),
            "member": lambda name, member: self.shared[name][member],  # type: ignore[index]
        }

    # what is sent and received

    def ask(self, op: str, target: Any, *positional: Any, **named: Any) -> Any:
        """Have the other end do ``op`` with ``target``, and return what comes of it.

        Raises:
            EndedError: it is gone.
            Exception: what was raised there.
        """
        before = set(self._lent)
        lent = self.changed()
        self.send({"op": op, **self.arguments(target, positional, named), "lent": lent})
        while "op" in (message := self.receive()):
            self.send(self.answer(message))
        self.refresh(message)
        try:
            if "error" in message:
                raise self.errors.decode(message["error"])
            return self.decode(message["value"])
        finally:
            for key in message.get("drop", ()):
                if key not in before:
                    self.forget(key)

    def arguments(self, target: Any, positional: tuple[Any, ...], named: Mapping[str, object]) -> Message:
        """Encode what the other end is asked to work with."""
        return {
            "target": self.encode(target, 0),
            "positional": [self.encode(value, 0) for value in positional],
            "named": {name: self.encode(value, 0) for name, value in named.items()},
        }

    def answer(self, message: Message) -> Message:
        """Do what ``message`` asks for, and return the reply."""
        before = set(self._lent)
        try:
            self.refresh(message)
            target = self.decode(message["target"])
            positional = [self.decode(value) for value in message["positional"]]
            named = {name: self.decode(value) for name, value in message["named"].items()}
            value = self.perform(message["op"], target, positional, named)
            del target, positional, named
            return self.with_changes({"value": self.expressed(value)}, value, before)
        except self.internal:
            raise
        except BaseException as error:
            reply = {"error": self.errors.encode(error)}
            error.__traceback__ = None
        return self.with_changes(reply, None, before)

    def send(self, message: Message) -> None:
        """Send one message.

        Raises:
            EndedError: the other end is gone.
        """
        data = json.dumps(message).encode()
        try:
            self._sock.sendall(_LENGTH.pack(len(data)) + data)
        except OSError as error:
            raise EndedError(str(error)) from error

    def receive(self) -> Message:
        """Receive one message.

        Raises:
            EndedError: the other end is gone, or what it said is none.
        """
        (size,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if size > MOST_BYTES:
            raise EndedError("its message is too long")
        try:
            message = json.loads(self._read(size))
        except (ValueError, RecursionError) as error:
            raise EndedError("its message cannot be read") from error
        if not isinstance(message, dict):
            raise EndedError("its message cannot be read")
        return message

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            try:
                part = self._sock.recv(min(size, 1 << 20))
            except OSError as error:
                raise EndedError(str(error)) from error
            if not part:
                raise EndedError("it ended")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    # what crosses

    def encode(self, value: Any, depth: int) -> Any:
        """See ``Encoder``; what cannot cross by value is referred to."""
        kind = type(value)
        if (number := self.number_of(value)) is not None:
            return ["yours", number]
        if kind in LENT and depth == 0:
            return self.lend(value)
        if kind in LENT and id(value) in self._keys:
            return ["lent", self._keys[id(value)]]
        if self.shared.get(kind.__name__) is kind:
            return self._shared(value)
        return super().encode(value, depth)

    def _shared(self, value: Any) -> Any:
        name = type(value).__name__
        if isinstance(value, tuple):
            return ["row", name, [self.encode(item, 1) for item in value]]
        return ["member", name, value.name] if hasattr(type(value), "__members__") else self.lend(value)

    def expressed(self, value: Any) -> Any:
        """``encode`` the value of a reply, which is referred to where it is too much."""
        try:
            data = super().encode(value, 0) if type(value) in LENT and id(value) not in self._keys else None
            data = data or self.encode(value, 0)
            values.written(data)
        except values.OpaqueError as error:
            return self.refer(value, str(error) if str(error) in values.SIZES else "")
        return data

    def refer(self, value: Any, size: str = "") -> Any:
        """A reference to ``value``; ``size`` says that it is too large to cross, and how."""
        if isinstance(value, BaseException):
            return ["raised", self.errors.encode(value)]
        if isinstance(value, type) and issubclass(value, BaseException):
            return self.errors.kind(value)
        return self.named(value, size)

    def named(self, value: Any, size: str = "") -> Any:
        """A reference to ``value``, whatever it is."""
        return ["mine", self.export(value), {**described(value, self.export), "size": size}]

    def placed(self, number: int) -> Placed:
        """Refer to object ``number`` of the other end."""
        return Placed(number)

    def number_of(self, value: Any) -> int | None:
        """The number of ``value`` where it stands for an object of the other end."""
        if issubclass(type(value), Proxy | Placed):
            return int(value._number_)
        return self.functions.get(value) if type(value) is types.FunctionType else None

    def export(self, value: Any) -> int:
        """The number by which the other end may refer to ``value`` from now on."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._exported)
            self._exported.append(value)
        return self._numbers[id(value)]

    def exported(self, number: int) -> Any:
        """The object that has ``number``."""
        return self._exported[number] if number >= 0 else None

    def decode(self, value: Any) -> Any:
        """See ``Decoder``."""
        if isinstance(value, list) and value and value[0] == "lent":
            return self.borrowed(*value[1:])
        return super().decode(value)

    def decode_plainly(self, value: Any) -> Any:
        """``decode``, whatever else an end makes of what is forged."""
        return Link.decode(self, value)

    def resolve(self, kind: str, content: list[Any]) -> Any:
        """See ``Decoder``."""
        if kind in self._known:
            return self._known[kind](*content)
        if kind != "mine":
            raise ValueError(f"an unknown kind of value: {kind}")
        number, about = content
        if number not in self._proxies:
            self._proxies[number] = self.stand_in(number, about)
        return self._proxies[number]

    def stand_in(self, number: int, about: Description) -> Any:
        """What stands here for object ``number`` of the other end."""
        if about.get("kind") == "coroutine":
            return self.later(Placed(number))
        about = {**about, "class": about["class"] and values.class_of(*about["class"][1:])}
        return proxy(self, number, about)

    def attribute(self, target: Any, name: str) -> Any:
        """Attribute ``name`` of an object of the other end."""
        return self.ask("get", target, name)

    def special(self, target: Any, name: str, positional: tuple[Any, ...], named: Mapping[str, object]) -> Any:
        """Call a special method of an object of the other end."""
        if name == "__call__":
            return self.ask("call", target, *positional, **named)
        if name in ("__exit__", "__aexit__"):
            positional = (positional[1],)
        return self.ask(name, target, *positional)

    # what is done for the other end

    def perform(self, op: str, target: Any, positional: list[Any], named: Mapping[str, object]) -> Any:
        """Do ``op`` with ``target``."""
        if op in SPECIAL and op != "__call__":
            return special(target, op, positional)
        return OPERATIONS[op](self, target, positional, named)

    async def later(self, there: Any) -> Any:
        """What an awaitable of the other end comes to; other tasks go on meanwhile, at both ends."""
        import asyncio  # takes long, and is seldom needed

        task = self.ask("start", there)
        await asyncio.sleep(0)  # others begin as well before the first goes on
        while not self.ask("poll", task):
            await asyncio.sleep(0)
        return self.ask("result", task)

    def start(self, awaitable: Any) -> Any:
        """Make a task of what is awaitable."""
        import asyncio

        async def awaited() -> Any:
            return await awaitable

        if self._loop is None or self._loop.is_running():
            self._loop = asyncio.new_event_loop()
        return self._loop.create_task(awaited())
