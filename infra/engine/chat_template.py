"""Turns to tokens and back. Three encoders, by trust: template text and forced prefixes may hold any added token,
an assistant's own text may hold markup but no control token, all other text is plain characters."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from agent0.errors import DependencyError, OperationError
from agent0.events.values import Turn
from agent0.infra.engine.turn_forms import Gap, Message, form_of
from agent0.ports.models import ToolSpec

Pieces = tuple[tuple[tuple[int, ...], Gap], ...]
"""The template's tokens before each content and after the last, with how that content is trimmed."""


class Chat:
    """A chat template, with ``arguments`` of its own, as token pieces around contents; Jinja runs once per sequence of
    roles, not per sample."""

    def __init__(self, tokenizer: Any, arguments: Mapping[str, object] | None = None) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise OperationError("This model has no chat template.", "Turns cannot be told apart without one.")
        self._tokenizer, self._arguments = tokenizer, dict(arguments or {})
        saved = tokenizer.backend_tokenizer.to_str()
        self._trusted = Tokenizer.from_str(saved)
        self._markup = Tokenizer.from_str(saved)
        self._markup.encode_special_tokens = True
        self._plain = Tokenizer.from_str(json.dumps({**json.loads(saved), "added_tokens": [], "post_processor": None}))
        self._form = form_of(self._render)
        self._pieces = lru_cache(maxsize=256)(self._cut)
        self._piece = lru_cache(maxsize=4096)(
            lambda token: str(self._trusted.decode([token], skip_special_tokens=False))
        )
        end = int(tokenizer.eos_token_id)
        closing, _ = self._pieces(("user", "assistant"), "", False)[-1]
        self.stop = closing[0] if closing else end
        """What the template closes an assistant's turn with; a base model's tokenizer may name another end of text."""
        self.stops = frozenset((self.stop, end))
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end)

    def prompt(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = (), prefill: str = "") -> list[int]:
        """The whole context up to and including the opening of the assistant's next turn and ``prefill``.

        It is what the template makes of the turns, but for what the assistant sampled: that stays as it was, token by
        token, with what it was sampled after, so that every context begins with the one before it.
        """
        ids: list[int] = []
        described = json.dumps([vars(tool) for tool in tools]) if tools else ""
        for part, _ in self._laid(turns, described, True):
            ids += part
        return ids + (self._ids(self._trusted, prefill) if prefill else [])

    def written(self, text: str) -> list[int]:
        """What an assistant writes, without the end of its turn."""
        return self._ids(self._markup, text)

    def token_of(self, text: str) -> int:
        """The one token that an assistant writes ``text`` with.

        Raises:
            OperationError: it takes none or several.
        """
        ids = self.written(text)
        if len(ids) != 1:
            why = f"This model writes it with {len(ids)}."
            raise OperationError(f"{text[:40]!r} is no single token.", why, "Name texts that are.")
        return ids[0]

    def training_example(self, turns: Sequence[Turn]) -> tuple[list[int], list[int]]:
        """Encode a finished conversation as token ids and their loss mask: 1 on what the assistant wrote and on the
        token that ends its turn, else 0."""
        ids: list[int] = []
        mask: list[int] = []
        laid = list(self._laid(turns, "", False))
        for index, (part, is_assistant) in enumerate(laid):
            ends = index > 0 and laid[index - 1][1]  # the token that ends an assistant's turn
            part = part[:1] if ends and index == len(laid) - 1 else part
            ids += part
            mask += [int(is_assistant or (ends and n == 0)) for n in range(len(part))]
        return ids, mask

    def _laid(self, turns: Sequence[Turn], tools: str, opened: bool) -> Iterator[tuple[list[int], bool]]:
        """The conversation in parts, template and contents by turns, and whether the assistant wrote the part."""
        roles = tuple(turn.role for turn in turns)
        pieces = self._pieces(roles, tools, opened)
        for n, turn in enumerate(turns):
            before, gap = self._pieces(roles[:n], tools, True)[-1] if turn.token_ids and n else pieces[n]
            yield list(before), False
            yield self._content(turn, gap, pieces[n + 1][0]), turn.role == "assistant"
        yield list(pieces[-1][0]), False

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids`` without a closing end of turn."""
        kept = ids[:-1] if ids and ids[-1] in self.stops else ids
        return str(self._trusted.decode(list(kept), skip_special_tokens=False))

    def has_written(self, texts: Sequence[str], ids: Sequence[int]) -> bool:
        """Whether the newest of ``ids`` completes one of ``texts``."""
        if not texts:
            return False
        newest = self._piece(ids[-1])
        if not any(text[-1] in newest for text in texts):
            return False
        tail = "".join(self._piece(token) for token in ids[-max(map(len, texts)) :])
        return any(text in tail for text in texts)

    def ends(self, ids: Sequence[int], start: int = 0) -> list[int]:
        """Where the text of each of ``ids`` ends in what ``decode`` makes of all, counted on from ``start``.

        A token that ends within a character ends before it, or with it: what a decoder shows of halves is its own.
        """
        whole = self.decode(ids)
        pieces = [self._piece(token) for token in ids]
        if ids and ids[-1] in self.stops:
            pieces[-1] = ""
        if "".join(pieces) == whole:
            return [start + end for end in accumulate(map(len, pieces))]
        prefixes = (len(self.decode(ids[: n + 1])) for n in range(len(ids)))
        return [start + min(end, len(whole)) for end in accumulate(prefixes, max)]

    def _content(self, turn: Turn, gap: Gap, after: Sequence[int]) -> list[int]:
        if turn.role != "assistant":
            return self._ids(self._plain, self._form.content(turn, gap))
        if not turn.token_ids:
            return self._ids(self._markup, self._form.with_own_calls(turn.content))
        ids = list(turn.token_ids)
        forced = turn.content.removesuffix(self.decode(ids))
        if forced and forced != turn.content:
            ids = self._ids(self._trusted, forced) + ids
        return ids[:-1] if ids[-1] == self.stop and after[:1] == (self.stop,) else ids

    def _cut(self, roles: tuple[str, ...], tools: str, opened: bool) -> Pieces:
        specs = [ToolSpec(**spec) for spec in json.loads(tools or "[]")]
        gaps = self._form.gaps(self._render, roles, specs, opened)
        return tuple((tuple(self._ids(self._trusted, gap.text)), gap) for gap in gaps)

    def _render(self, messages: Sequence[Message], tools: Sequence[Mapping[str, object]], opened: bool) -> str:
        options = self._arguments | {"tokenize": False, "add_generation_prompt": opened}
        return str(self._tokenizer.apply_chat_template(list(messages), tools=list(tools) or None, **options))

    @staticmethod
    def _ids(encoder: Tokenizer, text: str) -> list[int]:
        return list(encoder.encode(text, add_special_tokens=False).ids)


def tokenizer_of(path: str) -> Any:
    """Load the tokenizer of a local folder: exactly its tokenizer.json. The classes that transformers chooses by
    architecture may cut text in another way than the file says."""
    import transformers

    library: Any = transformers
    return library.PreTrainedTokenizerFast.from_pretrained(path, trust_remote_code=False, local_files_only=True)


def chat_of(folder: Path, arguments: Mapping[str, object] | None = None) -> Chat:
    """Load the chat template and tokenizer of a folder that may hold no weights; ``arguments`` are the template's.

    Raises:
        DependencyError: it holds no tokenizer.
        OperationError: it holds no chat template.
    """
    try:
        return Chat(tokenizer_of(str(folder)), arguments)
    except (OSError, ValueError, KeyError, ImportError) as error:
        why = f"{type(error).__name__}: {error}"[:300]
        raise DependencyError(f"The tokenizer in {folder}", why, "Save or download it again.") from error
