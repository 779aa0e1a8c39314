"""Who comes before whom: names in a row, joined by commas, arrows or signs of comparison that all point one way."""

import re
from dataclasses import dataclass

from agent0.grading import Grade
from agent0.grading.answer_types import kind, plain, words

MOST = 100
_SIGNS = {"<": "<", r"\lt": "<", ">": ">", r"\gt": ">"}
_joint = re.compile(r"\s*(\\(?:lt|gt|to)(?![A-Za-z])|->|→|[<>,;]|,?\s+\bthen\b(?=\s)|\n)\s*", re.I)
_NAMED = re.compile(r"[^\W\d_]{2,}(\s*[<>]\s*)[^\W\d_]{2,}(?:\1[^\W\d_]{2,})+")


@dataclass(frozen=True)
class _Row:
    """``names`` as written; ``sign`` is < or > where they were compared, a comma where they were only listed."""

    names: tuple[str, ...]
    sign: str


def _row(text: str) -> _Row | None:
    bare = re.sub(r"^[\[({]+|[\])}]+$", "", plain(text).strip().strip("$").rstrip(".").strip())
    pieces = _joint.split(bare)
    names = tuple(words(re.sub(r"^(?:and|\d{1,2}[.)])\s+", "", name.strip(), flags=re.I)) for name in pieces[::2])
    signs = {_SIGNS.get(sign.strip(), ",") for sign in pieces[1::2]}
    if len(signs) > 1 or not all(names) or len(names) > MOST:
        return None
    return _Row(names, next(iter(signs), ","))


@kind("ordering", applies=lambda expected: bool(_NAMED.fullmatch(expected)), rank=3)
def ordering(expected: str, given: str) -> Grade:
    """``Ann < Bob < Cid`` is ``Cid > Bob > Ann``. A row without signs is in the order that was asked for."""
    wanted, answer = _row(expected), _row(given)
    if wanted is None:
        return Grade(None, "the expected order cannot be read", expected[:200], given[:200])
    if answer is None:
        return Grade(False, "no single order", expected[:200], given[:200])
    turned = {wanted.sign, answer.sign} == {"<", ">"}
    names = answer.names[::-1] if turned else answer.names
    return Grade(names == wanted.names, "order", " < ".join(wanted.names)[:200], " < ".join(names)[:200])
