"""What a student may do in the world, one file per tool. A tool is an async function: its docstring is what the model
reads, its signature is its schema, and its attempt's workspace is the only world it has.
"""

import difflib
import functools
import importlib
import inspect
import json
import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from agent0.ports import ToolSpec
from agent0.settings import PolicyConfig
from agent0.tools.policy import denial
from agent0.tools.results import refused, shorten
from agent0.tools.snapshots import Files
from agent0.tools.workspace import Done, Workspace
from events.policies import PolicyKind
from events.values import ToolCall, ToolResult, ToolState

Run = Callable[..., Awaitable[ToolResult]]
Need = tuple[PolicyKind, str]
_LEAST = 200
"""Characters of output that an attempt may always read, or it could not see why its budget is used up."""
_SHARING_S = 10.0
"""Tool time an attempt must have left to share executions: others must not meet its short limits."""
_KINDS = ("str", "int", "float", "bool")
"""What stands behind the name of an argument that may be of several kinds."""
_LONGEST_EXAMPLE = 400
"""Characters of an example that a wrong call is told."""

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


_tools: dict[str, Tool] = {}


def tool(
    *,
    pure: bool,
    examples: Sequence[Example | Mapping[str, Any]] = (),
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
        if name in _tools and _tools[name].run.__module__ != run.__module__:
            raise ValueError(f"two tools are named {name}")
        if not inspect.getdoc(run):
            raise TypeError(f"tool {name} has no docstring for the model to read")
        shown = tuple(one if isinstance(one, Example) else Example(one) for one in examples)
        _tools[name] = Tool(
            name, run, arguments_of(run), pure, shown, tuple(states), untrusted, control, needs=tuple(needs)
        )
        return run

    return register


def arguments_of(run: Run) -> type[BaseModel]:
    """What ``run`` takes beside its workspace, as a model that checks it."""
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(run, eval_str=True).parameters.values())[1:]:
        if parameter.annotation is inspect.Parameter.empty:
            raise TypeError(f"parameter {parameter.name} of tool {run.__name__} has no type")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        words = [word for word in getattr(parameter.annotation, "__metadata__", ()) if isinstance(word, str)]
        fields[parameter.name] = (parameter.annotation, Field(default, description=" ".join(words) or None))
    return create_model(run.__name__, __config__=ConfigDict(extra="forbid", strict=True), **fields)


def tools() -> dict[str, Tool]:
    """All registered tools by name, sorted. An open world may have more (``Workspace.tools``)."""
    _import_all()
    return {name: _tools[name] for name in sorted(_tools)}


def offered(work: Workspace) -> Mapping[str, Tool]:
    """The tools of the world that ``work`` belongs to, by name."""
    return tools() if work.tools is None else work.tools


def control_names() -> frozenset[str]:
    """Names of the tools that do no work themselves."""
    return frozenset(name for name, entry in tools().items() if entry.control)


@functools.cache
def _import_all() -> None:
    from agent0.tools import builtin

    for found in sorted(m.name for m in pkgutil.iter_modules(builtin.__path__)):
        importlib.import_module(f"{builtin.__name__}.{found}")


async def call_tool(call: ToolCall, work: Workspace, *, inner: bool = False) -> ToolResult:
    """Do what the student wrote, and journal it. What it did wrong is a result of state ``error`` that it can read and
    correct. ``inner``: a step of a plan.

    Raises:
        SandboxUnavailableError: there is no sandbox. Nothing was run, and nothing is the student's fault.
    """
    before = work.seconds
    done = _measured(work, await _answer(call, work))
    work.seconds = min(work.seconds, before - done.wall_s)  # steps of a plan were counted as they were made
    if not inner:
        done = _readable(work, done)
    work.journal.append(Done(call, done, work.files, inner))
    return done


async def _answer(call: ToolCall, work: Workspace) -> ToolResult:
    if call.error:
        return _mistake(f"The call could not be read: {call.error}")
    known = {name: entry for name, entry in offered(work).items() if name in work.allowed}
    chosen = known.get(call.name)
    if chosen is None:
        return _mistake(_unknown(call.name, sorted(known)))
    if reason := chosen.denial(work.policy):
        return refused(reason)
    try:
        values = chosen.arguments.model_validate(call.arguments).model_dump()
    except ValidationError as error:
        return _mistake(_misfit(chosen, problems(error, chosen.spec.parameters)))
    if chosen.foreign and (found := chosen.foreign.check(values)):
        return _mistake(_misfit(chosen, found))
    if work.cache is None or not chosen.pure or work.seconds < _SHARING_S:
        return await chosen.run(work, **values)
    key = [chosen.name, values, work.fingerprint, work.policy.model_dump()]
    result, work.files = await work.cache.get(key, lambda: _alone(chosen, work, values))
    return result


async def _alone(chosen: Tool, work: Workspace, values: dict[str, Any]) -> tuple[ToolResult, Files]:
    """On a copy: several attempts may wait for one execution, and each gets its own folder."""
    copy = replace(work)
    result = await chosen.run(copy, **values)
    return result, copy.files


def _measured(work: Workspace, result: ToolResult) -> ToolResult:
    size = sum(map(len, work.files.values()))
    return result.model_copy(update={"files": len(work.files), "file_bytes": size})


def _readable(work: Workspace, result: ToolResult) -> ToolResult:
    """Cut to what the attempt may still read."""
    output = shorten(result.output, max(work.characters, _LEAST))
    work.characters -= len(output)
    return result.model_copy(update={"output": output})


def _mistake(text: str) -> ToolResult:
    return ToolResult(state=ToolState.ERROR, output=text)


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name[:64], known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"There is no tool named {name[:64]!r}.{hint} The tools are: {', '.join(known) or 'none'}."


def problems(error: ValidationError, schema: Mapping[str, Any], *, names_only: bool = False) -> list[str]:
    """What does not fit ``schema``: up to five arguments, each with what it should be, or what its name may mean.
    ``names_only``: values are not known yet."""
    told: dict[str, str] = {}
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        if names_only and item["type"] not in ("missing", "extra_forbidden"):
            continue
        place = item["loc"][:-1] if len(item["loc"]) > 1 and item["loc"][-1] in _KINDS else item["loc"]
        name = ".".join(str(part)[:64] for part in place) or "arguments"
        words = _words(item["type"], item["msg"], place, schema)
        told[name] = f"{told[name]} or {words.removeprefix('Input should be ')}" if name in told else words
    return [f"{name}: {words}" for name, words in list(told.items())[:5]]


def _words(kind: str, message: str, place: Sequence[int | str], schema: Mapping[str, Any]) -> str:
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(place[-1])[:64], _names(place, schema), n=1)
        return f"there is no such argument{f' (did you mean {near[0]}?)' if near else ''}"
    return "Input should be an object" if kind in ("dict_type", "model_type") else message


def _names(place: Sequence[int | str], schema: Mapping[str, Any]) -> list[str]:
    """Arguments there are beside ``place``."""
    for part in place[:-1]:
        schema = schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
    return list(schema.get("properties", {}))


def _misfit(chosen: Tool, wrong: list[str]) -> str:
    schema = chosen.spec.parameters
    required = schema.get("required", [])
    fields = [f"{name}{'' if name in required else ' (optional)'}" for name in schema.get("properties", {})]
    takes = f"It takes: {', '.join(fields) or 'nothing'}."
    example = next((one.arguments for one in chosen.examples if one.arguments), None)
    shown = json.dumps(example, ensure_ascii=False) if example else ""
    like = f" Example: {shown}" if 0 < len(shown) <= _LONGEST_EXAMPLE else ""
    return f"{chosen.name} was called with wrong arguments. {'; '.join(wrong)}. {takes}{like}"
