"""Errors that cross: a class of the standard library by its name, any other as a local class of the same name, below
the same classes of the standard library."""

import builtins
from typing import Any, TypedDict

from . import values


class Mirrored:
    """What errors of the other end have in common here: attributes are asked for there."""

    _there_: Any = None
    _text_ = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self._there_ is None:
            raise AttributeError(name)
        return self._there_[0].ask("get", self._there_[1], name)

    def __str__(self) -> str:
        return self._text_


class CrossedError(TypedDict, total=False):
    """An error as it crosses: ``back`` alone is the number of one of the other end's own."""

    back: int
    kind: Any
    plain: str
    arguments: list[Any] | None
    text: str
    number: int


class Errors:
    """Encodes and decodes errors for one end of a link."""

    def __init__(self, link: Any) -> None:
        self._link = link
        self._mirrors: dict[int, type] = {}

    def kind(self, kind: type) -> Any:
        """Encode a class of errors."""
        if (number := kind.__dict__.get("_number_")) is not None:
            return ["yours", number]
        if (named := values.named_class(kind)) is not None:
            return named
        shared = self._link.shared.get(kind.__name__) is kind
        bases = [self.kind(base) for base in kind.__bases__ if issubclass(base, BaseException)]
        return ["error", self._link.export(kind), kind.__name__, bases, shared]

    def mirror(self, number: int, name: str, bases: list[Any], shared: bool) -> type:
        """The local class for a class of errors of the other end."""
        if shared and issubclass(self._link.shared.get(name, int), BaseException):
            return self._link.shared[name]  # type: ignore[no-any-return]
        if number not in self._mirrors:
            classes = [base for base in map(self._link.decode_plainly, bases) if issubclass(base, BaseException)]
            above = (*(() if any(issubclass(base, Mirrored) for base in classes) else (Mirrored,)), *classes)
            self._mirrors[number] = type(str(name), above or (Mirrored, Exception), {"_number_": number})
        return self._mirrors[number]

    def encode(self, error: BaseException) -> CrossedError:
        """Encode ``error``."""
        if (there := error.__dict__.get("_there_")) is not None:
            return {"back": there[2]}
        try:
            text = str(error)[:2000]
        except BaseException:
            text = ""
        try:
            arguments = [values.Encoder().encode(argument, 0) for argument in error.args]
        except values.OpaqueError:
            arguments = None
        about = self._link.export(error)
        plain = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == builtins.__name__)
        return {"kind": self.kind(type(error)), "plain": plain, "arguments": arguments, "text": text, "number": about}

    def decode(self, data: CrossedError) -> BaseException:
        """Make the error that ``data`` describes. One that came from here is itself."""
        if "back" in data:
            error = self._link.exported(data["back"])
            return error if isinstance(error, BaseException) else RuntimeError("a forged error")
        try:
            kind = self._link.decode_plainly(data["kind"])
        except LookupError:  # nothing here has imported its module, so nobody can name it
            kind = getattr(builtins, data["plain"], RuntimeError)
        arguments = [data["text"]] if data["arguments"] is None else list(map(self._link.decode, data["arguments"]))
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            return RuntimeError(data["text"])
        error = _rebuilt(kind, arguments, data["text"])
        there = (self._link, self._link.placed(data["number"]), data["number"])
        error.__dict__["_there_"], error.__dict__["_text_"] = there, str(data["text"])
        return error


def _rebuilt(kind: type, arguments: list[Any], text: str) -> BaseException:
    if kind.__module__ == builtins.__name__:
        try:
            return kind(*arguments)  # type: ignore[no-any-return]
        except TypeError:
            pass
    error: BaseException = kind.__new__(kind, *arguments)
    error.args = tuple(arguments)
    return error
