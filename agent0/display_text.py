"""Text from outside as it may be shown: without credentials in addresses, without what a terminal would obey."""

import re
import unicodedata

_CREDENTIALS = re.compile(r"(?<=://)(?:(?:(?!://)[^\s@'\"])*@)+")
_OBEYED = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Controls, format characters (direction marks, joiners), halves of pairs, private ones, separators of lines."""


def bare_url(text: str) -> str:
    """``text`` with no user and no password in any address in it."""
    return _CREDENTIALS.sub("", text) if "@" in text else text


def escaped(text: str) -> str:
    r"""``text`` with every such character as ``\x1b`` or ``\u202e``; newline and tab stay, and a line may end in CRLF.
    Nothing of the result is changed by another call."""
    return "".join(_shown(one) for one in text.replace("\r\n", "\n"))


def _shown(one: str) -> str:
    if one in "\n\t" or unicodedata.category(one) not in _OBEYED:
        return one
    return one.encode("ascii", "backslashreplace").decode() if ord(one) > 127 else f"\\x{ord(one):02x}"
