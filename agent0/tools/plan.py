"""Several calls at once, where a later one may use what an earlier one printed."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent0.tools import VALUES, Example, call_tool, tool, tools
from agent0.tools.answer import LIMIT, shorten
from agent0.tools.workspace import Workspace
from events.values import ToolCall, ToolResult, ToolState

MOST_STEPS = 16
_LONGEST = 100_000
"""Characters of a step's arguments once they are filled in."""
_LEAST = 160
"""Characters of each step's output that are shown."""
_reference = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]{0,63})\}\}")


class PlanStep(BaseModel):
    """One call of a plan."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    save_as: str = Field("", pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,63})?$")


@tool(
    pure=False,
    states=VALUES,
    examples=[
        Example(
            {
                "steps": [
                    {"tool": "python", "args": {"code": "print(6 * 7)"}, "save_as": "product"},
                    {"tool": "python", "args": {"code": "print({{product}} + 1)"}},
                ]
            },
            "1. python, saved as product: ok\n42\n2. python: ok\n43",
        )
    ],
)
async def plan(
    work: Workspace,
    steps: Annotated[list[PlanStep], Field(min_length=1, max_length=MOST_STEPS), "calls, made in order"],
) -> ToolResult:
    """Make several calls in order. Each step is {"tool": name, "args": its arguments, "save_as": a name (optional)}.
    {{name}} anywhere in a later step's args is replaced by the output of the step that was saved under this name; it is
    text, nothing is computed. The work folder is kept from step to step. The plan is checked before its first step, at
    the first step that fails it stops, and you get every output so far. At most 16 steps; no plan inside a plan.
    Example: {"steps": [{"tool": "python", "args": {"code": "print(6 * 7)"}, "save_as": "product"},
    {"tool": "python", "args": {"code": "print({{product}} + 1)"}}]}
    """
    wanted = [PlanStep.model_validate(one) for one in steps]
    if problem := _problem(wanted, work.allowed):
        return ToolResult(state=ToolState.ERROR, output=f"{problem} Nothing was run.")
    told: list[str] = []
    saved: dict[str, str] = {}
    spent, share = 0.0, max(_LEAST, LIMIT // len(wanted))
    for number, one in enumerate(wanted, 1):
        result = await _make(one, saved, work)
        spent += result.wall_s
        name = f", saved as {one.save_as}" if one.save_as else ""
        told.append(f"{number}. {one.tool}{name}: {result.state.value}\n{shorten(result.output, share)}".rstrip())
        if result.state is not ToolState.OK:
            left = len(wanted) - number
            told.append(f"[stopped: step {number} failed; {left} of {len(wanted)} steps were not made]")
            return ToolResult(state=ToolState.ERROR, output="\n".join(told), wall_s=spent)
        saved |= {one.save_as: result.output} if one.save_as else {}
        if work.answer is not None:
            break
    return ToolResult(state=ToolState.OK, output="\n".join(told), wall_s=spent)


async def _make(one: PlanStep, saved: Mapping[str, str], work: Workspace) -> ToolResult:
    """One step, its references filled in."""
    arguments = _filled(one.args, saved)
    size = sum(map(len, _texts(arguments)))
    error = f"with its references filled in it has {size} characters, more than {_LONGEST}" if size > _LONGEST else ""
    call = ToolCall(name=one.tool, arguments=one.args if error else arguments, error=error)
    return await call_tool(call, work, inner=True)


def _filled(value: Any, saved: Mapping[str, str]) -> Any:
    """``value`` with every reference replaced once; what is filled in is never read again."""
    if isinstance(value, str):
        return _reference.sub(lambda found: saved[found[1]], value)
    if isinstance(value, dict):
        return {key: _filled(inner, saved) for key, inner in value.items()}
    return [_filled(inner, saved) for inner in value] if isinstance(value, list) else value


def _texts(value: Any) -> list[str]:
    """Every string inside ``value``; keys are none of them, as nothing is filled in there."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]


def _problem(steps: Sequence[PlanStep], allowed: Sequence[str]) -> str:
    """The first thing that is wrong with a plan, empty where nothing is."""
    known: list[str] = []
    for number, one in enumerate(steps, 1):
        if problem := _misfit(one, known, allowed):
            return f"Step {number}: {problem}"
        if one.save_as:
            known.append(one.save_as)
    return ""


def _misfit(one: PlanStep, known: Sequence[str], allowed: Sequence[str]) -> str:
    if one.tool == plan.__name__:
        return "a plan cannot hold a plan; make its steps steps of this one."
    usable = sorted(name for name in tools() if name in allowed and name != plan.__name__)
    if one.tool not in usable:
        near = difflib.get_close_matches(one.tool[:64], usable, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"there is no tool named {one.tool[:64]!r}.{hint} The tools are: {', '.join(usable) or 'none'}."
    if one.save_as in known:
        return f"{one.save_as} is saved already by an earlier step; choose another name."
    referred = [name for text in _texts(one.args) for name in _reference.findall(text)]
    if unknown := next((name for name in referred if name not in known), ""):
        return f"{{{{{unknown}}}}} is saved by no step before it. Saved before it: {', '.join(known) or 'nothing'}."
    return "" if referred else _wrong_arguments(one)


def _wrong_arguments(one: PlanStep) -> str:
    """Told before anything is run; where references stand in for values, when they are filled in."""
    try:
        tools()[one.tool].arguments.model_validate(one.args)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part)[:64] for part in first["loc"]) or "arguments"
        return f"{one.tool} was called with wrong arguments. {where}: {first['msg']}."
    return ""
