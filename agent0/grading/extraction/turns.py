"""What of a text is the reply: not what a model writes of the next question; without a string's backslashes."""

import re

from agent0.chat_format import BOX, respelled_boxes

_another = re.compile(
    r"\n[ \t*#>_]*(?:(?:next|new|another) )?(?:question|problem|human|user|exercise|<\|(?:im_start"
    r"|user)\|>)[ \t]*\d*[*_]*[ \t]*[:.]",
    re.IGNORECASE,
)
_stated = re.compile(rf"{BOX}|####|\banswer\b[*_]*\s*(?:is|:|=)", re.IGNORECASE)


def own_question(text: str) -> str:
    """Return ``text`` up to another question that follows an answer, its boxes respelled."""
    stated = _stated.search(text)
    if stated and (match := _another.search(text, stated.end())):
        text = text[: match.start()]
    return respelled_boxes(text)
