"""Cuts a reply into sentences whose formulas, code and bold words are single signs: no stop inside of one ends any."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re
from dataclasses import dataclass, field

from agent0.grading.rules import without_entities

MOST = 1_000
"""Pieces of one reply that are held."""
FORMULA, BOLD = "\ue000", "\ue001"
_held = re.compile("[\ue000-\uf8ff]")
_html_bold = re.compile(r"</?(?:b|strong)\s*>", re.IGNORECASE)
_html = re.compile(r"</?(?:p|br|div|li|ul|ol|h[1-6])(?:\s[^<>]{0,80})?/?>", re.IGNORECASE)
_html_inline = re.compile(r"</?(?:i|em|u|span|code)(?:\s[^<>]{0,80})?>", re.IGNORECASE)
_fence = re.compile(r"```[^\n`]*\n(?:(?!```).)*```", re.DOTALL)
_block = re.compile(
    r"\$\$(?P<a>(?:(?!\$\$).)+)\$\$|\\\[(?P<b>(?:(?!\\\]).)+)\\\]|\\begin\{(?P<n>align\*?|aligned|equation\*?"
    r"|gather\*?)\}(?P<c>(?:(?!\\end).|\\end\{(?!(?P=n)))+)\\end\{(?P=n)\}",
    re.DOTALL,
)
_inline = re.compile(r"(?<!\\)\$(?P<a>[^$\n]+?)(?<!\\)\$(?!\d)|\\\((?P<b>(?:(?!\\\)).)+?)\\\)|`(?P<c>[^`\n]+)`")
_bold = re.compile(r"\*\*(?P<a>(?:(?!\*\*)[^\n])+)\*\*|__(?P<b>(?:(?!__)[^\n])+)__")
_goes_on = re.compile(r"[ \t]+[a-z]")
"""What goes on with the sentence that a display stands in."""
_stop = re.compile(
    r"(?<![.\s(])(?<!\bi)(?<!\be)(?<!\bvs)(?<!\bcf)(?<!\bSt)(?<!\bMr)(?<!\bDr)"
    r"(?!(?<=[\w)\ue010-\uf8ff])!\s*(?:[=+*/×·÷≈−,)\ue000-]|[a-z]))[.!?。！？](?=[*_\"')]*(?:\s|\Z))|(?<=[。！])"
)
_abbreviated = re.compile(r"(?:\b[ap]\.m|\bi\.e|\be\.g|\bapprox|\bresp|\bdeg|^\s*\d{1,2})\.$")
_bullet = re.compile(r"^\s*(?:[-*+•>]\s+|#{1,6}\s+|\d{1,2}[.)]\s+(?=\D)|\([a-z]\)\s+)*")
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_date = re.compile(
    rf"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,? (?:the )?)?"
    rf"(?:{_MONTH} (?:the )?{_DAY}(?:(?:,| of)? \d{{4}})?|{_DAY} (?:of )?{_MONTH}(?:,? \d{{4}})?"
    rf"|{_MONTH} \d{{4}})(?!\w)"
)
_sign_off = re.compile(r"\\(?:blacksquare|square|qed|checkmark|Box)\b[.]?|∎")


@dataclass
class Text:
    """``text`` with one private character for each set-off piece; ``pieces`` are their contents, ``bold`` which of them
    are set in bold."""

    text: str
    pieces: list[str] = field(default_factory=list)
    bold: list[bool] = field(default_factory=list)

    def shown(self, text: str) -> str:
        """``text`` with the pieces in their places."""
        for _ in range(4):
            if not _held.search(text):
                break
            text = _held.sub(lambda match: self._piece(match[0]), text)
        return text

    def _piece(self, letter: str) -> str:
        return self.pieces[ord(letter) - 0xE010] if ord(letter) >= 0xE010 else ""

    def hold(self, content: str, bold: bool) -> str:
        """The characters that stand for ``content``: what kind it is, and which one."""
        if len(self.pieces) >= MOST:
            return " "
        self.pieces.append(content.strip())
        self.bold.append(bold)
        return (BOLD if bold else FORMULA) + chr(0xE010 + len(self.pieces) - 1)


def set_off(text: str) -> Text:
    """Put signs in place of the pieces of ``text`` that are set off, and lines in place of its blocks."""
    text = _held.sub("", text)
    text = without_entities(text)
    if "<" in text:
        text = _html_inline.sub("", _html.sub("\n", _html_bold.sub("**", text)))
    text = _fence.sub("\n", text)
    masked = Text("")
    text = _block.sub(
        lambda f: f" {masked.hold(_last_row(f), False)}{' ' if _goes_on.match(f.string, f.end()) else chr(10)}", text
    )
    text = _inline.sub(
        lambda f: "" if _sign_off.fullmatch((f["a"] or "").strip()) else masked.hold(f["a"] or f["b"] or f["c"], False),
        text,
    )
    text = _date.sub(lambda f: masked.hold(f[0], False), text)
    masked.text = _bold.sub(lambda f: masked.hold(f["a"] or f["b"], True) + _ending(f), text)
    return masked


def _ending(match: re.Match[str]) -> str:
    """The stop that ends a sentence in bold."""
    inside = (match["a"] or match["b"]).rstrip()
    return ". " if inside.endswith((".", "!")) and not _abbreviated.search(inside) else ""


def _last_row(match: re.Match[str]) -> str:
    """A display's content; of several lines the last, with the first one's left side where it has none."""
    body = (match["a"] or match["b"] or match["c"]).strip()
    inner = re.fullmatch(r"\\begin\{(aligned|align\*?|gathered|split)\}(.*)\\end\{\1\}", body, re.DOTALL)
    if not (match["c"] or inner):
        return re.sub(r"(?<!\\)[.,;]$", "", body)
    rows = [row.strip() for row in re.split(r"\\\\(?:\[[^\]]*\])?", inner[2] if inner else body) if row.strip()]
    return rows[-1].replace("&", " ").strip(" ,.;") if rows else ""


def sentences(text: str) -> list[str]:
    """Cut ``text`` into lines and sentences, each without the marks of a list; those without words are left out."""
    out = []
    for line in text.split("\n"):
        start = 0
        for stop in _stop.finditer(line):
            if not _abbreviated.search(line[start : stop.end()]) or stop.end() == len(line.rstrip()):
                out.append(line[start : stop.end()])
                start = stop.end()
        out.append(line[start:])
    cut = [_bullet.sub("", statement, count=1).strip() for statement in out]
    return [statement for statement in cut if re.search(r"[\w\ue000-\uf8ff]", statement)]
