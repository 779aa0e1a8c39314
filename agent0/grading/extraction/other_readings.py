"""Other readings of a reply, for golds that one value does not answer or that are said twice in two forms.

Each says what the writer wrote: the last side of a chain, all of the values below one another, the letter of an option
with its text. A value that is said in two forms counts in either where both are equal.
"""

# ruff: noqa: RUF001 (signs as they are written)
import re
from collections.abc import Callable, Iterator

from agent0.grading.extraction import is_marked
from agent0.grading.extraction.choices import LETTER, choice_of
from agent0.grading.extraction.clauses import HEDGE, REFUTED, said_of_subject
from agent0.grading.extraction.conclusions import concluded, stated, statements_of
from agent0.grading.extraction.layout import in_sentences

LONGEST, MOST_LINES, LONGEST_STATEMENT, LONGEST_TERM = 2_000, 40, 600, 40
Alike = Callable[[str, str], bool]
"""Whether two answers are equal, the first being what is expected."""
_option = re.compile(
    r"[\s$*>_`•–-]*(?:\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{\s*)?(?:option |choice )?\(?([A-J])[).:][\s}\\*_"
    r"`].*",
    re.DOTALL,
)
_another = re.compile(r"\(\s*[A-J]\s*\)|\b[B-J]\b|\b(?:or|and) A\b|\b(?:not|wrong|incorrect)\b")
_several = re.compile(r",|;|\\pm|±|\band\b|\bor\b|=.*=|\\\\")
_line = re.compile(
    r"[\s>*+•$`\-]*(?:\\\(|\\\[)?[\s*]*([A-Za-z](?:_\{?\w\}?|[₀-₉])?)[\s*]*=([^=<>≤≥]+?)[\s*$`,.;]*(?:\\\)"
    r"|\\\])?[\s,.;$*]*"
)
_sides = re.compile(r"(?<![<>!:=\\])=(?![=>])")
_grouped = re.compile(
    r"\s*(?:\\left\s*)?(?:\\\{|[(\[{]|\\begin|\\langle|⟨)|[-\d.\s\w*]*(?:\\(?:hat|vec|mathbf)|\b[ijk]\b)"
)
_congruent = re.compile(r"(.*?)(?:\\equiv|≡)(?:.*)((?:\\equiv|≡)[^≡]*)", re.DOTALL)
_modulus = re.compile(r"\\pmod\s*\{?\s*(\d+)|mod\s*(\d+)")
_linear = re.compile(r"\s*(\w+)\s*=\s*(?:(\d+)\s*\\?[a-z]\s*([+\-−])\s*(\d+)|(\d+)\s*([+\-−])\s*(\d+)\s*[a-z])\s*")
_assignment = re.compile(r"(?<![A-Za-z\d_^)])([a-z])\*?\s*=\s*([-−]?\d+(?:[./]\d+)?)(?![\d.]*\s*[-+*/^=a-z(])")
_subject = re.compile(
    r"(?:(?:So|Thus|Hence|Therefore),? )?([A-Z][a-z]+) (?:is|was|has|had|won|wins|finished|finishes|came|comes|arrived"
    r"|arrives|weighs|sits|lives|owns|scored|got|gets|did) [^,;]{1,60}"
)
_vector = re.compile(r"\s*[-−+]?\s*\d*\s*i\s*[-−+]\s*\d*\s*j(?:\s*[-−+]\s*\d*\s*k)?\s*")
_decimal = re.compile(r"(?:about |approximately |≈ ?)?(-?\d{1,9}(?:\.\d{1,9})?)(?:/(\d{1,9}))?")
MOST_ROUNDED = 0.005
_components = re.compile(r"\b(?:components?|coordinates?|entries)\b", re.IGNORECASE)
_again = re.compile(
    r",?\s*\(?(?:i\.e\.|that is|or,? equivalently|equivalently|in other words|or in other words|which is(?: the same a"
    r"s)?|or)[,:]?\s+|\s*(?:≈|\\approx)\s*"
)
_in_other_words = re.compile(r"\b(?:i\.e\.|that is,|in other words)", re.IGNORECASE)
_denied = re.compile(r"\b(?:not|never|if|may|might|could|wrong)\b|n['’]t\b|\?", re.IGNORECASE)
_function = re.compile(r"\s*([a-z](?=\^\{?-1|\s*\()|y)(?:\^\{?-1\}?)?\s*(?:\([a-z]\))?\s*=\s*([^=]+)")
_free = re.compile(r"(?<![A-Za-z\\])([A-Zck])(?:(?![A-Za-z(])|(?=e\s*\^))")
_PIECES = [
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"([a-z]+) (?:functions?|numbers?|integers?|matri(?:x|ces)|graphs?|sets?|triangles?|sequences?|series"
        r"|relations?|operators?|events?|variables?|maps?|angles?|solids?|polygons?|vectors?|lines?|digits?)",
        r"(.*\d.*?) (?:per|a|an|each|every) [a-z]+",
        r"(?:[^\\A-Za-z]|\\(?:cdot|times|equiv))*(?:\\equiv|≡)\s*([-−]?\d+)\s*\(?\\?p?mod.*",
        r"(.*\d) o['’]?clock.*",
        r"([^\u3040-\u30ff\u4e00-\u9fff]+)[\u3040-\u30ff\u4e00-\u9fff]{1,4}",
    )
]
"""Parts that say all of an answer: an adjective without its noun, a rate without its unit, a remainder, an hour."""
_PIECE_OF = (r"[A-Za-z]+", r"(?!.*(?:/|\bper\b|[a-z]{2})).*", r"-*\d+", ".*", ".*")
"""The golds that each of them is a part for."""
_members = re.compile(r"\s*(?:[A-Za-z]\s*(?:∈|\\in)\s*)?\\?\{([^{}]*?)\\?\}\s*")
_joints = re.compile(r"\s*,\s*(?:and|or)\s+|\s*[,;]\s*|\s+(?:and|or)\s+|\s*\\text\s*\{\s*(?:and|or)\s*\}\s*")
_chained = re.compile(r"\b([a-z])\s*=\s*([a-z])\s*=\s*([-−\d./]+)")
_name = re.compile(r"\s*(?:([A-Za-z](?:_\{?\w+\}?|[₀-₉]+)?)\s*=)?\s*([^=<>≤≥]+?)\s*")
_signs = re.compile(r"\s*(?:±|\\pm|\+/-)\s*(\w[^±]*)")
_degrees, _pi = re.compile(r"\\circ|°|degree"), re.compile(r"\\pi(?![A-Za-z])|π")
_radians = re.compile(r"\s*(?:\\(?:text|mathrm)\s*\{\s*)?(?:radians?|rad)\.?\s*\}?\s*$")
_item = re.compile(r"\s*(?:[-*•+]|\d{1,2}[.)])\s+[*_`$]*(.+?)[*_`$.,;]*\s*")
_words = re.compile(r"[a-z][a-z'-]*(?: [a-z][a-z'-]*){2,}")
_explains = re.compile(r"[\s*_#>]*(?:explanation|reason(?:ing)?|rationale|because|justification|why)\b", re.IGNORECASE)
_term = re.compile(r"\\(?:text(?:bf|rm|it)?|mathrm|mbox)\s*\{([^{}]*)\}|([A-Za-z][A-Za-z' -]*)")
_CLASSES = [
    set(names.split())
    for names in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april may june july august september october november december",
        "north south east west northeast northwest southeast southwest",
    )
]
_beside = re.compile(r"\b(?:before|after|until|since|from|than)\b", re.IGNORECASE)
_further = re.compile(r"\s*(?:and|then|next|followed|while|whereas|but)\b", re.IGNORECASE)
_states = re.compile(
    r"(?:[:—]|\b(?:is|are|was|were|be|been|becomes|became|remains|called|named|facing|faces|to|in|on|at|the|a|an|as"
    r"|(?:it|that|s?he)['’]s|definitely|clearly|therefore|thus|indeed|simply|exactly|logically|deductively|says?"
    r"|argument|answer))\s*$",
    re.IGNORECASE,
)
"""What stands before a term that is stated."""


def other_readings(gold: str, answer: str | None, reply: str, alike: Alike) -> Iterator[str]:
    """Yield what else ``reply`` (see ``reply_of``) says beside its ``answer``, where ``gold`` is expected."""
    if answer is not None and len(answer) <= LONGEST:
        yield from _of_answer(gold, answer, reply, alike)
    if is_marked(reply, in_words=not LETTER.fullmatch(gold)):
        return  # what is marked as the answer is the whole of it
    text = in_sentences(reply[-LONGEST:])
    statements, masked = statements_of(text)
    last = statements[-1] if statements else ""
    shown = masked.shown(last.rpartition("; ")[2])
    if LETTER.fullmatch(gold):
        yield from filter(None, [*_options(text), choice_of(shown)])
        return
    if _several.search(gold):
        yield from _lists(text, masked.shown(last))
    if answer is not None and _components.search(last) and len(parts := _joints.split(answer)) in (2, 3):
        yield f"({', '.join(parts)})"
    yield from _twice(gold, masked.shown(last), alike)
    if _words.fullmatch(" ".join(gold.split())):
        lines = [line.strip() for line in text.split("\n") if line.strip()] or [""]
        yield from (lines[-1].rpartition(": ")[2], ", ".join(lines[-len(gold.split()) :]))
    if len(last) <= LONGEST_STATEMENT and "?" not in last and not REFUTED.search(last):
        yield from _in_words(gold, shown)
        yield from stated(last, masked)


def _of_answer(gold: str, answer: str, reply: str, alike: Alike) -> Iterator[str]:
    """Other readings of the answer alone."""
    if LETTER.fullmatch(gold):
        option = re.fullmatch(r"\(?([a-j])\)?", answer) or _option.fullmatch(answer)
        if option and not _another.search(answer, option.end(1)):
            yield option[1].upper()
        return
    if "!" not in answer and f"{answer}!" in reply:
        yield f"{answer}!"
    yield from _last_of(re.sub(r"\\\\\s*\[[\d.]+\s*(?:pt|em|ex|mm|cm)\]", r"\\\\", answer), alike)
    yield from _congruence(gold, answer)
    yield from _named_otherwise(gold, answer)
    for part, whole in zip(_PIECES, _PIECE_OF, strict=True):
        if (match := part.fullmatch(answer)) and re.fullmatch(whole, gold, re.DOTALL):
            yield match[1]
    match = re.fullmatch(r"(.+?)\s*\(([-\d.,/]+)\)|(.+?) or (.+)", answer)
    if match and alike(match[1] or match[3], match[2] or match[4]):
        yield match[2] or match[3]
    if _several.search(gold) and (listed := _values(answer)):
        yield listed


def _last_of(answer: str, alike: Alike) -> Iterator[str]:
    """The last side of a chain, or of an equation that is true or names what it writes out."""
    sides = [side.strip(" .") for side in _sides.split(answer)]
    if not all(sides) or any(re.search(r"[,;]|\b(?:or|and)\b", side) for side in sides[1:-1]):
        return
    ends = len(sides) > 2 or (len(sides) == 2 and (_grouped.match(sides[1]) or re.search("[A-Z]{2}", sides[0])))
    in_one = len(sides) == 2 and ("%" in sides[1] or all(map(_degrees.search, sides)) or alike(sides[1], sides[0]))
    side = sides[-1]
    if _vector.fullmatch(side):
        yield re.sub(r"(?<![A-Za-z])([ijk])(?![A-Za-z])", r"\\mathbf{\1}", side)
    elif ends or in_one:
        yield side
    if r"\mathcal" in answer:
        yield re.sub(r"\\mathcal\s*\{?([A-Z])\}?", r"\1", answer)


def _congruence(gold: str, answer: str) -> Iterator[str]:
    """The last step of a chain of congruences, and ``x = 5k + 2`` as one, where one is expected."""
    if (modulus := _modulus.search(gold)) is None:
        return
    if match := _congruent.fullmatch(answer):
        yield f"{match[1]}{match[2]}"
    if match := _linear.fullmatch(answer):
        step, sign, rest = (match[2], match[3], match[4]) if match[2] else (match[7], match[6], match[5])
        if step == (modulus[1] or modulus[2]) and (match[2] or sign == "+"):
            yield f"{match[1]} \\equiv {'-' if sign in '-−' and match[2] else ''}{rest} \\pmod{{{step}}}"


def _named_otherwise(gold: str, answer: str) -> Iterator[str]:
    """``y = R`` where ``f(x) = R`` is expected or the other way round, and with the gold's letter for its constant."""
    expected, function = _function.fullmatch(gold), _function.fullmatch(answer)
    if expected and function:
        same = expected[1] == function[1] or "y" in (expected[1], function[1]) or "-1" in function[0][:12]
        answer = f"{gold[: expected.start(2)]}{function[2]}" if same else answer
        yield answer
    free, expected_free = set(_free.findall(answer)), set(_free.findall(gold))
    if "C" in expected_free and "C" not in free and len(other := free - expected_free) == 1:
        yield _free.sub(lambda match: "C" if match[1] in other else match[0], answer)


def _values(answer: str) -> str | None:
    """The values of a list, without the names before them, each of ``\\pm`` apart."""
    if match := _members.fullmatch(answer):
        return match[1]
    parts = [_name.fullmatch(part) for part in _joints.split(_chained.sub(r"\1=\3, \2=\3", answer))]
    names = {part[1][0] for part in parts if part and part[1]}
    if not all(parts) or (len(names) > 1 and re.search(r"\bor\b", answer)):
        return None
    values: list[str] = []
    for name, value in (part.groups() for part in parts if part):
        signs = _signs.fullmatch(value)
        each = [signs[1], f"-{signs[1]}"] if signs else [value]
        values += each if len(names) <= 1 else [f"{name} = {signed}" for signed in each]
    return ", ".join(values)


def _lists(text: str, last: str) -> Iterator[str]:
    """The values of names or the items on the last lines, or those that the last statement names or lists."""
    lines = [line for line in text.split("\n") if line.strip()][-MOST_LINES:]
    for pattern in (_line, _item):
        rows: list[re.Match[str]] = []
        while len(rows) < len(lines) and (match := pattern.fullmatch(lines[-1 - len(rows)])):
            rows.insert(0, match)
        pairs = [(row[1], row[row.lastindex or 1].strip()) for row in rows]
        names = {name for name, _ in pairs}
        if len(rows) < 2 or (pattern is _line and 1 < len(names) < len(rows)):
            continue
        named = pattern is _line and len({name[0] for name in names}) > 1
        yield ", ".join(f"{name} = {value}" if named else value for name, value in pairs)
    if HEDGE.search(last.replace(" first", "")) or REFUTED.search(last):
        return
    named_values = _assignment.findall(last)
    if len(dict(named_values)) == len(named_values) > 1 and not re.search(r"\bor\b", last):
        yield ", ".join(f"{name} = {value}" for name, value in named_values)
    listed = re.search(r"\b(?:namely|(?:they|these|which) are)[:,]?\s+(.+)", last)
    if listed and (values := concluded(f"It is {listed[1]}")):
        yield values


def _options(text: str) -> Iterator[str]:
    """The letter of the option that the last line is, or the first one before an explanation, where no other line is
    one."""
    lines = [line for line in text.split("\n")[-MOST_LINES:] if line.strip()]
    options = [_option.fullmatch(line) for line in lines]
    if not any(options):
        return
    if options[0] and not any(options[1:]) and len(lines) > 1 and _explains.match(lines[1]):
        yield options[0][1]
    last = options[-1]
    if last and not any(options[:-1]) and not _another.search(lines[-1], last.end(1)) and not HEDGE.search(lines[-1]):
        yield last[1]


def _in_words(gold: str, statement: str) -> Iterator[str]:
    """What the statement says where a word or a term is expected."""
    match = _term.fullmatch(gold.strip())
    term = (match[1] or match[2]).strip() if match else ""
    if not term or len(term) > LONGEST_TERM:
        return
    yield from _of_class(term, statement)
    bare = re.sub(r"[*_`$\"“”]", "", statement).strip().rstrip(".!")
    before = bare[: len(bare) - len(term)]
    clause = re.split(r"[,;:]|\b(?:so|therefore|thus|hence)\b", before)[-1]
    states = bare.casefold().endswith(term.casefold()) and not before[-1:].isalnum() and _states.search(before)
    if states and not _further.match(clause) and not HEDGE.search(clause):
        yield term


def _of_class(term: str, statement: str) -> Iterator[str]:
    """The one member of the term's class that the statement names, its subject, and what it says of it."""
    if term.lower() == "none" and re.match("none of the(?:se|m)?", statement.lower()):
        yield term
    if HEDGE.search(statement.replace(" first", "")):
        return
    named = set(re.findall(r"[a-z]+", statement.lower())) & next((c for c in _CLASSES if term.lower() in c), set())
    if len(named) == 1 and not _beside.search(statement):
        yield term if named == {term.lower()} else named.pop()
    if subject := _subject.fullmatch(statement):
        yield subject[1]
    if word := said_of_subject(statement.rstrip(".!")):
        yield word


def _twice(gold: str, statement: str, alike: Alike) -> Iterator[str]:
    """Both forms of a value that the statement says twice, where they are equal."""
    parts = _again.split(statement)
    if len(parts) != 2:
        return
    first, second = concluded(parts[0]), concluded(f"It is {re.split(r'[,)](?= |$)', parts[1])[0]}")
    if first is None and second and _in_other_words.search(statement) and not _denied.search(statement):
        yield second
    if first is None or second is None:
        return
    mixed = bool(_degrees.search(first)) != bool(_degrees.search(second))
    one, other = (_in_degrees(form) if _degrees.search(gold) or mixed else form for form in (first, second))
    equal = alike(one, other)
    if mixed and equal:
        yield from (first, second)
    if equal or alike(other, one) or _near(one, other):
        yield from (one, other)


def _near(first: str, second: str) -> bool:
    """Whether one of two values is the other, rounded."""
    matches = [_decimal.fullmatch(text.strip(" $…")) for text in (first, second)]
    values = [float(match[1]) / float(match[2] or 1) for match in matches if match and float(match[2] or 1)]
    return len(values) == 2 and abs(values[0] - values[1]) <= MOST_ROUNDED * abs(values[1])


def _in_degrees(text: str) -> str:
    """A multiple of pi as degrees."""
    return f"({_pi.sub('(180)', _radians.sub('', text))})^\\circ" if _pi.search(text) else text
