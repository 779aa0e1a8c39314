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


def rows_of(text: str) -> tuple[str, list[list[str]]] | None:
    r"""What stands before a block, and the entries of its rows; None where ``text`` is no ``cases`` or the like."""
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
    expected, block = rows_of(gold), rows_of(answer)
    if expected is None or block is None or not _is_cases(expected[1]) or not _is_cases(block[1]):
        return None
    heads = [head.rstrip("= ") for head in (expected[0], block[0])]
    if all(heads) and "".join(heads[0].split()) != "".join(heads[1].split()):
        return False
    theirs = [_case(row) for row in block[1]]
    left = []
    for value, condition in map(_case, expected[1]):
        match = next((case for case in theirs if _alike(condition, case[1], equal)), None)
        if match is None:
            left.append((value, condition))
        elif not equal(value, match[0]):
            return False
        else:
            theirs.remove(match)
    if not left and not theirs:
        return True
    rest = len(left) == len(theirs) == 1 and bool(_rest.fullmatch(left[0][1]) or _rest.fullmatch(theirs[0][1]))
    return rest and equal(left[0][0], theirs[0][0])


def _case(row: Sequence[str]) -> tuple[str, str]:
    value, condition = (_text.sub(r" \1 ", cell).strip(" ,;.") for cell in row)
    return value, " ".join(_lead.sub(" ", condition).split()).strip(" ,;.")


def _alike(left: str, right: str, equal: Equal) -> bool:
    """Whether two conditions are the same."""
    if "".join(left.split()).lower() == "".join(right.split()).lower():
        return True
    return bool(_relation.search(left) and _relation.search(right)) and equal(left, right)


def named_values(gold: str, answer: str) -> tuple[str, str]:
    """Return systems as lists of equations, and values of the same names in one form."""
    gold, answer = _listed(gold), _listed(answer)
    expected, values = _assignments(gold), _assignments(answer)
    if expected and values:
        return _joined(expected), _joined(values)
    if values:
        answer = _as_tuple(values, gold) or answer
    elif expected:
        gold = _as_tuple(expected, answer) or gold
    return gold, answer


def _as_tuple(values: dict[str, str], other: str) -> str:
    """The values by the order of their names, empty where ``other`` is no tuple of as many."""
    is_tuple = _bare_tuple.fullmatch(other) and other.count(",") == len(values) - 1
    return f"({', '.join(values[name] for name in sorted(values))})" if is_tuple else ""


def one_or_other(gold: str, answer: str) -> bool:
    """Whether ``answer`` leaves open which of the gold's named values holds."""
    return bool(_either.search(answer) and not _either.search(gold) and _assignments(gold))


def _listed(text: str) -> str:
    block = rows_of(text)
    if block is None or block[0] or _is_cases(block[1]) or any(len(row) > 3 for row in block[1]):
        return text
    rows = [" ".join(row).strip(" ,;.") for row in block[1]]
    return ", ".join(rows) if all(_relation.search(row) for row in rows) else text


def _assignments(text: str) -> dict[str, str] | None:
    """Values of several different names, ``(x, y) = (2, 3)`` too; None where ``text`` is anything else."""
    if text.count("=") > MOST or "=" not in text:
        return None
    if match := _named_tuple.fullmatch(text):
        names, values = ([part.strip() for part in match[side].split(",")] for side in (1, 2))
        return dict(zip(names, values, strict=True)) if len(names) == len(values) == len(set(names)) else None
    parts = [_assigned.fullmatch(part) for part in _joint.split(text.strip("$ ."))]
    assignments = {part[1]: part[2] for part in parts if part}
    return assignments if 1 < len(assignments) == len(parts) else None


def _joined(values: dict[str, str]) -> str:
    return ", ".join(f"{name} = {values[name]}" for name in sorted(values))
