"""Other readings of a reply, for golds that one value does not answer or that are said twice in two forms.

Each says what the writer wrote: the last side of a chain, all of the values below one another, a value in another form.
A value that is said in two forms counts in either where both are equal.
"""

# ruff: noqa: RUF001 (signs as they are written)
import re
from collections.abc import Callable, Iterator
from itertools import takewhile

from agent0.grading.comparison.words.calendar import DAYS, MONTHS
from agent0.grading.extraction import CONCLUDED, STATED, Extract
from agent0.grading.extraction.choices import LETTER, choice_of
from agent0.grading.extraction.conclusions import concluded, said_of_subject, stated, statements_of
from agent0.grading.extraction.layout import in_sentences
from agent0.grading.extraction.phrases import HEDGE, REFUTED

LONGEST, MOST_LINES, LONGEST_STATEMENT = 2_000, 40, 600
MOST_ROUNDED = 0.005
"""Relative difference of a rounded value."""
Alike = Callable[[str, str], bool]
"""Whether two answers are equal, the first being what is expected."""
_FORMS = [
    (re.compile(gold, re.DOTALL), re.compile(answer, re.IGNORECASE | re.DOTALL))
    for gold, answer in (
        (
            r"[A-Za-z]+",
            r"([a-z]+) (?:functions?|numbers?|integers?|matri(?:x|ces)|graphs?|sets?|triangles?|sequences?|series"
            r"|relations?|operators?|events?|variables?|maps?|angles?|solids?|polygons?|vectors?|lines?|digits?)",
        ),
        (r"(?!.*(?:/|\bper\b|[a-z]{2})).*", r"(.*\d.*?) (?:per|a|an|each|every) [a-z]+"),
        (r"-*\d+", r"(?:[^\\A-Za-z]|\\(?:cdot|times|equiv))*(?:\\equiv|≡)\s*([-−]?\d+)\s*\(?\\?p?mod.*"),
        (".*", r"(.*\d) o['’]?clock.*"),
        (".*", r"([^\u3040-\u30ff\u4e00-\u9fff]+)[\u3040-\u30ff\u4e00-\u9fff]{1,4}"),
        (r"\\?\{?[^{}=]*,.*", r"\s*(?:[A-Za-z]\s*(?:∈|\\in)\s*)?\\?\{([^{}]*?)\\?\}\s*"),
    )
]
"""Golds, and the part of an answer that says all of it: an adjective without its noun, a rate without its unit, a
remainder, an hour, a number without its counter, the members of a set."""
_continental = re.compile(
    r"(?:[a-z] ?= ?)?(?P<whole>[-−]?\d{1,3}(?:\.\d{3})*)(?:(?:,|\{,\})(?P<part>\d+))?(?P<unit>[^\d.,{}]*)"
)
"""A number with points between its thousands and a comma before its part."""
_foreign = re.compile(
    r"(?i)\b(?:ist|sind|das|kostet|beträgt|lautet|antwort|est|sont|coûte|il|faut|réponse|la|el|es|son|cuesta|respuesta"
    r"|è|sono|costa|risposta|são|custa|resposta)\b|[а-яё]"
)
_congruent = re.compile(r"(?s)(.*?)(?:\\equiv|≡).*((?:\\equiv|≡)[^≡]*)")
_several = re.compile(r",|;|\\pm|±|\band\b|\bor\b|=.*=|\\\\")
_sides = re.compile(r"(?<![<>!:=\\])=(?![=>])")
_grouped = re.compile(
    r"\s*(?:\\left\s*)?(?:\\\{|[(\[{]|\\begin|\\langle|⟨)|[-\d.\s\w*]*(?:\\(?:hat|vec|mathbf)|\b[ijk]\b)"
)
_vector = re.compile(r"\s*[-−+]?\s*\d*\s*i\s*[-−+]\s*\d*\s*j(?:\s*[-−+]\s*\d*\s*k)?\s*")
_respelled = re.compile(r"\\mathcal\s*\{?([A-Z])\}?|(?<=\\\\)\s*\[[\d.]+\s*(?:pt|em|ex|mm|cm)\]")
_function = re.compile(r"\s*([a-z](?=\^\{?-1|\s*\()|y)(?:\^\{?-1\}?)?\s*(?:\([a-z]\))?\s*=\s*([^=]+)")
_free = re.compile(r"(?<![A-Za-z\\])([A-Zck])(?:(?![A-Za-z(])|(?=e\s*\^))")
_joints = re.compile(r"\s*,\s*(?:and|or)\s+|\s*[,;]\s*|\s+(?:and|or)\s+|\s*\\text\s*\{\s*(?:and|or)\s*\}\s*")
_chained = re.compile(r"\b([a-z])\s*=\s*([a-z])\s*=\s*([-−\d./]+)")
_signs = re.compile(r"(?<![\w)}])(?<![\w)}]\s)(?:±|\\pm)\s*(\w+)")
_named = re.compile(r"\s*(?:([A-Za-z](?:_\{?\w+\}?|[₀-₉]+)?)\s*=)?\s*([^=<>≤≥]+?)\s*")
_line = re.compile(
    r"(?:\d{1,2}[.)]\s)?[\s>*+•$`\-]*(?:\\\(|\\\[)?[\s*]*([A-Za-z](?:_\{?\w\}?"
    r"|[₀-₉])?)[\s*]*=([^=<>≤≥]+?)[\s*$`,.;]*(?:\\\)|\\\])?[\s,.;$*]*"
)
_assignment = re.compile(r"(?<![A-Za-z\d_^)])([a-z])\*?\s*=\s*([-−]?\d+(?:[./]\d+)?)(?![\d.]*\s*[-+*/^=a-z(])")
_components = re.compile(r"(?i)\b(?:components?|coordinates?|entries)\b")
_again = re.compile(
    r",?\s*\(?(?:i\.e\.|that is|or,? equivalently|equivalently|in other words|or in other words"
    r"|which is(?: the same as)?|or)[,:]?\s+|\s*(?:≈|\\approx)\s*"
)
_in_brackets = re.compile(r"(.+?)\s*\((?:(?:or|i\.\s?e\.|that is),?\s+)?([-−\d.,/$\\%\s]+)\)|(.+?) or (.+)")
_decimal = re.compile(r"(?:about |approximately |≈ ?)?(-?\d{1,9}(?:\.\d{1,9})?)(?:/(\d{1,9}))?")
_degrees, _pi = re.compile(r"\\circ|°|degree"), re.compile(r"\\pi(?![A-Za-z])|π")
_radians = re.compile(r"\s*(?:\\(?:text|mathrm)\s*\{\s*)?(?:radians?|rad)\.?\s*\}?\s*$")
_COMPASS = ("north", "south", "east", "west", "northeast", "northwest", "southeast", "southwest")
_beside = re.compile(r"(?i)\b(?:before|after|until|since|from|than)\b")
_subject = re.compile(
    r"(?:(?:So|Thus|Hence|Therefore),? )?([A-Z][a-z]+) (?:is|was|has|had|won|wins|finished|finishes|came|comes|arrived"
    r"|arrives|weighs|sits|lives|owns|scored|got|gets|did) [^,;]{1,60}"
)


def other_readings(gold: str, extract: Extract, reply: str, alike: Alike) -> Iterator[str]:
    """Yield what else ``reply`` (see ``reply_of``) says beside what was extracted, where ``gold`` is expected."""
    is_letter, (answer, place) = LETTER.fullmatch(gold), extract
    if answer is not None and len(answer) <= (1 if is_letter else LONGEST):
        yield from [answer.upper()] if is_letter else _of_answer(gold, answer, reply, alike)
    if place != CONCLUDED and not (is_letter and place == STATED):
        return  # what is marked as the answer is the whole of it
    text = in_sentences(reply[-LONGEST:])
    statements, masked = statements_of(text)
    last = statements[-1] if statements else ""
    shown = masked.shown(last.rpartition("; ")[2])
    if is_letter:
        yield from filter(None, [choice_of(shown)])
        return
    if _several.search(gold):
        yield from _lists(text, masked.shown(last))
    if answer is not None and _components.search(last) and len(parts := _joints.split(answer)) in (2, 3):
        yield f"({', '.join(parts)})"
    yield from _twice(masked.shown(last), alike)
    if len(last) <= LONGEST_STATEMENT and "?" not in last and not REFUTED.search(last):
        yield from _of_class(gold, shown)
        yield from stated(last, masked)


def _of_answer(gold: str, answer: str, reply: str, alike: Alike) -> Iterator[str]:
    """Other readings of the answer alone."""
    if "!" not in answer and f"{answer}!" in reply:
        yield f"{answer}!"
    number = _continental.fullmatch(answer)
    if number and ("{,}" in answer or _foreign.search(reply)):
        yield "".join(
            [number["whole"].replace(".", ""), "." * bool(number["part"]), number["part"] or "", number["unit"]]
        )
    yield (answer := _respelled.sub(r"\1", answer))
    yield from _last_side(answer, alike)
    if "mod" in gold and (match := _congruent.fullmatch(answer)):
        yield f"{match[1]}{match[2]}"
    yield from _named_otherwise(gold, answer)
    forms = (form.fullmatch(answer) for of, form in _FORMS if of.fullmatch(gold))
    yield from (form[1] for form in forms if form)
    if match := _in_brackets.fullmatch(answer):
        yield from (form for form in _equal(*filter(None, match.groups()), alike=alike) if "%" not in form)
    if _several.search(gold) and (values := _values(answer)):
        yield values


def _last_side(answer: str, alike: Alike) -> Iterator[str]:
    """The last side of a chain, or of an equation that is true or names what it writes out."""
    sides = [side.strip(" .") for side in _sides.split(answer)]
    if _vector.fullmatch(sides[-1]):
        yield re.sub(r"(?<![A-Za-z])([ijk])(?![A-Za-z])", r"\\mathbf{\1}", sides[-1])
    if len(sides) < 2 or not all(sides) or any(re.search(r"[,;]|\b(?:or|and)\b", side) for side in sides[1:-1]):
        return
    is_value = len(sides) > 2 or _grouped.match(sides[1]) or re.search("[A-Z]{2}", sides[0]) or "%" in sides[1]
    if is_value or all(map(_degrees.search, sides)) or alike(sides[1], sides[0]):
        yield sides[-1]


def _named_otherwise(gold: str, answer: str) -> Iterator[str]:
    """``y = R`` where ``f(x) = R`` is expected or the other way round, and with the gold's letter for its constant."""
    expected, function = _function.fullmatch(gold), _function.fullmatch(answer)
    if expected and function:
        same = expected[1] == function[1] or "y" in (expected[1], function[1]) or "-1" in function[0][:12]
        answer = f"{gold[: expected.start(2)]}{function[2]}" if same else answer
        yield answer
    free, expected_free = set(_free.findall(answer)), set(_free.findall(gold))
    is_constant = "C" in expected_free - free and not _degrees.search(gold)  # and no degree Celsius
    if is_constant and len(other := free - expected_free) == 1:
        yield _free.sub(lambda match: "C" if match[1] in other else match[0], answer)


def _values(answer: str) -> str:
    """The values of a list, without the name before them where it is one, those of ``\\pm`` apart; empty of anything
    else."""
    answer = _signs.sub(r"\1, -\1", _chained.sub(r"\1=\3, \2=\3", answer))
    parts = [_named.fullmatch(part) for part in _joints.split(answer)]
    pairs = [(part[1], part[2]) for part in parts if part]
    names = {name[0] for name, _ in pairs if name}
    if len(pairs) < len(parts) or (len(names) > 1 and re.search(r"\bor\b", answer)):
        return ""
    return ", ".join(f"{name} = {value}" if len(names) > 1 else value for name, value in pairs)


def _lists(text: str, last: str) -> Iterator[str]:
    """The values of names on the last lines, or those that the last statement names or lists."""
    lines = [line for line in text.split("\n") if line.strip()][-MOST_LINES:]
    pairs = [match.groups() for match in takewhile(bool, map(_line.fullmatch, reversed(lines))) if match][::-1]
    is_clear = not HEDGE.search(last.replace(" first", "")) and not REFUTED.search(last)
    if len(pairs) < 2 and is_clear and not re.search(r"\bor\b", last):
        pairs = _assignment.findall(last)
    names = {name for name, _ in pairs}
    if len(pairs) > 1 and len(names) in (1, len(pairs)):
        yield _values(", ".join(f"{name} = {value.strip()}" for name, value in pairs))
    listed = re.search(r"\b(?:namely|(?:they|these|which) are)[:,]?\s+(.+)", last) if is_clear else None
    if listed and (values := concluded(f"It is {listed[1]}")):
        yield values


def _of_class(gold: str, statement: str) -> Iterator[str]:
    """The words of the statement, the one member of the gold's class that it names, its subject, and what it says."""
    term = (re.sub(r"\\(?:text(?:bf|rm|it)?|mathrm|mbox)\s*\{([^{}]*)\}", r"\1", gold.strip())).lower().strip()
    if term == "none" and statement.lower().startswith("none of the"):
        yield term
    if not re.fullmatch("[a-z][a-z' -]*", term) or HEDGE.search(statement.replace(" first", "")):
        return
    yield statement.strip(" .!*_")
    named = set(re.findall(r"[a-z]+", statement.lower())) & next(
        (set(c) for c in (DAYS, MONTHS, _COMPASS) if term in c), set()
    )
    if len(named) == 1 and not _beside.search(statement):
        yield named.pop()
    if subject := _subject.fullmatch(statement):
        yield subject[1]
    if phrase := said_of_subject(statement.rstrip(".!")):
        yield phrase


def _twice(statement: str, alike: Alike) -> Iterator[str]:
    """Both forms of a value that the statement says twice, where they are equal."""
    first, *rest = _again.split(statement)
    if len(rest) == 1:
        forms = [concluded(first), concluded(f"It is {re.split(r'[,)](?= |$)', rest[0])[0]}")]
        yield from _equal(*filter(None, forms), alike=alike)


def _equal(*forms: str, alike: Alike) -> Iterator[str]:
    """Two forms of a value where one is the other: in other words, a multiple of pi in degrees, or rounded."""
    if len(forms) != 2:
        return
    values = list(forms)
    if any(map(_degrees.search, forms)):
        pis = [_pi.sub("(180)", _radians.sub("", form)) if _pi.search(form) else "" for form in forms]
        values = [f"({pi})^\\circ" if pi else form for pi, form in zip(pis, forms, strict=True)]
    decimals = [match for value in values if (match := _decimal.fullmatch(value.strip(" $…")))]
    numbers = [float(match[1]) / float(match[2] or 1) for match in decimals if float(match[2] or 1)]
    is_near = len(numbers) == 2 and abs(numbers[0] - numbers[1]) <= MOST_ROUNDED * abs(numbers[1])
    if is_near or alike(*values) or alike(*reversed(values)):
        yield from forms
