"""The tools that a student may call, one file per tool. A tool is an async function: its docstring is what the model
reads, its signature is its schema, and it acts on the attempt's workspace only."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

from agent0.events.values import ToolState
from agent0.registry import Registry
from agent0.tools.definition import SANDBOXED, VALUES, Example, Need, Run, Tool
from agent0.tools.workspace import Workspace

__all__ = ["SANDBOXED", "VALUES", "Example", "Tool", "arguments_of", "control_names", "offered", "tool", "tools"]

_tools = Registry[str, Tool](
    "tools", f"{__name__}.builtin", same=lambda registered, new: registered.run.__module__ == new.run.__module__
)


def tool(
    *,
    pure: bool,
    examples: Sequence[Example | Mapping[str, JsonValue]] = (),
    states: Sequence[ToolState] = SANDBOXED,
    untrusted: bool = False,
    control: bool = False,
    needs: Sequence[Need] = (),
) -> Callable[[Run], Run]:
    """Register the decorated ``async def name(work, *arguments) -> ToolResult`` under its own name.

    ``Annotated[str, "meaning"]`` gives an argument a meaning that the model reads. An example may be its arguments.

    Raises:
        ValueError: the name is taken.
        TypeError: no docstring, or a parameter without a type.
    """

    def register(run: Run) -> Run:
        name = run.__name__
        if not inspect.getdoc(run):
            raise TypeError(f"tool {name} has no docstring for the model to read")
        shown = tuple(example if isinstance(example, Example) else Example(example) for example in examples)
        entry = Tool(name, run, arguments_of(run), pure, shown, tuple(states), untrusted, control, needs=tuple(needs))
        _tools.add(name, entry)
        return run

    return register


def arguments_of(run: Run) -> type[BaseModel]:
    """The pydantic model that validates what ``run`` takes beside its workspace."""
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(run, eval_str=True).parameters.values())[1:]:
        if parameter.annotation is inspect.Parameter.empty:
            raise TypeError(f"parameter {parameter.name} of tool {run.__name__} has no type")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        descriptions = [text for text in getattr(parameter.annotation, "__metadata__", ()) if isinstance(text, str)]
        fields[parameter.name] = (parameter.annotation, Field(default, description=" ".join(descriptions) or None))
    return create_model(run.__name__, __config__=ConfigDict(extra="forbid", strict=True), **fields)


def tools() -> dict[str, Tool]:
    """Return all registered tools by name, sorted. A process may offer more (``Workspace.tools``), such as those of MCP
    servers."""
    return _tools.all()


def offered(work: Workspace) -> Mapping[str, Tool]:
    """The tools that exist for the attempt of ``work``, by name: its own, or the registered ones."""
    return tools() if work.tools is None else work.tools


def control_names() -> frozenset[str]:
    """Names of the tools that do no work themselves, such as giving the answer."""
    return frozenset(name for name, entry in tools().items() if entry.control)
