"""What a tool is: its function, its description for models, and how it can end."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

from agent0.events.policies import PolicyKind
from agent0.events.values import ToolResult, ToolState
from agent0.ports.models import ToolSpec
from agent0.settings import PolicyConfig
from agent0.tools.policy import denial

Run = Callable[..., Awaitable[ToolResult]]


Need = tuple[PolicyKind, str]


VALUES = (ToolState.OK, ToolState.ERROR)
"""How a tool ends that only reads and makes values."""


SANDBOXED = tuple(state for state in ToolState if state is not ToolState.CANCELLED)
"""How a tool ends that runs something in the sandbox."""


@dataclass(frozen=True)
class Example:
    """An example call for the documentation, made on an empty work folder after the calls of ``after``.

    ``output`` is what it prints, None where that varies.
    """

    arguments: Mapping[str, JsonValue]
    output: str | None = None
    state: ToolState = ToolState.OK
    after: tuple[tuple[str, Mapping[str, JsonValue]], ...] = ()


class AnyArguments(BaseModel):
    """Whatever a call says: who carries it out judges it."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class ExternalTool:
    """A tool from outside, such as an MCP server's: its description (``description``), a JSON ``schema``, and a check
    of arguments."""

    description: str
    schema: Mapping[str, object]
    check: Callable[[Mapping[str, object]], list[str]]


@dataclass(frozen=True)
class OfferedTool:
    """A tool that we offer to others, with the JSON ``schema`` of its arguments. ``answer`` gives (text, whether it
    failed); ``reads``: it changes nothing. Where there is a ``uri``, it can be read there as a resource of type
    ``media``, too: ``{run}`` in it is the argument ``run``."""

    name: str
    description: str
    schema: Mapping[str, object]
    answer: Callable[[Mapping[str, object]], Awaitable[tuple[str, bool]]]
    reads: bool
    uri: str = ""
    media: str = "application/json"


@dataclass(frozen=True)
class OfferedPrompt:
    """A request to a model that we offer to others, with what each of its ``arguments`` is, all of which it takes.
    ``write`` gives its text."""

    name: str
    description: str
    arguments: Mapping[str, str]
    write: Callable[[Mapping[str, str]], Awaitable[str]]


@dataclass(frozen=True)
class Tool:
    """A registered tool.

    ``pure``: same arguments, same work folder and same policy give the same result and folder, so results may be
    cached. ``states``: how it can end. ``untrusted``: its output is untrusted text. ``control``: it does no work
    itself, but gives or tries an answer or makes other calls, and never counts as tool use. ``needs``: what the policy
    must allow (a name, or ``*`` for any of that kind), or every call is refused.
    """

    name: str
    run: Run
    arguments: type[BaseModel]
    pure: bool
    examples: tuple[Example, ...] = ()
    states: tuple[ToolState, ...] = SANDBOXED
    untrusted: bool = False
    control: bool = False
    foreign: ExternalTool | None = None
    needs: tuple[Need, ...] = ()

    def denial(self, policy: PolicyConfig) -> str:
        """Why ``policy`` refuses every call of this tool; empty where it does not."""
        return denial(policy, self.needs)

    @functools.cached_property
    def spec(self) -> ToolSpec:
        """The tool as it is described to a model."""
        if self.foreign:
            return ToolSpec(self.name, self.foreign.description, dict(self.foreign.schema))
        schema = self.arguments.model_json_schema()
        parameters = _simple(schema, schema.get("$defs", {}))
        return ToolSpec(self.name, inspect.getdoc(self.run) or "", parameters)


def _simple(schema: Any, definitions: Mapping[str, Mapping[str, object]]) -> Any:
    """A JSON schema for small models: nothing is said elsewhere, and titles that repeat a name are left out."""
    if isinstance(schema, list):
        return [_simple(element, definitions) for element in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {**definitions.get(str(schema.get("$ref")).rpartition("/")[2], {}), **schema}
    return {
        key: _simple(value, definitions)
        for key, value in whole.items()
        if key not in ("$ref", "$defs") and (key, type(value)) not in (("title", str), ("additionalProperties", bool))
    }
