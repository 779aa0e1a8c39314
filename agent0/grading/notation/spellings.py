r"""Spellings of one thing, in one ordered table: what a rule finds is written as it is read. Nothing is computed.

Both answers come without markup and with signs as LaTeX commands, of which ``cleaning`` has one spelling each.
"""

import re

from agent0.grading.notation.names import key_of, name
from agent0.grading.rules import Replacement, Rules, rewrite, rules

_FONT = r"\\(?:text|mathrm|operatorname|mathsf)\*?\s*\{\s*"
_DEGREE = r"(?:\^\s*\{?\s*\\circ(?![A-Za-z])\s*\}?|\\degree(?![A-Za-z])|degrees)"
_REAL = r"(?:\\mathbb\s*\{?\s*R\s*\}?|R)"
_OTHER = {"cot": "tan", "sec": "cos", "csc": "sin"}
_ALL = r"(?:all|every|any)(?: the)?(?: real)?(?: numbers?| values?| reals?)?(?: of)?(?: [a-z])?"
_FALLING = 12
_between = re.compile(r"\\?\}\s*,\s*\\?\{")
_whole_part = re.compile(r"[\s(){}]*-?\d+[\s(){}]*|.*\d\s*[./]\s*\d.*", re.DOTALL)


def _falling(match: re.Match[str]) -> str:
    """``10P3`` as 10 * 9 * 8."""
    above, count = int(match[1]), int(match[2])
    if not 0 < count <= min(above, _FALLING):
        return match[0]
    return "(" + r" \cdot ".join(str(above - step) for step in range(count)) + ")"


def _part(match: re.Match[str]) -> str:
    """A whole part of what is no number is a name of its own."""
    return match[0] if _whole_part.fullmatch(match[2]) else name(f"{match[1]}({key_of(match[2])})")


def _inverse(match: re.Match[str]) -> str:
    return rf"\arc{_OTHER[match[1] or match[2]]}\left(\frac{{1}}{{{match[3]}}}\right)"


def _alike(*pairs: tuple[str, Replacement]) -> Rules:
    return rules(*pairs, flags=re.IGNORECASE)


_NUMBERS = rules(
    (r"(?<![\w.])\d{1,3}(?:_\d{3})+(?![\d_{])", lambda f: f[0].replace("_", "")),
    (r"(?<=\d)'(?=\d{3}(?!\d))", ""),
    (r"^\d{1,3}(?: \d{3})+(?= [A-Za-z]|$)", lambda f: f[0].replace(" ", "")),
    (r"\^\{(\d{1,6})\}\s*/\s*_\{(\d{1,6})\}", r"\\frac{\1}{\2}"),
    (r"\bcomplex\(\s*([-+\d.]+)\s*,\s*([-+]?)\s*([\d.]+)\s*\)", lambda f: f"{f[1]}{f[2] or '+'}{f[3]}j"),
    (r"(?<=\d)\s+\.\s+(?=10\s*\^)|(?<=\d)\s*•\s*(?=\d)|(?<=\d)\s*[xX]\s*(?=10\s*\^)", r" \\times "),
    (r"\+\s*/\s*-|\+-", r"\\pm "),
    (r"^\s*(-?\d*\.\d*)\((\d{1,9})\)\s*$|(\d*\.\d*?)(\d+) (?:repeating|recurring)",
     lambda f: rf"{f[1] or f[3]}\overline{{{f[2] or f[4]}}}"),
    (r"^\s*(-?\d*\.\d*?)\\dot\s*\{?(\d)\}?(?:(\d*)\\dot\s*\{?(\d)\}?)?\s*$",
     lambda f: rf"{f[1]}\overline{{{f[2]}{f[3] or ''}{f[4] or ''}}}"),
    (r"(?i)(?<=\d)(?:\s|\\[ ,;]|~)*(\\(?:text|mathrm)\s*\{\s*)?\b((?:hund|thous|[mbtr]+illi)[a-z]+)\b(?(1)\s*\})",
     lambda f: f" {f[2].lower()}"),
    (r"\b(\d{1,9}) and (\d{1,3})/(\d{1,3})\b", r"\1 \2/\3"),
    (r"(?i)\band one (half|third|quarter)\b", r"and a \1"),
    (r"(?i)\b(?:pct|per cent)\b\.?", "percent"),
    (r"^\s*(?:USD|US\s?\\?\$)\s*(?=[\d.])", r"\\$"),
    (r"^\s*(?:EUR|euros)\s*([\d.,]+)\s*$", r"\1 euros"),
    (r"\bpounds?\b(?=.*\bp(?:ence|enny)\b)", "gbp"),
    (r"(?i)^\s*(?:gbp|pounds)\s*([\d.,]+)\s*$", r"\1 gbp"),
    (r"^\s*(?:Rs\.?|INR|₹|¥|JPY|CHF|CAD|AUD)\s*([\d.,]+)\s*$", r"\1 currency"),
    (r"(?<=:[0-5]\d)\s*o'clock", ""),
)  # fmt: skip
_FUNCTIONS = rules(
    (rf"(?i)({_FONT})?(?<![A-Za-z\\])(gcd|lcm|max|min)(?(1)\s*\}})(?=\s*[({{\\])", lambda f: rf"\{f[2].lower()} "),
    (r"(?<![A-Za-z\\])([a-z])\s*\^\s*\{\s*\(\s*([1-4])\s*\)\s*\}", lambda f: f[1] + "'" * int(f[2])),
    (r"\^\s*\{\s*('+)\s*\}", r"\1"),
    (r"\\frac\s*\{\s*d\s*\}\s*\{\s*d\s*x\s*\}\s*[\[(]?\s*([a-z])\s*\(\s*x\s*\)\s*[\])]?", r"\1'(x)"),
    (r"(?<![a-z\\])([fgh])\[([^\[\]]*)\]", r"\1(\2)"),
    (rf"(?:\\|{_FONT})?(?<![A-Za-z])cis\s*\}}?(?:\\[,;! ]|\s)*"
     rf"(\\frac\s*\{{[^{{}}]*\}}\s*\{{[^{{}}]*\}}|\([^()]*\)|\d+\s*{_DEGREE}?|\\pi)", r"(\\cos(\1) + i \\sin(\1))"),
    (rf"\\?(?<![A-Za-z])(sin|cos|tan|cot|sec|csc)\s*(\(|\{{)?\s*(-?\d+(?:\.\d+)?)\s*{_DEGREE}\s*(?(2)[)}}])",
     r"\\\1(\\frac{\3\\pi}{180})"),
    (rf"(?:\\|{_FONT})?(?:arc(cot|sec|csc)\s*\}}?|(?<![A-Za-z])(cot|sec|csc)\s*\^\s*\{{\s*-\s*1\s*\}})\s*[({{]?\s*(\d+)\s*[)}}]?",
     _inverse),
    (r"\\log_\s*\{?\s*e\s*\}?(?![A-Za-z])", r"\\ln "),
    (r"(?<![A-Za-z\\])(floor|ceil)(?:ing)?\s*\(([^()]*)\)", r"\\l\1 \2\\r\1"),
    (r"\\l(floor|ceil)(?![A-Za-z])([^\\]{1,60})\\r\1(?![A-Za-z])", _part),
    (r"\\\||\|\|(?!\s*[A-Z])", r"\\|"),
    (r"\\\|([^|]{1,60}?)\\\|", lambda f: name(f"norm {key_of(f[1])}")),
    (r"\\(?:bar|overline)\s*\{?\s*([a-z])(?![A-Za-z])\s*\}?", lambda f: name(f"bar {f[1]}")),
    (r"\\root\s*(\w)\s*\\of\s*(\w)", r"\\sqrt[\1]{\2}"),
    (r"(?:\{\s*\})?_\s*\{?\s*(\d{1,3})\s*\}?\s*P\s*_\s*\{?\s*(\d{1,2})\s*\}?", _falling),
    (r"\{\s*([^{}]{1,40}?)\s*\\choose\s*([^{}]{1,40}?)\s*\}|^\s*(\w{1,8})\s*\\choose\s*(\w{1,8})\s*$"
     r"|(?:\{\})?[_^]\s*\{?\s*(\w{1,6})\s*\}?\s*C\s*_\s*\{?\s*(\w{1,6})\s*\}?"
     r"|(?<![A-Za-z\\])(?:nCr|C)\s*\(\s*([^(),]{1,20})\s*,\s*([^(),]{1,20})\s*\)"
     r"|(?<![A-Za-z\\\d])(\w{1,6}|\([^()]{1,20}\))\s+(?:\\text\s*\{\s*)?choose\s*\}?\s+(\w{1,6}|\([^()]{1,20}\))",
     lambda f: r"\binom{{{}}}{{{}}}".format(*(part for part in f.groups() if part is not None))),
    (r"(?<![A-Za-z])C_\s*\{?(\w)\}?\s*\^\s*\{?(\w)\}?", r"\\binom{\1}{\2}"),
)  # fmt: skip
_LAYOUT = rules(
    (r"=\s*<(?![=>])|<=(?!>)", r"\\le "),
    (r">=", r"\\ge "),
    (r"\\not\s*=|!==?|=/=|<>", r"\\ne "),
    (r"(?<=\\in)\s*([ZRQN])(?![A-Za-z])", r" \\mathbb{\1}"),
    (r"\\(?:vec|boldsymbol|bm|pmb|mathbf)\s*\{\s*([a-hl-z])\s*\}", r"\\mathbf{\1}"),
    (r"\\(?:vec|mathbf|boldsymbol|bm|overrightarrow)\s*(?:\{\s*0\s*\}|0)", "0"),
    (r"(?<=[A-Z])\s*\|\|\s*(?=[A-Z])", r" \\parallel "),
    (r"\\(overline|overleftrightarrow)\s*\{\s*([A-Z])\s*([A-Z])\s*\}",
     lambda f: rf"\{f[1]}{{{min(f[2], f[3])}{max(f[2], f[3])}}}"),
    (r"\\(?:equiv|cong)_\s*\{?\s*(\d{1,5})\s*\}?\s*(-?\d{1,6})", r"\\equiv \2 \\pmod{\1}"),
    (r"\^\s*\{?\s*(?:\\(?:top|intercal)|\\(?:mathsf|mathrm|text)\s*\{?\s*T\s*\}?)\s*\}?|\^\s*\{\s*T\s*\}", "^T"),
    (r"(?<![A-Za-z])(?:np\.|numpy\.)?(?:array|Matrix|matrix)\(\s*(\[.*\])\s*\)", r"\1"),
    (r"(?<=[\d\w])\\[,;!:]\s*(?=;)|(?<=;)\s*\\[,;!:]", ""),
    (r"\\cr(?![A-Za-z])", r"\\\\"),
    (r"(?i)^\s*(?:yep|yeah)\W*$", "yes"),
    (r"(?i)^\s*nope\W*$", "no"),
    (r"\\bbox\s*(?:\[[^\]]*\])?\s*(?=\{)", ""),
    (r"\\[lc]?dots(?![A-Za-z])[bcmio]?|\.{3,}", r"\\ldots "),
    (r"^(?!.*\b(?:wrong|incorrect|false|if|not|never|cannot|one of|either|neither|nor|or|except|but)\b)"
     r"\s*(?:\\text\s*\{\s*)?(?:The|the|Its|So)? ?[a-z]+(?: [a-z]+){0,4} (?:is|are|equals)(?:\s*\}\s*|\s+)"
     r"(?=[-\d(\\$])", ""),
)  # fmt: skip
_SETS = _alike(
    (r"\+?(?<![A-Za-z\\])inf(?:inity)?(?![A-Za-z])", r"\\infty "),
    (r"(?<=[)\]])\s*(?:U|or)\s*(?=[(\[])", r" \\cup "),
    (rf"^\s*{_REAL}\s*(?:-|\\(?:setminus|backslash)?)\s*\\?\{{(.+?)\\?\}}\s*$", r"\\mathbb{R} \\setminus \\{\1\\}"),
    (rf"^\s*(?:the (?:whole )?real (?:number )?line|{_ALL})\.?\s*$", r"\\mathbb{R}"),
    (rf"^\s*{_REAL}\s*\^?\s*\{{?\s*\+\s*\}}?\s*$", r"(0, \\infty)"),
    (r"^\s*(\S+\s*(?:<=?|\\le)\s*)([a-z])\s*(?:and|,|\\land)\s*\2(\s*(?:<=?|\\le)\s*\S+)\s*$", r"\1\2\3"),
    (r"\b(?:is )?(?:less than or equal to|at most|no more than|no greater than)\b", r" \\le "),
    (r"\b(?:is )?(?:greater than or equal to|at least|no less than)\b", r" \\ge "),
    (r"\b(?:is )?(?:greater|more|bigger|larger) than\b", " > "),
    (r"\b(?:is )?(?:less|smaller) than\b", " < "),
    (r"\bis not(?: equal to)?\b", r" \\ne "),
    (r"(?:all |the )*non-?zero (?:real numbers|reals)|\\mathbb\s*\{?R\}?\s*\^\s*\{?(?:\*|\\ast|\\times)\}?",
     r"\\mathbb{R}\\setminus\\{0\\}"),
    (r"(?<=except )(?:for )?zero\b", "0"),
    (r"^\s*[a-z]\s*\\in\s*\\mathbb\s*\{?R\}?\s*,(?:\s|\\[ ,;])*(?=[a-z]\s*\\ne)", ""),
)  # fmt: skip
_TABLE: tuple[tuple[re.Pattern[str] | None, Rules], ...] = (
    (re.compile(r"\s*-?\s*(?:\\frac|\d+\s*/\s*\d+)"), _alike((r"^\s*(?:a |an? )?(\w+) in (\w+)\s*$", r"\1 over \2"))),
    (None, _NUMBERS + _FUNCTIONS + _LAYOUT),
    (re.compile(r".*(?:infty|\\mathbb|\\cup|[<>]|\\(?:le|ge|ne)(?![a-z])|\\setminus)", re.DOTALL), _SETS),
    (
        re.compile(r".*\\(?:pmod|equiv|bmod|mod)(?![a-z])", re.DOTALL),
        _alike(
            (r"^\s*([a-z])\s*(?:%|mod|\\bmod)\s*(\d+)\s*={1,2}\s*(-?\d+)\s*$", r"\1 \\equiv \3 \\pmod{\2}"),
            (r"^\s*([a-z])\s*(?:\\equiv|(?:is )?congruent to)\s*(-?\d+)\s*(?:\[|\(?\s*(?:mod|modulo)\s*)(\d+)"
             r"\s*[\])]?\s*$", r"\1 \\equiv \2 \\pmod{\3}"),
        ),
    ),
    (re.compile(r".*_\s*\{?\s*(?:\d{1,2}|[a-z]+)\s*\}*\s*$", re.DOTALL), _alike((r"^\s*([0-9a-f]+)h\s*$", r"\1_{16}"))),
    (
        re.compile(r".*(?:\d{1,4}[/-]\d{1,2}[/-]\d{1,4}|\b(?:Jan|Feb|March|April|May|June|July|Aug|Sep|Oct|Nov|Dec))"),
        rules((r"^\s*(\d{1,2})[-.](\d{1,2})[-.](\d{4})\s*$", r"\1/\2/\3")),
    ),
    (
        re.compile(r".*\b(?:minutes?|hours?|min|hrs?)\b"),
        _alike((r"^\s*(\d+)\s*h(?:rs?|ours?)?\.?,?\s*(\d+)\s*m(?:ins?|inutes?)?\.?\s*$", r"\1 hours \2 minutes")),
    ),
    (
        re.compile(r".*[a-z]'"),
        rules((r"\\frac\s*\{\s*d\s*([a-z])\s*\}\s*\{\s*d\s*[a-z]\s*\}|(?<![a-z])d([a-z])/d[a-z](?![a-z])",
               lambda f: f"{f[1] or f[2]}'")),
    ),
    (
        re.compile(r"[^_]*$"),
        rules((r"(?<![A-Za-z\\])([a-z])_\s*\{?\d\}?\s*=", r"\1 =")),
    ),
    (
        re.compile(r"\s*\("),
        _alike(
            (r"(?<![A-Za-z\\])([a-z])\s*:\s*(?=-?[\d./]+\s*(?:,|$))", r"\1 = "),
            (r"^\s*r\s*=\s*([^,]+),\s*(?:\\theta|theta)\s*=\s*(.+)$", r"(\1, \2)"),
        ),
    ),
    (
        re.compile(r".*matrix"),
        rules((r"^\s*\\?\{\s*\\?\{(.*)\\?\}\s*\\?\}\s*$", lambda f: f"[[{_between.sub('], [', f[1])}]]")),
    ),
    (re.compile(r".*(?:\bgbp\b|£|\d\s?p(?:ence)?\b)", re.DOTALL | re.IGNORECASE), _alike((r"\bpounds?\b", "gbp"))),
    (re.compile(r"\s*\\?\$?\s*\d[\d,]*\s*"), _alike((r"^\s*\\?\$?\s*(\d+(?:\.\d+)?)\s*k\s*$", r"\1 thousand"))),
)  # fmt: skip
"""Which expected answers the rules are for (all, where there is no pattern), and the rules."""


def respelled(text: str, gold: str) -> str:
    """Return ``text`` with each thing in one spelling; ``gold`` says which rules are for it."""
    return rewrite(text, *(table for applies, table in _TABLE if applies is None or applies.match(gold)))
