"""Anthropic's Messages API: what is asked, and the parts of a streamed answer. No connection here.

Tools are described in the text and called in it, as for every other server (``agent0.infra.models.tool_text``). A call
that comes as a block of its own nevertheless is put back into the text.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent0.infra.models.calls.counts import usage_in
from agent0.infra.models.tool_text import messages, with_calls
from agent0.ports.models import GenerateRequest, Served

CUT = ("max_tokens", "model_context_window_exceeded")
"""Reasons for an end that is none of the model's choice."""


def body(request: GenerateRequest, model: str, thinking: str = "") -> dict[str, object]:
    """The request as it is sent. It has one of temperature and top_p: newer models refuse both together, and no seed,
    which the API does not have. ``thinking`` as ``run.<role>.thinking``: ``on`` may take half of the tokens."""
    turns = messages(request.turns, request.tools)
    system = [turn["content"] for turn in turns if turn["role"] == "system"]
    sampling = request.sampling
    payload: dict[str, object] = {"model": model, "max_tokens": sampling.max_tokens, "stream": True}
    payload["messages"] = [turn for turn in turns if turn["role"] != "system"]
    payload |= {"system": "\n\n".join(system)} if system else {}
    payload |= {"top_p": sampling.top_p} if sampling.top_p < 1 else {"temperature": sampling.temperature}
    payload |= {"stop_sequences": list(sampling.stop)} if sampling.stop else {}
    output: dict[str, object] = {"format": {"type": "json_schema", "schema": request.schema}} if request.schema else {}
    if thinking in ("off", "on"):
        budget = {"type": "enabled", "budget_tokens": sampling.max_tokens // 2}
        payload["thinking"] = budget if thinking == "on" else {"type": "disabled"}
    elif thinking:
        payload["thinking"], output = {"type": "adaptive"}, output | {"effort": thinking}
    return payload | ({"output_config": output} if output else {})


@dataclass
class _Block:
    """One block of an answer so far. ``name`` is that of a tool that it calls."""

    kind: str
    name: str = ""
    text: str = ""


@dataclass
class MessageReading:
    """An answer as far as it has come. ``usage`` is that of its end: the beginning has a provisional one."""

    stopped: str = ""
    ended: bool = False
    model: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)
    _blocks: dict[int, _Block] = field(default_factory=dict)
    _first: Mapping[str, object] = field(default_factory=dict)
    _last: Mapping[str, object] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        """Whether anything was written."""
        return bool(self._blocks)

    @property
    def whole(self) -> bool:
        """Whether it has ended."""
        return self.ended and bool(self.stopped)

    @property
    def finish(self) -> Literal["stop", "length"]:
        """How it ended."""
        return "length" if self.stopped in CUT else "stop"

    @property
    def text(self) -> str:
        """What was written, calls behind it."""
        calls = [(block.name, block.text or "{}") for block in self._in_order if block.kind == "tool_use"]
        return with_calls(self.prose, calls)

    @property
    def prose(self) -> str:
        """What was written but for calls. A thought that comes in a block of its own is no part of it."""
        return "".join(block.text for block in self._in_order if block.kind == "text")

    @property
    def thinking(self) -> str:
        """Its thoughts, as far as the vendor shows them."""
        return "".join(block.text for block in self._in_order if block.kind == "thinking")

    @property
    def _in_order(self) -> list[_Block]:
        return [self._blocks[index] for index in sorted(self._blocks)]

    @property
    def counted(self) -> Mapping[str, object]:
        """The server's own count of tokens; empty where its end has none."""
        counts = {name: count for name, count in self._last.items() if count is not None}
        return {**self._first, **counts} if "output_tokens" in counts else {}

    @property
    def served(self) -> Served:
        """What it says of itself."""
        return Served(model=self.model, limits=self.limits)

    def add_whole(self, message: Mapping[str, Any]) -> None:
        """Read an answer that was not streamed; errors as for ``add``."""
        self.add({"type": "message_start", "message": message})
        for index, block in enumerate(message["content"]):
            self.add({"type": "content_block_start", "index": index, "content_block": block})
            if block["type"] == "tool_use":
                delta = {"partial_json": json.dumps(block["input"])}
                self.add({"type": "content_block_delta", "index": index, "delta": delta})
        self.add({"type": "message_delta", "delta": message, "usage": message.get("usage")})
        self.add({"type": "message_stop"})

    def add(self, part: Any) -> None:
        """Read one more part.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: it is not what such a server answers.
        """
        match part["type"]:
            case "message_start":
                self.model = str(part["message"]["model"])
                self._first = usage_in(part["message"])
            case "content_block_start":
                block = part["content_block"]
                text = str(block.get("text") or block.get("thinking") or "")
                self._blocks[part["index"]] = _Block(block["type"], str(block.get("name") or ""), text)
            case "content_block_delta":
                delta = part["delta"]
                self._blocks[part["index"]].text += str(
                    delta.get("text") or delta.get("partial_json") or delta.get("thinking") or ""
                )
            case "message_delta":
                self.stopped = str(part["delta"].get("stop_reason") or "")
                self._last = usage_in(part)
            case "message_stop":
                self.ended = True
