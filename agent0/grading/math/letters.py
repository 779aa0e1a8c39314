"""Which choice a text names: one letter, alone or before the choice's own words. Two letters are none."""

import re
import unicodedata

_LATEX = re.compile(r"\\(?:text|mathrm|mathbf|mbox)(?:bf|rm|it)?|[${}\\*`]")
_LETTER = re.compile(
    r"(?:(?:option|choice|answer)\s*:?\s*)?(?:\(\s*([A-Z])\s*\)|\[\s*([A-Z])\s*\]|([A-Z]))(?:[.):]\s*|\s+-\s+"
    r"|(?<=[)\]])\s*|$)(.*)",
    re.IGNORECASE | re.DOTALL,
)
_ANOTHER = re.compile(
    r"^(?:or|and|/|,|&|but|not|maybe)\b|[(\[]\s*[A-Za-z]\s*[)\]]|(?<![\w'(])[A-Za-z][).](?!\w)|(?<![\w'])[B-HJ-Z](?![\w'])"
)


def letter_of(text: str) -> str:
    """``B`` of ``(b)``, ``B.``, ``Option B`` or ``B) the second``; empty where none or more than one is named."""
    bare = " ".join(_LATEX.sub(" ", unicodedata.normalize("NFKC", text)).split())
    match = _LETTER.fullmatch(bare)
    if match is None or _ANOTHER.search(match[4]):
        return ""
    return (match[1] or match[2] or match[3]).upper()
