"""Text of models, tools and strangers on its way to a screen: what a terminal would obey is shown as an escape."""

import unicodedata

_OBEYED = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Controls, format characters (direction marks, joiners), halves of pairs, private ones, separators of lines."""


def escaped(text: str) -> str:
    r"""``text`` with every such character as ``\x1b`` or ``\u202e``; newline and tab stay, and a line may end in CRLF.
    Nothing of the result is changed by another call."""
    return "".join(_shown(one) for one in text.replace("\r\n", "\n"))


def _shown(one: str) -> str:
    if one in "\n\t" or unicodedata.category(one) not in _OBEYED:
        return one
    return one.encode("ascii", "backslashreplace").decode() if ord(one) > 127 else f"\\x{ord(one):02x}"
