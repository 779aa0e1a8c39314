"""How a chat template takes a conversation: found out once by rendering one, so that nothing is lost on the way.

Templates that speak the marks of Qwen2.5 (``<tool_call>``, ``<tool_response>``) get tools and results as they are. All
others would drop them, quote them, demand ids of calls or teach a form of calls that is not read here; they get both as
text, as model servers do (``agent0.infra.models.tool_text``). A template that knows no system turn gets it with the
first user's. Calls in our prompts are written as the template writes them, where it has a form of its own.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from jinja2 import TemplateError

from agent0.chat_format import CLOSE, OPEN, format_call
from agent0.errors import OperationError
from agent0.events.values import Turn
from agent0.infra.models.tool_text import harmless
from agent0.infra.models.tool_text import messages as as_text
from agent0.ports.models import ToolSpec

Message = dict[str, str]
Render = Callable[[Sequence[Message], Sequence[Mapping[str, object]], bool], str]
"""From messages, tools (as JSON schemas) and whether the assistant's next turn is opened, to the template's text."""

PAD = "\t"
"""Around every content: where it is gone, the template has trimmed."""
SENTINEL = '\u241f"{}\u241f'
"""In the place of a content; the quotation mark shows a template that writes contents as JSON."""
RESPONSE = "<tool_response>"
ROLES = ("system", "user", "assistant", "tool", "tool", "assistant", "user", "assistant", "tool", "assistant")
"""A conversation with all that a run sends: examples, several results of one turn, a call after another."""
FIX = "Take another model, or correct the chat template in its folder."
_call = re.compile(f"{OPEN}\n(.*?)\n{CLOSE}", re.DOTALL)
TOOL = ToolSpec("probe", "Probes.", {"type": "object", "properties": {"text": {"type": "string"}}})


@dataclass(frozen=True)
class Gap:
    """The template's text before a content (or after the last), and whether that content is trimmed on its left and
    right."""

    text: str
    left: bool = False
    right: bool = False

    def trimmed(self, content: str) -> str:
        """``content`` as the template would write it."""
        content = content.lstrip() if self.left else content
        return content.rstrip() if self.right else content


@dataclass(frozen=True)
class TurnForm:
    """``marked``: tools by argument and results as role tool, else both as text. ``system``: a system turn is one.
    ``write_call``: the template's own text of a call, from ours without its marks; None where that is ours."""

    marked: bool = True
    system: bool = True
    write_call: Callable[[str], str] | None = None

    def content(self, turn: Turn, gap: Gap) -> str:
        """The text of a turn that the assistant did not write, after ``gap``: trimmed as the template does it, and with
        the marks broken that only text tells from ours."""
        if turn.role == "system":
            return gap.trimmed(self.with_own_calls(turn.content))
        return gap.trimmed(turn.content if self.marked else harmless(turn.content))

    def with_own_calls(self, text: str) -> str:
        """Return a prompt's ``text``, or an example's, with calls as the template writes them."""
        write = self.write_call
        return _call.sub(lambda call: write(call[1]), text) if write else text

    def gaps(self, render: Render, roles: Sequence[str], tools: Sequence[ToolSpec], opened: bool) -> list[Gap]:
        """The text around the contents of turns with ``roles``: one gap before each, one after the last.

        Raises:
            OperationError: the template refuses the conversation, or drops a turn of it.
        """
        contents = [f"{PAD}{SENTINEL.format(n)}{PAD}" for n in range(len(roles))]
        turns = [Turn(role=cast(Any, role), content=content) for role, content in zip(roles, contents, strict=True)]
        if self.marked:
            sent = [{"role": turn.role, "content": turn.content} for turn in turns]
        else:
            sent = as_text(turns, tools)
            sent = sent if self.system else _folded(sent)
        described = [described_tool(tool) for tool in tools] if self.marked else []
        return _cut(rendered(render, sent, described, opened, roles), roles)


def form_of(render: Render) -> TurnForm:
    """The form that a template takes a whole conversation in.

    Raises:
        OperationError: it takes none; with what it said to the last that was tried.
    """
    refused: OperationError | None = None
    for form in (TurnForm(), TurnForm(marked=False), TurnForm(marked=False, system=False)):
        try:
            gaps = form.gaps(render, ROLES, [TOOL], True)
        except OperationError as error:
            refused = error
            continue
        if not form.marked:
            return form
        if any(RESPONSE in gap.text for gap in gaps):
            return replace(form, write_call=_call_writer(render))
    assert refused  # noqa: S101 - the last form is never left without one
    raise refused


def _call_writer(render: Render) -> Callable[[str], str] | None:
    """What writes a call as the template does; None where that is our form, or none."""
    user: Any = {"role": "user", "content": "?"}

    def turn_text(turn: Any) -> str:
        return rendered(render, [user, turn], [], False, ("user", "assistant"))

    before, _, after = turn_text({"role": "assistant", "content": SENTINEL}).partition(SENTINEL)

    @lru_cache(64)
    def write(body: str) -> str:
        ours = f"{OPEN}\n{body}\n{CLOSE}"
        try:
            function = json.loads(body)
            text = turn_text(
                {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}
            )
        except (OperationError, ValueError):
            return ours
        written = text.removeprefix(before).removesuffix(after).strip()
        return written if text.startswith(before) and function["name"] in written else ours

    probe = format_call(TOOL.name, {"text": "a"})
    return None if write(probe.removeprefix(f"{OPEN}\n").removesuffix(f"\n{CLOSE}")) == probe else write


def described_tool(tool: ToolSpec) -> dict[str, object]:
    """Describe ``tool`` as chat templates are given it."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _folded(sent: Sequence[Message]) -> list[Message]:
    """A leading system message before the content of the first user's."""
    if len(sent) < 2 or (sent[0]["role"], sent[1]["role"]) != ("system", "user"):
        return list(sent)
    first = {"role": "user", "content": f"{sent[0]['content']}\n\n{sent[1]['content']}"}
    return [first, *sent[2:]]


def rendered(
    render: Render, sent: Sequence[Message], tools: Sequence[Mapping[str, object]], opened: bool, roles: Sequence[str]
) -> str:
    """The template's text of a conversation of ``roles``.

    Raises:
        OperationError: the template refuses it.
    """
    try:
        return render(sent, tools, opened)
    except (TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
        why = f"Roles: {', '.join(roles)}. It says: {error}"[:300]
        raise OperationError("The chat template refuses a conversation.", why, FIX) from error


def _cut(text: str, roles: Sequence[str]) -> list[Gap]:
    """``text`` at its sentinels."""
    pieces = []
    for n, role in enumerate(roles):
        before, sentinel, text = text.partition(SENTINEL.format(n))
        if not sentinel:
            raise OperationError(f"The chat template drops turn {n} ({role}).", f"Roles: {', '.join(roles)}.", FIX)
        pieces.append(before)
    pieces.append(text)
    last = len(roles)
    return [
        Gap(
            piece[n > 0 and piece.startswith(PAD) :].removesuffix(PAD if n < last else ""),
            left=n < last and not piece.endswith(PAD),
            right=n < last and not pieces[n + 1].startswith(PAD),
        )
        for n, piece in enumerate(pieces)
    ]
