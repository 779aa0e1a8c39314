"""Sets of numbers: turned brackets, semicolons, two bounds, bounds of an absolute value, exclusions."""

import re

from agent0.grading.rules import rewrite, rules

_value = r"[^\[\](){},;<>=]{1,40}?"
_semicolon = re.compile(rf"([\[\](])\s*({_value})\s*;\s*({_value})\s*([\[\])])")
_turned = re.compile(
    rf"(?:(\])\s*({_value})\s*[,;]\s*({_value})\s*([\[\]])|([\[\]])\s*({_value})\s*[,;]\s*({_value})\s*(\[))"
)
_alike = rules(
    (
        r"(?:all |the )*non-?zero (?:real numbers|reals)|\\mathbb\s*\{?R\}?\s*\^\s*\{?(?:\*|\\ast|\\times)\}?",
        r"\\mathbb{R}\\setminus\\{0\\}",
    ),
    (r"(?<=except )(?:for )?zero\b", "0"),
    (r"(?<=\\mathbb\{R\})\s*,\s*\\[ ,;](?=\s*[a-z]\s*\\n)", ", "),
    (r"\\leqq(?![A-Za-z])", r"\\le "),
    (r"\\geqq(?![A-Za-z])", r"\\ge "),
    (r"\\not\s*=|!=", r"\\ne "),
)
_less, _more = r"<=|<|\\l(?:eq?(?:slant)?|t)(?![A-Za-z])", r">=|>|\\g(?:eq?(?:slant)?|t)(?![A-Za-z])"
_sign = rf"({_less}|{_more})"
_both = r"\s*(?:\\text\s*\{\s*and\s*\}|\band\b|\\land|\\wedge|\\text\s*\{\s*&\s*\})\s*"
_end = r"([^<>=,;]{1,30}?)"
_two = re.compile(rf"\s*([a-z])\s*{_sign}\s*{_end}{_both}([a-z])\s*{_sign}\s*{_end}\s*")
_magnitude = re.compile(
    rf"\s*(?:\||\\[lr]?vert)\s*([a-z])\s*(?:\||\\[lr]?vert)\s*{_sign}\s*([\d./]+|\\[a-z]+\{{\d+\}}(?:\{{\d+\}})?)\s*"
)
_point = r"(?:\d+(?:\.\d+)?(?:/\d+)?|\\[dt]?frac\{\d+\}\{\d+\}|\\sqrt\{?\d+\}?)"
_signed = re.compile(rf"\\pm\s*({_point})")
_excludes = re.compile(r"\\neq?(?![A-Za-z])|\\setminus|\\backslash|except|other than|excluding")
_excluded = re.compile(r"\s*([a-z])\s*\\neq?(?![A-Za-z])\s*([^=<>]{1,40}?)\s*")
_joint = re.compile(r"\s*(?:,\s*(?:and\b)?|;|\\text\s*\{\s*,?\s*and\s*\}|\band\b|\\land|\\wedge)\s*(?=[a-z]\s*\\ne)")


def bounded(gold: str, answer: str) -> tuple[str, str]:
    """Return both sets of numbers in the notation that ``spelling.notation`` reads."""
    gold, answer = (_fenced(rewrite(text, _alike)) for text in (gold, answer))
    gold, answer = _exclusions(gold), _exclusions(answer)
    if answer.strip() in ("R", r"\text{R}") and re.search(r"\\infty|\\mathbb", gold):
        answer = r"\mathbb{R}"
    if not ("|" in gold and "|" in answer):
        gold, answer = _unsigned(gold), _unsigned(answer)
    return _between(gold), _between(answer)


def _fenced(text: str) -> str:
    """``]0,5]`` and ``[1; 2]`` with brackets and a comma of the usual kind, each piece of a union."""
    if not re.search(r";|^\s*\]|\[\s*$|\]\s*\\cup|\\in\s*\]", text):
        return text
    head, name, body = text.rpartition(r"\in") if text.count(r"\in ") == 1 else ("", "", text)
    pieces = [_piece(part.strip()) for part in body.split(r"\cup")]
    return f"{head}{name} " * bool(name) + r"\cup ".join(map(str, pieces)) if None not in pieces else text


def _piece(text: str) -> str | None:
    if match := _turned.fullmatch(text):
        first, low, high, last = match.groups()[:4] if match[1] else match.groups()[4:]
        return f"{'(' if first == ']' else '['}{low},{high}{')' if last == '[' else ']'}"
    if match := _semicolon.fullmatch(text):
        return f"{match[1]}{match[2]},{match[3]}{match[4]}" if match[1] != "]" and match[4] != "[" else None
    return text if re.fullmatch(r"[\[(].*[\])]", text) else None


def _exclusions(text: str) -> str:
    r"""``x \ne 1, x \ne -1`` and ``x \ne \pm 1`` as ``x \ne 1,-1``."""
    if not _excludes.search(text):
        return text
    text = _signed.sub(r"\1,-\1", text)
    parts = [_excluded.fullmatch(part) for part in _joint.split(text)]
    found = [part for part in parts if part]
    if len(found) < 2 or len(found) < len(parts) or len({part[1] for part in found}) > 1:
        return text
    return rf"{found[0][1]} \ne {','.join(part[2] for part in found)}"


def _unsigned(text: str) -> str:
    """``|x| < 2`` as an interval, ``|x| > 2`` as a union."""
    match = _magnitude.fullmatch(text)
    if match is None:
        return text
    end, closed = match[3], match[2] not in ("<", ">", r"\lt", r"\gt")
    if re.fullmatch(_less, match[2]):
        return f"[-{end},{end}]" if closed else f"(-{end},{end})"
    return rf"(-\infty,-{end}]\cup[{end},\infty)" if closed else rf"(-\infty,-{end})\cup({end},\infty)"


def _between(text: str) -> str:
    r"""``x \ge 1 and x \le 2`` as ``1 \le x \le 2``."""
    match = _two.fullmatch(text)
    if match is None or match[1] != match[4]:
        return text
    upward = [bool(re.fullmatch(_more, match[place])) for place in (2, 5)]
    if upward[0] == upward[1]:
        return text
    low, high = (match.group(3, 2), match.group(6, 5)) if upward[0] else (match.group(6, 5), match.group(3, 2))
    below, above = ("<" if end[1] in ("<", ">", r"\lt", r"\gt") else r"\le" for end in (low, high))
    return f"{low[0]} {below} {match[1]} {above} {high[0]}"
