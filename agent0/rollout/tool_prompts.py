"""How a prompt describes a student's tools, and how it is to call them: ``run.student.tool_form``.

``template`` leaves both to the model's chat template, in whose form our prompts write their examples. All other forms
are described in the first turn, for models that were taught no form or do not write the one they were taught, and the
examples of our prompts are written likewise. Whatever a prompt asks for, ``rollout.parsing`` reads any form.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from agent0.chat_format import CLOSE, OPEN, format_action
from agent0.events.values import Turn
from agent0.ports.models import Generation, ToolSpec
from agent0.turns.calls.blocks import STOPS, FencedBlock, first_block, languages, output_block
from agent0.turns.calls.toolbox import Toolbox
from agent0.turns.thoughts import split_thoughts

TEMPLATE, FENCE = "template", "fence"
_example = re.compile(r"\s*Example: \{.*\}", re.DOTALL)
IN_PYTHON = frozenset(("sympy",))
"""Tools that a program of Python has, too: where there are blocks of Python, none in JSON is needed."""
PROGRAMS = frozenset(("python", "shell", "sympy"))
"""Tools whose one text their description explains; of any other tool the prompt has the schema of its arguments."""
Write = Callable[[str, Mapping[str, object], str], str]
"""From a tool's name, its arguments and the name of its one text argument ("": none) to the call's text."""
_call = re.compile(rf"{OPEN}\n(.*?)\n{CLOSE}", re.DOTALL)


@dataclass(frozen=True)
class ToolForm:
    """A form of calls that a prompt teaches: ``introduction`` (after the tools' descriptions), ``write`` of a call and
    where a server may ``stop``. ``blocks``: results come back as fenced blocks of the user."""

    introduction: str
    write: Write
    stop: tuple[str, ...] = ()
    blocks: bool = False


def _bracketed(name: str, arguments: Mapping[str, object], _: str) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"[tool_call]\n{body}\n[/tool_call]"


def _fenced(name: str, arguments: Mapping[str, object], text_argument: str) -> str:
    text = arguments.get(text_argument) if list(arguments) == [text_argument] else None
    body = text if isinstance(text, str) else json.dumps(arguments, ensure_ascii=False)
    return f"```{name}\n{body}\n```"


FORMS: Mapping[str, ToolForm] = {
    "actions": ToolForm(
        "To use one, end your turn with two lines, the second a JSON object with the tool's arguments:\n"
        "Action: <the tool's name>\nAction Input: <JSON object>\nIts output is the next message.",
        lambda name, arguments, _: format_action(name, arguments),
    ),
    "brackets": ToolForm(
        "To use one, end your turn with a JSON object between these marks:\n[tool_call]\n"
        '{"name": <the tool\'s name>, "arguments": <JSON object>}\n[/tool_call]\nIts output is the next message.',
        _bracketed,
    ),
    FENCE: ToolForm(
        "To use one, end your turn with a block between ``` and ```, named after the tool: for a tool with one "
        "argument that text as it is (```python and a whole program that prints its result), for any other a JSON "
        "object of its arguments. The output is the next message.",
        _fenced,
        STOPS,
        blocks=True,
    ),
}
"""Forms that a prompt can teach, by their names in the settings."""


def shown(turns: tuple[Turn, ...], tools: Sequence[ToolSpec], form: str) -> tuple[Turn, ...]:
    """Return a prompt's ``turns`` with ``tools`` described in ``form``; the question's text stays as it is."""
    taught = FORMS.get(form)
    if taught is None or not tools:
        return turns
    if taught.blocks and any(tool.name == "python" for tool in tools):
        tools = [tool for tool in tools if tool.name not in IN_PYTHON]
    turns = _of_tools(turns, {tool.name for tool in tools})
    arguments = text_arguments(tools)
    introduction = taught.introduction if not taught.blocks or _has_programs(tools) else _of_arguments(tools)
    described = "\n".join(
        ["You may use these tools:", *(_described(tool, arguments, taught) for tool in tools), "", introduction]
    )

    def rewritten(text: str) -> str:
        return _call.sub(lambda call: _written(call[1], taught, arguments), text)

    if turns and turns[0].role == "system":
        first, *rest = turns
        turns = (first.model_copy(update={"content": f"{rewritten(first.content)}\n\n{described}"}), *rest)
    else:
        turns = (Turn(role="system", content=described), *turns)
    return tuple(
        turn.model_copy(update={"content": rewritten(turn.content)}) if turn.role == "assistant" else turn
        for turn in turns
    )


def _has_programs(tools: Sequence[ToolSpec]) -> bool:
    return any(tool.name in PROGRAMS for tool in tools)


def _of_arguments(tools: Sequence[ToolSpec]) -> str:
    """How blocks call ``tools`` of which none takes a program, by the one with the fewest arguments: a model that reads
    of blocks of Python writes them."""
    arguments = {tool.name: list(tool.parameters.get("properties", {})) for tool in tools}
    name = min(reversed(arguments), key=lambda name: (not arguments[name], len(arguments[name])))
    body = ", ".join(f'"{argument}": …' for argument in arguments[name])
    return (
        "To use one, end your turn with a block between ``` and ``` that is named after the tool and contains a JSON "
        f"object of its arguments, as\n```{name}\n{{{body}}}\n```\nThe output is the next message."
    )


def _of_tools(turns: tuple[Turn, ...], names: Collection[str]) -> tuple[Turn, ...]:
    """``turns`` without the examples, from a question to the next, in which a tool that is not of ``names`` is called:
    a small model calls it, too."""
    starts = [index for index, turn in enumerate(turns) if turn.role == "user"]
    kept = list(turns[: starts[0]] if starts else turns)
    for start, end in pairwise([*starts, len(turns)]):
        texts = [turn.content for turn in turns[start:end] if turn.role == "assistant"]
        if all(json.loads(body)["name"] in names for text in texts for body in _call.findall(text)):
            kept += turns[start:end]
    return tuple(kept)


def requested(tools: tuple[ToolSpec, ...], form: str) -> tuple[ToolSpec, ...]:
    """The tools that a model's own template is to describe: none where the prompt does."""
    return () if form in FORMS else tools


def delivered(turns: tuple[Turn, ...], form: str) -> tuple[Turn, ...]:
    """Return ``turns`` with the results of tools as ``form`` has them; those of one turn are one."""
    taught = FORMS.get(form)
    if not taught or not taught.blocks:
        return turns
    out: list[Turn] = []
    for role, group in groupby(turns, lambda turn: turn.role):
        if role == "tool":
            out.append(Turn(role="user", content="\n".join(output_block(turn.content) for turn in group)))
        else:
            out += group
    return tuple(out)


def result_turn(tool: str, text: str, messages: str) -> Turn:
    """The turn that gives the result of a call; of the tool ``messages``, which writes to a user, their reply."""
    return Turn(role="user" if messages and tool == messages else "tool", name=tool, content=text)


def opening(form: str) -> str:
    """What a call in ``form`` begins with, for a turn that is made to call; of Python where it names the tool."""
    return {FENCE: "```python\n", "actions": "Action: ", "brackets": "[tool_call]\n"}.get(form, OPEN)


def stops(form: str) -> tuple[str, ...]:
    """Texts that only follow a whole call in ``form``."""
    return FORMS[form].stop if form in FORMS else ()


def until_call(written: Generation, tools: Sequence[ToolSpec], form: str) -> Generation:
    """Return ``written`` up to the end of its first block that calls one of ``tools``, where ``form`` has such: what
    follows was written before the output was known. No token is taken apart, and a block in a thought ends nothing."""
    block, end = _calling_block(written.text, tools, form)
    if block is None:
        return written
    if not block.closed:  # a server leaves out what it stopped at
        is_whole = written.token_ids or written.finish == "length"
        return written if is_whole else replace(written, text=f"{written.text.rstrip()}\n```")
    if not written.text[end:].strip():
        return written
    kept = bisect_left(written.ends, end) + 1 if written.ends else 0
    return replace(
        written,
        text=written.text[: written.ends[kept - 1] if kept else end],
        token_ids=written.token_ids[:kept],
        logprobs=written.logprobs[:kept],
        ends=written.ends[:kept],
        margins=written.margins[:kept],
        finish="stop",
    )


def whole_call(text: str, tools: Sequence[ToolSpec], form: str) -> str:
    """Return ``text``, of a turn that is still written, up to the end of the block that ends the turn (``until_call``);
    empty while there is none."""
    block, end = _calling_block(text, tools, form)
    return text[:end] if block and block.closed else ""


def _calling_block(text: str, tools: Sequence[ToolSpec], form: str) -> tuple[FencedBlock | None, int]:
    """The first block of ``text`` that calls one of ``tools``, where ``form`` has such, and where in ``text`` it
    ends."""
    visible = split_thoughts(text).visible if form == FENCE else ""
    block = first_block(visible, languages([tool.name for tool in tools]))
    if block is None or not text.endswith(visible):
        return None, len(text)
    return block, len(text) - len(visible) + block.end


def text_arguments(specs: Sequence[ToolSpec]) -> dict[str, str]:
    """Map each tool's name to the argument that plain text fills: its only required one, where it has exactly one."""
    required = {spec.name: spec.parameters.get("required", []) for spec in specs}
    return {name: names[0] for name, names in required.items() if len(names) == 1}


def toolbox(specs: Sequence[ToolSpec]) -> Toolbox:
    """What a reader of calls needs to know of tools."""
    types = {spec.name: _types(spec.parameters.get("properties", {})) for spec in specs}
    return Toolbox(frozenset(types), text_arguments(specs), types)


def _types(properties: Mapping[str, object]) -> dict[str, str]:
    return {name: str(schema.get("type", "any")) for name, schema in properties.items() if isinstance(schema, dict)}


def _described(tool: ToolSpec, text_arguments: Mapping[str, str], form: ToolForm) -> str:
    """A tool in a line; one that a block of text calls has no example in JSON."""
    is_text = form.blocks and tool.name in text_arguments
    description = _example.sub("", tool.description).strip() if is_text else tool.description
    if is_text and tool.name in PROGRAMS:
        return f"- {tool.name}: {description}"
    arguments = tool.parameters.get("properties", {})
    return f"- {tool.name}: {description} Arguments: {json.dumps(arguments, ensure_ascii=False)}"


def _written(body: str, form: ToolForm, text_arguments: Mapping[str, str]) -> str:
    call = json.loads(body)
    return form.write(call["name"], call["arguments"], text_arguments.get(call["name"], ""))
