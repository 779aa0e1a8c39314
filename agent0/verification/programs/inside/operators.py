"""Operators of an object that stays in the candidate's process: by what name each is asked for there."""

from typing import Any

BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "truediv", "floordiv": "floordiv", "mod": "mod", "pow": "pow",
    "matmul": "matmul", "and": "and_", "or": "or_", "xor": "xor", "lshift": "lshift", "rshift": "rshift",
}  # fmt: skip
"""Names of special methods, and of functions of Python's module ``operator``."""
UNARY = {"neg": "neg", "pos": "pos", "invert": "invert", "abs": "abs"}
COMPARED = ("lt", "le", "gt", "ge")


class Operators:
    """Special methods that ask ``_with`` for their result; a plain value on the left has none."""

    def _with(self, operation: str, *others: Any) -> Any:
        raise NotImplementedError


def _asking(operation: str) -> Any:
    return lambda self, *others: self._with(operation, *others)


def _comparing(operation: str) -> Any:
    return lambda self, other: bool(self._with(operation, other))


for _name in BINARY:
    setattr(Operators, f"__{_name}__", _asking(f".{_name}"))
    setattr(Operators, f"__r{_name}__", _asking(""))
for _name in UNARY:
    setattr(Operators, f"__{_name}__", _asking(f".{_name}"))
for _name in COMPARED:
    setattr(Operators, f"__{_name}__", _comparing(f".{_name}"))
