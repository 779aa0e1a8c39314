"""Rows of a block of LaTeX; systems of equations and named values in one form."""

import re

MOST = 12
"""Rows of a block, and named values."""
_block = re.compile(
    r"(.*?)(?:\\begin\s*\{(cases|dcases|rcases|aligned|align\*?|gathered)\}(.*)\\end\s*\{\2\}"
    r"|\\\{\s*\\begin\s*\{array\}\s*(?:\{[clr| ]*\})?(.*)\\end\s*\{array\}\s*\.?)\s*\.?\s*",
    re.DOTALL,
)
_relation = re.compile(r"<=|>=|!=|[<>=]|\\(?:leq?|geq?|neq?|l?eqslant|geqslant|lt|gt|in|leqslant)(?![A-Za-z])")
_assigned = re.compile(r"\s*([A-Za-z](?:_\{?\w\}?)?)\s*=\s*([^=<>]+?)\s*")
_named_tuple = re.compile(r"\s*\(\s*([A-Za-z](?:_\w)?(?:\s*,\s*[A-Za-z](?:_\w)?)+)\s*\)\s*=\s*\(([^=<>]+)\)\s*")
_bare_tuple = re.compile(r"\s*\(([^=<>]+)\)\s*")
_gap = r"(?:\s|\\q?quad(?![A-Za-z])|\\[,;:! ])*"
_joint = re.compile(
    rf"{_gap}(?:,{_gap}(?:and\b)?|;|\\text\s*\{{\s*,?\s*and\s*\}}|\band\b|\\land|\\wedge|\\q?quad|&){_gap}"
)
_either = re.compile(r"\\text\s*\{\s*or\s*\}|\bor\b|\\lor|\\vee")


def rows_of(text: str) -> list[list[str]]:
    r"""The entries of each row of ``f(x) = \begin{cases} ... \end{cases}``, none where ``text`` is nothing like it."""
    match = _block.fullmatch(text.strip().strip("$")) if r"\begin" in text else None
    if match is None or "".join(match[1].split()).rstrip("=") not in ("", "f(x)", "g(x)", "h(x)", "f", "y", "|x|"):
        return []
    body = match[3] or match[4] or ""
    rows = [row.split("&") for row in re.split(r"\\\\(?:\[[^\]]*\])?", body) if row.strip(" \n.,;")]
    return [[cell.strip() for cell in row] for row in rows] if len(rows) <= MOST else []


def named_values(gold: str, answer: str) -> tuple[str, str]:
    """Return systems as lists of equations, and values of the same names in one form."""
    gold, answer = _listed(gold), _listed(answer)
    expected, values = _assignments(gold), _assignments(answer)
    if expected and values:
        return _joined(expected), _joined(values)
    return (_as_tuple(expected, answer) or gold, _as_tuple(values, gold) or answer)


def one_or_other(gold: str, answer: str) -> bool | None:
    """False where ``answer`` leaves open which of the gold's named values holds; else None."""
    return False if _either.search(answer) and not _either.search(gold) and _assignments(gold) else None


def _as_tuple(values: dict[str, str], other: str) -> str:
    """The values by the order of their names, empty where ``other`` is no tuple of as many."""
    is_tuple = values and _bare_tuple.fullmatch(other) and other.count(",") == len(values) - 1
    return f"({', '.join(values[name] for name in sorted(values))})" if is_tuple else ""


def _listed(text: str) -> str:
    """A system as a list; functions by cases, whose second cells are conditions, stay."""
    rows = rows_of(text)
    is_cases = all(len(row) == 2 and not _relation.match(row[1]) and not _relation.search(row[0]) for row in rows)
    equations = [" ".join(row).strip(" ,;.") for row in rows]
    return text if is_cases or not all(map(_relation.search, equations)) else ", ".join(equations)


def _assignments(text: str) -> dict[str, str]:
    """Values of several different names, ``(x, y) = (2, 3)`` too; none where ``text`` is anything else."""
    if not 0 < text.count("=") <= MOST:
        return {}
    if match := _named_tuple.fullmatch(text):
        names, values = ([part.strip() for part in match[side].split(",")] for side in (1, 2))
        return dict(zip(names, values, strict=True)) if len(names) == len(values) == len(set(names)) else {}
    parts = [_assigned.fullmatch(part) for part in _joint.split(text.strip("$ ."))]
    assignments = {part[1]: part[2] for part in parts if part}
    return assignments if 1 < len(assignments) == len(parts) else {}


def _joined(values: dict[str, str]) -> str:
    return ", ".join(f"{name} = {values[name]}" for name in sorted(values))
