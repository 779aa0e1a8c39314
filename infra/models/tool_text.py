"""A conversation as plain messages, for servers that tokenise text themselves: tools, calls and their results as text.

Servers lose what they read as native calls: Ollama's template of qwen2.5 prints either the content or the calls of a
turn, and of a malformed call nothing is left. So the request names no tools: what the official template of Qwen2.5
would say of them stands in the system message, and a call stays the text that the model wrote.
"""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from agent0.chat_format import CLOSE, OPEN
from agent0.events.values import Turn
from agent0.ports.models import GenerateRequest, Sampling, ToolSpec

_mark = re.compile(r"<(?=[|/]?[A-Za-z\uff5c|][\w\uff5c|]{0,40}>|\|)|\[(?=/?INST\])")
_call = re.compile(f"({OPEN}|{CLOSE})")

_TOOLS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
"""From the chat template of Qwen2.5 (Apache-2.0), on which these models were trained."""


def messages(turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> list[dict[str, str]]:
    """Return ``turns`` as messages of role and content, the first with a description of ``tools``.

    The results of one turn's calls are one user message, as that template has it. What would be a control token of a
    chat template is broken up in all but our own prompts; marks of calls stay where the assistant wrote them.
    """
    first = [turn.content for turn in turns[:1] if turn.role == "system"]
    system = [*first, *([_TOOLS.format("\n".join(map(_signature, tools)))] if tools else [])]
    out = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    for role, group in groupby(turns[len(first) :], lambda turn: turn.role):
        contents = [turn.content for turn in group]
        match role:
            case "tool":
                results = (f"<tool_response>\n{harmless(content)}\n</tool_response>" for content in contents)
                out.append({"role": "user", "content": "\n".join(results)})
            case "assistant":
                out += [{"role": role, "content": _assistant_text(content)} for content in contents]
            case "user":
                out += [{"role": role, "content": harmless(content)} for content in contents]
            case _:
                out += [{"role": role, "content": content} for content in contents]
    return out


def with_calls(text: str, calls: Iterable[Sequence[str]]) -> str:
    """Put calls (name, arguments), which a server with a parser of its own read out of the text, back behind it.

    Arguments are text as the model wrote it: what is no JSON stays so, and our parser says so.
    """
    blocks = []
    for name, arguments in calls:
        written = arguments.replace("<", "\\u003c") if "tool_call>" in arguments else arguments
        blocks.append(f'{OPEN}\n{{"name": {json.dumps(name)}, "arguments": {written}}}\n{CLOSE}')
    return "\n".join([text.strip(), *blocks] if text.strip() else blocks) if blocks else text


def harmless(text: str) -> str:
    """``text`` with a zero-width space inside every mark that a chat template could take for its own."""
    return _mark.sub(lambda match: match[0] + "\u200b", text)


def _assistant_text(text: str) -> str:
    """What an assistant wrote: marks of calls are its own."""
    return "".join(part if part in (OPEN, CLOSE) else harmless(part) for part in _call.split(text))


def _signature(tool: ToolSpec) -> str:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


ATTEMPT = GenerateRequest(
    (
        Turn(role="user", content="What is 12+30?"),
        Turn(role="assistant", content="I compute it."),
        Turn(role="tool", name="python", content="42"),
    ),
    Sampling(max_tokens=1),
)
"""What an attempt that calls a tool consists of; one token is written."""
