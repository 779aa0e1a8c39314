"""What of a text is the reply: not what a model writes of the next question; without a string's backslashes."""

import re

_another = re.compile(
    r"\n[ \t*#>_]*(?:(?:next|new|another) )?(?:question|problem|human|user|exercise|<\|(?:im_start"
    r"|user)\|>)[ \t]*\d*[*_]*[ \t]*[:.]",
    re.IGNORECASE,
)
_stated = re.compile(r"\\boxed|####|\banswer\b[*_]*\s*(?:is|:|=)", re.IGNORECASE)
_escaped = re.compile(r"\\\\(?=(?:boxed|frac|sqrt|text|begin|end|left|right|pi|cdot|times|circ)(?![A-Za-z]))")
_number = re.compile(r"\\boxed[ \t]+(-?\d[\d.,]*\d|-?\d)(?=[\s.,;$]|\Z)")


def own_turn(text: str) -> str:
    r"""Return ``text`` up to another question that follows an answer. ``\\boxed`` in a string's spelling becomes a box,
    and so does ``\boxed 12``."""
    for found in _another.finditer(text):
        if _stated.search(text, 0, found.start()):
            text = text[: found.start()]
            break
    if "boxed" not in text:
        return text
    if "\\\\boxed" in text:
        text = _escaped.sub(r"\\", text)
    return _number.sub(r"\\boxed{\1}", text)
