"""How chat replies are laid out: pictures, ticked options, tables, printed output, labels in bold, sums of money.

Each is put into the words in which a sentence would say it.
"""

# ruff: noqa: RUF001 (signs as they are written)
import re

from agent0.grading.extraction.languages import in_english

LONGEST_OUTPUT = 200
_ticks, _crosses = "✅✓✔☑", "❌✗✘☒"
_option = re.compile(
    rf"[\s>*+•\-]*([{_ticks}{_crosses}]?)\ufe0f?\s*[*(\[]*([A-J])\b[^\n]*?([{_ticks}{_crosses}]?)\ufe0f?\s*"
)
_picture = re.compile("[\U0001f1e6-\U0001f3fa\U0001f400-\U0001faff☀-☍☐☑★☆♀-⛿✂-✒✓✔✦✨❄❓❗❣❤⬛⬜⭐⭕✅➡\ufe0f\u200d]")
_wrong = re.compile(rf"[{_crosses}]")
_letters = "\u3040-\u30ff\u4e00-\u9fff"
_beside = re.compile(
    rf"(?<=[{_letters}])(?=[\w$(\\*`−\-])(?![{_letters}])|(?<=[\w$)\\*`}}])(?<![{_letters}])(?=[{_letters}])"
)
_scripts = re.compile(r"<sup>(\w{1,9})</sup>\s*(?:⁄|/|&frasl;)\s*<sub>(\w{1,9})</sub>", re.IGNORECASE)
_label = re.compile(r"^([ \t>*+•\-]*)\*\*([A-Za-z][^*:=\n]{0,40}?)(?::\*\*|\*\*\s*:)[ \t]*(?=\S)", re.MULTILINE)
_tags = re.compile(
    r"</?(?:output|solution|final|result|response|conclusion|final_solution)>|<\|[^|<>\n]{1,40}\|>", re.IGNORECASE
)
_short = re.compile(
    r"^([\s>*_#]*)(?:tl;?dr|(?:the )?(?:short|quick) answer|bottom line|in short)[*_]*(?:\s*[:—–-]"
    r"|,)[*_]*\s*(?:is\s+)?",
    re.IGNORECASE | re.MULTILINE,
)
_name = re.compile(r"\*\*([A-Za-z](?:_\w)?)\*\*(?=\s*=)")
_printed = re.compile(
    r"```(?:text|txt|output|plaintext|console|result)?[ \t]*\n((?:(?!```).)+?)\n?[ \t]*```", re.DOTALL
)
_program = re.compile(r"\b(?:print|def|import|return|for|while|let|const|var)\b|;\s*$|[A-Za-z_]\w+\s*=", re.MULTILINE)
_table = re.compile(r"(?:^[ \t]*\|[^\n]*\|[ \t]*(?:\n|\Z))+", re.MULTILINE)
_total = re.compile(r"(?:(?:grand|overall|final)\s+)?(?:total|answer|result|value)(?:\s+\w+)?|final", re.IGNORECASE)


_bracketed = re.compile(r"(\banswer)[*_]* \([A-Za-z][^()\n]{1,60}\)([*_]*)(?=[*_]*:)", re.IGNORECASE)
_worded = re.compile(
    r"^(\W*\(?[A-J]\)?\W+)(?:is\s+)?(?:(correct|right|yes|true)|(wrong|incorrect|no|false))\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_closed_heading = re.compile(r"^(#{1,6})[ \t]*([^#\n]+?)[ \t]*#+[ \t]*$", re.MULTILINE)
_quoted = re.compile(r"^(?:>[ \t]?)+(?=[^>\s])", re.MULTILINE)
_LETTERS = str.maketrans({"ₙ": "_n", "ₖ": "_k", "ᵢ": "_i", "ⱼ": "_j", "ⁿ": "^n"})


_paired = re.compile(r"<([a-z][\w-]{2,30})>((?:(?!<[/a-z]).)*)</\1>", re.IGNORECASE | re.DOTALL)
_KEPT = frozenset([
    "answer", "final_answer", "finalanswer", "sup", "sub", "strong", "span", "div", "code", "think", "mark", "big",
    "small", "center", "font", "del", "strike"
])  # fmt: skip
_keycap = re.compile("([0-9])\ufe0f?\u20e3")
_no_words = re.compile(r" ?\(\s*\)")
_quoted_value = re.compile(
    r"(?<![\w'\":{\[,])(?<![:{\[,]\s)(?:[\"“„«‹「『《【‘]|'(?!'))\s*([-−]?\$?\d[\d.,/]*(?:\s?%)?\$?)[.,]?\s*(?:[\"”“»›」』》】’]|'(?!'))(?!\w)"
)
_squared = str.maketrans(
    {chr(start + n): chr(65 + n) for start in (0x1F130, 0x1F150, 0x1F170) for n in range(26)} | {"🔟": "10"}
)


def laid_out(text: str) -> str:
    """Return ``text`` with its layout as words; linear in its length."""
    text = _quoted_value.sub(r"\1", text)
    text = _bracketed.sub(r"\1\2", _as_ticks(text))
    if not text.isascii():
        text = _keycap.sub(r"\1", text.translate(_squared))
    if not text.isascii():
        text = text.translate(_LETTERS)
        text = in_english(_ticked(text))
        text = _no_words.sub("", _beside.sub(" ", _wrong.sub(" wrong ", _picture.sub("", text))))
    else:
        text = in_english(text)
    text = _quoted.sub("", text) if ">" in text else text
    text = _closed_heading.sub(r"\1 \2", text) if "#" in text else text
    if "<" in text:
        text = _tags.sub("\n", _scripts.sub(r"\1/\2", text))
        for _ in range(3):
            text = _paired.sub(lambda match: match[0] if match[1].lower() in _KEPT else f"\n{match[2]}\n", text)
    if "```" in text:
        text = _printed.sub(_as_line, text)
    if "|" in text:
        text = _table.sub(_totalled, text)
    if "**" in text:
        text = _name.sub(r"\1", _label.sub(r"\1\2: ", text))
    return _short.sub(r"\1Answer: ", text)


def _as_ticks(text: str) -> str:
    """``text`` with ``B: correct`` as ``B: ✓``, where each of several lines says so of an option."""
    if len(_worded.findall(text)) < len("ABC"):
        return text
    return _worded.sub(lambda match: match[1] + ("✓" if match[2] else "✗"), text)


def _ticked(text: str) -> str:
    """``text``, with the one ticked option as its answer where others are crossed out."""
    marked = [(found, found[1] or found[3]) for found in map(_option.fullmatch, text.split("\n")) if found]
    ticked = [found[2] for found, mark in marked if mark and mark in _ticks]
    crossed = [found[2] for found, mark in marked if mark and mark in _crosses]
    if len(ticked) != 1 or not crossed or ticked[0] in crossed:
        return text
    others = [line for line in text.split("\n") if not _option.fullmatch(line)]
    return "\n".join([*others, f"The answer is {ticked[0]}."])


def _as_line(match: re.Match[str]) -> str:
    """What a program printed, as code within a line; a program itself stays as it is."""
    answer = " ".join(match[1].split())
    return match[0] if len(answer) > LONGEST_OUTPUT or "`" in answer or _program.search(match[1]) else f"`{answer}`"


def _totalled(match: re.Match[str]) -> str:
    """The last row of a table where it is its total, else the table."""
    cells = [cell.strip(" *_") for cell in match[0].rstrip().rpartition("\n")[2].strip(" \t|").split("|")]
    rows = [[cell.strip(" *_$") for cell in row.strip(" \t|").split("|")] for row in match[0].strip().split("\n")]
    if (
        len(rows) == len("hr1")
        and all(len(name) == 1 and name.isalpha() for name in rows[0])
        and len(cells) == len(rows[0])
    ):
        return f"{', '.join(f'{name} = {cell}' for name, cell in zip(rows[0], cells, strict=True))}\n"
    if len(cells) < 2 or not _total.fullmatch(cells[0].rstrip(":")) or any(cells[1:-1]):
        return match[0]
    return f"{cells[0]}: {cells[-1]}\n"
