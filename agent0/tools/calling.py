"""Carries out a tool call as the student wrote it, and explains what was wrong with it."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from agent0.events.values import ToolCall, ToolResult
from agent0.tools import offered
from agent0.tools.definition import Tool
from agent0.tools.paths import mistaken
from agent0.tools.results import refused, shorten
from agent0.tools.snapshots import Files
from agent0.tools.workspace import Done, Workspace

_LEAST = 200
"""Characters of output that an attempt may always read, or it could not see why its budget is used up."""


_SHARING_S = 10.0
"""Tool time an attempt must have left to share executions: others must not meet its short limits."""


_KINDS = ("str", "int", "float", "bool")
"""What stands behind the name of an argument that may be of several kinds."""


_LONGEST_EXAMPLE = 400
"""Characters of an example that a wrong call is told."""


async def call_tool(call: ToolCall, work: Workspace, *, inner: bool = False) -> ToolResult:
    """Validate and carry out one call of the student, and add it to the journal.

    A mistake of the student is a result of state ``error`` that it can read and correct. ``inner``: a step of a plan.

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
        return mistaken(f"The call could not be read: {call.error}")
    usable = {name: entry for name, entry in offered(work).items() if name in work.allowed}
    chosen = usable.get(call.name)
    if chosen is None:
        return mistaken(_unknown(call.name, sorted(usable)))
    if reason := chosen.denial(work.policy):
        return refused(reason)
    try:
        values = chosen.arguments.model_validate(call.arguments).model_dump()
    except ValidationError as error:
        return mistaken(_misfit(chosen, problems(error, chosen.spec.parameters)))
    if chosen.foreign and (violations := chosen.foreign.check(values)):
        return mistaken(_misfit(chosen, violations))
    if work.cache is None or not chosen.pure or work.seconds < _SHARING_S:
        return await chosen.run(work, **values)
    key = [chosen.name, values, work.fingerprint, work.policy.model_dump()]
    result, work.files = await work.cache.get(key, lambda: _alone(chosen, work, values))
    return result


async def _alone(chosen: Tool, work: Workspace, values: Mapping[str, object]) -> tuple[ToolResult, Files]:
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


def _unknown(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name[:64], names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"There is no tool named {name[:64]!r}.{hint} The tools are: {', '.join(names) or 'none'}."


def problems(error: ValidationError, schema: Mapping[str, object], *, names_only: bool = False) -> list[str]:
    """Describe what does not fit ``schema``: up to five arguments, each with what it should be, or what its name may
    mean.

    ``names_only``: values are not known yet.
    """
    messages: dict[str, str] = {}
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        if names_only and item["type"] not in ("missing", "extra_forbidden"):
            continue
        path = item["loc"][:-1] if len(item["loc"]) > 1 and item["loc"][-1] in _KINDS else item["loc"]
        name = ".".join(str(part)[:64] for part in path) or "arguments"
        message = _explanation(item["type"], item["msg"], path, schema)
        messages[name] = (
            f"{messages[name]} or {message.removeprefix('Input should be ')}" if name in messages else message
        )
    return [f"{name}: {message}" for name, message in list(messages.items())[:5]]


def _explanation(kind: str, message: str, path: Sequence[int | str], schema: Mapping[str, object]) -> str:
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(path[-1])[:64], _names(path, schema), n=1)
        return f"there is no such argument{f' (did you mean {near[0]}?)' if near else ''}"
    return "Input should be an object" if kind in ("dict_type", "model_type") else message


def _names(path: Sequence[int | str], schema: Mapping[str, object]) -> list[str]:
    """Arguments there are beside ``path``."""
    for part in path[:-1]:
        inner = schema.get("items") if isinstance(part, int) else _properties(schema).get(part)
        schema = inner if isinstance(inner, Mapping) else {}
    return list(_properties(schema))


def _properties(schema: Mapping[str, object]) -> Mapping[str, object]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _misfit(chosen: Tool, wrong: list[str]) -> str:
    schema = chosen.spec.parameters
    required = schema.get("required", [])
    fields = [f"{name}{'' if name in required else ' (optional)'}" for name in schema.get("properties", {})]
    takes = f"It takes: {', '.join(fields) or 'nothing'}."
    example = next((example.arguments for example in chosen.examples if example.arguments), None)
    shown = json.dumps(example, ensure_ascii=False) if example else ""
    like = f" Example: {shown}" if 0 < len(shown) <= _LONGEST_EXAMPLE else ""
    return f"{chosen.name} was called with wrong arguments. {'; '.join(wrong)}. {takes}{like}"
