"""A reply laid out as plain English sentences: pictures, ticked options, tables, printed output and labels, words of
other languages for "the answer is", values in words. One table of rules, each linear in the text."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.rules import rewrite, rules

LONGEST_OUTPUT = 200
_TICKS, _CROSSES = "✅✓✔☑", "❌✗✘☒"
_CJK = "\u3040-\u30ff\u4e00-\u9fff"
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_PARTS = {"half": 2, "third": 3, "quarter": 4}
_RELATIONS = {
    "greater than or equal to": "≥", "at least": "≥", "no less than": "≥", "not less than": "≥",
    "less than or equal to": "≤", "at most": "≤", "no more than": "≤", "no greater than": "≤", "greater than": ">",
    "more than": ">", "less than": "<", "smaller than": "<",
}  # fmt: skip
_relation, _digit = "|".join(_RELATIONS), "|".join(_SMALL[:10])
_number, _count = r"(?:\$[^$\n]+\$|[-−]?\d+(?:[./]\d+)?)", rf"(?:{'|'.join(_SMALL[1:])}|\d{{1,3}})"
_END = r"(?=\s*(?:[.,;]?\s*$|[.,;]\s))"
_option = re.compile(
    rf"[\s>*+•\-]*([{_TICKS}{_CROSSES}]?)\ufe0f?\s*[*(\[]*([A-J])\b[^\n]*?([{_TICKS}{_CROSSES}]?)\ufe0f?\s*"
)
_program = re.compile(r"\b(?:print|def|import|return|for|while|let|const|var)\b|;\s*$|[A-Za-z_]\w+\s*=", re.MULTILINE)
_total = re.compile(r"(?:(?:grand|overall|final)\s+)?(?:total|answer|result|value)(?:\s+\w+)?|final", re.IGNORECASE)
_worded = re.compile(
    r"^(\W*\(?[A-J]\)?\W+)(?:is\s+)?(?:(correct|right|yes|true)|(wrong|incorrect|no|false))\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_MARKUP = "answer|final_?answer|sup|sub|strong|span|div|code|think|mark|big|small|center|font|del|strike"
_signs = str.maketrans(
    {chr(start + n): chr(65 + n) for start in (0x1F130, 0x1F150, 0x1F170) for n in range(26)}
    | {"🔟": "10", "ₙ": "_n", "ₖ": "_k", "ᵢ": "_i", "ⱼ": "_j", "ⁿ": "^n"}
)
_ANSWERS = (
    r"antwort|endergebnis|réponse|reponse|respuesta|risposta|resposta|ответ|відповідь|odpowiedź|antwoord|svar(?:et)?"
    r"|vastaus|(?:doğru )?cevap|sonuç|ergebnis|résultat|resultado|risultato|resultaat|resultat(?:et)?|wynik|результат"
    r"|jawaban(?:nya)?|đáp án|răspuns(?:ul)?|válasz|odpověď|απάντηση"
)
_SAYS = r"равен|равна|равно|ist|lautet|est|es|è|é|este|är|er|is|to|jest|adalah|là|on|:|：|=|—|–"
_FINAL = r"endgültige|finale?|richtige|correct[ae]|corrett[ae]|definitiva|final"
_OTHER_SCRIPTS = (
    r"答案|答え|解答|答|結果|结果|정답|답|결과|الجواب|الإجابة|الاجابة|الناتج|उत्तर|คำตอบ(?:คือ)?|התשובה|תשובה"
)
_LANGUAGES = rules(
    (
        r"\s*(?:(?:では|じゃ)(?:な|ありませ)\w*|かもしれ\w*|(?:이|가)?\s*(?:아니\w*|아닙니다)|değil\w*|नहीं)",
        ", which is wrong",
    ),
    (
        r"(?i)不是|不等于|ليس|ไม่ใช่|אינה|איננה|\b(?:niet|inte|nie|nije|ikke|ei ole|não|nem|nu este|không phải|bukan)\b",
        " not ",
    ),
    (r"(?<=[0-9A-J])\s*(?:或|か|또는|\boder|\bou|\beller|\bveya|أو|या|או)\s*(?=[-−]?[0-9A-J])", " or "),
    (
        rf"(?i)(?<!\w)(?:(?:die|la|el|il|a|o|de|het|den|so|also|daher|donc|así|quindi)\s+){{0,4}}(?:(?:{_FINAL})\s+)?"
        rf"(?:{_ANSWERS})(?:\s+(?:{_FINAL}))?[*_]*\s*(?:(?:{_SAYS})[*_]*\s*)+"
        r"(?:(?:donc|also|daher|somit|quindi|dunque|entonces|portanto|logo)\s+)?",
        "Answer: ",
    ),
    (
        rf"(?:(?:所以|因此|最终|最終|最后|正确|正解|故|の|最後の|よって、?|따라서|그러므로)\s*)*(?<![回解作])"
        rf"(?:{_OTHER_SCRIPTS})(?:选项|選項)?"
        r"\s*(?:是|为|為|應為|应为|は|는|은|이|選|选|هو|هي|היא|הוא)?\s*[:：]?\s*(?=[\w$(\\*`−\-\u300c])(?![\u0590-"
        r"\u06ff\u0900-\u097f\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])",
        "Answer: ",
    ),
    (
        r"(?<=[A-Za-z0-9$)}%])(?:\s*(?:개|명|원|점|번|마리|시간|장|권|살|대)?\s*(?:입니다|이에요|예요|이다|가 됩니다"
        r"|이 됩니다|になります|となります|である|です|だ|है|होगा|ครับ|ค่ะ)|['’](?:d[ıiuü]r|t[ıiuü]r))(?=[\s.。!！]"
        r"|\Z)",
        "",
    ),
)
"""What denies behind and before, "or", what says "the answer is" in Latin and other scripts, "is" behind a value."""
_PICTURES = rules(
    ("([0-9])\ufe0f?\u20e3", r"\1"),
    (r"[\U0001f1e6-\U0001f3fa\U0001f400-\U0001faff☀-☍☐☑★☆♀-⛿✂-✒✓✔✦✨❄❓❗❣❤⬛⬜⭐⭕✅➡\ufe0f\u200d]", ""),
    (rf"[{_CROSSES}]", " wrong "),
    (rf"(?<=[{_CJK}])(?=[\w$(\\*`−\-])(?![{_CJK}])|(?<=[\w$)\\*`}}])(?<![{_CJK}])(?=[{_CJK}])", " "),
    (r" ?\(\s*\)", ""),
)
_LAYOUT = rules(
    (r"(?m)^(?:>[ \t]?)+(?=[^>\s])", ""),
    (r"(?m)^(#{1,6})[ \t]*([^#\n]+?)[ \t]*#+[ \t]*$", r"\1 \2"),
    (r"(?i)<sup>(\w{1,9})</sup>\s*(?:⁄|/|&frasl;)\s*<sub>(\w{1,9})</sub>", r"\1/\2"),
    (r"(?i)</?(?:output|solution|final|result|response|conclusion|final_solution)>|<\|[^|<>\n]{1,40}\|>", "\n"),
    *[(rf"(?is)<(?!(?:{_MARKUP})>)([a-z][\w-]{{2,30}})>((?:(?!<[/a-z]).)*)</\1>", r"\n\2\n")] * 2,
    (
        r"(?s)```(?:text|txt|output|plaintext|console|result)?[ \t]*\n((?:(?!```).)+?)\n?[ \t]*```",
        lambda match: _as_line(match),
    ),
    (r"(?m)(?:^[ \t]*\|[^\n]*\|[ \t]*(?:\n|\Z))+", lambda match: _totalled(match)),
    (r"(?m)^([ \t>*+•\-]*)\*\*([A-Za-z][^*:=\n]{0,40}?)(?::\*\*|\*\*\s*:)[ \t]*(?=\S)", r"\1\2: "),
    (r"\*\*([A-Za-z](?:_\w)?)\*\*(?=\s*=)", r"\1"),
    (
        r"(?im)^([\s>*_#]*)(?:tl;?dr|(?:the )?(?:short|quick) answer|bottom line|in short)[*_]*(?:\s*[:—–-]"
        r"|,)[*_]*\s*(?:is\s+)?",
        r"\1Answer: ",
    ),
)
_VALUES = rules(
    (
        rf"\b({_digit}) point ((?:(?:{_digit})\b ?)+)",
        lambda f: (
            f"{_SMALL.index(f[1].lower())}.{''.join(str(_SMALL.index(w)) for w in f[2].lower().split())}"
            + " " * f[2].endswith(" ")
        ),
    ),
    (r"\bhalf a dozen\b", "6"),
    (r"\ba dozen\b", "12"),
    (r"\b(?:exactly |just )?an? (hundred|thousand|million|billion)\b", r"one \1"),
    (r"\b(three[- ]|a )quarters? of an? (hour|minute)\b", lambda f: f"{15 if f[1] == 'a ' else 45} {_below(f[2])}"),
    (rf"\b(?:the )?closed interval (?:from|between) ({_number}) (?:to|and) ({_number})", r"[\1, \2]"),
    (rf"\b(?:the )?open interval (?:from|between) ({_number}) (?:to|and) ({_number})", r"(\1, \2)"),
    (r"\bhalf a percent\b|\bhalf of (?:a|one) percent\b", "0.5 percent"),
    (r"\b(\d{1,9}) out of (\d{1,9})\b", r"\1/\2"),
    (r"\b((?:probability|chance|likelihood)\b[^.\n\d]{0,60}?\b)(\d{1,9}) in (\d{1,9})\b", r"\1\2/\3"),
    (r"\b(\d{1,6}) root (\d{1,6})\b", r"\1√\2"),
    (r"\b(?:the )?(?:positive )?square root of (\d{1,9})\b", r"√\1"),
    (
        r"\b(\d{1,9}) (dollars?|euros?|pounds?) and (\d\d?)(?: cents?| pence| pennies)\b",
        lambda f: f"{f[1]}.{int(f[3]):02} {f[2]}",
    ),
    (rf"\b({_count}) dozen\b", lambda f: str(12 * _whole(f[1]))),
    (rf"\b({_count}) and (?:a|one)[ -](half|third|quarter)\b", lambda f: f"{_whole(f[1])} 1/{_PARTS[f[2].lower()]}"),
    (
        rf"\ball (?:the )?(?:real )?(?:numbers|values|\$?[a-z]\$?)(?: of \$?\w\$?)?(?: that are| which are)? "
        rf"({_relation}) ({_number}){_END}",
        lambda f: f"x {_RELATIONS[f[1].lower()]} {f[2].strip('$')}",
    ),
    (
        rf"(?<![\w$\\])\$?([a-z])\$? (?:is|must be|has to be|should be|needs to be) ({_relation}) ({_number}){_END}",
        lambda f: f"{f[1]} {_RELATIONS[f[2].lower()]} {f[3].strip('$')}",
    ),
    flags=re.IGNORECASE | re.MULTILINE,
)
_quoted_value = re.compile(
    r"(?<![\w'\":{\[,])(?<![:{\[,]\s)(?:[\"“„«‹「『《【‘]|'(?!'))\s*([-−]?\$?\d[\d.,/]*(?:\s?%)?\$?)[.,]?\s*(?:[\"”“»›"
    r"」』》】’]|'(?!'))(?!\w)"
)
_bracketed = re.compile(r"(\banswer)[*_]* \([A-Za-z][^()\n]{1,60}\)([*_]*)(?=[*_]*:)", re.IGNORECASE)


def in_sentences(text: str) -> str:
    """Return ``text`` with its layout, and values that it says in words, as a sentence would write them."""
    text = _bracketed.sub(r"\1\2", _as_ticks(_quoted_value.sub(r"\1", text)))
    if not text.isascii():
        text = _ticked(text.translate(_signs))
    text = rewrite(text, _LANGUAGES)
    return rewrite(text if text.isascii() else rewrite(text, _PICTURES), _LAYOUT, _VALUES)


def _whole(word: str) -> int:
    return int(word) if word.isdigit() else _SMALL.index(word.lower())


def _below(unit: str) -> str:
    return "minutes" if unit.lower() == "hour" else "seconds"


def _as_ticks(text: str) -> str:
    """``text`` with ``B: correct`` as ``B: ✓``, where each of several lines says so of an option."""
    if len(_worded.findall(text)) < len("ABC"):
        return text
    return _worded.sub(lambda match: match[1] + ("✓" if match[2] else "✗"), text)


def _ticked(text: str) -> str:
    """``text``, with the one ticked option as its answer where others are crossed out."""
    options = [match for match in map(_option.fullmatch, text.split("\n")) if match]
    marked = [(match[2], match[1] or match[3]) for match in options]
    ticked = [letter for letter, mark in marked if mark and mark in _TICKS]
    crossed = [letter for letter, mark in marked if mark and mark in _CROSSES]
    if len(ticked) != 1 or not crossed or ticked[0] in crossed:
        return text
    others = [line for line in text.split("\n") if not _option.fullmatch(line)]
    return "\n".join([*others, f"The answer is {ticked[0]}."])


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
    cells = [cell.strip(" *_") for cell in match[0].rstrip().rpartition("\n")[2].strip(" \t|").split("|")]
    if len(cells) < 2 or not _total.fullmatch(cells[0].rstrip(":")) or any(cells[1:-1]):
        return match[0]
    return f"{cells[0]}: {cells[-1]}\n"
