"""Permutations in cycles, letters of choices and truth values that a reason follows."""

import re

from agent0.grading.math.letters import letter_of

_gap = re.compile(r"\\[ ,;:!]|\\q?quad(?![A-Za-z])|\s+")
_cycles = re.compile(r"(?:\(\d+(?: \d+)+\))+")
_letter = re.compile(r"\(?([A-J])\)?")
_described = re.compile(
    r"(?:\(([A-J])\)|([A-J])[).:]|[Oo]ption \(?([A-J])\)?)(?:[\s:.-].*)?|([A-J]) \([^()]*\)", re.DOTALL
)
_other = re.compile(r"\b(?:or|not|and|wrong|false|incorrect|either|neither|unless)\b", re.IGNORECASE)
_truth = re.compile(r"(?:\\text\s*\{\s*)?(yes|no|true|false)\b\s*\}?", re.IGNORECASE)
_reason = re.compile(
    r"\s*(?:[.!]?|(?:[,.;:!-]|because|since|as)(?!\s*(?:yes|no|or|and|true|false)\b)\s.*)\s*",
    re.IGNORECASE | re.DOTALL,
)


def same_permutation(gold: str, said: str) -> bool | None:
    r"""Whether both are one permutation: ``(1\ 3\ 2)`` and ``(3\ 2\ 1)``; None where the gold is none in cycles."""
    wanted = _mapping(gold)
    return None if wanted is None else _mapping(said.rpartition("=")[2]) == wanted


def _mapping(text: str) -> dict[str, str] | None:
    bare = re.sub(r"\)\s*\(", ")(", " ".join(_gap.sub(" ", text.strip("$ .")).split()))
    if not _cycles.fullmatch(bare.replace("( ", "(").replace(" )", ")")):
        return None
    out: dict[str, str] = {}
    for cycle in re.findall(r"\(([^()]*)\)", bare):
        points = cycle.split()
        if len(set(points)) < len(points) or set(points) & out.keys():
            return {}
        out |= dict(zip(points, [*points[1:], points[0]], strict=True))
    return out


def same_letter(gold: str, said: str) -> bool | None:
    """Whether ``said`` takes the choice that a bare letter of the gold names, with the words of the choice behind it;
    None where it is a letter alone or no letter."""
    if not (wanted := _letter.fullmatch(gold.strip())) or not (found := _described.fullmatch(said.strip())):
        return None
    letter = next(filter(None, found.groups()))
    rest = said.strip()[found.end(found.lastindex or 0) :]
    if _other.search(rest) or (letter_of(said) or letter) != letter:
        return False
    return bool(letter == wanted[1])


def same_truth(gold: str, said: str) -> bool | None:
    """Whether ``said`` says the gold's yes or no, with a reason behind it or not; None where the gold is neither."""
    wanted, found = _truth.fullmatch(gold.strip(" .")), _truth.match(said.strip())
    if wanted is None or found is None or not _reason.fullmatch(said.strip()[found.end() :]):
        return None
    return wanted[1].lower() == found[1].lower()
