"""Signs of Unicode as LaTeX, and functions in the notation that is read."""

# ruff: noqa: RUF001 (look-alike characters are what is replaced here)
import re
from collections.abc import Callable

from agent0.grading.rules import rewrite, rules, without_entities

_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "κ": "kappa",
    "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "χ": "chi",
    "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Σ": "Sigma", "Φ": "Phi",
    "Ψ": "Psi", "Ω": "Omega", "ϕ": "phi",
}  # fmt: skip
_OTHERS = {
    "≈": "approx", "∝": "propto", "∧": "land", "∨": "lor", "¬": "neg", "⇒": "Rightarrow", "⇔": "Leftrightarrow",
    "↔": "leftrightarrow", "∇": "nabla", "∑": "sum", "∏": "prod", "∫": "int", "⩽": "le", "⩾": "ge", "∉": "notin",
    "⟂": "perp", "∘": "circ ", "⊕": "oplus", "∀": "forall", "∃": "exists",
}  # fmt: skip
_TABLE = str.maketrans({sign: rf"\{name} " for sign, name in {**_GREEK, **_OTHERS}.items()})
_FONT = r"\\(?:text|mathrm|operatorname)\*?\s*\{\s*"
_Replacement = str | Callable[[re.Match[str]], str]
_ORDERS = {"1": "'", "2": "''", "3": "'''", "4": "''''"}
_SETS = {"natural": "N", "rational": "Q", "complex": "C"}
_OTHER = {"cot": "tan", "sec": "cos", "csc": "sin"}
_SPELLINGS = rules(
    (rf"(?i){_FONT}(gcd|lcm|max|min)\s*\}}(?=\s*(?:\\left\s*)?[({{\\])", lambda match: rf"\{match[1].lower()} "),
    (r"(?<![A-Za-z\\])([a-z])\s*\^\s*\{\s*\(\s*([1-4])\s*\)\s*\}", lambda f: f[1] + _ORDERS[f[2]]),
    (
        r"\\[dt]?frac\s*\{\s*d\s*\}\s*\{\s*d\s*x\s*\}\s*(?:\[|\(|\\left[\[(])?\s*([a-z])\s*\(\s*x\s*\)\s*[\])]?",
        r"\1'(x)",
    ),
    (r"=\s*<(?![=>])", r"\\le "),
    (r"(?<=\d)\s+\.\s+(?=10\s*\^)|(?<=\d)\s*•\s*(?=\d)", r" \\times "),
    (r"(?<=\\in )\s*([ZRQN])(?![A-Za-z])|(?<=\\in)\s+([ZRQN])(?![A-Za-z])", lambda f: rf"\mathbb{{{f[1] or f[2]}}}"),
    (r"(?:\{\s*\})?_\s*\{?\s*(\d{1,3})\s*\}?\s*P\s*_\s*\{?\s*(\d{1,2})\s*\}?", lambda f: _falling(f)),
    (r"\\(?:implies|Longrightarrow)(?![A-Za-z])", r"\\Rightarrow "),
    (r"\\(?:measuredangle|sphericalangle)(?![A-Za-z])", r"\\angle "),
    (r"\\Bbbk|\\(?:Reals|reals|R)(?![A-Za-z])", r"\\mathbb{R}"),
    (
        r"\\(?:arc)?(sin|cos|tan)h\s*\^\s*\{\s*-1\s*\}|(?<![A-Za-z])\\operatorname\s*\{\s*arc?(sin|cos|tan)h\s*\}"
        r"|\\operatorname\s*\{\s*ar(sin|cos|tan)h\s*\}",
        lambda f: rf"\operatorname{{arc{f[1] or f[2] or f[3]}h}}",
    ),
)
_SPELLINGS += rules(
    (
        r"\\?(?:operatorname|mathrm|text)?\s*\{?\s*(?<![a-z])cis(?![a-z])\s*\}?(?:\\[,;! ]"
        r"|\s)*(\\[dt]?frac\s*\{[^{}]*\}\s*\{[^{}]*\}|\([^()]*\)|\d+\s*(?:\^\s*\{?\s*\\circ\s*\}?|°)?|\\pi)",
        r"(\\cos(\1) + i \\sin(\1))",
    ),
    (
        r"\\?(?<![A-Za-z])(sin|cos|tan|cot|sec|csc)\s*(\(|\{)?\s*(-?\d+(?:\.\d+)?)\s*"
        r"(?:\^\s*\{?\s*\\circ(?![A-Za-z])\s*\}?|°|\\degree(?![A-Za-z])|degrees)\s*(?(2)[)}])",
        r"\\\1(\\frac{\3\\pi}{180})",
    ),
    (r"(?<=:[0-5]\d)\s*o['’]clock", ""),
    (r"\\(?:vec|boldsymbol|bm|pmb|mathbf)\s*\{\s*([a-hl-z])\s*\}", r"\\mathbf{\1}"),
    (r"(?<=[A-Z])\s*\|\|\s*(?=[A-Z])", r" \\parallel "),
    (
        r"\\(overline|overleftrightarrow)\s*\{\s*([A-Z])\s*([A-Z])\s*\}",
        lambda f: rf"\{f[1]}{{{min(f[2], f[3])}{max(f[2], f[3])}}}",
    ),
    (r"\\(?:equiv|cong)_\s*\{?\s*(\d{1,5})\s*\}?\s*(-?\d{1,6})", r"\\equiv \2 \\pmod{\1}"),
    (r"(?<=\d)\s*[xX]\s*(?=10\s*\^)", r" \\times "),
    (r"(?<=10)\s*\^\s*(-\d+)", r"^{\1}"),
    (
        r"(?i)^\s*(?:the )?(?:set of )?(?:all )?(?:the )?(natural|rational|complex) numbers\s*\.?\s*$",
        lambda match: rf"\mathbb{{{_SETS[match[1].lower()]}}}",
    ),
    (
        r"(?:\\operatorname\s*\{\s*arc(?=(?:cot|sec|csc)\s*\})|\\?arc(?=cot|sec|csc))(cot|sec"
        r"|csc)\s*\}?(?![A-Za-z])\s*\(\s*(\d+)\s*\)",
        lambda f: rf"\arc{_OTHER[f[1]]}\left(\frac{{1}}{{{f[2]}}}\right)",
    ),
    (
        r"\\?(?:arc(cot|sec|csc)|(cot|sec|csc)\s*\^\s*\{\s*-\s*1\s*\})(?![A-Za-z])\s*(?:\(\s*(\d+)\s*\)"
        r"|\{\s*(\d+)\s*\}|(\d+))",
        lambda f: rf"\arc{_OTHER[f[1] or f[2]]}\left(\frac{{1}}{{{f[3] or f[4] or f[5]}}}\right)",
    ),
)
_wanted = re.compile(
    r"gcd|lcm|max|min|GCD|LCM|\^\s*\{\s*\(|\\[dt]?frac\s*\{\s*d\s*\}|=\s*<|\.\s+10|•|\\in|P\s*_|implies|Long|angle"
    r"|Bbb|eals|\\R|ar(?:c)?(?:sin|cos|tan)h|h\s*\^|\|\||overl|_|\d\s*[xX]\s*10|10\s*\^|numbers|cis|sin|cos|tan|cot|sec|csc|clock"
    r"|vec|bold|bm|pmb"
)


_groups = re.compile(r"(?<![\w.])(\d{1,3}(?:_\d{3})+)(?![\d_{])")
_lakhs = re.compile(r"[-\\$ ]*\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?[ .$]*")
_python_complex = re.compile(r"\bcomplex\(\s*([-+\d.]+)\s*,\s*([-+]?)\s*([\d.]+)\s*\)")
_engineers = re.compile(
    r"[\s\d.+*/^(){}=-]|\\(?:[dt]?frac|sqrt|pi|cdot|,)(?![A-Za-z])|(?<![A-Za-z])(?:[ijz]|e(?=\s*\^))(?![A-Za-z])"
)
_unit = re.compile(r"(?<![A-Za-z\\])[ij](?![A-Za-z])")


def one_figure(gold: str, answer: str) -> tuple[str, str]:
    """Return both with digits in one group, as Python and India group them, and ``j`` as ``i`` where the other side has
    that for the imaginary unit."""
    gold, answer = _groups.sub(_ungrouped, gold), _groups.sub(_ungrouped, answer)
    if "," not in gold and _lakhs.fullmatch(answer):
        answer = answer.replace(",", "")
    answer = _python_complex.sub(lambda f: f"{f[1]}{f[2] or '+'}{f[3]}j", answer)
    units = [set(_unit.findall(text)) for text in (gold, answer)]
    texts = [text for text in (gold, answer) if not re.search(r"\d", text)]
    is_number = texts in ([], [gold]) and not _engineers.sub("", f"{gold} {answer}")
    if is_number and sorted(map(sorted, units)) == [["i"], ["j"]]:
        gold, answer = (_unit.sub("i", text) for text in (gold, answer))
    return gold, answer


def _ungrouped(match: re.Match[str]) -> str:
    return match[1].replace("_", "")


def one_sign(text: str) -> str:
    """Return ``text`` with signs as LaTeX commands and functions in one notation."""
    text = without_entities(text)
    if not text.isascii():
        text = text.translate(_TABLE).replace("∈", r"\in ").strip()
    if _wanted.search(text):
        text = rewrite(text, _SPELLINGS)
    return text


def _falling(match: re.Match[str]) -> str:
    """``10P3`` as 10 * 9 * 8."""
    above, count = int(match[1]), int(match[2])
    if not 0 < count <= min(above, 12):
        return match[0]
    return "(" + r" \cdot ".join(str(above - step) for step in range(count)) + ")"
