"""A reply laid out as plain English sentences: pictures, ticked options, tables, printed output and labels, words of
other languages for "the answer is", values in words. One table of rules, each linear in the text."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.math.units import NUMERALS
from agent0.grading.rules import rewrite, rules

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
        r"\s*(?:(?:では|じゃ)(?:な|ありませ)\w*|かもしれ\w*|(?:이|가)?\s*(?:아니\w*|아닙니다)|değil\w*|नहीं|と主張\w*"
        r"|(?:라고|다고)\s*주장\w*|olduğunu iddia\w*)",
        ", which is wrong",
    ),
    (
        r"(?i)有人(?:说|說|认为|認為|声称|聲稱|觉得|主張)[，,：:]?|(?:ある人|誰か)[はが]|누군가(?:는|가)?|\b(?:birisi"
        r"|biri|bazıları)\b|\b(?:jemand|manche|alguien|algunos|quelqu['’]un|certains|кто-то) (?:behaupte|sag|mein"
        r"|glaub|afirma|dice|cree|sostiene|affirme|préten|dit|pens|утвержда|говор|счита)\w*,?(?: dass| que|,? что)?",
        "Someone claims that ",
    ),
    (
        r"(?i)不是|不等于|ليس|ไม่ใช่|אינה|איננה|\b(?:niet|inte|nie|nije|ikke|ei ole|não|nem|nu este|không phải|bukan)\b",
        " not ",
    ),
    (r"(?<=[0-9A-J])\s*(?:或|か|또는|\boder|\bou|\beller|\bveya|أو|या|או)\s*(?=[-−]?[0-9A-J])", " or "),
    (
        rf"(?i)(?<!\w)(?:(?:die|la|el|il|a|o|de|het|den|so|also|daher|donc|así"
        rf"|quindi)\s+){{0,4}}(?:(?:{_FINAL})\s+)?(?:{_ANSWERS})(?:\s+(?:{_FINAL}))?[*_]*\s*(?:(?:{_SAYS})[*_]*\s*)+"
        r"(?:(?:donc|also|daher|somit|quindi|dunque|entonces|portanto|logo)\s+)?",
        "Answer: ",
    ),
    (
        rf"(?:(?:所以|因此|最终|最終|最后|正确|正解|故|の|最後の|よって、?|따라서|그러므로)\s*)*(?<![回解作])"
        rf"(?:{_OTHER_SCRIPTS})(?:选项|選項)?"
        r"\s*(?:是|为|為|應為|应为|は|는|은|이|選|选|هو|هي|היא|הוא)?\s*[:：]?\s*(?=[\w$(\\*`−\-\u300c])"
        r"(?![\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])",
        "Answer: ",
    ),
    (
        r"(?<=[A-Za-z0-9$)}%])(?:\s*(?:개|명|원|점|번|마리|시간|장|권|살|대)?\s*(?:입니다|이에요|예요|이다|가 됩니다"
        r"|이 됩니다|になります|となります|である|です|だ|है|होगा|ครับ|ค่ะ)|['’](?:d[ıiuü]r|t[ıiuü]r))(?=[\s.。।!！]"
        r"|\Z)",
        "",
    ),
)
"""What denies or reports behind and before, "or", "the answer is" in Latin and other scripts, "is" behind a value."""
_PICTURES = rules(
    (r"[\U0001f1e6-\U0001f3fa\U0001f400-\U0001faff☀-☍☐☑★☆♀-⛿✂-✒✓✔✦✨❄❓❗❣❤⬛⬜⭐⭕✅➡\u20e3\ufe0f\u200d]", ""),
    (rf"[{_CROSSES}]", " wrong "),
    (rf"(?<=[{_CJK}])(?=[\w$(\\*`−\-])(?![{_CJK}])|(?<=[\w$)\\*`}}])(?<![{_CJK}])(?=[{_CJK}])", " "),
)
_LAYOUT = rules(
    (r"(?m)^(?:>[ \t]?)+(?=[^>\s])", ""),
    (r"(?m)^(#{1,6})[ \t]*([^#\n]+?)[ \t]*#+[ \t]*$", r"\1 \2"),
    (r"(?i)<sup>(\w{1,9})</sup>\s*(?:⁄|/|&frasl;)\s*<sub>(\w{1,9})</sub>", r"\1/\2"),
    (r"(?i)</?(?:output|solution|final|result|response|conclusion|final_solution)>|<\|[^|<>\n]{1,40}\|>", "\n"),
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
    (r"(?i)(\banswer)[*_]* \([a-z][^()\n]{1,60}\)([*_]*)(?=[*_]*:)", r"\1\2"),
    (
        r"(?<![\w'\":{\[,])(?<![:{\[,]\s)(?:[\"“„«‹「『《【‘]|'(?!'))\s*([-−]?\$?\d[\d.,/]*(?:\s?%)?\$?)[.,]?\s*"
        r"(?:[\"”“»›\"」』》】’]|'(?!'))(?!\w)",
        r"\1",
    ),
)
_VALUES = rules(
    (rf"\b({_digit}) point ((?:{_digit})(?: (?:{_digit}))*)\b", lambda f: f"{_digits(f[1])}.{_digits(f[2])}"),
    (r"\b(?:half )?a dozen\b", lambda f: "6" if f[0][0] in "hH" else "12"),
    (r"\b(?:exactly |just )?an? (hundred|thousand|million|billion)\b", r"one \1"),
    (
        r"\b(?:(three)[- ]quarters|a quarter) of an? (?:hour|(minute))\b",
        lambda f: f"{45 if f[1] else 15} {'seconds' if f[2] else 'minutes'}",
    ),
    (rf"\b(?:the )?closed interval (?:from|between) ({_number}) (?:to|and) ({_number})", r"[\1, \2]"),
    (rf"\b(?:the )?open interval (?:from|between) ({_number}) (?:to|and) ({_number})", r"(\1, \2)"),
    (r"\b(\d{1,9}) out of (\d{1,9})\b", r"\1/\2"),
    (r"\b((?:probability|chance|likelihood)\b[^.\n\d]{0,60}?\b)(\d{1,9}) in (\d{1,9})\b", r"\1\2/\3"),
    (
        r"\b(\d{1,9}) (dollars?|euros?|pounds?) and (\d\d?)(?: cents?| pence| pennies)\b",
        lambda f: f"{f[1]}.{f[3]:0>2} {f[2]}",
    ),
    (rf"\b({_count}) dozen\b", lambda f: str(12 * int(_digits(f[1])))),
    (rf"\b({_count}) and (?:a|one)[ -](half|third|quarter)\b", lambda f: f"{_digits(f[1])} 1/{_PARTS[f[2].lower()]}"),
    (
        rf"\ball (?:the )?(?:real )?(?:numbers|values|\$?([a-z])\$?)(?: of \$?\w\$?)?(?: that are"
        rf"| which are)? ({_relation}) ({_number}){_END}|(?<![\w$\\])\$?([a-z])\$? (?:is|must be|has to be|should be"
        rf"|needs to be) ({_relation}) ({_number}){_END}",
        lambda f: f"{f[1] or f[4] or 'x'} {_RELATIONS[(f[2] or f[5]).lower()]} {(f[3] or f[6]).strip('$')}",
    ),
    flags=re.IGNORECASE | re.MULTILINE,
)


def in_sentences(text: str) -> str:
    """Return ``text`` with its layout, and values that it says in words, as a sentence would write them."""
    text = _ticked(text if text.isascii() else text.translate(_signs))
    text = rewrite(text, _LANGUAGES)
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
