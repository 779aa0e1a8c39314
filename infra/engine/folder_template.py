"""What a model's folder says of text, read before anything heavy is loaded: its chat template, rendered as transformers
does it (``transformers.utils.chat_template_utils``) but without transformers, and the texts of its tokens."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agent0.errors import OperationError
from agent0.infra.engine.turn_forms import FIX, Message, Render, TurnForm, form_of

SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
KEPT = 4
"""Tokenizers that stay in memory."""


def form_of_folder(folder: Path, template: str) -> TurnForm:
    """How the model in ``folder`` with the chat template ``template`` takes a conversation.

    Raises:
        OperationError: the template is none, or refuses what a run sends.
    """
    return form_of(renderer(template, special_tokens(folder)))


def renderer(template: str, specials: Mapping[str, str]) -> Render:
    """Render ``template`` with the texts of its special tokens.

    Raises:
        OperationError: it is no Jinja template.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = _as_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    try:
        compiled = environment.from_string(template)
    except TemplateError as error:
        raise OperationError("The chat template cannot be read.", f"{error}"[:200], FIX) from error

    def render(messages: Sequence[Message], tools: Sequence[Mapping[str, object]], opened: bool) -> str:
        values = {"messages": list(messages), "tools": list(tools) or None, "documents": None}
        return compiled.render(**values, add_generation_prompt=opened, **specials)

    return render


def special_tokens(folder: Path) -> dict[str, str]:
    """Texts of the special tokens that the files of ``folder`` name."""
    texts: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            content = json.loads((folder / name).read_text(encoding="utf-8"))
            texts |= {key: _text(content[key]) for key in SPECIAL if content.get(key)}
    return texts


def _text(token: Any) -> str:
    return str(token["content"] if isinstance(token, dict) else token)


class _GenerationTag(Extension):
    """``{% generation %}`` marks what an assistant wrote; it changes no text."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _as_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def token_texts(folder: Path, ids: Sequence[int]) -> list[str]:
    """The text of each of ``ids`` by the tokenizer of ``folder``; a token that is a part of a character shows as such.

    Raises:
        OSError: the folder has no readable tokenizer.
    """
    tokenizer = _loaded(folder / "tokenizer.json")
    return [tokenizer.decode([token], skip_special_tokens=False) for token in ids]  # type: ignore[attr-defined]


def span_text(folder: Path, ids: Sequence[int]) -> str | None:
    """The text of ``ids`` together by the tokenizer of ``folder``; None where one is none of its vocabulary.

    Raises:
        OSError: the folder has no readable tokenizer.
    """
    tokenizer = _loaded(folder / "tokenizer.json")
    if any(tokenizer.id_to_token(token) is None for token in ids):  # type: ignore[attr-defined]
        return None
    return str(tokenizer.decode([*ids], skip_special_tokens=False))  # type: ignore[attr-defined]


@lru_cache(KEPT)
def _loaded(path: Path) -> object:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise OSError(f"{path} cannot be read: {error}") from error
