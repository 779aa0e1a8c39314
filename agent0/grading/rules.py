"""Tables of rules that rewrite a text: patterns with what is written in their place, one after the other."""

import html
import re
from collections.abc import Callable

Replacement = str | Callable[[re.Match[str]], str]
Rules = tuple[tuple[re.Pattern[str], Replacement], ...]
_entity = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8}\d{0,2});")


def rules(*pairs: tuple[str, Replacement], flags: int = 0) -> Rules:
    """Compile pairs of a pattern and what is written in its place."""
    return tuple((re.compile(pattern, flags), replacement) for pattern, replacement in pairs)


def rewrite(text: str, *tables: Rules) -> str:
    """Return ``text`` with every rule of the tables applied, in their order."""
    for table in tables:
        for pattern, replacement in table:
            text = pattern.sub(replacement, text)
    return text


def without_entities(text: str) -> str:
    """Return ``text`` with the signs that its HTML entities stand for."""
    return _entity.sub(lambda entity: html.unescape(entity[0]), text) if "&" in text else text
