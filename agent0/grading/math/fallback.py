"""When a symbolic engine may be asked: about integrals, limits and sums that are not computed here.

It drops what it does not know and takes rounded numbers for exact ones, so it is asked only about texts that it is
known to read whole: never about a relation, a decimal, a word, or a function of a name.
"""

import re

from agent0.grading.math.lexer import FUNCTIONS, GREEK, OPERATORS

_KNOWN = {*FUNCTIONS, *GREEK, *OPERATORS, "frac", "sqrt", "pi", "infty", "cdot", "times", "div", "to", "over"}
_operator = re.compile(rf"\\(?:{'|'.join(OPERATORS)})(?![A-Za-z])")
_bound = re.compile(r"_\s*\{\s*[a-z]\s*(?:=|\\to(?![A-Za-z]))")
_command, _letters = re.compile(r"\\([A-Za-z]+)"), re.compile(r"[A-Za-z]{2,}")
_misread = re.compile(
    r"[^A-Za-z0-9+\-*/^_(){}\[\]|\\ ]|[-+*/^_]\s*$|^\s*[*/^_]|[-+*/^_]\s*[*/^_)\]}]|\(\s*\)|N_|\^[^ ]{0,8}\^"
    r"|\^\s*\{?\s*[-+]?\d\d|(?<![A-Za-z\\])(?:[EFGHPfgh]\s*\(|d[a-z]?\s*/\s*d[a-z])|\\frac\s*\{\s*d(?![a-z]{3})"
)
_LONGEST = 200


def question(expected: str, answer: str) -> bool:
    """Whether to ask about two texts that exact comparison does not find equal."""
    return bool(_operator.search(expected)) and _is_whole(expected) and _is_whole(answer)


def _is_whole(text: str) -> bool:
    """Whether the engine reads all of ``text``, in a short time."""
    bare = _bound.sub("_{", text)
    words = {run for run in _letters.findall(_command.sub(" ", bare)) if not re.fullmatch("[a-z]?d[a-z]", run)}
    return (
        len(text) < _LONGEST
        and not _misread.search(bare)
        and set(_command.findall(bare)) <= _KNOWN
        and words <= FUNCTIONS | {"sqrt", "pi"}
    )
