"""What a reader of calls may know of the tools: their names, and which argument plain text fills."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_prefixed = re.compile(r"(?:functions?|tools?|default_api|api)\.(?=[A-Za-z_])")
_suffixed = re.compile(r"(?::\d{1,4}|\.call)\Z")


@dataclass(frozen=True)
class Toolbox:
    """``names`` of the tools (empty: not known), ``text_arguments``: tool to the argument that plain text fills,
    ``types``: tool to the JSON types of its arguments by their names."""

    names: frozenset[str] = frozenset()
    text_arguments: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """Return the tool that ``name`` means: as it is, without ``functions.``, ``.call`` or a number, in any case."""
        name = name.strip()
        if name in self.names:
            return name
        short = _suffixed.sub("", _prefixed.sub("", name, count=1))
        if short in self.names or not self.names:
            return short
        return next((tool for tool in self.names if tool.lower() == short.lower()), short)

    def is_text(self, tool: str, argument: str) -> bool | None:
        """Whether ``argument`` of ``tool`` is text; None where that is not known."""
        kind = self.types.get(tool, {}).get(argument)
        if kind is not None:
            return kind == "string"
        return True if self.text_arguments.get(tool) == argument else None
