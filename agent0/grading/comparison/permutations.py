"""Permutations in cycles, and truth values that a reason follows."""

import re

_gap = re.compile(r"\\[ ,;:!]|\\q?quad(?![A-Za-z])|\s+")
_cycles = re.compile(r"(?:\(\d+(?: \d+)+\))+")
_truth = re.compile(r"(?:\\text\s*\{\s*)?(yes|no|true|false)\b\s*\}?", re.IGNORECASE)
_reason = re.compile(
    r"\s*(?:[.!]?|(?:[,.;:!-]|because|since|as)(?!\s*(?:yes|no|or|and|true|false)\b)\s.*)\s*", re.IGNORECASE | re.DOTALL
)


def same_permutation(gold: str, answer: str) -> bool | None:
    r"""Whether both are one permutation: ``(1\ 3\ 2)`` and ``(3\ 2\ 1)``; None where the gold is none in cycles."""
    expected = _mapping(gold)
    return None if expected is None else _mapping(answer.rpartition("=")[2]) == expected


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


def same_truth(gold: str, answer: str) -> bool | None:
    """Whether ``answer`` says the gold's yes or no, with a reason behind it or not; None where the gold is neither."""
    expected, table = _truth.fullmatch(gold.strip(" .")), _truth.match(answer.strip())
    if expected is None or table is None or not _reason.fullmatch(answer.strip()[table.end() :]):
        return None
    return expected[1].lower() == table[1].lower()
