"""Words without markup around or between them."""

import re

_markup = re.compile(
    r"\\(?:(?:text|math|operatorname)(?:bf|rm|it|sf|tt)?|mbox)(?![A-Za-z])|\\(?![A-Za-z{}])[ ,;:!]?|(?<!\\)[{}]|[$*`_]"
)


def without_markup(text: str) -> str:
    """Return ``text`` without fonts and signs of markup, single spaces between its words."""
    return " ".join(_markup.sub(" ", text).split())
