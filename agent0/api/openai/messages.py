"""Anthropic's Messages API over the one chat: a request translated, and the turn that answers it. What would change an
answer and is not served is refused. https://docs.anthropic.com/en/api/messages"""

import json
import secrets
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from agent0.api.openai.answers import Json, sampled_logprobs, written
from agent0.api.openai.asking import translated
from agent0.api.openai.streams import message_of, typed_event
from agent0.api.openai.wire import LONGEST, ChatRequest, MessagePart, Name
from agent0.api.problems import ProblemDocument
from agent0.ports.models import Generation
from agent0.settings import LARGEST


class TextBlock(MessagePart):
    """A text within the content of a message."""

    type: Literal["text"]
    text: str


class ThoughtBlock(MessagePart):
    """A thought of an earlier turn, which is not sent to a model again."""

    type: Literal["thinking", "redacted_thinking"]


class ToolUseBlock(MessagePart):
    """A tool call that an earlier assistant turn made."""

    type: Literal["tool_use"]
    id: str = Field(max_length=200)
    name: Name
    input: dict[str, object] = Field(default_factory=dict)


class ToolResultBlock(MessagePart):
    """What a tool answered to the call of this id."""

    type: Literal["tool_result"]
    tool_use_id: str = Field(max_length=200)
    content: str | list[TextBlock] = ""


Block = Annotated[TextBlock | ThoughtBlock | ToolUseBlock | ToolResultBlock, Field(discriminator="type")]


class InputMessage(MessagePart):
    """A message of the conversation, with its role."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]

    def chat_messages(self) -> Iterator[Json]:
        """The same as messages of a chat: results of tools are messages of their own there."""
        blocks = [TextBlock(type="text", text=self.content)] if isinstance(self.content, str) else self.content
        for block in blocks:
            if isinstance(block, ToolResultBlock):
                yield {"role": "tool", "content": joined(block.content), "tool_call_id": block.tool_use_id}
        text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
        calls = [_called(block) for block in blocks if isinstance(block, ToolUseBlock)]
        if text or calls or not any(isinstance(block, ToolResultBlock) for block in blocks):
            yield {"role": self.role, "content": text, "tool_calls": calls or None}


class ToolDefinition(MessagePart):
    """A tool that the model may call; those that Anthropic's servers execute are refused."""

    type: Literal["custom"] | None = None
    name: Name
    description: str = ""
    input_schema: dict[str, object]

    def chat_tool(self) -> Json:
        """Translate it to a tool of a chat."""
        function = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {"type": "function", "function": function}


class ToolChoice(MessagePart):
    """Whether tools are offered; no model here can be made to call one."""

    type: Literal["auto", "none"]


class MessagesRequest(MessagePart):
    """A request for the next turn in Anthropic's shape. ``return_token_ids`` adds ``prompt_token_ids``, ``token_ids``
    and ``logprobs``, ``seed`` is that of a chat: that shape has no place for them."""

    model: str = Field(max_length=200, description="as of a chat")
    messages: list[InputMessage] = Field(min_length=1, max_length=1000)
    max_tokens: int = Field(ge=1, le=LONGEST)
    system: str | list[TextBlock] = ""
    temperature: float | None = Field(None, ge=0, le=1)
    top_p: float | None = Field(None, gt=0, le=1)
    tools: list[ToolDefinition] | None = Field(None, max_length=64)
    tool_choice: ToolChoice | None = None
    stream: bool | None = False
    stop_sequences: list[str] | None = Field(None, max_length=0)
    top_k: None = None
    return_token_ids: bool | None = False
    seed: int | None = Field(None, ge=-LARGEST, le=LARGEST)

    def chat(self) -> ChatRequest:
        """Translate it to a request for a chat.

        Raises:
            RequestValidationError: something of it is not served there.
        """
        system = joined(self.system)
        return translated(
            model=self.model,
            messages=[
                *([{"role": "system", "content": system}] if system else []),
                *(each for message in self.messages for each in message.chat_messages()),
            ],
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            tools=[tool.chat_tool() for tool in self.tools] if self.tools else None,
            tool_choice=self.tool_choice.type if self.tool_choice else None,
            stream=self.stream,
            return_token_ids=self.return_token_ids,
            seed=self.seed,
        )


def joined(content: str | list[TextBlock]) -> str:
    """Return the text of a content, be it in blocks or not."""
    return content if isinstance(content, str) else "".join(block.text for block in content)


def _called(block: ToolUseBlock) -> Json:
    function = {"name": block.name, "arguments": json.dumps(block.input, ensure_ascii=False)}
    return {"id": block.id, "type": "function", "function": function}


def message_body(request: ChatRequest, model: str, generation: Generation) -> Json:
    """Make the response to a request for no stream."""
    text, calls = written(request, generation)
    blocks: list[Json] = [] if calls and not text else [{"type": "text", "text": text or ""}]
    blocks += [{**_started_call(call), "input": json.loads(_arguments(call))} for call in calls]
    usage = {"input_tokens": generation.usage.prompt_tokens, "output_tokens": generation.usage.completion_tokens}
    head = _head(model) | {"content": blocks, "stop_reason": _reason(generation, calls), "usage": usage}
    return head | _tokens(request, generation)


def _head(model: str) -> Json:
    named = {"id": f"msg_{secrets.token_hex(12)}", "type": "message", "role": "assistant", "model": model}
    usage = {"input_tokens": 0, "output_tokens": 0}
    return named | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}


def _reason(generation: Generation, calls: list[Json]) -> str:
    return "tool_use" if calls else "max_tokens" if generation.finish == "length" else "end_turn"


def _function(call: Json) -> Json:
    function = call["function"]
    assert isinstance(function, dict)  # noqa: S101 - ``written`` makes it
    return function


def _arguments(call: Json) -> str:
    return str(_function(call)["arguments"])


def _started_call(call: Json) -> Json:
    return {"type": "tool_use", "id": call["id"], "name": _function(call)["name"], "input": {}}


def _tokens(request: ChatRequest, generation: Generation) -> Json:
    if not request.return_token_ids:
        return {}
    ids = {"prompt_token_ids": [*generation.prompt_ids], "token_ids": [*generation.token_ids]}
    return ids | {"logprobs": sampled_logprobs(generation)}


class MessageEvents:
    """A turn in the events of Anthropic's streams. The prompt is counted at its end."""

    def __init__(self, request: ChatRequest, model: str) -> None:
        self._request, self._model = request, model
        self._block, self._sent = 0, False

    def begin(self) -> Iterator[str]:
        """Begin the message, with nothing in it yet."""
        yield typed_event({"type": "message_start", "message": _head(self._model)})

    def text(self, piece: str) -> Iterator[str]:
        """Send more of the one block of text."""
        if not self._sent:
            yield self._event("start", content_block={"type": "text", "text": ""})
        self._sent = True
        if piece:
            yield self._event("delta", delta={"type": "text_delta", "text": piece})

    def end(self, generation: Generation) -> Iterator[str]:
        """Send what is left of text and tool calls, why the turn ended, and the count of tokens."""
        text, calls = written(self._request, generation)
        if not self._sent and (text or not calls):
            yield from self.text(text or "")
        if self._sent:
            yield self._stopped()
        for call in calls:
            yield self._event("start", content_block=_started_call(call))
            yield self._event("delta", delta={"type": "input_json_delta", "partial_json": _arguments(call)})
            yield self._stopped()
        delta = {"stop_reason": _reason(generation, calls), "stop_sequence": None}
        usage = {"input_tokens": generation.usage.prompt_tokens, "output_tokens": generation.usage.completion_tokens}
        tokens = _tokens(self._request, generation)
        yield typed_event({"type": "message_delta", "delta": delta, "usage": usage} | tokens)
        yield typed_event({"type": "message_stop"})

    def failure(self, problem: ProblemDocument) -> str:
        """Send an error, behind which nothing more comes."""
        return typed_event({"type": "error", "error": {"type": "api_error", "message": message_of(problem)}})

    def _event(self, part: str, **fields: Json) -> str:
        return typed_event({"type": f"content_block_{part}", "index": self._block, **fields})

    def _stopped(self) -> str:
        event = self._event("stop")
        self._block += 1
        return event
