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
    args: dict[str, Any] = Field(default_factory=dict)
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
    wanted = [PlanStep.model_validate(one) for one in steps]
    if problem := _problem(wanted, {name: entry for name, entry in offered(work).items() if name in work.allowed}):
        return ToolResult(state=ToolState.ERROR, output=f"{problem} Nothing was run.")
    told: list[str] = []
    saved: dict[str, str] = {}
    made: list[ToolResult] = []
    share = max(_LEAST, LIMIT // len(wanted))
    for number, one in enumerate(wanted, 1):
        result = await _make(one, saved, work)
        made.append(result)
        name = f", saved as {one.save_as}" if one.save_as else ""
        told.append(f"{number}. {one.tool}{name}: {result.state.value}\n{shorten(result.output, share)}".rstrip())
        if result.state is not ToolState.OK:
            left = len(wanted) - number
            told.append(f"[stopped: step {number} failed; {left} of {len(wanted)} steps were not made]")
            return _summed(ToolState.ERROR, told, made)
        saved |= {one.save_as: result.output} if one.save_as else {}
        if work.answer is not None:
            break
    return _summed(ToolState.OK, told, made)


def _summed(state: ToolState, told: Sequence[str], made: Sequence[ToolResult]) -> ToolResult:
    """What the steps ``made`` took together: sums, and the highest memory of any."""
    return ToolResult(
        state=state,
        output="\n".join(told),
        wall_s=sum(one.wall_s for one in made),
        cpu_s=sum(one.cpu_s for one in made),
        peak_mem_mib=max(one.peak_mem_mib for one in made),
        tier=", ".join(dict.fromkeys(one.tier for one in made if one.tier)),
        backend=", ".join(dict.fromkeys(one.backend for one in made if one.backend)),
        output_bytes=sum(one.output_bytes for one in made),
    )


async def _make(one: PlanStep, saved: Mapping[str, str], work: Workspace) -> ToolResult:
    """One step, its references filled in."""
    arguments = _filled(one.args, saved, offered(work)[one.tool].spec.parameters)
    size = len(json.dumps(arguments, ensure_ascii=False))
    error = f"with its references filled in it has {size} characters, more than {_LONGEST}" if size > _LONGEST else ""
    call = ToolCall(name=one.tool, arguments=one.args if error else arguments, error=error)
    return await call_tool(call, work, inner=True)


def _filled(value: Any, saved: Mapping[str, str], schema: Any) -> Any:
    """``value``, which ``schema`` describes, with every reference replaced once; what is filled in is never read
    again."""
    known = schema if isinstance(schema, dict) else {}
    if isinstance(value, str):
        whole = _reference.fullmatch(value)
        if whole and not _takes_text(known):
            return _meant(saved[whole[1]])
        return _reference.sub(lambda found: saved[found[1]], value)
    if isinstance(value, dict):
        fields, others = known.get("properties", {}), known.get("additionalProperties")
        return {key: _filled(inner, saved, fields.get(key, others)) for key, inner in value.items()}
    return [_filled(inner, saved, known.get("items")) for inner in value] if isinstance(value, list) else value


def _takes_text(schema: Any) -> bool:
    """Whether text fits, so that an output may stay as it was printed."""
    if not isinstance(schema, dict):
        return False
    kinds, choices = schema.get("type", ()), (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    return "string" in ((kinds,) if isinstance(kinds, str) else kinds) or any(map(_takes_text, choices))


def _meant(text: str) -> Any:
    """An output as the number, list, object, true, false or null that it is as JSON; text otherwise."""
    try:
        found = json.loads(text, parse_constant=_number, parse_float=_number)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair can be in no event
    except (ValueError, RecursionError):
        return text
    return text if isinstance(found, str) else found


def _number(word: str) -> float:
    if not math.isfinite(float(word)):
        raise ValueError(f"{word} is no number of JSON")
    return float(word)


def _texts(value: Any) -> list[str]:
    """Every string inside ``value``; keys are none of them, as nothing is filled in there."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]


def _problem(steps: Sequence[PlanStep], usable: Mapping[str, Tool]) -> str:
    """The first thing that is wrong with a plan, empty where nothing is."""
    known: list[str] = []
    for number, one in enumerate(steps, 1):
        if problem := _misfit(one, known, usable):
            return f"Step {number}: {problem}"
        if one.save_as:
            known.append(one.save_as)
    return ""


def _misfit(one: PlanStep, known: Sequence[str], allowed: Mapping[str, Tool]) -> str:
    if one.tool == plan.__name__:
        return "a plan cannot hold a plan; make its steps steps of this one."
    usable = sorted(name for name in allowed if name != plan.__name__)
    if one.tool not in usable:
        near = difflib.get_close_matches(one.tool[:64], usable, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"there is no tool named {one.tool[:64]!r}.{hint} The tools are: {', '.join(usable) or 'none'}."
    if one.save_as in known:
        return f"{one.save_as} is saved already by an earlier step; choose another name."
    referred = [name for text in _texts(one.args) for name in _reference.findall(text)]
    if unknown := next((name for name in referred if name not in known), ""):
        return f"{{{{{unknown}}}}} is saved by no step before it. Saved before it: {', '.join(known) or 'nothing'}."
    return _wrong_arguments(one, allowed[one.tool], bool(referred))


def _wrong_arguments(one: PlanStep, entry: Tool, refers: bool) -> str:
    """Told before anything is run; of values that references stand for, when they are filled in."""
    try:
        entry.arguments.model_validate(one.args)
    except ValidationError as error:
        wrong = "; ".join(problems(error, entry.spec.parameters, names_only=refers))
        return f"{one.tool} was called with wrong arguments. {wrong}." if wrong else ""
    return ""
