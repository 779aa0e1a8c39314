"""Several calls at once, where a later one may use what an earlier one printed."""

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.tools import offered, tool
from agent0.tools.calling import call_tool, problems
from agent0.tools.definition import VALUES, Example, Tool
from agent0.tools.results import LIMIT, shorten
from agent0.tools.workspace import Workspace

MOST_STEPS = 16
_LONGEST = 100_000
"""Characters of a step's arguments once they are filled in."""
_LEAST = 160
"""Characters of each step's output that are shown."""
_reference = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]{0,63})\}\}")


class PlanStep(BaseModel):
    """One step of a plan: a tool with its arguments."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tool: str
    args: dict[str, object] = Field(default_factory=dict)
    save_as: str = Field("", pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,63})?$")


@tool(
    pure=False,
    control=True,
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
        ),
        Example(
            {
                "steps": [
                    {"tool": "python", "args": {"code": "print(1 + 1)"}, "save_as": "line"},
                    {"tool": "read_file", "args": {"path": "notes.txt", "start": "{{line}}"}},
                ]
            },
            "1. python, saved as line: ok\n2\n2. read_file: ok\nb\n[line 2 of 2]",
            after=(("write_file", {"path": "notes.txt", "content": "a\nb\n"}),),
        ),
    ],
)
async def plan(
    work: Workspace,
    steps: Annotated[list[PlanStep], Field(min_length=1, max_length=MOST_STEPS), "calls, made in order"],
) -> ToolResult:
    """Make several calls in order. Each step is {"tool": name, "args": its arguments, "save_as": a name (optional)}.
    {{name}} in a later step's args stands for the output saved under this name: as text inside other text, or as the
    number, list or object that it is where it is a whole argument, as in "start": "{{n}}". The work folder is kept from
    step to step. The plan is checked before its first step and stops at the first that fails; you get every output so
    far. At most 16 steps; no plan inside a plan.
    Example: {"steps": [{"tool": "python", "args": {"code": "print(6 * 7)"}, "save_as": "n"},
    {"tool": "python", "args": {"code": "print({{n}} + 1)"}}]}
    """
    parsed = [PlanStep.model_validate(step) for step in steps]
    if problem := _problem(parsed, {name: entry for name, entry in offered(work).items() if name in work.allowed}):
        return ToolResult(state=ToolState.ERROR, output=f"{problem} Nothing was run.")
    lines: list[str] = []
    saved: dict[str, str] = {}
    results: list[ToolResult] = []
    share = max(_LEAST, LIMIT // len(parsed))
    for number, step in enumerate(parsed, 1):
        result = await _make(step, saved, work)
        results.append(result)
        name = f", saved as {step.save_as}" if step.save_as else ""
        lines.append(f"{number}. {step.tool}{name}: {result.state.value}\n{shorten(result.output, share)}".rstrip())
        if result.state is not ToolState.OK:
            left = len(parsed) - number
            lines.append(f"[stopped: step {number} failed; {left} of {len(parsed)} steps were not made]")
            return _summed(ToolState.ERROR, lines, results)
        saved |= {step.save_as: result.output} if step.save_as else {}
        if work.answer is not None:
            break
    return _summed(ToolState.OK, lines, results)


def _summed(state: ToolState, lines: Sequence[str], results: Sequence[ToolResult]) -> ToolResult:
    """What the steps ``results`` took together: sums, and the highest memory of any."""
    return ToolResult(
        state=state,
        output="\n".join(lines),
        wall_s=sum(result.wall_s for result in results),
        cpu_s=sum(result.cpu_s for result in results),
        peak_mem_mib=max(result.peak_mem_mib for result in results),
        tier=", ".join(dict.fromkeys(result.tier for result in results if result.tier)),
        backend=", ".join(dict.fromkeys(result.backend for result in results if result.backend)),
        output_bytes=sum(result.output_bytes for result in results),
    )


async def _make(step: PlanStep, saved: Mapping[str, str], work: Workspace) -> ToolResult:
    """One step, its references filled in."""
    arguments = _filled(step.args, saved, offered(work)[step.tool].spec.parameters)
    size = len(json.dumps(arguments, ensure_ascii=False))
    error = f"with its references filled in it has {size} characters, more than {_LONGEST}" if size > _LONGEST else ""
    call = ToolCall(name=step.tool, arguments=step.args if error else arguments, error=error)
    return await call_tool(call, work, inner=True)


def _filled(value: Any, saved: Mapping[str, str], schema: Any) -> Any:
    """``value``, which ``schema`` describes, with every reference replaced once; what is filled in is never read
    again."""
    described = schema if isinstance(schema, dict) else {}
    if isinstance(value, str):
        whole = _reference.fullmatch(value)
        if whole and not _takes_text(described):
            return _meant(saved[whole[1]])
        return _reference.sub(lambda match: saved[match[1]], value)
    if isinstance(value, dict):
        fields, others = described.get("properties", {}), described.get("additionalProperties")
        return {key: _filled(inner, saved, fields.get(key, others)) for key, inner in value.items()}
    return [_filled(inner, saved, described.get("items")) for inner in value] if isinstance(value, list) else value


def _takes_text(schema: Any) -> bool:
    """Whether text fits, so that an output may stay as it was printed."""
    if not isinstance(schema, dict):
        return False
    kinds, choices = schema.get("type", ()), (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    return "string" in ((kinds,) if isinstance(kinds, str) else kinds) or any(map(_takes_text, choices))


def _meant(text: str) -> Any:
    """An output as the number, list, object, true, false or null that it is as JSON; text otherwise."""
    try:
        parsed = json.loads(text, parse_constant=_number, parse_float=_number)
        json.dumps(parsed, ensure_ascii=False).encode()  # half of a surrogate pair can be in no event
    except (ValueError, RecursionError):
        return text
    return text if isinstance(parsed, str) else parsed


def _number(literal: str) -> float:
    if not math.isfinite(float(literal)):
        raise ValueError(f"{literal} is no number of JSON")
    return float(literal)


def _texts(value: Any) -> list[str]:
    """Every string inside ``value``; keys are none of them, as nothing is filled in there."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for element in inner for text in _texts(element)]


def _problem(steps: Sequence[PlanStep], usable: Mapping[str, Tool]) -> str:
    """The first thing that is wrong with a plan, empty where nothing is."""
    saved: list[str] = []
    for number, step in enumerate(steps, 1):
        if problem := _misfit(step, saved, usable):
            return f"Step {number}: {problem}"
        if step.save_as:
            saved.append(step.save_as)
    return ""


def _misfit(step: PlanStep, saved: Sequence[str], allowed: Mapping[str, Tool]) -> str:
    if step.tool == plan.__name__:
        return "a plan cannot hold a plan; make its steps steps of this one."
    usable = sorted(name for name in allowed if name != plan.__name__)
    if step.tool not in usable:
        near = difflib.get_close_matches(step.tool[:64], usable, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"there is no tool named {step.tool[:64]!r}.{hint} The tools are: {', '.join(usable) or 'none'}."
    if step.save_as in saved:
        return f"{step.save_as} is saved already by an earlier step; choose another name."
    referred = [name for text in _texts(step.args) for name in _reference.findall(text)]
    if unknown := next((name for name in referred if name not in saved), ""):
        return f"{{{{{unknown}}}}} is saved by no step before it. Saved before it: {', '.join(saved) or 'nothing'}."
    return _wrong_arguments(step, allowed[step.tool], bool(referred))


def _wrong_arguments(step: PlanStep, entry: Tool, refers: bool) -> str:
    """Told before anything is run; of values that references stand for, when they are filled in."""
    try:
        entry.arguments.model_validate(step.args)
    except ValidationError as error:
        wrong = "; ".join(problems(error, entry.spec.parameters, names_only=refers))
        return f"{step.tool} was called with wrong arguments. {wrong}." if wrong else ""
    return ""
