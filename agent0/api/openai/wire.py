"""The shapes of a chat as OpenAI's API has them, as far as they are served. What would change an answer and is not
served is refused rather than ignored."""

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent0.chat_format import format_call
from agent0.events.values import Turn
from agent0.ports.models import Sampling, ToolSpec
from agent0.settings import LARGEST

LONGEST = 32_768
MOST = 8
"""Choices of one request."""
Name = Annotated[str, Field(pattern="^[A-Za-z0-9_.-]{1,64}$")]
ROUTED = "router/"
"""What the name of a role's model begins with."""


class MessagePart(BaseModel):
    """Base of what a request is made of: fields that are not known are ignored."""

    model_config = ConfigDict(extra="ignore")


class TextPart(MessagePart):
    """A part of a message, the one kind that is read."""

    type: Literal["text"]
    text: str


class Called(MessagePart):
    """The function of a tool call; ``arguments`` is JSON as text."""

    name: Name
    arguments: str = "{}"


class ToolCall(MessagePart):
    """A tool call that an earlier assistant turn made."""

    id: str = ""
    type: Literal["function"] = "function"
    function: Called


class Message(MessagePart):
    """A message of the conversation so far, in OpenAI's roles."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str = ""

    def text(self) -> str:
        """Its words, tool calls as the model writes them behind."""
        parts = [self.content] if isinstance(self.content, str) else [part.text for part in self.content or ()]
        calls = "\n".join(_as_written(call.function) for call in self.tool_calls or ())
        return "".join([*parts, calls])


class FunctionDefinition(MessagePart):
    """A tool that the model may call, with its schema."""

    name: Name
    description: str = ""
    parameters: dict[str, object] = {}


class Tool(MessagePart):
    """A tool, wrapped as OpenAI's API wraps a function."""

    type: Literal["function"] = "function"
    function: FunctionDefinition


class Format(MessagePart):
    """What an answer is to be: text, nothing else."""

    type: Literal["text"]


class StreamOptions(MessagePart):
    """Whether the last part of a stream counts tokens."""

    include_usage: bool = False


class ChatRequest(MessagePart):
    """A request for the next turn of a conversation. ``return_token_ids`` adds ``prompt_token_ids`` and, in each
    choice, ``token_ids``. Log-probabilities are those of the distribution that was sampled from. ``routed``: models
    that stand in for the student may answer, as its run's strategy chooses (``run.student.distil_from``). ``served_by``
    names the model that answers, where several may."""

    model: str = Field(max_length=200, description="RUN/CHECKPOINT, RUN/base, or an adapter's digest; LAST is a run")
    messages: list[Message] = Field(min_length=1, max_length=1000)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: int | None = Field(None, ge=1, le=LONGEST)
    max_completion_tokens: int | None = Field(None, ge=1, le=LONGEST)
    seed: int | None = Field(None, ge=-LARGEST, le=LARGEST)
    n: int | None = Field(1, ge=1, le=MOST)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    logprobs: bool | None = False
    top_logprobs: Literal[0] | None = None
    return_token_ids: bool | None = False
    routed: bool | None = False
    tools: list[Tool] | None = Field(None, max_length=64)
    tool_choice: Literal["auto", "none"] | None = None
    response_format: Format | None = None
    stop: None = None
    logit_bias: None = None

    @property
    def chooses(self) -> bool:
        """Whether several models may answer, of which a strategy or a budget chooses."""
        return bool(self.routed) or self.model.startswith(ROUTED)

    def turns(self) -> tuple[Turn, ...]:
        """The conversation."""
        names = {
            call.id: call.function.name for message in self.messages for call in message.tool_calls or () if call.id
        }
        return tuple(
            Turn(
                role="system" if message.role == "developer" else message.role,
                content=message.text(),
                name=names.get(message.tool_call_id, "") if message.role == "tool" else "",
            )
            for message in self.messages
        )

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that are described to the model."""
        if self.tool_choice == "none":
            return ()
        functions = [tool.function for tool in self.tools or ()]
        return tuple(ToolSpec(function.name, function.description, function.parameters) for function in functions)

    def sampling(self, seed: int) -> Sampling:
        """How the turn is drawn."""
        return Sampling(
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=self.top_p or 1.0,
            max_tokens=self.max_completion_tokens or self.max_tokens or Sampling().max_tokens,
            seed=seed,
        )


def _as_written(called: Called) -> str:
    try:
        arguments = json.loads(called.arguments)
    except ValueError:
        arguments = called.arguments
    return format_call(called.name, arguments if isinstance(arguments, dict) else {"input": arguments})
