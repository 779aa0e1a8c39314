"""Cuts a reply into sentences whose formulas, code and bold words are single signs: no stop inside of one ends any."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re
from dataclasses import dataclass, field

from agent0.grading.rules import rewrite, rules

MOST = 1_000
"""Pieces of one reply that are set off."""
FORMULA, BOLD = "\ue000", "\ue001"
_sign = re.compile("[\ue000-\uf8ff]")
_HTML = rules(
    (r"</?(?:b|strong)\s*>", "**"),
    (r"</?(?:p|br|div|li|ul|ol|h[1-6])(?:\s[^<>]{0,80})?/?>", "\n"),
    (r"</?(?:i|em|u|span|code)(?:\s[^<>]{0,80})?>", ""),
    (r"(?s)```[^\n`]*\n(?:(?!```).)*```", "\n"),
    flags=re.IGNORECASE,
)
_block = re.compile(
    r"(?s)\$\$(?P<a>(?:(?!\$\$).)+)\$\$|\\\[(?P<b>(?:(?!\\\]).)+)\\\]|\\begin\{(?P<n>align\*?|aligned|equation\*?"
    r"|gather\*?)\}(?P<c>(?:(?!\\end).|\\end\{(?!(?P=n)))+)\\end\{(?P=n)\}"
)
_inline = re.compile(r"(?<!\\)\$(?P<a>[^$\n]+?)(?<!\\)\$(?!\d)|\\\((?P<b>(?:(?!\\\)).)+?)\\\)|`(?P<c>[^`\n]+)`")
_bold = re.compile(r"\*\*(?P<a>(?:(?!\*\*)[^\n])+)\*\*|__(?P<b>(?:(?!__)[^\n])+)__")
_valued = re.compile(r"(?i)[\d\ue000]|[^\w\s,'’.-]|^[A-Z]$|^(?:yes|no|true|false)\b")
"""Bold words that say more than themselves."""
_goes_on = re.compile(r"[ \t]+[a-z]")
"""What goes on with the sentence that a display stands in."""
_stop = re.compile(
    r"(?<![.\s(])(?<!\bi)(?<!\be)(?<!\bvs)(?<!\bcf)(?<!\bSt)(?<!\bMr)(?<!\bDr)(?!(?<=[\w)\ue010-\uf8ff])!\s*"
    r"(?:[=+*/×·÷≈−,)\ue000-]|[a-z]))[.!?。！？](?=[*_\"')]*(?:\s|\Z))|(?<=[。！])"
)
_abbreviated = re.compile(r"(?:\b[ap]\.m|\bi\.e|\be\.g|\bapprox|\bresp|\bdeg|^\s*\d{1,2})\.$")
_bullet = re.compile(r"^\s*(?:[-*+•>]\s+|#{1,6}\s+|\d{1,2}[.)]\s+(?=\D)|\([a-z]\)\s+)*")
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_date = re.compile(
    rf"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,? (?:the )?)?(?:{_MONTH} (?:the )?{_DAY}(?:(?:,| of)? \d{{4}})?"
    rf"|{_DAY} (?:of )?{_MONTH}(?:,? \d{{4}})?|{_MONTH} \d{{4}})(?!\w)"
)
_sign_off = re.compile(r"\\(?:blacksquare|square|qed|checkmark|Box)\b[.]?|∎")
_rows = re.compile(r"(?s)\\begin\{(aligned|align\*?|gathered|split)\}(.*)\\end\{\1\}")


@dataclass
class Text:
    """``text`` with one private character for each set-off piece; ``pieces`` are their contents."""

    text: str
    pieces: list[str] = field(default_factory=list)

    def shown(self, text: str) -> str:
        """``text`` with the pieces in their places."""
        for _ in range(4):
            text = _sign.sub(lambda sign: self.piece(sign[0]) if ord(sign[0]) >= 0xE010 else "", text)
        return text

    def piece(self, letter: str) -> str:
        """What the character stands for."""
        return self.pieces[ord(letter) - 0xE010]

    def set_off(self, content: str, bold: bool) -> str:
        """The characters that stand for ``content``: what kind it is, and which one."""
        if len(self.pieces) >= MOST:
            return " "
        self.pieces.append(content.strip())
        return (BOLD if bold else FORMULA) + chr(0xE010 + len(self.pieces) - 1)


def set_off(text: str) -> Text:
    """Put signs in place of the pieces of ``text`` that are set off, and lines in place of its blocks."""
    text = rewrite(_sign.sub("", text), _HTML)
    masked = Text("")
    text = _block.sub(
        lambda f: f" {masked.set_off(_last_row(f), False)}{' ' if _goes_on.match(f.string, f.end()) else chr(10)}", text
    )
    text = _inline.sub(
        lambda f: (
            "" if _sign_off.fullmatch((f["a"] or "").strip()) else masked.set_off(str(f[f.lastgroup or 0]), False)
        ),
        text,
    )
    text = _date.sub(lambda f: masked.set_off(f[0], False), text)
    masked.text = _bold.sub(lambda f: _in_bold(f, masked), text)
    return masked


def _in_bold(match: re.Match[str], masked: Text) -> str:
    """Bold words set off where they say a value or are a whole line, else as words."""
    content = str(match[match.lastgroup or 0])
    line = match.string[: match.start()].rpartition("\n")[2] + match.string[match.end() :].partition("\n")[0]
    return masked.set_off(content, True) if _valued.search(content) or not re.search(r"\w", line) else content


def _last_row(match: re.Match[str]) -> str:
    """A display's content; of several lines the last."""
    body = (match["a"] or match["b"] or match["c"]).strip()
    inner = _rows.fullmatch(body)
    if not (match["c"] or inner):
        return re.sub(r"(?<!\\)[.,;]$", "", body)
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", inner[2] if inner else body) if row.strip()]
    return rows[-1].strip().replace("&", " ").strip(" ,.;") if rows else ""


def sentences(text: str) -> list[str]:
    """Cut ``text`` into lines and sentences, each without the marks of a list; those without words are left out."""
    pieces = []
    for line in text.split("\n"):
        start = 0
        for stop in _stop.finditer(line):
            if not _abbreviated.search(line[start : stop.end()]) or stop.end() == len(line.rstrip()):
                pieces.append(line[start : stop.end()])
                start = stop.end()
        pieces.append(line[start:])
    bare = [_bullet.sub("", piece, count=1).strip() for piece in pieces]
    return [sentence for sentence in bare if re.search(r"[\w\ue000-\uf8ff]", sentence)]
