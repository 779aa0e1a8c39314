"""What a tool is: its function, what the model is told of it, and how it can end."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agent0.ports.models import ToolSpec
from agent0.settings import PolicyConfig
from agent0.tools.policy import denial
from events.policies import PolicyKind
from events.values import ToolResult, ToolState

Run = Callable[..., Awaitable[ToolResult]]


Need = tuple[PolicyKind, str]


VALUES = (ToolState.OK, ToolState.ERROR)
"""How a tool ends that only reads and makes values."""


SANDBOXED = tuple(state for state in ToolState if state is not ToolState.CANCELLED)
"""How a tool ends that runs something in the sandbox."""


@dataclass(frozen=True)
class Example:
    """A call as the documents show it, made on an empty work folder once the calls of ``after`` were made.

    ``output`` is what it says, None where that depends on the world.
    """

    arguments: Mapping[str, Any]
    output: str | None = None
    state: ToolState = ToolState.OK
    after: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True)
class Foreign:
    """A stranger's tool: what the model is told of it (``words``, a JSON ``schema``), and what of a call's arguments
    does not fit."""

    words: str
    schema: Mapping[str, Any]
    check: Callable[[Mapping[str, Any]], list[str]]


@dataclass(frozen=True)
class Tool:
    """A registered tool. ``pure``: same arguments, same work folder, same policy: same result and same folder after it,
    whatever was called before, so results may be cached by content. ``states``: how it can end.
    ``untrusted``: what it says is text of strangers. ``control``: it does no work itself, but gives or tries an answer
    or makes other calls, and never counts as use of a tool. ``needs``: what the policy must allow (a name, or ``*`` for
    any of that kind), or every call is refused."""

    name: str
    run: Run
    arguments: type[BaseModel]
    pure: bool
    examples: tuple[Example, ...] = ()
    states: tuple[ToolState, ...] = SANDBOXED
    untrusted: bool = False
    control: bool = False
    foreign: Foreign | None = None
    needs: tuple[Need, ...] = ()

    def denial(self, policy: PolicyConfig) -> str:
        """Why ``policy`` has every call refused, empty where it does not."""
        return denial(policy, self.needs)

    @functools.cached_property
    def spec(self) -> ToolSpec:
        """What a model is told."""
        if self.foreign:
            return ToolSpec(self.name, self.foreign.words, dict(self.foreign.schema))
        schema = self.arguments.model_json_schema()
        parameters = _simple(schema, schema.get("$defs", {}))
        return ToolSpec(self.name, inspect.getdoc(self.run) or "", parameters)


def _simple(schema: Any, known: Mapping[str, Any]) -> Any:
    """A JSON schema for small models: nothing is said elsewhere, and titles that repeat a name are left out."""
    if isinstance(schema, list):
        return [_simple(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {**known.get(str(schema.get("$ref")).rpartition("/")[2], {}), **schema}
    return {
        key: _simple(value, known)
        for key, value in whole.items()
        if key not in ("$ref", "$defs") and (key, type(value)) not in (("title", str), ("additionalProperties", bool))
    }
