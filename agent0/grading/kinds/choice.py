"""The letter of a choice, alone or before the choice's own words; two letters are none."""

import re
import unicodedata

from agent0.grading import Grade
from agent0.grading.kinds import kind, plain

_LATEX = re.compile(r"\\(?:text|mathrm|mathbf|mbox)(?:bf|rm|it)?|[${}\\*`]")
_letter = re.compile(
    r"(?:(?:option|choice|answer)\s*:?\s*)?(?:\(\s*([A-Z])\s*\)|\[\s*([A-Z])\s*\]|([A-Z]))(?:[.):]\s*|\s+-\s+|$)(.*)",
    re.I | re.S,
)
_another = re.compile(r"\(\s*[A-Z]\s*\)|(?<![\w'])[B-HJ-Z](?![\w'])")


def _letter_of(text: str) -> str:
    bare = " ".join(_LATEX.sub(" ", unicodedata.normalize("NFKC", plain(text))).split())
    found = _letter.fullmatch(bare)
    if found is None or _another.search(found[4]):
        return ""
    return (found[1] or found[2] or found[3]).upper()


@kind("choice", applies=lambda expected: bool(re.fullmatch(r"\([A-Z]\)", expected)), rank=2)
def choice(expected: str, given: str) -> Grade:
    """``(B)``, ``b.``, ``Option B`` and ``B) the second`` are one answer."""
    wanted, said = _letter_of(expected), _letter_of(given)
    if not wanted:
        return Grade(None, "a letter was expected, and there is none to compare with", expected[:200], given[:200])
    return Grade(said == wanted, "choice" if said else "no letter of a choice", wanted, said or plain(given)[:200])
