"""What the last statement of a reply says by its place in it, where the whole sentence is no form that is known.

A value counts where no other value of the statement stands in its place: behind the verb, in the main clause. Words,
options and lists count where the statement ends with them.
"""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re
from collections.abc import Iterator

from agent0.chat_format import BOX
from agent0.grading.comparison.quantities import known_unit
from agent0.grading.extraction.claims import CLAUSE, HEDGE, LETTER, REFUTED
from agent0.grading.extraction.conclusions import last_statement, main_clause
from agent0.grading.extraction.sentences import Text
from agent0.grading.extraction.values import follows_verb, stands_apart, value_runs

MOST_LINES, LONGEST_TERM, LONGEST_STATEMENT = 40, 40, 600
_option = re.compile(r"[\s>*_`$•–-]*(?:\(([A-J])\)|([A-J])[).:])[*_`]*\s+\S.*")
_item = re.compile(r"\s*(?:[-*•+]|\d{1,2}[.)])\s+[*_`$]*(.+?)[*_`$.,;]*\s*")
_wrong = re.compile(
    r"\b(?:not|no|but|answer|wrong|false|incorrect|neither|nor|either|eliminated?|if|could|might|may)\b|n['’]t\b",
    re.IGNORECASE,
)
_text = re.compile(r"\\(?:text(?:bf|rm|it)?|mathrm|mbox)\s*\{([^{}]*)\}|([A-Za-z][A-Za-z' -]*)")
_settings = re.compile(
    r"\s+(?:over|in|for|during|within|across|among|between|out of|of|after|by|on) (?:all )?(?:the|these|those|all"
    r"|both|his|her|their|its|our|my|your) (?:\d+|two|three|four|five|six|seven|eight|nine|ten|twelve)(?:-"
    r"| )[a-z-]+(?: [a-z]+){0,2}(?=$|,)",
    re.IGNORECASE,
)
"""What says where and when, with a number of its own: over the 2 days."""
_CLASSES = (
    frozenset([
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"
    ]),
    frozenset([
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december"
    ]),
    frozenset([
    "north", "south", "east", "west", "northeast", "northwest", "southeast", "southwest"
    ]),
)  # fmt: skip
_bracket = re.compile(r"\([^()]*\)")
_logic = re.compile(r"[\s()]*(?:(?:not|and|or|True|False)\b[\s()]*)+", re.IGNORECASE)
_WORDS = re.compile(r"[a-z][a-z'-]*(?: [a-z][a-z'-]*){2,}")
_explains = re.compile(r"[\s*_#>]*(?:explanation|reason(?:ing)?|rationale|because|justification|why)\b", re.IGNORECASE)
_measured = re.compile(
    r"[%°$€£]|\b(?:[ap]\.?m\b|radians?|percent|noon|midnight|hundred|thousand|million|billion|dozen)", re.IGNORECASE
)
_further = re.compile(r"\s*(?:and|then|next|followed|while|whereas|but)\b", re.IGNORECASE)
_second_one = re.compile(r"[,;]|\b(?:or|and)\b")
_beside = re.compile(r"\b(?:before|after|until|since|from|than)\b", re.IGNORECASE)
_STATES = frozenset([
    "is", "are", "was", "were", "be", "been", "becomes", "became", "remains", "called", "named", "facing", "faces",
    "to", "in", "on", "at", "the", "a", "an", "as", "it's", "that's", "he's", "she's", "definitely", "clearly",
    "therefore", "thus", "indeed", "simply", "exactly", "logically", "deductively", "say", "says", "argument", "answer"
])  # fmt: skip
"""Words before a term that state it."""
_marked = re.compile(rf"<answer|{BOX}|####")
_second = re.compile(r"\b(?:and|or|then|versus|vs)\s*(?:\w+\s+){0,3}$", re.IGNORECASE)
_one_of_many = re.compile(r"\ban? $")
_elsewhere = re.compile(r"\b(?:out|away|off|short|apart|left over|each other)\b")
_half_day = re.compile(r"\s*(?:in the (?:morning|afternoon|evening)|at (?:night|noon|midnight))\b", re.IGNORECASE)
_ending = re.compile(
    r"\s+(?:is|are|was|were|have|has|had|will|would|can|on|at|from|by|to|in|as|for|of|over|after|before|during|between|among|so"
    r"|per|with|each|every|left|altogether|total|needed|remaining|when|while|if|that|who|which|because|since)\b"
)


def asserted(gold: str, text: str) -> Iterator[str]:
    """Yield what the last statement of ``text`` may say besides what its form says, where ``gold`` is expected."""
    if letter := LETTER.fullmatch(gold):
        yield from _option_at_end(text, letter[1])
        return
    yield from _list_at_end(text)
    if _WORDS.fullmatch(" ".join(gold.split())):
        yield from _words_at_end(gold, text)
    if _marked.search(text):
        return
    statement, masked = last_statement(text)
    if len(statement) > LONGEST_STATEMENT or "?" in statement or REFUTED.search(statement):
        return
    shown = masked.shown(statement)
    yield from _of_class(gold, shown)
    yield from _last_side(shown)
    if (match := _text.fullmatch(gold.strip())) and len(term := (match[1] or match[2]).strip()) <= LONGEST_TERM:
        yield from _term_at_end(shown, term)
        return
    yield from _only_value(statement, masked)


def _only_value(statement: str, masked: Text) -> Iterator[str]:
    """The value behind the verb, where no other stands there; the only one where none does."""
    clause = _settings.sub(" ", main_clause(statement))
    if HEDGE.search(clause) or ";" in clause:
        return
    every = value_runs(clause)
    runs = [run for run in every if not stands_apart(run[0])]
    stated = [run for run in runs if follows_verb(run[0])] or (runs if len(every) == 1 else [])
    if len(stated) != 1 or any(_second.search(before) for before, _, _ in every):
        return
    before, value, behind = stated[0]
    if _one_of_many.search(before) or _elsewhere.search(behind):
        return
    if _half_day.match(behind):
        return
    behind = re.split(r"[,;:]|\s[—–-]\s", behind)[0]
    behind = "" if value.endswith(",") else behind
    beside = _unit(behind)
    bare = [] if _measured.search(beside) or any(map(known_unit, re.findall(r"[A-Za-z°]+", beside))) else [value]
    for shown in (f"{value}{behind}", f"{value}{beside}", *bare):
        yield masked.shown(shown).replace("\u2060", " ").strip(" ,;")


def _unit(behind: str) -> str:
    """The words next to a value, up to a preposition or verb."""
    return _ending.split(behind, maxsplit=1)[0]


def _of_class(gold: str, statement: str) -> Iterator[str]:
    """The only member of the gold's class that the statement names: a day of the week, a month, a direction."""
    bare = (match[1] or match[2]) if (match := _text.fullmatch(gold.strip())) else ""
    members = next((one for one in _CLASSES if bare.lower() in one), frozenset())
    named = {word for word in re.findall(r"[a-z]+", statement.lower()) if word in members}
    if len(named) == 1 and not HEDGE.search(statement) and not _beside.search(statement):
        yield bare if named == {bare.lower()} else named.pop()


def _last_side(statement: str) -> Iterator[str]:
    """The last side of the equation that the statement is, where words stand before it."""
    before, sign, last = statement.rstrip(" .!").rpartition(" = ")
    if not sign or len(last) > LONGEST_TERM or CLAUSE.search(_bracket.sub("", statement), 1):
        return
    bare = _bracket.sub("", before)
    if _logic.fullmatch(before) or not (HEDGE.search(_bracket.sub("", statement)) or _second_one.search(bare)):
        yield last.strip(" *$`")


def _option_at_end(text: str, letter: str) -> Iterator[str]:
    """The letter of the option that the last line is, below lines that are none."""
    lines = [line for line in text.split("\n")[-MOST_LINES:] if line.strip()]
    options = [_option.fullmatch(line) for line in lines]
    if options and options[0] and not any(options[1:]) and len(lines) > 1 and _explains.match(lines[1]):
        yield from {letter} & set(filter(None, options[0].groups()))
        return
    if not options or options[-1] is None or any(options[:-1]) or _wrong.search(lines[-1]):
        return
    if letter in options[-1].groups() and len(re.findall(r"\([A-J]\)", lines[-1])) < len("AB"):
        yield letter


def _list_at_end(text: str) -> Iterator[str]:
    """The items of the list that the text ends with."""
    items: list[str] = []
    for line in reversed([line for line in text.split("\n")[-MOST_LINES:] if line.strip()]):
        match = _item.fullmatch(line)
        if match is None:
            break
        items.insert(0, match[1])
    if len(items) > 1:
        yield ", ".join(items)


def _words_at_end(gold: str, text: str) -> Iterator[str]:
    """What stands behind the last colon, and the last lines, as many as words are expected."""
    lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    yield (lines or [""])[-1].rpartition(": ")[2]
    yield ", ".join(lines[-len(gold.split()) :])


def _term_at_end(statement: str, term: str) -> Iterator[str]:
    """The expected term, where the sentence ends with it and denies nothing."""
    bare = re.sub(r"[*_`$\"“”]", "", statement).strip().rstrip(".!")
    place = len(bare) - len(term)
    before = bare[:place]
    if bare[place:].casefold() != term.casefold() or not before.strip() or before[-1:].isalnum():
        return
    last = (re.findall(r"[A-Za-z']+", before) or [""])[-1].lower()
    clause = re.split(r"[,;:]|\b(?:so|therefore|thus|hence)\b", before)[-1]
    if not _further.match(clause) and (last in _STATES or before.rstrip()[-1] in ":—") and not HEDGE.search(clause):
        yield term
