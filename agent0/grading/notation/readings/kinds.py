"""Notations of one kind of answer each, brought to the one that is compared: congruences, sets of numbers, numerals of
a base, dates, durations, lists, matrices. What the gold is decides which of them are tried."""

# ruff: noqa: RUF001 (signs as they are written)
import re
import unicodedata

from agent0.grading.rules import Replacement, Rules, rewrite, rules

_sets = re.compile(r"infty|\\mathbb|\\cup|[<>]|\\(?:le|ge|ne)q?(?![a-z])|\\setminus|≤|≥|≠|∪")
_congruence = re.compile(r"\\(?:pmod|equiv|bmod|mod)(?![a-z])|≡")
_based = re.compile(r"_\s*\{?\s*(?:\\text\s*\{)?\s*(?:\d{1,2}|[a-z]+)\s*\}*\s*$")
_date = re.compile(
    r"\d{1,4}[/-]\d{1,2}[/-]\d{1,4}|\b(?:January|February|March|April|May|June|July|August|Sept|Oct|Nov|Dec)"
)
_duration = re.compile(r"\b(?:minutes?|hours?|min|hrs?)\b")
_fraction = re.compile(r"\s*-?\s*(?:\\[dt]?frac|\d+\s*/\s*\d+)")
_list = re.compile(r"[^()\[\]{}]*[,;][^()\[\]{}]*|.*\\pm.*")
_number = re.compile(r"\s*\\?\$?\s*\d[\d,]*\s*")
_any = re.compile("")
_between = re.compile(r"\\?\}\s*,\s*\\?\{")
_INF = r"(?<![A-Za-z\\])inf(?:inity)?(?![A-Za-z])"
_RELATIONS: tuple[tuple[str, str], ...] = (
    (r"(?:is )?(?:less than or equal to|at most|no more than|no greater than)", r" \\le "),
    (r"(?:is )?(?:greater than or equal to|at least|no less than)", r" \\ge "),
    (r"(?:is )?(?:greater|more|bigger|larger) than", " > "),
    (r"(?:is )?(?:less|smaller) than", " < "),
    (r"is not(?: equal to)?|<>|=/=|!==?", r" \\ne "),
)
_ALL = r"(?:all|every|any)(?: the)?(?: real)?(?: numbers?| values?| reals?)?(?: of)?(?: [a-z])?"


def _rules(*pairs: tuple[str, Replacement]) -> Rules:
    return rules(*pairs, flags=re.IGNORECASE)


_TABLE: tuple[tuple[re.Pattern[str], Rules], ...] = (
    (
        _any,
        _rules(
            (r"\\cr(?![A-Za-z])", r"\\\\"),
            (r"\\root\s*(\w)\s*\\of\s*(\w)", r"\\sqrt[\1]{\2}"),
            (r"\bpct\b\.?", "percent"),
            (r"\b(\d{1,9}) and (\d{1,3})/(\d{1,3})\b", r"\1 \2/\3"),
            (r"(\d*\.\d*?)(\d+) (?:repeating|recurring)", r"\1\\overline{\2}"),
            (
                r"\\frac\s*\{\s*d\s*([a-z])\s*\}\s*\{\s*d\s*[a-z]\s*\}|(?<![a-z])d([a-z])/d[a-z](?![a-z])",
                lambda f: f"{f[1] or f[2]}'",
            ),
            (r"(?<![a-z\\])([fgh])\[([^\[\]]*)\]", r"\1(\2)"),
            (r"(?<![A-Za-z])C_\s*\{?(\w)\}?\s*\^\s*\{?(\w)\}?", r"\\binom{\1}{\2}"),
            (r"\btwelve (noon|midnight)\b", r"12 \1"),
        ),
    ),
    (
        _sets,
        _rules(
            (rf"\+?{_INF}", r"\\infty "),
            (r"(?<=[)\]])\s*(?:U|or)\s*(?=[(\[])", r" \\cup "),
            (
                r"^\s*(?:\\mathbb\s*\{?\s*R\s*\}?|ℝ|R)\s*(?:-|−|\\setminus|\\backslash|\\|∖)\s*\\?\{(.+?)\\?\}\s*$",
                r"\\mathbb{R} \\setminus \\{\1\\}",
            ),
            (
                rf"^\s*{_ALL}\s+(?:but|except(?: for)?|other than|excluding)\s+(?:[a-z]\s*=\s*)?(\S+?)\.?\s*$",
                r"\\mathbb{R} \\setminus \\{\1\\}",
            ),
            (rf"^\s*(?:the (?:whole )?real (?:number )?line|{_ALL})\.?\s*$", r"\\mathbb{R}"),
            (r"^\s*(?:\\mathbb\s*\{?\s*R\s*\}?|ℝ|R)\s*\^?\s*\{?\s*\+\s*\}?\s*$", r"(0, \\infty)"),
            (
                r"^\s*(\S+\s*(?:<=?|\\leq?|≤)\s*)([a-z])\s*(?:and|,|\\land|∧)\s*\2(\s*(?:<=?|\\leq?|≤)\s*\S+)\s*$",
                r"\1\2\3",
            ),
            *((rf"(?<![a-z]){pattern}(?![a-z])", sign) for pattern, sign in _RELATIONS),
        ),
    ),
    (
        _congruence,
        _rules(
            (r"^\s*([a-z])\s*(?:%|mod|\\bmod)\s*(\d+)\s*={1,2}\s*(-?\d+)\s*$", r"\1 \\equiv \3 \\pmod{\2}"),
            (
                r"^\s*([a-z])\s*(?:≡|\\equiv|(?:is )?congruent to)\s*(-?\d+)\s*(?:\[|\(?\s*(?:mod"
                r"|modulo)\s*)(\d+)\s*[\])]?\s*$",
                r"\1 \\equiv \2 \\pmod{\3}",
            ),
        ),
    ),
    (_based, _rules((r"^\s*([0-9a-f]+)h\s*$", r"\1_{16}"))),
    (_date, _rules((r"^\s*(\d{1,2})[-.](\d{1,2})[-.](\d{4})\s*$", r"\1/\2/\3"))),
    (
        _duration,
        _rules((r"^\s*(\d+)\s*h(?:rs?|ours?)?\.?,?\s*(\d+)\s*m(?:ins?|inutes?)?\.?\s*$", r"\1 hours \2 minutes")),
    ),
    (_fraction, _rules((r"^\s*(?:a |an? )?(\w+) in (\w+)\s*$", r"\1 over \2"))),
    (_list, _rules((r"(?<![A-Za-z\\])([a-z])_\s*\{?\d\}?\s*=", r"\1 ="))),
    (
        re.compile(r"\s*\("),
        _rules(
            (r"(?<![A-Za-z\\])([a-z])\s*:\s*(?=-?\d)", r"\1 = "),
            (r"^\s*r\s*=\s*([^,]+),\s*(?:\\theta|θ|theta)\s*=\s*(.+)$", r"(\1, \2)"),
        ),
    ),
    (
        re.compile(r".*matrix"),
        _rules((r"^\s*\\?\{\s*\\?\{(.*)\\?\}\s*\\?\}\s*$", lambda f: f"[[{re.sub(_between, '], [', f[1])}]]")),
    ),
    (_number, _rules((r"^\s*\\?\$?\s*(\d+(?:\.\d+)?)\s*k\s*$", r"\1 thousand"))),
)
_SHORT = {
    "nope": "no", "yep": "yes", "yeah": "yes",
}  # fmt: skip
_raised = re.compile("[ʰʲˡʳˢʷˣʸᵃᵇᶜᵈᵉᵏᵐⁿᵒᵖᵗᵘᵛ⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ]+")
_pictures = re.compile("[\u2600-\u27bf\ufe0f\U0001f300-\U0001faff]+")


def of_kind(gold: str, answer: str) -> tuple[str, str]:
    """Return both in the notation that is compared; unchanged where they have no other."""
    return _in_notation(gold, gold), _in_notation(answer, gold)


def _in_notation(text: str, gold: str) -> str:
    if not text.isascii():
        text = _pictures.sub(" ", _raised.sub(_power, text)).replace("∶", ":").strip()
        text = "".join(unicodedata.normalize("NFKC", one) if "①" <= one <= "⓿" else one for one in text)
    text = _SHORT.get(text.strip(" .").lower(), text)
    for applies, table in _TABLE:
        if applies.match(gold) or (applies in _SEARCHED and applies.search(gold)):
            text = rewrite(text, table)
    return text


def _power(match: re.Match[str]) -> str:
    """A run of raised letters and digits."""
    return f"^{{{unicodedata.normalize('NFKC', match[0]).replace('−', '-')}}}"


_SEARCHED = frozenset({_sets, _congruence, _based, _date, _duration})
