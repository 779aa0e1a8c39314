"""Untrusted text on its way to the model: cleaned, without invisible characters, and marked as untrusted."""

import re
import unicodedata

from agent0.tools.results import clean, shorten

LIMIT = 8192
"""Characters of a stranger's text that a model gets to read."""
_MARK = re.compile(r"\[(?=\s*(?:/|end of )?untrusted)", re.IGNORECASE)


def visible(text: str) -> str:
    """Remove control and invisible characters from ``text``: a model must not read what a user would not see."""
    kept = (
        character
        for character in clean(text)
        if character in "\t\n" or unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cs", "Cn")
    )
    return "".join(kept)


def marked(source: str, text: str, limit: int = LIMIT) -> str:
    """Put ``text`` between marks that name its source and that it cannot imitate."""
    body = _MARK.sub("(", shorten(visible(text).strip(), limit))
    return f"[untrusted content from {_MARK.sub('(', visible(source))[:200]}]\n{body}\n[end of untrusted content]"
