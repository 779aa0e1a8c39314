"""The native tool forms of the official templates of llama3.1 and mistral, as transformers renders them: what is
rendered here without transformers is the same text, and what they refuse is refused. Prompts of a run use these with
calls as text (``agent0.infra.engine.turn_forms``); ``test_official_templates`` has those."""

from typing import Any

import pytest
from jinja2 import TemplateError

from agent0.infra.engine.folder_template import renderer
from agent0.infra.engine.turn_forms import described_tool
from tests.engine.test_official_templates import CONVERSATIONS, TOOLS, Message, tokenizer_with

MARKS = {
    "llama3.1": ('{"name": "python", "parameters": {"code": ', "<|start_header_id|>ipython<|end_header_id|>"),
    "mistral-v0.3": ('[TOOL_CALLS] [{"name": "python", "arguments": {"code": ', "[TOOL_RESULTS] "),
}


def native(conversation: list[Message]) -> list[Message]:
    """The conversation with what these templates demand: an id of nine characters a call, its result by that id."""
    found, ids = list[Message](), list[str]()
    for message in conversation:
        if calls := message.get("tool_calls"):
            ids = [f"call{len(found):03}{n:02}" for n in range(len(calls))]
            own = [call | {"id": one} for call, one in zip(calls, ids, strict=True)]
            found.append({**message, "tool_calls": own})
        elif message["role"] == "tool" and ids:
            found.append({**message, "tool_call_id": ids.pop(0)})
        else:
            found.append(message)
    return found


def outcome(render: Any) -> str:
    """The text, or that it was refused with which words."""
    try:
        return str(render())
    except TemplateError as error:
        return f"refused: {error}"


@pytest.mark.parametrize("template", MARKS)
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_native_conversations_are_rendered_as_by_transformers(template: str, name: str) -> None:
    conversation, with_tools = CONVERSATIONS[name]
    tokenizer, sent = tokenizer_with(template), native(conversation)
    tools = [described_tool(tool) for tool in TOOLS] if with_tools else []
    ours = renderer(tokenizer.chat_template, {k: str(v) for k, v in tokenizer.special_tokens_map.items()})
    expected = outcome(
        lambda: tokenizer.apply_chat_template(sent, tools=tools or None, add_generation_prompt=True, tokenize=False)
    )
    assert outcome(lambda: ours(sent, tools, True)) == expected
    calls = [call for message in sent for call in message.get("tool_calls", ())]
    if calls and not expected.startswith("refused"):
        assert all(mark in expected for mark in MARKS[template])


def test_what_the_native_forms_cannot_take() -> None:
    """Why a run sends calls as text there: no two calls in a turn, no text beside one, no result without a call."""
    several, _ = CONVERSATIONS["several calls, several results"]
    llama = renderer(tokenizer_with("llama3.1").chat_template, {"bos_token": ""})
    assert "single tool-calls" in outcome(lambda: llama(native(several), [], True))
    beside, _ = CONVERSATIONS["a call and its result"]
    assert "I compute." not in outcome(lambda: llama(native(beside), [], True))
    malformed, _ = CONVERSATIONS["a malformed call"]
    mistral = renderer(tokenizer_with("mistral-v0.3").chat_template, {"bos_token": "", "eos_token": ""})
    assert "Tool call IDs" in outcome(lambda: mistral(native(malformed), [], True))
