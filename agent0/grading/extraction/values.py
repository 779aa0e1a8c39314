"""Runs of mathematics in a clause, and what the words before one make of it: stated by a verb, or a bound, a part, one
of two."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

_VERBS = (
    r"(?:is|are|was|were|be|been|being|becomes?|equals?|gives?|yields?|leaves?|contains?|has|have|had|takes?|costs?"
    r"|pays?|paid|up with|left with|makes?|gets?|comes to|amounts to|totals?|sums to|remains?|measures?|holds|needs?"
    r"|earns?|weighs?|reads?|spends?|sells?"
    r"|as|to|at|of|namely|exactly|precisely|simply|just|only|there are|ist|sind|beträgt|ergibt|est|vaut|sont|es"
    r"|son|为|是|得|等于|there is|obtains?|finds?|find|get|obtain|(?:holds|true|satisfied|works?|valid) (?:for"
    r"|when)|lies|option|choice|answer)"
)
_verb = re.compile(rf"(?:\b{_VERBS}|[:：=→为是得])\s*(?:a |an |the |about |approximately )?$", re.IGNORECASE)
_apart = re.compile(
    r"(?:\bof (?:the|these|those|his|her|their)|\b(?:multiples?|\w+est|factors?|powers?|third|quarter|half|divisors?"
    r"|digits|out|(?<!an )(?<!a )sum|(?<!an )(?<!a )product|root|square|(?<!an )(?<!a )average|(?<!an )(?<!a )mean"
    r"|each|any|both|one|some|most|all|none) of(?: the)?|\b(?:and|or|nor|before|after|until|over|under|above|below"
    r"|from|(?<!left )(?<!up )with|without|past|adding|subtracting|using|remove|drop|pages?|figure|table|chapter"
    r"|section|step|problem|question|exercise|line|case|theorem)"
    r"|(?<!dropped)(?<!increased)(?<!decreased)(?<!reduced)(?<!rose)(?<!risen)(?<!fell)(?<!fallen)"
    r"(?<!grew)(?<!grown)(?<!changed)(?<!shrank)(?<!satisfied)"
    r"(?<!gone up)(?<!went up)(?<!gone down)(?<!went down)\sby)\s*$",
    re.IGNORECASE,
)
"""What stands before a value that is no answer: a bound, a part, the second of two."""
NUMERALS = (
    r"(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million"
    r"|billion|dozen|half|halves|thirds?|quarters?|fourths?|fifths|sixths|sevenths|eighths|ninths|tenths|minus"
    r"|negative)"
)
NUMERAL = re.compile(rf"{NUMERALS}(?:-{NUMERALS})*[.,]?", re.IGNORECASE)
_CURRENCY = r"(?:USD|EUR|GBP|US\$|[$€£])"
_mathy = re.compile(
    rf"\S*[\ue000\ue001\d∅∞ℝℤℕℚπ²³₀-₉⁰-⁹½⅓¼¾∠√{{}}\[\]|=<>≤≥≠≈≡±×÷+/^∪∩∈−…°→↔∧∨¬\\]\S*|[-–*·:,]"
    rf"|\(?[b-zB-HJ-Z]['’]?[,;)]?|{_CURRENCY}"
    r"|\(?[A-Za-z]{1,4}\([^\s()]*\)\)?|percent|infinity|log_\w+|sin|cos|tan|ln|log|sqrt|\(?mod|[a-zA-Z]['’]"
    r"|\([A-J]\)|p\.?m\.?|a\.?m\.?|noon|midnight"
)
_joint = re.compile(
    r"(?:and|or|to|past|o'clock|hours?|minutes?|min|seconds?|h|quarter|until|,|&|plus|over|choose|C)[,]?", re.IGNORECASE
)
_wanting = re.compile(r"(?:and|or|to|,|&|plus|past|[:*·,–-]|over|choose)$", re.IGNORECASE)
_ordinal = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_SIGNS = ("∪", "∩", "=", "<", ">", "≤", "≥", "≈", "≠", "≡", "∈")
COUNTED = re.compile(rf"\b(?!one\b){NUMERALS}\b", re.IGNORECASE)


def value_runs(main: str) -> list[tuple[str, str, str]]:
    """Return each run of mathematics in a clause, as (before, run, behind)."""
    words = [(m[0], m.start(), m.end()) for m in re.finditer(r"\S+", main)]
    found: list[tuple[str, str, str]] = []
    while (run := last_run(words)) is not None:
        start, end = words[run[0]][1], words[run[1] - 1][2]
        found.insert(0, (main[:start], main[start:end], main[end:]))
        words = words[: run[0]]
    return found


def follows_verb(before: str) -> bool:
    """Whether what stands before a value ends in the verb that states it."""
    return bool(_verb.search(before.rstrip() + " ") or _verb.search(before.rstrip()))


def stands_apart(before: str) -> bool:
    """Whether what stands before a value makes it no answer: a bound, a part, the second of two."""
    return bool(_apart.search(before))


def last_run(words: list[tuple[str, int, int]]) -> tuple[int, int] | None:
    """The last run of words that are mathematics, with joints inside of it: (first, one behind the last)."""
    marks = [
        not _ordinal.fullmatch(word) and bool(_mathy.fullmatch(word) or NUMERAL.fullmatch(word)) for word, *_ in words
    ]
    if not any(marks):
        return None
    end = len(marks) - marks[::-1].index(True)
    start = end - 1
    while start and (step := next((n for n in (1, 2, 3) if _joins(words, marks, start, n)), 0)):
        start -= step
    while start < end - 1 and _wanting.fullmatch(words[start][0]):
        start += 1
    while 0 < start < end - 1 and words[start][0] in _SIGNS and not words[start - 1][0].endswith((",", ":", ".")):
        start -= 1
    while start < end - 1 and words[start][0] in _SIGNS:
        start += 1
    return start, end


def _joins(words: list[tuple[str, int, int]], marks: list[bool], start: int, size: int) -> bool:
    """Whether the word ``size`` before ``start`` is mathematics, and those between are joints."""
    between = words[max(0, start - size + 1) : start]
    return start >= size and marks[start - size] and all(_joint.fullmatch(word) for word, *_ in between)
