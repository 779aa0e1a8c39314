"""Congruences: the same residues, whichever number stands for one, in whichever form the modulus is written."""

import math
import re

MOST = 10_000
"""The largest modulus whose residues are listed."""
LONGEST = 200
_modulo = re.compile(
    r"(?:\\[,;:! ]|\\q?quad|[,\s])*\(?\s*(?:\\[pb]?mod|\\pod|\bmod(?:ulo)?)(?![A-Za-z])[\s~]*\{?\s*([\w^]+)\s*\}?\s*\)?"
)
_text = re.compile(r"\\(?:text|mathrm|operatorname|mbox)\s*\{([^{}]*)\}")
_joint = re.compile(r"\s*(?:,\s*(?:or|and)\b|,|;|\bor\b|\band\b|\\lor|\\vee)\s*")
_residue = re.compile(r"(\\pm)?\s*(-?\d{1,9})")
_figures = re.compile(r"\s*\d{1,9}\s*")
_name = re.compile(r"[A-Za-z](?:_\{?\w+\}?)?(?:\^\{?\w+\}?)?")
Residues = tuple[str, frozenset[int], int]


def same_residues(gold: str, answer: str) -> bool | None:
    """Whether both are the same residues, of the same name where both have one; None where one is no congruence with
    numbers and they are not the same sides of the same modulus."""
    if "mod" not in answer or "mod" not in gold or max(len(gold), len(answer)) > LONGEST:
        return None
    if (expected := residues_of(gold)) and (found := residues_of(answer)):
        names = {expected[0], found[0]} - {""}
        return len(names) < 2 and _same(expected, found)
    sides = _sides(gold)
    return True if sides and sides == _sides(answer) else None


def bare_residue(gold: str, answer: str) -> str:
    """``7`` of ``x = 7 (mod 11)`` where the gold is a number; else ``answer``."""
    if "mod" not in answer or not _figures.fullmatch(gold) or len(answer) > LONGEST:
        return answer
    found, written = residues_of(answer), re.search(r"(-?\d+)\s*$", _modulo.sub("", _words(answer)))
    whole = found is not None and len(found[1]) == 1 and written is not None and 0 <= int(written[1]) < found[2]
    return written[1] if whole and written else answer


def _words(text: str) -> str:
    return _text.sub(r" \1 ", text).replace("≡", r"\equiv ").strip("$ .")


def residues_of(text: str) -> Residues | None:
    """(name or nothing, residues, modulus) of ``x = 2, 3 (mod 5)``, several of them joined too; None for others."""
    bare = _words(text)
    moduli = [found[1] for found in _modulo.finditer(bare)]
    if not moduli or not all(m.isascii() and m.isdigit() and 0 < int(m) <= MOST for m in moduli):
        return None
    whole = math.lcm(*map(int, moduli))
    pieces = _modulo.split(bare)
    if whole > MOST or pieces[-1].strip():
        return None
    names, found = set(), set[int]()
    for piece, modulus in zip(pieces[:-1:2], moduli, strict=True):
        if (read := _piece(piece, int(modulus))) is None:
            return None
        names.add(read[0])
        found |= {r for r in range(whole) if r % int(modulus) in read[1]}
    return (names.pop(), frozenset(found), whole) if len(names) == 1 else None


def _piece(text: str, modulus: int) -> tuple[str, set[int]] | None:
    parts = [part for part in _joint.split(text.strip()) if part]
    name, values = "", set[int]()
    for place, part in enumerate(parts):
        left, sign, right = (
            re.split(r"(\\equiv(?![A-Za-z])|=)", part, maxsplit=1) if re.search(r"\\equiv|=", part) else ("", "", part)
        )
        match = _residue.fullmatch(right.strip())
        if match is None or (sign and (not _name.fullmatch(left.strip()) or (place and left.strip() != name))):
            return None
        name = left.strip() or name
        values |= {int(match[2]) % modulus} | ({-int(match[2]) % modulus} if match[1] else set())
    return (name, values) if values else None


def _same(one: Residues, other: Residues) -> bool:
    whole = math.lcm(one[2], other[2])
    if whole > MOST:
        return False
    listed = [{r for r in range(whole) if r % modulus in residues} for _, residues, modulus in (one, other)]
    return listed[0] == listed[1]


def _sides(text: str) -> tuple[frozenset[str], str] | None:
    r"""Sides and modulus of ``a \equiv b (mod m)``."""
    bare = _words(text)
    moduli = list(_modulo.finditer(bare))
    sides = re.split(r"\\equiv(?![A-Za-z])", _modulo.sub("", bare))
    if len(moduli) != 1 or len(sides) != 2 or moduli[0].end() < len(bare.rstrip()):
        return None
    return frozenset("".join(side.split()) for side in sides), moduli[0][1]
