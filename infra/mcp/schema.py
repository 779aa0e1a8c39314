"""Make untrusted JSON schemas harmless: no references, no regular expressions, bounded in size and depth, texts cut
and cleaned. Values and names that a call must repeat (enum, const, required) cannot be cleaned: a schema with some
that nobody could see and write is refused. What is left out here the server checks itself."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]

from agent0.tools.untrusted import visible

DEEPEST, MOST_PARTS, MOST_BYTES = 8, 400, 65_536
LONGEST_WORDS, LONGEST_NAME, MOST_PROBLEMS = 200, 64, 5

_VALUES = (
    *("type", "enum", "const", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_ONE, _MANY = ("items", "additionalProperties", "not"), ("anyOf", "oneOf", "allOf", "prefixItems")


class SchemaRefused(Exception):  # noqa: N818 - says what happened
    """Raised for a schema that must not be shown to a model."""


def harmless(schema: Mapping[str, object]) -> dict[str, object]:
    """``schema`` as a tree of its own, for the model to read and for ``checker``.

    Raises:
        SchemaRefused: it is no schema of an object, or far too large.
    """
    if schema.get("type") != "object":
        raise SchemaRefused("a tool's arguments must be an object")
    try:
        size = len(json.dumps(schema))
    except RecursionError:
        raise SchemaRefused("a schema is nested too deep") from None
    if size > MOST_BYTES:
        raise SchemaRefused(f"a schema is longer than {MOST_BYTES} characters")
    out = _Copier(schema).copy(schema, 0)
    try:
        Draft202012Validator.check_schema(out)
    except SchemaError as error:
        raise SchemaRefused(visible(f"it is no JSON schema: {error.message}")[:LONGEST_WORDS]) from None
    return out


def checker(schema: Mapping[str, object]) -> Callable[[Mapping[str, object]], list[str]]:
    """What of a call's arguments does not fit ``schema``, which is harmless."""
    validator = Draft202012Validator(schema)

    def check(arguments: Mapping[str, object]) -> list[str]:
        errors = itertools.islice(validator.iter_errors(arguments), MOST_PROBLEMS)
        return [visible(_problem(error))[:LONGEST_WORDS] for error in errors]

    return check


def _problem(error: Any) -> str:
    return f"{'.'.join(str(part)[:LONGEST_NAME] for part in error.absolute_path) or 'arguments'}: {error.message}"


def _writable(text: str) -> bool:
    return visible(text) == text and "\n" not in text


class _Copier:
    """Copies with references put in place, until there are too many parts: behind them everything is allowed."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._root, self._left = root, MOST_PARTS

    def copy(self, part: object, depth: int) -> dict[str, object]:
        if part is False:
            return {"not": {}}
        self._left -= 1
        if not isinstance(part, Mapping) or depth > DEEPEST or self._left < 0:
            return {}
        out = self.copy(self._resolved(part["$ref"]), depth + 1) if "$ref" in part else {}
        for name, value in self._kept(part, depth):
            out[name] = value
        return out

    def _kept(self, part: Mapping[str, object], depth: int) -> Iterator[tuple[str, object]]:
        yield from self._values(part)
        if isinstance(description := part.get("description"), str):
            yield "description", visible(description)[:LONGEST_WORDS]
        if isinstance(properties := part.get("properties"), Mapping):
            yield "properties", self._properties(properties, depth)
        for name in _ONE:
            if name in part and not (name == "additionalProperties" and "patternProperties" in part):
                yield name, self.copy(part[name], depth + 1)
        for name in _MANY:
            if isinstance(items := part.get(name), list) and items:
                yield name, [self.copy(item, depth + 1) for item in items]

    def _values(self, part: Mapping[str, object]) -> Iterator[tuple[str, object]]:
        for name in _VALUES:
            if name in part:
                self._check(name, part[name], 0)
                yield name, part[name]

    def _check(self, name: str, value: object, depth: int) -> None:
        """Every text of a value is one that a model can see as it is and write."""
        self._left -= isinstance(value, list | dict)
        if depth > DEEPEST or self._left < 0:
            raise SchemaRefused(f"{name} has too many values")
        for item in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._check(name, item, depth + 1)
        if isinstance(value, str) and not (_writable(value) and len(value) <= LONGEST_WORDS):
            raise SchemaRefused(f"{name} has a value that nobody could write")

    def _properties(self, properties: Mapping[str, object], depth: int) -> dict[str, object]:
        for name in properties:
            if not (0 < len(name) <= LONGEST_NAME and _writable(name)):
                raise SchemaRefused("an argument has a name that nobody could write")
        return {name: self.copy(part, depth + 1) for name, part in properties.items()}

    def _resolved(self, reference: object) -> object:
        """What a reference inside the schema names; anything for all others."""
        segments = str(reference).split("/")
        part: object = self._root if segments[0] == "#" else None
        for segment in segments[1:]:
            part = part.get(segment.replace("~1", "/").replace("~0", "~")) if isinstance(part, Mapping) else None
        return part
