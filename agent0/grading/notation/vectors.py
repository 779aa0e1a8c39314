"""Vectors as tuples and matrices as blocks of entries, from each notation that they have; the gold decides which."""

import re

_BLOCK = r"\\begin\s*\{([bp]?matrix|array)\}(?:\s*\{[clr|]+\})?(.*?)\\end\s*\{\2\}"
_scaled = re.compile(
    rf"([-+]?\s*(?:\\frac\s*(?:\d\s*\d|\{{[^{{}}]+\}}\s*\{{[^{{}}]+\}})|[\d./]+|\([^()]+\))?)"
    rf"\s*(?:\\cdot|\\times|\*|\\,)?\s*{_BLOCK}\s*(\^\s*T)?",
    re.DOTALL,
)
_named = re.compile(r"^\s*(?:[A-Z](?:\^\s*\{?\s*-?\s*[1T]\s*\}?)?|\\mathbf\s*\{\s*[A-Z]\s*\})\s*=\s*")
_diagonal = re.compile(
    r"\\?(?:operatorname\*?|mathrm|text)?\s*\{?\s*diag\s*\}?\s*[({]\s*(?:\\?[{(\[])?"
    r"([^()\[\]{}]+(?:\{[^()]*\})?[^()\[\]]*?)[\])}]*",
    re.IGNORECASE,
)
_identity = re.compile(r"(-?[\d./]*)\s*(?:\\(?:mathbf|mathrm)\s*\{\s*I\s*\}|I)\s*(?:_\s*\{?\s*(\d)\s*\}?)?")
_nested = re.compile(r"[\[(]\s*([\[(].{1,300}[\])])\s*[\])]", re.DOTALL)
_row = re.compile(r"[\[(]([^\[\]()]*)[\])]")
_flat = re.compile(r"\[([^\[\]()]*;[^\[\]()]*)\]")
_line = re.compile(r"\\\\(?:\[[^\]]*\])?")
_column = re.compile(r"\\begin\{([bp]?matrix|array)\}(?:\{[clr]\})?((?:(?!\\end|&).)+)\\end\{\1\}", re.DOTALL)
_line_of = re.compile(r"\\begin\{([bp]?matrix|array)\}((?:(?!\\end|\\\\).)+)\\end\{\1\}", re.DOTALL)
_turned = re.compile(r"\s*\^\s*\{?\s*T\s*\}?\s*$")
_pointed = re.compile(r"(?:\\langle|<)(?![=\s]*$)(.*,.*)(?:\\rangle|>)", re.DOTALL)
_bracketed = re.compile(r"\[([^\[\]()]*,[^\[\]()]*)\]|\(([^\[\]()]*,[^\[\]()]*)\)")
_unit = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|pmb|hat|vec|widehat)\s*\{?\s*(?:\\(?:hat|mathbf|boldsymbol|vec)\s*\{?\s*)?\\?([ijk])(?:math)?\s*\}?\s*\}?"
)
_bare_unit = re.compile(r"(?<![A-Za-z\\])([ijk])(?![A-Za-z])")
_tuple = re.compile(r"\s*\([^()]*,.*\)\s*", re.DOTALL)
_assigned = re.compile(r"^\s*(?:\\(?:vec|mathbf|boldsymbol)\s*\{?\s*)?[A-Za-z]\s*\}?\s*=\s*(?=[\\<(\[])")
_binomial = re.compile(r"\s*\\binom\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*")
_point = re.compile(r"^\s*[A-Z]\s*(?:=\s*)?(?=\()")
_bar = re.compile(r"\||\\mid")
_barred = re.compile(r"\(([^()|]+(?:\s*(?:\||\\mid)\s*[^()|]+)+)\)")


def in_vectors(gold: str, answer: str) -> tuple[str, str]:
    """Return both with vectors as tuples and matrices as blocks of entries, where the gold is one or a point."""
    if "matrix" in gold or r"\begin{array}" in gold:
        gold, answer = _matrix(gold, gold), _matrix(answer, gold)
    elif "(" in gold and "," in gold and "(" in answer:
        answer = _as_tuple(answer)
    size = _size(answer) or _size(gold)
    expected = _vector(gold, size, bare=False)
    if expected is None and not _tuple.fullmatch(gold):
        return gold, answer
    if expected and expected.count(",") == 1 and (match := _binomial.fullmatch(answer)):
        return expected, f"({match[1]},{match[2]})"
    body = _assigned.sub("", answer)
    vector = _vector(body, size, bare=expected is not None) or (body if expected and _tuple.fullmatch(body) else None)
    return (gold, answer) if vector is None else (expected or gold, vector)


def _as_tuple(answer: str) -> str:
    """``S(1 | 0 | -2)`` and ``P = (1, 0)`` as tuples."""
    bare = _point.sub("", answer).strip()
    if match := _barred.fullmatch(bare):
        return f"({','.join(part.strip() for part in _bar.split(match[1]))})"
    return bare if bare[:1] == "(" and bare[-1:] == ")" and "," in bare else answer


def _size(text: str) -> int:
    """How many entries a vector has that is written with all of them, 0 where ``text`` is none."""
    body = _assigned.sub("", text).strip("$ .")
    if match := _column.fullmatch(body):
        return len([row for row in _line.split(match[2]) if row.strip()])
    return body.count(",") + 1 if _pointed.fullmatch(body) or _bracketed.fullmatch(body) else 0


def _matrix(text: str, gold: str) -> str:
    r"""A multiple of a matrix, its transpose, rows in brackets, ``diag(1,2)`` and ``2I`` as a block of entries."""
    body = _named.sub("", text).strip()
    if match := _diagonal.fullmatch(body):
        return _diagonal_block([cell.strip() for cell in match[1].split(",")])
    size = len([row for row in _line.split(gold) if row.strip()])
    if size > 1 and (match := _identity.fullmatch(body)) and match[2] in (None, str(size)):
        return _diagonal_block([{"": "1", "-": "-1"}.get(match[1], match[1])] * size)
    if rows := _rows(body):
        return _block(rows)
    match = _scaled.fullmatch(body)
    if match is None or not (match[1].strip() or match[4]):
        return text
    rows = [[cell.strip() for cell in row.split("&")] for row in _line.split(match[3]) if row.strip()]
    if match[4]:
        if len({*map(len, rows)}) > 1:
            return text
        rows = [list(row) for row in zip(*rows, strict=True)]
    factor = {"-": "-1", "+": "1"}.get(match[1].strip(), match[1].strip())
    return _block([[f"({factor})\\cdot({cell})" if factor else cell for cell in row] for row in rows])


def _rows(text: str) -> list[list[str]]:
    """The entries of ``[[1, 2], [3, 4]]`` and ``[1 2; 3 4]``, empty where ``text`` is anything else."""
    if match := _flat.fullmatch(text):
        rows = match[1].split(";")
    elif (match := _nested.fullmatch(text)) and not re.sub(r"[\s,;]", "", _row.sub("", match[1])):
        rows = _row.findall(match[1])
    else:
        return []
    return [re.split(r"\s*,\s*|\s+", row.strip()) for row in rows]


def _diagonal_block(cells: list[str]) -> str:
    return _block([[cell if n == place else "0" for n in range(len(cells))] for place, cell in enumerate(cells)])


def _block(rows: list[list[str]]) -> str:
    body = r"\\ ".join("&".join(row) for row in rows)
    return rf"\begin{{pmatrix}}{body}\end{{pmatrix}}"


def _vector(text: str, size: int, *, bare: bool) -> str | None:
    """The tuple that a vector is written as; None where it is none. ``bare``: also ``[1,2]`` and ``i + 2j``."""
    text = text.strip().rstrip(".").strip("$ ")
    turned = _turned.search(text)
    body = text[: turned.start()].strip() if turned else text
    if match := (_line_of if turned else _column).fullmatch(body.strip("()[] ")):
        cells = [cell.strip() for cell in (match[2].split("&") if turned else _line.split(match[2]))]
        cells = cells if cells[-1] else cells[:-1]
        return f"({','.join(cells)})" if len(cells) > 1 else None
    if match := _pointed.fullmatch(body):
        return f"({match[1].strip()})"
    if bare and (match := _bracketed.fullmatch(body)) and (turned or body[0] == "["):
        return f"({match[1] or match[2]})"
    marked = _unit.sub(r" !\1 ", body)
    return _combined(_bare_unit.sub(r" !\1 ", body) if bare and marked == body else marked, size)


def _combined(text: str, size: int) -> str | None:
    """``(1,2,3)`` of ``1 !i + 2 !j + 3 !k``; of one unit alone where the ``size`` is known."""
    pieces = re.split(r"!([ijk])", text)
    units = pieces[1::2]
    if len(units) < (1 if size in (2, 3) else 2) or len(set(units)) < len(units) or pieces[-1].strip(" }"):
        return None
    parts: dict[str, str] = {}
    for unit, before in zip(units, pieces[::2], strict=False):
        factor = re.sub(r"(?:\\cdot|\*|\\,|\s)+$", "", before.strip()).replace(" ", "")
        if parts and factor[:1] not in ("+", "-"):
            return None
        factor = factor.removeprefix("+")
        parts[unit] = {"": "1", "-": "-1"}.get(factor, factor)
    letters = "ij" if size == 2 and "k" not in units else "ijk"
    return f"({','.join(parts.get(letter, '0') for letter in letters)})"
