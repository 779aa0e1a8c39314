"""Reads what a server writes, part by part as it comes, into replies. No connection here.

An answer that is not streamed is read as one part. Several choices of one call are told apart by their index.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, Literal

from agent0.events.values import Capture
from agent0.infra.models.calls.contents import NativeCalls, text_of, thought_of
from agent0.infra.models.calls.counts import count_of, logprob, margin, token_id, usage_in
from agent0.infra.models.openai.dialects import Way
from agent0.infra.models.tool_text import with_calls
from agent0.ports.models import Sampling, Served

HALF = "\ufffd"
"""What a decoder makes of part of a character."""
UNFINISHED = (None, "", "abort", "error")
"""Reasons for an end that are none: such an answer counts as cut."""
SAYS: Mapping[str, str] = {"model": "model", "provider": "host", "system_fingerprint": "fingerprint"}
"""Fields of an answer in OpenAI's form, and of ``Served``. ``provider`` is OpenRouter's."""


@dataclass(frozen=True)
class ServerReply:
    """A server's answer as read. ``pieces`` are the texts of the tokens; ``read`` is how many prompt tokens it
    counted. ``hides``: it wrote tokens that it tells nothing of. ``counted``: its own usage, as it gave it;
    ``served`` what it says of itself; ``thinking``: thoughts that came apart from the text."""

    text: str
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    pieces: tuple[str, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    finish: Literal["stop", "length"] = "stop"
    read: int = 0
    written: int = 0
    hides: bool = False
    counted: Mapping[str, object] = field(default_factory=dict)
    served: Served = field(default_factory=Served)
    margins: tuple[float, ...] = ()
    thinking: str = ""

    @property
    def capture(self) -> Capture:
        """How much of the tokens is known."""
        if self.ids and self.prompt_ids and len(self.ids) == len(self.logprobs) and not self.hides:
            return "tokens"
        return "logprobs" if self.logprobs else "text"

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the text of each token ends; empty where its pieces do not spell the text. Control tokens, as the end
        of a turn, are in no text: some servers name them all the same."""
        position, ends = 0, list[int]()
        for piece in self.pieces:
            position += len(piece) if self.text.startswith(piece, position) else 0
            ends.append(position)
        return tuple(ends) if position == len(self.text) else ()

    def until(self, stops: Collection[int]) -> "ServerReply":
        """Without anything after the first of ``stops``: a server may know another end of a turn."""
        ends = next((n + 1 for n, token in enumerate(self.ids) if token in stops), 0)
        if not ends:
            return self
        margins = self.margins[:ends]
        return replace(self, ids=self.ids[:ends], logprobs=self.logprobs[:ends], margins=margins, finish="stop")


@dataclass
class _Choice:
    """One answer so far. ``why`` it ended is empty until it has."""

    text: str = ""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float | None] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    calls: NativeCalls = field(default_factory=NativeCalls)
    thinking: str = ""
    margins: list[float] = field(default_factory=list)
    why: str = ""
    written: int = 0


class Reading:
    """Reads the ``count`` answers to one call, asked for in the way ``way``. ``spell``: what text token ids are, where
    that is known here."""

    def __init__(self, way: Way, count: int = 1, spell: Callable[[Sequence[int]], str] | None = None) -> None:
        self._choices, self._spell = [_Choice() for _ in range(count)], spell
        self._prompt: tuple[int, ...] = ()
        self._read = self._written = 0
        self._counted: Mapping[str, object] = {}
        self._said: dict[str, str] = {}
        self.limits: Mapping[str, str] = {}
        self._take = {"llama.cpp": self._llama, "sglang": self._sglang}.get(way.dialect, self._openai)

    @property
    def begun(self) -> bool:
        """Whether anything was written."""
        return any(choice.text or choice.ids or choice.thinking or choice.calls.calls for choice in self._choices)

    @property
    def whole(self) -> bool:
        """Whether every answer has ended."""
        return all(choice.why not in UNFINISHED for choice in self._choices)

    @property
    def prose(self) -> str:
        """The text of the first answer so far, without calls; the server's own where its ids do not spell one."""
        answer = self._choices[0]
        spelt = self._spell(answer.ids) if self._spell else HALF
        return answer.text if HALF in spelt else spelt

    def add(self, part: Any) -> None:
        """Read one more part.

        Raises:
            KeyError, IndexError, TypeError, ValueError, AttributeError: it is not what such a server answers.
        """
        self._take(part)

    def replies(self) -> list[ServerReply]:
        """Return the answers in the order of their index."""
        return [self._reply(choice) for choice in self._choices]

    def _reply(self, choice: _Choice) -> ServerReply:
        logprobs = [value for value in choice.logprobs if value is not None]
        complete = len(logprobs) == len(choice.logprobs)  # a token without a log-probability leaves none
        reported = len(choice.ids) or len(choice.logprobs)
        alone = self._written if len(self._choices) == 1 else 0
        return ServerReply(
            text=with_calls(choice.text, choice.calls.pairs()),
            thinking=choice.thinking,
            ids=tuple(choice.ids),
            logprobs=tuple(logprobs) if complete else (),
            pieces=tuple(choice.pieces) if complete else (),
            prompt_ids=self._prompt,
            finish="length" if choice.why == "length" else "stop",
            read=self._read,
            written=choice.written or alone or reported,
            hides=choice.written > reported > 0,
            counted=self._counted,
            served=Served(**self._said, limits=self.limits),
            margins=tuple(choice.margins) if len(choice.margins) == len(choice.logprobs) else (),
        )

    def _llama(self, part: Mapping[str, Any]) -> None:
        """llama.cpp's own; it tells nothing of a token whose text ends within a character."""
        answer = self._choices[int(part.get("index") or 0)]
        answer.text += text_of(part["content"])
        for step in part.get("completion_probabilities") or ():
            answer.ids.append(token_id(step["id"]))
            answer.logprobs.append(logprob(step["logprob"]))
            answer.margins += margin([other["logprob"] for other in step.get("top_logprobs") or ()])
        if part["stop"]:
            self._read, answer.written = count_of(part["tokens_evaluated"]), count_of(part["tokens_predicted"])
            answer.why = "length" if part["stop_type"] == "limit" else "stop"

    def _sglang(self, part: Mapping[str, Any]) -> None:
        """SGLang's own: each part has all that was written, or, where the server was started so, only what is new."""
        answer, meta = self._choices[int(part.get("index") or 0)], part["meta_info"]
        steps = [(logprob(step[0]), token_id(step[1])) for step in meta["output_token_logprobs"]]
        answer.written, self._read = count_of(meta["completion_tokens"]), count_of(meta["prompt_tokens"])
        kept = answer.written - len(steps)
        answer.ids = [*answer.ids[:kept], *(token for _, token in steps)]
        answer.logprobs = [*answer.logprobs[:kept], *(value for value, _ in steps)]
        answer.text = text_of(part["text"]) if not kept else answer.text + text_of(part["text"])
        reason = meta.get("finish_reason")
        answer.why = str(reason["type"] if isinstance(reason, dict) else reason or "")

    def _openai(self, part: Mapping[str, Any]) -> None:
        usage = usage_in(part)
        self._counted = usage or self._counted
        self._read = count_of(usage.get("prompt_tokens")) or self._read
        self._written = count_of(usage.get("completion_tokens")) or self._written
        for key, name in SAYS.items():
            self._said[name] = str(part.get(key) or self._said.get(name, ""))
        for choice in part["choices"] or ():
            answer = self._choices[int(choice.get("index") or 0)]
            keys = [key for key in ("delta", "message") if key in choice]
            message = (choice[keys[0]] or {}) if keys else {"content": choice["text"]}
            answer.text += text_of(message.get("content"))
            answer.thinking += thought_of(message)
            answer.calls.add(message)
            answer.ids += map(token_id, choice.get("token_ids") or ())
            self._prompt = tuple(map(token_id, choice.get("prompt_token_ids") or ())) or self._prompt
            for piece, value, top in _steps(choice.get("logprobs") or {}):
                answer.pieces.append(piece)
                answer.logprobs.append(logprob(value))
                answer.margins += margin(top)
            answer.why = str(choice.get("finish_reason") or answer.why or ("stop" if "message" in choice else ""))
        self._prompt = tuple(map(token_id, part.get("prompt_token_ids") or ())) or self._prompt


def _steps(logprobs: Mapping[str, Any]) -> list[tuple[str, float | None, Sequence[float]]]:
    """Texts, log-probabilities and those of the likeliest tokens, of a chat's ``content`` or of the older
    ``token_logprobs``."""
    if (content := logprobs.get("content")) is not None:
        tops = [[top["logprob"] for top in step.get("top_logprobs") or ()] for step in content]
        return [(str(step["token"]), step["logprob"], top) for step, top in zip(content, tops, strict=True)]
    values: Sequence[float | None] = logprobs.get("token_logprobs") or ()
    likeliest = [[*(top or {}).values()] for top in logprobs.get("top_logprobs") or ()]
    rows = zip(logprobs.get("tokens") or (), values, chain(likeliest, repeat([])), strict=False)
    return [(str(token), value, top) for token, value, top in rows]


def untrainable(reply: ServerReply, sampling: Sampling, *, constrained: bool = False) -> str:
    """Why nothing may be trained on ``reply``: a server's log-probabilities are those of the whole distribution at
    temperature 1, so sampling must have been from it, and not ``constrained`` to a schema. Empty where it was."""
    if constrained:
        return "it was held to a schema, and the server's log-probabilities are for any text"
    if reply.hides:
        return "the server hides tokens whose text ends within a character"
    if reply.capture != "tokens":
        return "the server gives no token ids" if reply.logprobs else "the server gives text only"
    if sampling.temperature != 1:
        return f"it was sampled at temperature {sampling.temperature:g}, and the server's log-probabilities are for 1"
    if sampling.top_p < 1:
        return f"it was sampled with top_p {sampling.top_p:g}, and the server's log-probabilities are for 1"
    return ""
