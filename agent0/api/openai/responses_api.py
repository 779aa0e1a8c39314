"""OpenAI's Responses API over the one chat: a request translated, and the turn that answers it. What would change an
answer and is not served is refused. https://platform.openai.com/docs/api-reference/responses"""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from agent0.api.openai.answers import Json, sampled_logprobs, written
from agent0.api.openai.asking import translated
from agent0.api.openai.streams import message_of, typed_event
from agent0.api.openai.wire import LONGEST, ChatRequest, Format, MessagePart, Name
from agent0.api.problems import ProblemDocument
from agent0.ports.models import Generation
from agent0.settings import LARGEST

LOGPROBS = "message.output_text.logprobs"
"""The value of ``include`` that asks for log-probabilities."""


class ContentPart(MessagePart):
    """A text within the content of a message."""

    type: Literal["input_text", "output_text", "text"]
    text: str


class MessageItem(MessagePart):
    """A message of the conversation, with its role."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[ContentPart]


class CallItem(MessagePart):
    """A tool call that an earlier assistant turn made."""

    type: Literal["function_call"]
    call_id: str = Field(max_length=200)
    name: Name
    arguments: str = "{}"


class OutputItem(MessagePart):
    """What a tool answered to the call of this id."""

    type: Literal["function_call_output"]
    call_id: str = Field(max_length=200)
    output: str | list[ContentPart]


class ReasoningItem(MessagePart):
    """A thought of an earlier turn, which is not sent to a model again."""

    type: Literal["reasoning"]


Item = CallItem | OutputItem | ReasoningItem | MessageItem


class FunctionTool(MessagePart):
    """A tool that the model may call; those that OpenAI's servers execute are refused."""

    type: Literal["function"]
    name: Name
    description: str | None = None
    parameters: dict[str, object] | None = None

    def chat_tool(self) -> Json:
        """Translate it to a tool of a chat."""
        named = {"name": self.name, "description": self.description or "", "parameters": self.parameters or {}}
        return {"type": "function", "function": named}


class TextOptions(MessagePart):
    """What an answer is to be: text, nothing else."""

    format: Format | None = None


class ResponsesRequest(MessagePart):
    """A request for the next turn in the shape of the Responses API. ``return_token_ids`` adds ``prompt_token_ids`` and
    ``token_ids``; ``include`` with ``message.output_text.logprobs`` has log-probabilities."""

    model: str = Field(max_length=200, description="as of a chat")
    input: str | list[Item] = Field(max_length=1_000_000)
    instructions: str | None = None
    max_output_tokens: int | None = Field(None, ge=1, le=LONGEST)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    tools: list[FunctionTool] | None = Field(None, max_length=64)
    tool_choice: Literal["auto", "none"] | None = None
    text: TextOptions | None = None
    stream: bool | None = False
    include: list[str] | None = Field(None, max_length=16)
    background: Literal[False] | None = None
    previous_response_id: None = None
    conversation: None = None
    return_token_ids: bool | None = False
    seed: int | None = Field(None, ge=-LARGEST, le=LARGEST)

    def chat(self) -> ChatRequest:
        """Translate it to a request for a chat.

        Raises:
            RequestValidationError: something of it is not served there.
        """
        return translated(
            model=self.model,
            messages=self._messages(),
            max_tokens=self.max_output_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            tools=[tool.chat_tool() for tool in self.tools] if self.tools else None,
            tool_choice=self.tool_choice,
            stream=self.stream,
            logprobs=LOGPROBS in (self.include or ()),
            return_token_ids=self.return_token_ids,
            seed=self.seed,
        )

    def _messages(self) -> list[Json]:
        """A turn is one message of a chat, and may be several items here: its text, and each of its calls."""
        messages: list[Json] = [{"role": "system", "content": self.instructions}] if self.instructions else []
        items = [MessageItem(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        last: Json = {}
        for item in items:
            if isinstance(item, ReasoningItem):
                continue
            if isinstance(item, OutputItem):
                message: Json = {"role": "tool", "content": joined(item.output), "tool_call_id": item.call_id}
            elif isinstance(item, MessageItem):
                message = {"role": item.role, "content": joined(item.content)}
            elif last.get("role") == "assistant":
                calls = last.get("tool_calls")
                last["tool_calls"] = [*(calls if isinstance(calls, list) else []), _called(item)]
                continue
            else:
                message = {"role": "assistant", "content": None, "tool_calls": [_called(item)]}
            messages.append(last := message)
        return messages


def joined(content: str | list[ContentPart]) -> str:
    """Return the text of a content, be it in parts or not."""
    return content if isinstance(content, str) else "".join(part.text for part in content)


def _called(item: CallItem) -> Json:
    return {"id": item.call_id, "type": "function", "function": {"name": item.name, "arguments": item.arguments}}


def response_body(source: ResponsesRequest, request: ChatRequest, model: str, generation: Generation) -> Json:
    """Make the response to a request for no stream."""
    return _ended(_head(source, model), _items(request, generation), request, generation)


def _head(source: ResponsesRequest, model: str) -> Json:
    return {
        "id": f"resp_{secrets.token_hex(12)}",
        "object": "response",
        "created_at": int(datetime.now(UTC).timestamp()),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": source.instructions,
        "max_output_tokens": source.max_output_tokens,
        "metadata": {},
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": False,
        "temperature": 1.0 if source.temperature is None else source.temperature,
        "text": {"format": {"type": "text"}},
        "tool_choice": source.tool_choice or "auto",
        "tools": [tool.model_dump() | {"strict": False} for tool in source.tools or ()],
        "top_p": source.top_p or 1.0,
        "truncation": "disabled",
        "usage": None,
    }


def _items(request: ChatRequest, generation: Generation) -> list[Json]:
    """What the turn is made of: its text, and each of its calls."""
    text, calls = written(request, generation)
    items = [_message(f"msg_{secrets.token_hex(12)}", text or "", request, generation)] if text or not calls else []
    for call in calls:
        function = call["function"]
        assert isinstance(function, dict)  # noqa: S101 - ``written`` makes it
        named = {"id": f"fc_{secrets.token_hex(12)}", "call_id": call["id"], "status": "completed"}
        items.append({"type": "function_call", **named, **function})
    return items


def _message(id: str, text: str, request: ChatRequest, generation: Generation) -> Json:
    logprobs = sampled_logprobs(generation)["content"] if request.logprobs else []
    part: Json = {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
    return {"type": "message", "id": id, "status": "completed", "role": "assistant", "content": [part]}


def _ended(head: Json, items: list[Json], request: ChatRequest, generation: Generation) -> Json:
    cut = generation.finish == "length"
    read, wrote = generation.usage.prompt_tokens, generation.usage.completion_tokens
    counts = {"input_tokens": read, "output_tokens": wrote, "total_tokens": read + wrote}
    details = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    body = head | {"output": items, "usage": counts | details, "status": "incomplete" if cut else "completed"}
    body |= {"incomplete_details": {"reason": "max_output_tokens"}} if cut else {}
    ids = {"prompt_token_ids": [*generation.prompt_ids], "token_ids": [*generation.token_ids]}
    return body | (ids if request.return_token_ids else {})


class ResponseEvents:
    """A turn in the events of the Responses API, numbered from 0."""

    def __init__(self, source: ResponsesRequest, request: ChatRequest, model: str) -> None:
        self._request, self._head = request, _head(source, model)
        self._number, self._id, self._text = -1, f"msg_{secrets.token_hex(12)}", ""
        self._open = False

    def begin(self) -> Iterator[str]:
        """Begin the response, with nothing in it yet."""
        yield self._event("response.created", response=self._head)
        yield self._event("response.in_progress", response=self._head)

    def text(self, piece: str) -> Iterator[str]:
        """Send more of the text of the one message."""
        if not self._open:
            item: Json = {"type": "message", "id": self._id, "status": "in_progress", "role": "assistant"}
            yield self._event("response.output_item.added", output_index=0, item=item | {"content": []})
            part: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            yield self._event("response.content_part.added", **self._position(), part=part)
        self._open = True
        self._text += piece
        if piece:
            yield self._event("response.output_text.delta", **self._position(), delta=piece, logprobs=[])

    def end(self, generation: Generation) -> Iterator[str]:
        """Send what is left of text and tool calls, then the whole response."""
        items = _items(self._request, generation)
        if self._open:  # what was sent is the text, and there are no calls
            items = [_message(self._id, self._text, self._request, generation)]
        for index, item in enumerate(items):
            yield from self._message_ended(item) if item["type"] == "message" else self._called(index, item)
        body = _ended(self._head, items, self._request, generation)
        yield self._event(f"response.{body['status']}", response=body)

    def failure(self, problem: ProblemDocument) -> str:
        """Send the response as one that failed."""
        error = {"code": "server_error", "message": message_of(problem)}
        return self._event("response.failed", response=self._head | {"status": "failed", "error": error})

    def _message_ended(self, item: Json) -> Iterator[str]:
        content = item["content"]
        assert isinstance(content, list)  # noqa: S101 - ``_message`` makes it
        part: Json = content[0]
        if not self._open:
            self._id = str(item["id"])
            yield from self.text(str(part["text"]))
        sent = {"text": part["text"], "logprobs": part["logprobs"]}
        yield self._event("response.output_text.done", **self._position(), **sent)
        yield self._event("response.content_part.done", **self._position(), part=part)
        yield self._event("response.output_item.done", output_index=0, item=item)

    def _called(self, index: int, item: Json) -> Iterator[str]:
        at: Json = {"item_id": item["id"], "output_index": index}
        begun = item | {"arguments": "", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=index, item=begun)
        yield self._event("response.function_call_arguments.delta", **at, delta=item["arguments"])
        sent = {"name": item["name"], "arguments": item["arguments"]}
        yield self._event("response.function_call_arguments.done", **at, **sent)
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _position(self) -> Json:
        return {"item_id": self._id, "output_index": 0, "content_index": 0}

    def _event(self, type: str, **fields: object) -> str:
        self._number += 1
        return typed_event({"type": type, "sequence_number": self._number, **fields})
