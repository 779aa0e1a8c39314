"""Other readings of a reply, for golds that one value does not answer or that are said twice in two forms.

Each says what the writer wrote: the last side of a chain, all of the values below one another, the letter of an option
with its text. A value that is said in two forms counts in either where both are equal.
"""

# ruff: noqa: RUF001 (signs as they are written)
import math
import re
from collections.abc import Callable, Iterator

from agent0.chat_format import boxes
from agent0.grading.extraction import in_sentences, is_marked
from agent0.grading.extraction.asserted import asserted
from agent0.grading.extraction.claims import HEDGE, LETTER, REFUTED, said_of_subject
from agent0.grading.extraction.conclusions import concluded
from agent0.grading.extraction.sentences import sentences, set_off

LONGEST, MOST_LINES = 2_000, 12
Alike = Callable[[str, str], bool]
"""Whether two answers are equal, the first being what is expected."""
_option = re.compile(
    r"[\s$*]*(?:\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{\s*)?(?:option |choice )?\(?([A-J])[).:][\s}\\].*", re.S
)
_small_letter = re.compile(r"\(?([a-j])\)?")
_another = re.compile(r"\(\s*[A-J]\s*\)|\b[B-J]\b|\b(?:or|and) A\b|\b(?:not|wrong|incorrect)\b")
_joint = re.compile(r"[,;]|\b(?:or|and)\b")
_several = re.compile(r",|;|\\pm|±|\band\b|\bor\b|=.*=|\\\\")
_line = re.compile(
    r"[\s>*•+$`\-]*(?:\\\(|\\\[)?[\s*]*([A-Za-z](?:_\{?\w\}?|[₀-₉])?)[\s*]*=([^=<>≤≥]+?)[\s*$`,.;]*(?:\\\)"
    r"|\\\])?[\s,.;$*]*"
)
_factorial = re.compile(r"(?<![\w.!)])(\d{1,2})!(?!!)")
_sides = re.compile(r"(?<![<>!:=\\])=(?![=>])")
_grouped = re.compile(
    r"\s*(?:\\left\s*)?(?:\\\{|[(\[{]|\\begin|\\langle|⟨)|[-\d.\s\w*]*(?:\\(?:hat|vec|mathbf)|\b[ijk]\b)"
)
_congruent = re.compile(r"(.*?)(?:\\equiv|≡)(?:.*)((?:\\equiv|≡)[^≡]*)", re.S)
_modulus = re.compile(r"\\pmod\s*\{?\s*(\d+)|mod\s*(\d+)")
_linear = re.compile(r"\s*(\w+)\s*=\s*(?:(\d+)\s*\\?[a-z]\s*([+\-−])\s*(\d+)|(\d+)\s*([+\-−])\s*(\d+)\s*[a-z])\s*")
_listed = re.compile(r"\b(?:namely|(?:they|these|which) are)[:,]?\s+(.+)")
_assignment = re.compile(r"(?<![A-Za-z\d_^)])([a-z])\*?\s*=\s*([-−]?\d+(?:[./]\d+)?)(?![\d.]*\s*[-+*/^=a-z(])")
_so_that = re.compile(r",? (?:so|and|which means) (?:that|this)(?:['’]s| is) ")
_named_option = re.compile(r"(?i:choice|option|answer|statement|graph|figure|in) \(?([A-J])\b\)?")
_capital = re.compile(r"(?<![A-Za-z])[A-J](?![A-Za-z])")
_subject = re.compile(
    r"(?:(?:So|Thus|Hence|Therefore),? )?([A-Z][a-z]+) (?:is|was|has|had|won|wins|finished|finishes|came|comes"
    r"|arrived|arrives|weighs|sits|lives|owns|scored|got|gets|did) [^,;]{1,60}"
)
_row_gap = re.compile(r"\\\\\s*\[[\d.]+\s*(?:pt|em|ex|mm|cm)\]")
_vector = re.compile(r"\s*[-−+]?\s*\d*\s*i\s*[-−+]\s*\d*\s*j(?:\s*[-−+]\s*\d*\s*k)?\s*")
_unit_vector = re.compile(r"(?<![A-Za-z])([ijk])(?![A-Za-z])")
_decimal = re.compile(r"(?:about |approximately |≈ ?)?(-?\d{1,9}(?:\.\d{1,9})?)(?:/(\d{1,9}))?")
MOST_ROUNDED = 0.005
_calligraphic = re.compile(r"\\mathcal\s*\{?([A-Z])\}?")
_components = re.compile(r"\b(?:components?|coordinates?|entries)\b", re.IGNORECASE)
_pair = re.compile(
    r"\s*([^,]+?)\s*(?:,\s*(?:and\s+)?|\s+and\s+)([^,]+?)(?:\s*(?:,\s*(?:and\s+)?|\s+and\s+)([^,]+?))?\s*"
)
_again = re.compile(
    r",?\s*\(?(?:i\.e\.|that is|or,? equivalently|equivalently|in other words|or in other words"
    r"|which is(?: the same as)?|or)[,:]?\s+|\s*(?:≈|\\approx)\s*"
)
_in_other_words = re.compile(r"\b(?:i\.e\.|that is,|in other words)", re.IGNORECASE)
_denied = re.compile(r"\b(?:not|never|if|may|might|could|wrong)\b|n['’]t\b|\?", re.IGNORECASE)
_function = re.compile(r"\s*([a-z](?=\^\{?-1|\s*\()|y)(?:\^\{?-1\}?)?\s*(?:\([a-z]\))?\s*=\s*([^=]+)")
_free = re.compile(r"(?<![A-Za-z\\])([A-Zck])(?:(?![A-Za-z(])|(?=e\s*\^))")
_repeated = re.compile(r"(.+?)\s*\(([-\d.,/]+)\)")
_adjective = re.compile(
    r"([a-z]+) (?:functions?|numbers?|integers?|matri(?:x|ces)|graphs?|sets?|triangles?|sequences?|series|relations?"
    r"|operators?|events?|variables?|maps?|angles?|solids?|polygons?|vectors?|lines?|digits?)",
    re.IGNORECASE,
)
_rate = re.compile(r"(.*\d.*?) (?:per|a|an|each|every) [a-z]+", re.IGNORECASE)
_remainder = re.compile(r"((?:[^\\A-Za-z]|\\(?:cdot|times|equiv))*)(?:\\equiv|≡)\s*([-−]?\d+)\s*\(?\\?p?mod.*", re.S)
_o_clock = re.compile(r"(.*\d) o['’]?clock.*", re.IGNORECASE)
_asian = re.compile(r"([^\u3040-\u30ff\u4e00-\u9fff]+)[\u3040-\u30ff\u4e00-\u9fff]{1,4}")
_member = re.compile(r"\s*[A-Za-z]\s*(?:∈|\\in)\s*\\?\{([^{}]*?)\\?\}\s*")
_either = re.compile(r"\bor\b")
_braced = re.compile(r"\s*\\?\{([^{}]*?)\\?\}\s*")
_joints = re.compile(r"\s*,\s*(?:and|or)\s+|\s*[,;]\s*|\s+(?:and|or)\s+|\s*\\text\s*\{\s*(?:and|or)\s*\}\s*")
_chained = re.compile(r"\b([a-z])\s*=\s*([a-z])\s*=\s*([-−\d./]+)")
_name = re.compile(r"\s*(?:([A-Za-z](?:_\{?\w+\}?|[₀-₉]+)?)\s*=)?\s*([^=<>≤≥]+?)\s*")
_signs = re.compile(r"\s*(?:±|\\pm|\+/-)\s*(\w[^±]*)")
_degrees, _pi = re.compile(r"\\circ|°|degree"), re.compile(r"\\pi(?![A-Za-z])|π")
_radians = re.compile(r"\s*(?:\\(?:text|mathrm)\s*\{\s*)?(?:radians?|rad)\.?\s*\}?\s*$")


def other_readings(gold: str, answer: str | None, reply: str, alike: Alike) -> Iterator[str]:
    """Yield what else ``reply`` (see ``reply_of``) says beside its ``answer``, where ``gold`` is expected."""
    if answer is not None and len(answer) <= LONGEST:
        yield from _of_answer(gold, _row_gap.sub(r"\\\\", answer), reply, alike)
    if is_marked(reply) and (boxes(reply) or not LETTER.fullmatch(gold)):
        return  # what is marked as the answer is the whole of it
    text = in_sentences(reply[-LONGEST:])
    if _several.search(gold):
        yield from _assigned(text)
    masked = set_off(text)
    said_last = (sentences(masked.text) or [""])[-1]
    yield from _in_words(gold, masked.shown(said_last.rpartition("; ")[2]))
    if _several.search(gold) and "; " in said_last and not HEDGE.search(said_last.replace(" first", "")):
        yield from _values_of(masked.shown(said_last))
    if answer is not None and _components.search(said_last) and (match := _pair.fullmatch(answer)):
        yield f"({', '.join(part for part in match.groups() if part)})"
    yield from _twice(gold, text, alike)
    yield from asserted(gold, text)


def _of_answer(gold: str, answer: str, reply: str, alike: Alike) -> Iterator[str]:
    """Other readings of the answer alone."""
    if "!" in gold and "!" not in answer and re.search(r"[\w)]\s*!", reply):
        yield f"{answer}!"
    if LETTER.fullmatch(gold):
        if match := _small_letter.fullmatch(answer):
            yield match[1].upper()
        if (match := _option.fullmatch(answer)) and not _another.search(answer, match.end(1)):
            yield match[1]
        return
    yield from _last_of(_factorial.sub(lambda match: str(math.factorial(int(match[1]))), answer), alike)
    yield from _congruence(gold, answer)
    yield from _named_otherwise(gold, answer)
    yield from _pieces(gold, answer, alike)
    if _several.search(gold) and (listed := _values(answer)):
        yield listed


def _last_of(answer: str, alike: Alike) -> Iterator[str]:
    """The last side of a chain, or of an equation that is true or names what it writes out."""
    sides = [side.strip(" .") for side in _sides.split(answer)]
    named = len(sides) == 2 and bool(_grouped.match(sides[1]) or re.search("[A-Z]{2}", sides[0]))
    if any(_joint.search(side) for side in sides[1:-1]) or not all(sides):
        return
    if (
        len(sides) > 2
        or named
        or (len(sides) == 2 and ("%" in sides[1] or _both_degrees(sides) or alike(sides[1], sides[0])))
    ):
        yield _unit_vector.sub(r"\\mathbf{\1}", sides[-1]) if _vector.fullmatch(sides[-1]) else sides[-1]
    elif _vector.fullmatch(answer):
        yield _unit_vector.sub(r"\\mathbf{\1}", answer)
    if r"\mathcal" in answer:
        yield _calligraphic.sub(r"\1", answer)


def _both_degrees(sides: list[str]) -> bool:
    return all(map(_degrees.search, sides))


def _named_otherwise(gold: str, answer: str) -> Iterator[str]:
    """``y = R`` where ``f(x) = R`` is expected or the other way round, and with the gold's letter for its constant."""
    expected, stated = _function.fullmatch(gold), _function.fullmatch(answer)
    if expected and stated and (expected[1] == stated[1] or {expected[1], stated[1]} & {"y"} or "-1" in stated[0][:12]):
        answer = f"{gold[: expected.start(2)]}{stated[2]}"
        yield answer
    free = set(_free.findall(answer)) - set(_free.findall(gold))
    if "C" in _free.findall(gold) and "C" not in _free.findall(answer) and len(free) == 1:
        yield re.sub(rf"(?<![A-Za-z\\]){free.pop()}(?:(?![A-Za-z(])|(?=e\s*\^))", "C", answer)


def _pieces(gold: str, answer: str, alike: Alike) -> Iterator[str]:
    """A part of what is said that says it all: without a rate's unit, an adjective's noun, or its own repetition."""
    if (match := _repeated.fullmatch(answer)) and alike(match[1], match[2]):
        yield match[2]
    if (match := _adjective.fullmatch(answer)) and gold.isalpha():
        yield match[1]
    if (match := _rate.fullmatch(answer)) and not re.search(r"/|\bper\b|[a-z]{2}", gold):
        yield match[1]
    if gold.strip("-").isdigit() and (match := _remainder.fullmatch(answer)) and not re.search("[A-Za-z]", match[1]):
        yield match[2]
    both = answer.split(" or ")
    if len(both) == len("ab") and alike(both[0], both[1]):
        yield both[0]
    if match := _o_clock.fullmatch(answer):
        yield match[1]
    if match := _asian.fullmatch(answer):
        yield match[1]


def _values(answer: str) -> str | None:
    """The values of a list, without the names before them, each of ``\\pm`` apart."""
    if match := _member.fullmatch(answer) or _braced.fullmatch(answer):
        return match[1]
    parts = [_name.fullmatch(part) for part in _joints.split(_chained.sub(r"\1=\3, \2=\3", answer))]
    if any(part is None for part in parts):
        return None
    named = {part[1] for part in parts if part and part[1]}
    if len({name[0] for name in named}) > 1 and _either.search(answer):
        return None
    out: list[str] = []
    for part in parts:
        value, name = (part[2], part[1]) if part else ("", "")
        signs = _signs.fullmatch(value)
        each = [signs[1], f"-{signs[1]}"] if signs else [value]
        out += each if len({one[0] for one in named}) <= 1 else [f"{name} = {one}" for one in each]
    return ", ".join(out)


def _congruence(gold: str, answer: str) -> Iterator[str]:
    """The last step of a chain of congruences, and ``x = 5k + 2`` as one, where one is expected."""
    modulus = _modulus.search(gold)
    if modulus and (match := _congruent.fullmatch(answer)):
        yield f"{match[1]}{match[2]}"
    if modulus and (match := _linear.fullmatch(answer)):
        step, sign, rest = (match[2], match[3], match[4]) if match[2] else (match[7], match[6], match[5])
        if (step == (modulus[1] or modulus[2])) and (match[2] or sign == "+"):
            yield f"{match[1]} \\equiv {'-' if sign in '-−' and match[2] else ''}{rest} \\pmod{{{step}}}"


def _assigned(text: str) -> Iterator[str]:
    """The values of several names on the last lines, one on each."""
    found: list[re.Match[str]] = []
    lines = [line for line in text.rstrip().split("\n")[-2 * MOST_LINES :] if line.strip()]
    for line in reversed(lines):
        one = _line.fullmatch(line)
        if one is None:
            break
        found.insert(0, one)
    names = [one[1] for one in found]
    if not 2 <= len(names) <= MOST_LINES or 1 < len(set(names)) < len(names):
        return
    if len({name[0] for name in names}) == 1:
        yield ", ".join(one[2].strip() for one in found)
    else:
        yield ", ".join(f"{one[1]} = {one[2].strip()}" for one in found)


def _in_words(gold: str, answer: str) -> Iterator[str]:
    """What the last statement ``answer`` says where an option, a word or several values are expected."""
    if HEDGE.search(answer.replace(" first", "")) or REFUTED.search(answer):
        return
    if LETTER.fullmatch(gold):
        named = _named_option.findall(answer)
        if (
            len(set(named)) == 1
            and not re.search(rf"\b{named[0]}\)? (?:is|are) (?:\w+ )?false\b", answer)
            and not set(_capital.findall(answer)) - {*named, "A", "I"}
        ):
            yield named[0]
    if gold.isalpha():
        yield from _words_of(gold, answer)
    parts = _so_that.split(answer)
    if len(parts) == len("ab") and not re.search(r"\d", parts[1]) and (before := concluded(parts[0])):
        yield before
    if _several.search(gold):
        yield from _values_of(answer)


def _words_of(gold: str, answer: str) -> Iterator[str]:
    """The subject of the statement, and what it says of it."""
    if match := _subject.fullmatch(answer):
        yield match[1]
    if word := said_of_subject(answer.rstrip(".!")):
        yield word
    if gold.lower() == "none" and answer.lower().startswith(("none of the", "none of these", "none of them")):
        yield gold


def _values_of(answer: str) -> Iterator[str]:
    """The values that the statement gives to names, or lists at its end."""
    named = _assignment.findall(answer)
    if len(dict(named)) == len(named) > 1 and not _either.search(answer):
        yield ", ".join(f"{name} = {value}" for name, value in named)
    if (match := _listed.search(answer)) and (values := concluded(f"It is {match[1]}")):
        yield values


def _twice(gold: str, text: str, alike: Alike) -> Iterator[str]:
    """Both forms of a value that the last statement says twice, where they are equal."""
    masked = set_off(text)
    last = masked.shown((sentences(masked.text) or [""])[-1])
    parts = _again.split(last)
    if len(parts) != 2:
        return
    first = concluded(parts[0])
    second = concluded(f"It is {re.split(r'[,)](?= |$)', parts[1])[0]}")
    if first is None and second is not None and _in_other_words.search(last) and not _denied.search(last):
        yield second
    if first is None or second is None:
        return
    mixed = len({bool(_degrees.search(one)) for one in (first, second)}) > 1
    forms = [_in_degrees(one) if _degrees.search(gold) or mixed else one for one in (first, second)]
    if mixed and alike(forms[0], forms[1]):
        yield from (first, second)
    if alike(forms[0], forms[1]) or alike(forms[1], forms[0]) or _near(forms[0], forms[1]):
        yield from forms


def _near(one: str, other: str) -> bool:
    """Whether one of two values is the other, rounded."""
    found = [_decimal.fullmatch(text.strip(" $…")) for text in (one, other)]
    values = [float(part[1]) / float(part[2] or 1) for part in found if part and float(part[2] or 1)]
    return len(values) == 2 and abs(values[0] - values[1]) <= MOST_ROUNDED * abs(values[1])


def _in_degrees(text: str) -> str:
    """A multiple of pi as degrees."""
    return f"({_pi.sub('(180)', _radians.sub('', text))})^\\circ" if _pi.search(text) else text
