"""Whether a text is written as a value, or as work that is still to be done: ``12`` and ``1.2e1`` against ``12+0``.

Read from the text alone: two texts of one value may differ here.
"""

import re

_WHOLE = r"\d{1,3}(?:,\d{3})+|\d+"
_DECIMAL = rf"(?:(?:{_WHOLE})(?:\.\d*)?|\.\d+)(?:\\(?:overline|bar)\{{\d+\}})?(?:[eE][-+]?\d+)?"
_SIGN = r"[-+]?\s*"
_TOP, _BOTTOM = rf"{_SIGN}(?:{_WHOLE})", rf"-?(?:{_WHOLE})"
_PART = rf"\{{\s*{_TOP}\s*\}}|\s*\d\s*"
_fraction = re.compile(rf"{_TOP}\s*(?:/|\\over)\s*{_BOTTOM}|\\frac\s*(?:{_PART})(?:{_PART})")
_plain = re.compile(
    rf"{_DECIMAL}|(?:{_DECIMAL}\s*(?:\\times|\\cdot|\*)\s*)?10\s*\^\s*(?:-?\d+|\{{\s*[-+]?\d+\s*\}}|\(\s*[-+]?\d+\s*\))"
    rf"|(?:\\frac\s*\{{\s*)?{_DECIMAL}(?<!0)\s*(?:/\s*\(?|\}}\s*\{{)\s*10\s*\^\s*(?:\d+|\{{\s*\d+\s*\}})\s*[)}}]?"
)
_nothing = re.compile(r"(?:(?<=\d)\s*[-+]|^)\s*0(?:\.0*)?\s*[ij]$")
"""An imaginary part that is none."""
_mixed = re.compile(r"\d+\s*(?=\\frac)|\d+\s+(?=\d+\s*/)")
_name = re.compile(r"\\?[A-Za-z]+|[A-Za-z](?:_\{?\w+\}?)?'{0,2}")
_PAIRS = {"(": ")", "{": "}", "[": "]"}
MOST_WRAPPERS = 8


def is_literal(text: str) -> bool:
    r"""Whether cleaned ``text`` is a number written out: digits, a fraction, a mixed number, scientific notation, each
    with a sign or brackets around it; or one name. A fraction that comes to a whole number (``24/2``) is a division
    left undone; a sum, a product, a root or a power of anything but ten is none either."""
    text = text.strip()
    for _ in range(MOST_WRAPPERS):
        if text[:1] not in _PAIRS or text[-1:] != _PAIRS[text[0]] or not enclosed(text):
            break
        text = text[1:-1].strip()
    if _name.fullmatch(text) or not (text := _nothing.sub("", text)):
        return True
    bare = re.sub(r"^[-+]\s*", "", text)
    return bool(_plain.fullmatch(bare)) or _is_fraction(text) or _is_fraction(_mixed.sub("", bare, count=1))


def enclosed(text: str) -> bool:
    """Whether the bracket that ``text`` begins with is closed by its last character."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and place < len(text) - 1:
            return False
    return True


def _is_fraction(text: str) -> bool:
    """A fraction of whole numbers that is none itself."""
    if not _fraction.fullmatch(text):
        return False
    parts = re.findall(rf"-?(?:{_WHOLE})", text.replace("- ", "-"))
    top, bottom = (int(part.replace(",", "")) for part in (parts if len(parts) == 2 else parts[0]))
    return bottom != 0 and top % bottom != 0
