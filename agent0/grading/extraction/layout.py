"""A reply laid out as plain English sentences: pictures, ticked options, tables, printed output and labels, words of
other languages for "the answer is", values in words. One table of rules, each linear in the text."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.math.units import NUMERALS
from agent0.grading.rules import rewrite, rules
from agent0.turns.languages import AS_ENGLISH

LONGEST_OUTPUT = 200
_TICKS, _CROSSES = "✅✓✔☑", "❌✗✘☒"
_CJK = "\u3040-\u30ff\u4e00-\u9fff"
_SMALL = [*NUMERALS][:11]
_PARTS = {"half": 2, "third": 3, "quarter": 4}
_RELATIONS = {
    "greater than or equal to": "≥", "at least": "≥", "no less than": "≥", "not less than": "≥",
    "less than or equal to": "≤", "at most": "≤", "no more than": "≤", "no greater than": "≤", "greater than": ">",
    "more than": ">", "less than": "<", "smaller than": "<",
}  # fmt: skip
_relation, _digit = "|".join(_RELATIONS), "|".join(_SMALL[:10])
_number, _count = r"(?:\$[^$\n]+\$|[-−]?\d+(?:[./]\d+)?)", rf"(?:{'|'.join(_SMALL[1:])}|\d{{1,3}})"
_END = r"(?=\s*(?:[.,;]?\s*$|[.,;]\s))"
_option = re.compile(rf"[\s>*+•\-{_TICKS}{_CROSSES}\ufe0f]*[*(\[]*([A-J])\b.*")
_ticks = re.compile(rf"(?i)[{_TICKS}]|\W(?:correct|right|yes|true)\W*$")
_crosses = re.compile(rf"(?i)[{_CROSSES}]|\W(?:wrong|incorrect|no|false)\W*$")
_program = re.compile(r"(?m)\b(?:print|def|import|return|for|while)\b|;\s*$|[A-Za-z_]\w+\s*=")
_total = re.compile(r"(?i)(?:(?:grand|overall|final)\s+)?(?:total|answer|result|value)(?:\s+\w+)?|final")
_signs = str.maketrans(
    {chr(start + n): chr(65 + n) for start in (0x1F130, 0x1F150, 0x1F170) for n in range(26)}
    | {"🔟": "10", "ₙ": "_n", "ₖ": "_k", "ᵢ": "_i", "ⱼ": "_j", "ⁿ": "^n"}
)
_ENGLISH = rules(*AS_ENGLISH)
_PICTURES = rules(
    (r"[\U0001f1e6-\U0001f3fa\U0001f400-\U0001faff☀-☍☐☑★☆♀-⛿✂-✒✓✔✦✨❄❓❗❣❤⬛⬜⭐⭕✅➡\u20e3\ufe0f\u200d]", ""),
    (rf"[{_CROSSES}]", " wrong "),
    (rf"(?<=[{_CJK}])(?=[\w$(\\*`−\-])(?![{_CJK}])|(?<=[\w$)\\*`}}])(?<![{_CJK}])(?=[{_CJK}])", " "),
)  # fmt: skip
_LAYOUT = rules(
    (r"(?i)(?<=[\w)}$*]),\s+(?:at (?:the (?:very )?|a )?(?:most|least|minimum|maximum)|respectively"
     r"|no(?:thing| more| less)(?:,? (?:and )?(?:no )?(?:more|less))?|neither more nor less|give or take nothing"
     r"|n[ié] (?:plus|más|più) n[ié] (?:moins|menos|meno)"
     r"|(?:from )?(?:start|beginning) to (?:finish|end))(?=[.!*\s]*$|[.!]\s)", ""),
    (r"(?m)^(?:>[ \t]?)+(?=[^>\s])", ""),
    (r"(?m)^(#{1,6})[ \t]*([^#\n]+?)[ \t]*#+[ \t]*$", r"\1 \2"),
    (r"(?i)<sup>(\w{1,9})</sup>\s*(?:⁄|/|&frasl;)\s*<sub>(\w{1,9})</sub>", r"\1/\2"),
    (r"(?i)</?(?:output|solution|final|result|response|conclusion|final_solution)>|<\|[^|<>\n]{1,40}\|>", "\n"),
    (r"(?s)```(?:text|txt|output|plaintext|console|result)?[ \t]*\n((?:(?!```).)+?)\n?[ \t]*```",
     lambda match: _as_line(match)),
    (r"(?m)(?:^[ \t]*\|[^\n]*\|[ \t]*(?:\n|\Z))+", lambda match: _totalled(match)),
    (r"(?m)^([ \t>*+•\-]*)\*\*([A-Za-z][^*:=\n]{0,40}?)(?::\*\*|\*\*\s*:)[ \t]*(?=\S)", r"\1\2: "),
    (r"\*\*([A-Za-z](?:_\w)?)\*\*(?=\s*=)|\*\*([^*\n]{1,80})\*\*(?= \([^()\n]*\d)", r"\1\2"),
    (r"(?im)^([\s>*_#]*)(?:tl;?dr|(?:the )?(?:short|quick) answer|bottom line|in short)[*_]*(?:\s*[:—–-]"
     r"|,)[*_]*\s*(?:is\s+)?", r"\1Answer: "),
    (r"(?i)(\banswer)[*_]* \([a-z][^()\n]{1,60}\)([*_]*)(?=[*_]*:)", r"\1\2"),
    (r"(?<![\w'\":{\[,])(?<![:{\[,]\s)(?:[\"“„«‹「『《【‘]|'(?!'))\s*([-−]?\$?\d[\d.,/]*(?:\s?%)?\$?)[.,]?\s*"
     r"(?:[\"”“»›\"」』》】’]|'(?!'))(?!\w)", r"\1"),
)  # fmt: skip
_VALUES = rules(
    (rf"\b({_digit}) point ((?:{_digit})(?: (?:{_digit}))*)\b", lambda f: f"{_digits(f[1])}.{_digits(f[2])}"),
    (r"\b(?:half )?a dozen\b", lambda f: "6" if f[0][0] in "hH" else "12"),
    (r"\b(?:exactly |just )?an? (hundred|thousand|million|billion)\b", r"one \1"),
    (r"\b(?:(three)[- ]quarters|a quarter) of an? (?:hour|(minute))\b",
     lambda f: f"{45 if f[1] else 15} {'seconds' if f[2] else 'minutes'}"),
    (rf"\b(?:the )?closed interval (?:from|between) ({_number}) (?:to|and) ({_number})", r"[\1, \2]"),
    (rf"\b(?:the )?open interval (?:from|between) ({_number}) (?:to|and) ({_number})", r"(\1, \2)"),
    (r"\b(\d{1,9}) out of (\d{1,9})\b", r"\1/\2"),
    (r"\b((?:probability|chance|likelihood)\b[^.\n\d]{0,60}?\b)(\d{1,9}) in (\d{1,9})\b", r"\1\2/\3"),
    (r"\b(\d{1,9}) (dollars?|euros?|pounds?) and (\d\d?)(?: cents?| pence| pennies)\b",
     lambda f: f"{f[1]}.{f[3]:0>2} {f[2]}"),
    (rf"\b({_count}) dozen\b", lambda f: str(12 * int(_digits(f[1])))),
    (rf"\b({_count}) and (?:a|one)[ -](half|third|quarter)\b", lambda f: f"{_digits(f[1])} 1/{_PARTS[f[2].lower()]}"),
    (rf"\ball (?:the )?(?:real )?(?:numbers|values|\$?([a-z])\$?)(?: of \$?\w\$?)?(?: that are"
     rf"| which are)? ({_relation}) ({_number}){_END}|(?<![\w$\\])\$?([a-z])\$? (?:is|must be|has to be|should be"
     rf"|needs to be) ({_relation}) ({_number}){_END}",
     lambda f: f"{f[1] or f[4] or 'x'} {_RELATIONS[(f[2] or f[5]).lower()]} {(f[3] or f[6]).strip('$')}"),
    flags=re.IGNORECASE | re.MULTILINE,
)  # fmt: skip


def in_sentences(text: str) -> str:
    """Return ``text`` with its layout, and values that it says in words, as a sentence would write them."""
    text = _ticked(text if text.isascii() else text.translate(_signs))
    text = rewrite(text, _ENGLISH)
    return rewrite(text if text.isascii() else rewrite(text, _PICTURES), _LAYOUT, _VALUES)


def _digits(words: str) -> str:
    """Numbers up to ten in figures, without what parts them."""
    return "".join(word if word.isdigit() else str(_SMALL.index(word)) for word in words.lower().split())


def _ticked(text: str) -> str:
    """``text``, with the one option that is ticked or called correct as its answer where others are crossed out."""
    lines = text.split("\n")
    options = {line: match[1] for line in lines if (match := _option.fullmatch(line))}
    ticked = [letter for line, letter in options.items() if _ticks.search(line)]
    crossed = [letter for line, letter in options.items() if _crosses.search(line)]
    if len(ticked) != 1 or not crossed or ticked[0] in crossed:
        return text
    return "\n".join([*(line for line in lines if line not in options), f"The answer is {ticked[0]}."])


def _as_line(match: re.Match[str]) -> str:
    """What a program printed, as code within a line; a program itself stays as it is."""
    printed = " ".join(match[1].split())
    return match[0] if len(printed) > LONGEST_OUTPUT or "`" in printed or _program.search(match[1]) else f"`{printed}`"


def _totalled(match: re.Match[str]) -> str:
    """The last row of a table where it is its total or gives each name its value, else the table."""
    rows = [[cell.strip(" *_$") for cell in row.strip(" \t|").split("|")] for row in match[0].strip().split("\n")]
    names, last = rows[0], rows[-1]
    if len(rows) == len("hr1") and all(len(name) == 1 and name.isalpha() for name in names) and len(last) == len(names):
        return ", ".join(f"{name} = {cell}" for name, cell in zip(names, last, strict=True)) + "\n"
    is_total = len(last) > 1 and _total.fullmatch(last[0].rstrip(":")) and not any(last[1:-1])
    return f"{last[0].rstrip(':')}: {last[-1]}\n" if is_total else match[0]
