"""What a student may do in the world, one file per tool. A tool is an async function: its docstring is what the model
reads, its signature is its schema, and the sandbox port is the only world it has.
"""

import difflib
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from agent0.ports import Sandbox, ToolSpec
from agent0.tools.cache import ToolCache
from events.values import ToolCall, ToolResult, ToolState

Run = Callable[..., Awaitable[ToolResult]]


@dataclass(frozen=True)
class Tool:
    """A registered tool. ``pure``: same arguments, same result, so results may be cached by content."""

    name: str
    run: Run
    arguments: type[BaseModel]
    pure: bool

    @functools.cached_property
    def spec(self) -> ToolSpec:
        """What a model is told."""
        schema = self.arguments.model_json_schema()
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
        parameters = {key: value for key, value in schema.items() if key not in ("title", "additionalProperties")}
        return ToolSpec(self.name, inspect.getdoc(self.run) or "", parameters)


_tools: dict[str, Tool] = {}


def tool(*, pure: bool) -> Callable[[Run], Run]:
    """Register the decorated ``async def name(sandbox, *arguments) -> ToolResult`` under its own name.

    Raises:
        ValueError: the name is taken.
        TypeError: no docstring, or a parameter without a type.
    """

    def register(run: Run) -> Run:
        name = run.__name__
        if name in _tools and _tools[name].run.__module__ != run.__module__:
            raise ValueError(f"two tools are named {name}")
        if not inspect.getdoc(run):
            raise TypeError(f"tool {name} has no docstring for the model to read")
        _tools[name] = Tool(name, run, _arguments(run), pure)
        return run

    return register


def _arguments(run: Run) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(run, eval_str=True).parameters.values())[1:]:
        if parameter.annotation is inspect.Parameter.empty:
            raise TypeError(f"parameter {parameter.name} of tool {run.__name__} has no type")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (parameter.annotation, default)
    return create_model(run.__name__, __config__=ConfigDict(extra="forbid", strict=True), **fields)


def tools() -> dict[str, Tool]:
    """All tools by name, sorted."""
    _import_all()
    return {name: _tools[name] for name in sorted(_tools)}


@functools.cache
def _import_all() -> None:
    for found in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{found}")


async def call_tool(
    call: ToolCall, sandbox: Sandbox, allowed: Sequence[str], cache: ToolCache | None = None
) -> ToolResult:
    """Do what the student wrote. What it did wrong is a result of state ``error`` that it can read and correct.

    Raises:
        SandboxUnavailableError: there is no sandbox. Nothing was run, and nothing is the student's fault.
    """
    if call.error:
        return _mistake(f"The call could not be read: {call.error}")
    known = {name: entry for name, entry in tools().items() if name in allowed}
    chosen = known.get(call.name)
    if chosen is None:
        return _mistake(_unknown(call.name, sorted(known)))
    try:
        values = chosen.arguments.model_validate(call.arguments).model_dump()
    except ValidationError as error:
        return _mistake(_misfit(chosen, error))
    if cache is None or not chosen.pure:
        return await chosen.run(sandbox, **values)
    return await cache.get(chosen.name, values, lambda: chosen.run(sandbox, **values))


def _mistake(text: str) -> ToolResult:
    return ToolResult(state=ToolState.ERROR, output=text)


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name[:64], known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"There is no tool named {name[:64]!r}.{hint} The tools are: {', '.join(known) or 'none'}."


def _misfit(chosen: Tool, error: ValidationError) -> str:
    problems = [
        f"{'.'.join(str(part)[:64] for part in item['loc']) or 'arguments'}: {item['msg']}"
        for item in error.errors(include_url=False, include_input=False, include_context=False)[:5]
    ]
    fields = [f"{n}{'' if f.is_required() else ' (optional)'}" for n, f in chosen.arguments.model_fields.items()]
    return f"{chosen.name} was called with wrong arguments. {'; '.join(problems)}. It takes: {', '.join(fields)}."
