"""Turns to tokens and back. Three encoders, by trust: template text and forced prefixes may hold any added token,
an assistant's own text may hold markup but no control token, all other text is plain characters."""

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from agent0.errors import DependencyError, OperationError
from agent0.ports.models import ToolSpec
from events.values import Turn

_SENTINEL = "\u241f{}\u241f"
Pieces = tuple[tuple[int, ...], ...]


class Chat:
    """A chat template as token pieces around contents; Jinja runs once per sequence of roles, not per sample."""

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise OperationError("This model has no chat template.", "Turns cannot be told apart without one.")
        self._tokenizer = tokenizer
        saved = tokenizer.backend_tokenizer.to_str()
        self._trusted = Tokenizer.from_str(saved)
        self._markup = Tokenizer.from_str(saved)
        self._markup.encode_special_tokens = True
        self._plain = Tokenizer.from_str(json.dumps({**json.loads(saved), "added_tokens": [], "post_processor": None}))
        self._pieces = lru_cache(maxsize=256)(self._render)
        self._piece = lru_cache(maxsize=4096)(lambda one: str(self._trusted.decode([one], skip_special_tokens=False)))
        end = int(tokenizer.eos_token_id)
        closing = self._pieces(("user", "assistant"), "", False)[-1]
        self.stop = closing[0] if closing else end
        """What the template closes an assistant's turn with; a base model's tokenizer may name another end of text."""
        self.stops = frozenset((self.stop, end))
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end)

    def prompt(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = (), prefill: str = "") -> list[int]:
        """The whole context up to and including the opening of the assistant's next turn and ``prefill``."""
        pieces = self._pieces(tuple(turn.role for turn in turns), _described(tools), True)
        ids = list(pieces[0])
        for turn, after in zip(turns, pieces[1:], strict=True):
            ids += self._content(turn, after) + list(after)
        return ids + (self._ids(self._trusted, prefill) if prefill else [])

    def written(self, text: str) -> list[int]:
        """What an assistant writes, without the end of its turn."""
        return self._ids(self._markup, text)

    def training_example(self, turns: Sequence[Turn]) -> tuple[list[int], list[int]]:
        """Encode a finished conversation as token ids and their loss mask: 1 on what the assistant wrote and on the
        token that ends its turn, else 0."""
        pieces = self._pieces(tuple(turn.role for turn in turns), "", False)
        ids, mask = list(pieces[0]), [0] * len(pieces[0])
        for place, (turn, after) in enumerate(zip(turns, pieces[1:], strict=True)):
            content, own = self._content(turn, after), turn.role == "assistant"
            kept = after[:1] if own and place == len(turns) - 1 else after
            ids += content + list(kept)
            mask += [int(own)] * len(content) + [int(own and n == 0) for n in range(len(kept))]
        return ids, mask

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids`` without a closing end of turn."""
        kept = ids[:-1] if ids and ids[-1] in self.stops else ids
        return str(self._trusted.decode(list(kept), skip_special_tokens=False))

    def ends(self, ids: Sequence[int], start: int = 0) -> list[int]:
        """Where the text of each of ``ids`` ends in what ``decode`` makes of all, counted on from ``start``.

        A token that ends within a character ends before it, or with it: what a decoder shows of halves is its own.
        """
        whole = self.decode(ids)
        pieces = [self._piece(one) for one in ids]
        if ids and ids[-1] in self.stops:
            pieces[-1] = ""
        if "".join(pieces) == whole:
            return [start + end for end in accumulate(map(len, pieces))]
        prefixes = (len(self.decode(ids[: n + 1])) for n in range(len(ids)))
        return [start + min(end, len(whole)) for end in accumulate(prefixes, max)]

    def _content(self, turn: Turn, after: Sequence[int]) -> list[int]:
        if turn.role != "assistant":
            return self._ids(self._plain, turn.content)
        if not turn.token_ids:
            return self._ids(self._markup, turn.content)
        ids = list(turn.token_ids)
        forced = turn.content.removesuffix(self.decode(ids))
        if forced and forced != turn.content:
            ids = self._ids(self._trusted, forced) + ids
        return ids[:-1] if ids[-1] == self.stop and after[:1] == (self.stop,) else ids

    def _render(self, roles: tuple[str, ...], tools: str, opened: bool) -> Pieces:
        messages = [{"role": role, "content": _SENTINEL.format(n)} for n, role in enumerate(roles)]
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": opened}
        text = str(self._tokenizer.apply_chat_template(messages, tools=json.loads(tools or "null"), **options))
        pieces = []
        for n in range(len(roles)):
            before, found, text = text.partition(_SENTINEL.format(n))
            if not found:
                raise OperationError(f"The chat template drops turn {n} ({roles[n]}).", f"Roles: {', '.join(roles)}.")
            pieces.append(tuple(self._ids(self._trusted, before)))
        return (*pieces, tuple(self._ids(self._trusted, text)))

    @staticmethod
    def _ids(encoder: Tokenizer, text: str) -> list[int]:
        return list(encoder.encode(text, add_special_tokens=False).ids)


def tokenizer_of(path: str) -> Any:
    """Load the tokenizer of a local folder: exactly its tokenizer.json. The classes that transformers chooses by
    architecture may cut text in another way than the file says."""
    import transformers

    library: Any = transformers
    return library.PreTrainedTokenizerFast.from_pretrained(path, trust_remote_code=False, local_files_only=True)


def chat_of(folder: Path) -> Chat:
    """Load the chat template and tokenizer of a folder that may hold no weights.

    Raises:
        DependencyError: it holds no tokenizer.
        OperationError: it holds no chat template.
    """
    try:
        return Chat(tokenizer_of(str(folder)))
    except (OSError, ValueError, KeyError, ImportError) as error:
        why = f"{type(error).__name__}: {error}"[:300]
        raise DependencyError(f"The tokenizer in {folder}", why, "Save or download it again.") from error


def _described(tools: Sequence[ToolSpec]) -> str:
    if not tools:
        return ""
    return json.dumps(
        [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in tools
        ]
    )
