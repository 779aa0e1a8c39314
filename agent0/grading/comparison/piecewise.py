"""Functions by cases, systems of equations, and named values: compared part by part, in any order."""

import re
from collections.abc import Callable, Sequence

Equal = Callable[[str, str], bool]
MOST = 12
_block = re.compile(
    r"(.*?)(?:\\begin\s*\{(cases|dcases|rcases|aligned|align\*?|gathered)\}(.*)\\end\s*\{\2\}"
    r"|\\\{\s*\\begin\s*\{array\}\s*(?:\{[clr| ]*\})?(.*)\\end\s*\{array\}\s*\.?)\s*\.?\s*",
    re.DOTALL,
)
_relation = re.compile(r"<=|>=|!=|[<>=]|\\(?:leq?|geq?|neq?|l?eqslant|geqslant|lt|gt|in|leqslant)(?![A-Za-z])")
_text = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{([^{}]*)\}")
_lead = re.compile(r"^(?:,|\s)*(?:if|for|when|where|whenever|in case)\b\s*|\b(?:is|are)\b", re.IGNORECASE)
_rest = re.compile(r"(?:otherwise|else|in all other cases|elsewhere)", re.IGNORECASE)
_assigned = re.compile(r"\s*([A-Za-z](?:_\{?\w\}?)?)\s*=\s*([^=<>]+?)\s*")
_named_tuple = re.compile(r"\s*\(\s*([A-Za-z](?:_\w)?(?:\s*,\s*[A-Za-z](?:_\w)?)+)\s*\)\s*=\s*\(([^=<>]+)\)\s*")
_gap = r"(?:\s|\\q?quad(?![A-Za-z])|\\[,;:! ])*"
_joint = re.compile(
    rf"{_gap}(?:,{_gap}(?:and\b)?|;|\\text\s*\{{\s*,?\s*and\s*\}}|\band\b|\\land|\\wedge|\\q?quad|&){_gap}"
)
_bare_tuple = re.compile(r"\s*\(([^=<>]+)\)\s*")
_either = re.compile(r"\\text\s*\{\s*or\s*\}|\bor\b|\\lor|\\vee")


def _rows(text: str) -> tuple[str, list[list[str]]] | None:
    r"""What stands before a block, and its rows' cells; None where ``text`` is no ``cases`` or the like."""
    if r"\begin" not in text or (match := _block.fullmatch(text.strip().strip("$"))) is None:
        return None
    body = match[3] or match[4] or ""
    rows = [row.split("&") for row in re.split(r"\\\\(?:\[[^\]]*\])?", body) if row.strip(" \n.,;")]
    return (match[1].strip(), [[cell.strip() for cell in row] for row in rows]) if 0 < len(rows) <= MOST else None


def _is_cases(rows: Sequence[Sequence[str]]) -> bool:
    """Whether each row is a value and its condition; otherwise its cells are one equation, set under the others."""
    return all(len(row) == 2 and not _relation.match(row[1]) and not _relation.search(row[0]) for row in rows)


def same_cases(gold: str, answer: str, equal: Equal) -> bool | None:
    """Whether both are the same function by cases, in any order; None where one is none."""
    expected, found = _rows(gold), _rows(answer)
    if expected is None or found is None or not _is_cases(expected[1]) or not _is_cases(found[1]):
        return None
    heads = [head.rstrip("= ") for head in (expected[0], found[0])]
    if all(heads) and "".join(heads[0].split()) != "".join(heads[1].split()):
        return False
    theirs = [_case(row) for row in found[1]]
    left = []
    for value, condition in map(_case, expected[1]):
        place = next((n for n, other in enumerate(theirs) if _alike(condition, other[1], equal)), -1)
        if place < 0:
            left.append((value, condition))
        elif not equal(value, theirs.pop(place)[0]):
            return False
    if not left and not theirs:
        return True
    rest = len(left) == len(theirs) == 1 and bool(_rest.fullmatch(left[0][1]) or _rest.fullmatch(theirs[0][1]))
    return rest and equal(left[0][0], theirs[0][0])


def _case(row: Sequence[str]) -> tuple[str, str]:
    value, condition = (_text.sub(r" \1 ", cell).strip(" ,;.") for cell in row)
    return value, " ".join(_lead.sub(" ", condition).split()).strip(" ,;.")


def _alike(one: str, other: str, equal: Equal) -> bool:
    """Whether two conditions are the same."""
    if "".join(one.split()).lower() == "".join(other.split()).lower():
        return True
    return bool(_relation.search(one) and _relation.search(other)) and equal(one, other)


def named_values(gold: str, answer: str) -> tuple[str, str]:
    """Return systems as lists of equations, and values of the same names in one form."""
    gold, answer = _listed(gold), _listed(answer)
    expected, found = _assignments(gold), _assignments(answer)
    if expected and found:
        return _joined(expected), _joined(found)
    if found and (inside := _bare_tuple.fullmatch(gold)) and gold.count(",") == len(found) - 1:
        return f"({inside[1]})", f"({', '.join(found[name] for name in sorted(found))})"
    if expected and (inside := _bare_tuple.fullmatch(answer)) and answer.count(",") == len(expected) - 1:
        return f"({', '.join(expected[name] for name in sorted(expected))})", f"({inside[1]})"
    return gold, answer


def one_or_other(gold: str, answer: str) -> bool:
    """Whether ``answer`` leaves open which of the gold's named values holds."""
    return bool(_either.search(answer) and not _either.search(gold) and _assignments(gold))


def _listed(text: str) -> str:
    found = _rows(text)
    if found is None or found[0] or _is_cases(found[1]) or any(len(row) > 3 for row in found[1]):
        return text
    rows = [" ".join(row).strip(" ,;.") for row in found[1]]
    return ", ".join(rows) if all(_relation.search(row) for row in rows) else text


def _assignments(text: str) -> dict[str, str] | None:
    """Values of several different names, ``(x, y) = (2, 3)`` too; None where ``text`` is anything else."""
    if text.count("=") > MOST or "=" not in text:
        return None
    if match := _named_tuple.fullmatch(text):
        names, values = ([part.strip() for part in match[place].split(",")] for place in (1, 2))
        return dict(zip(names, values, strict=True)) if len(names) == len(values) == len(set(names)) else None
    parts = [_assigned.fullmatch(part) for part in _joint.split(text.strip("$ ."))]
    made = {part[1]: part[2] for part in parts if part}
    return made if 1 < len(made) == len(parts) else None


def _joined(values: dict[str, str]) -> str:
    return ", ".join(f"{name} = {values[name]}" for name in sorted(values))
