"""What the last statement of a reply says, where the reply marks no answer: "So the probability is $\\frac{7}{12}$."

Only a statement counts that says one thing: what hedges, rejects, compares or lists apart from one another says none.
"""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import itertools
import re

from agent0.grading.extraction.claims import (
    CLAUSE,
    HEDGE,
    REFUTED,
    TRUTH,
    claim,
    said_of_subject,
    taken_choice,
    verdict,
)
from agent0.grading.extraction.sentences import BOLD, FORMULA, Text, sentences, set_off
from agent0.grading.extraction.values import (
    COUNTED,
    NUMERAL,
    NUMERALS,
    follows_verb,
    last_run,
    stands_apart,
    value_runs,
)

LONGEST, MOST_WORDS = 4_000, 60
"""Characters from the end that are looked at, words of a statement."""
_heading = re.compile(
    r"(?:final |short |full |detailed )?(?:solution|results?|answers?|explanation|conclusion|summary|reasoning"
    r"|analysis|given|proof|approach|calculations?|derivation|details|work|steps|verification|check|method|setup"
    r"|problem|overview)",
    re.IGNORECASE,
)
_small_talk = re.compile(
    r"(?:i hope|hope (?:this|that)|let me know|feel free|if you (?:have|need|want|would)|please (?:let|note|feel)"
    r"|happy to|good luck|great question|does (?:this|that)|is there anything|would you like|thanks|thank you|q\.?e\.?d"
    r"|this completes|(?:we are |and we're )?done|cheers|any questions|(?:just )?ask\b|glad to|that['’]s (?:it|all)"
    r"|there you (?:go|have it)|(?:great|nice|perfect|awesome|voil[aà]|hooray|yay|excellent|easy|simple|cool)\W*\Z)",
    re.IGNORECASE,
)
_remark = re.compile(
    r"(?:\([^()]*(?:\([^()]*\)[^()]*)*\)?|[*_]{0,2}(?:note|remark|check|checking|verification|sanity check"
    r"|proof check|comment|side note|fun fact)\b.*|(?:to (?:check|verify|double-check)|(?:we can|let's"
    r"|let us) (?:check|verify|double-check)|as a check|this (?:matches|agrees|confirms|checks))\b.*|(?:(?:by "
    r"|we )?(?:substitut|plug|check|verif|test|confirm|insert|put)\w*|indeed)\b(?!.*\b(?:wait|actually|but|not|oops"
    r"|hmm|instead|fails?|wrong)\b).*(?:\b(?:match\w*|agrees?|checks? out|confirm\w*|verif\w*|satisf\w*|holds?|works"
    r"|as (?:expected|required|desired)|(?:is|are) (?:correct|consistent|true|right))\b|[\u2713\u2714]).*"
    r"|[^\w\ue000-\uf8ff]*)[.!]?",
    re.IGNORECASE | re.DOTALL,
)
_concludes = re.compile(
    r"(?:^|[\s,;:])(?:so|therefore|thus|hence|consequently|in conclusion|finally|altogether|in total|in the end"
    r"|overall)\b",
    re.IGNORECASE,
)
_revises = re.compile(r"\b(?:wait|actually|however|oops|hmm|correction|but (?:then|this|that))\b", re.IGNORECASE)
_opinion = re.compile(
    r"(?:[Mm]y|[Tt]he) (?:choice|answer|pick|selection) would be (?=(?:option |choice )?\(?[A-J]\b)|I (?:believe"
    r"|think|am confident)(?: that)?,? (?=(?:it|the (?:\w+ ){0,2}(?:answer|option|choice))(?:['’]s| is) (?:option "
    r"|choice )?\(?[A-J]\b)"
)
_label = re.compile(
    r"(?:(?:step|case|part) \w+|conclusion|result|answer|final answer|solution|total"
    r"|[A-Z][a-z]+(?: [a-z]+){0,3})\s*:\s*(?=\S)",
    re.IGNORECASE,
)
_connector = re.compile(
    r"(?:^|[\s,;:.])(?:and\s+)?(?:so(?: that)?|therefore|thus|hence|consequently|whence|conclude(?:s)?(?: that)?"
    r"|it follows that|follows that|we (?:now |can |then |therefore )?(?:find|get|obtain|see|deduce|have)(?: that)?"
    r"|that leaves|which (?:leaves|gives|yields|makes|means)"
    r"|(?<!by )(?<!after )(?<!before )(?<!for )(?<!of )(?:leaving(?: only| us with)?|giving|yielding|obtaining"
    r"|meaning(?: that)?|implying(?: that)?)|that is|and (?:keep|retain|accept)|(?<=, )(?:(?:covering|earning|saving"
    r"|making|producing|reaching|bringing|totall?ing|resulting in|amounting to)|for)(?: (?:a|the) total (?:of"
    r"|to))?(?= [$\d\ue000])|leaves(?: only| us)*(?: with)?(?: only)?(?= (?:option |choice |answer )?\(?[A-J]\)?$)"
    r"|(?:which )?(?:simplifies|reduces|evaluates|works out|rounds)(?: down| up)? to|implies(?: that)?|if and only if"
    r"|iff|but (?:it|this|that|the \w+)(?:['’]s| is| are| was)(?= (?:actually|really|in fact)\b)|(?:it|this) (?:seems"
    r"|appears)(?: that)?|my (?:best )?guess is|i(?: would|['’]d) say(?: that)?)\b,?:?\s*|\s*(?:→|⇒|⟹|=>|-->|∴)\s*"
    r"|\s—+\s+(?=[*$(]*[^\s()]+[*$)]*$)|(?<=\w):\s+(?=[A-Za-z]\w{0,2} [=<>≤≥] )",
    re.IGNORECASE,
)
_behind = re.compile(
    r"(?!.*\b(?:out|away|off|short|long|apart|each other|removed|large|small|big)\b)(?:\s*(?!(?:is|are|was|were|has"
    r"|have|had|will|must|can|do|does)\b)[^\s,;:.]+){0,7}?(?:\s+(?:is|are|was|were|have|has|will be"
    r"|must be)(?:\s+(?:needed|required|left|full|possible|there|in|of|correct|right|best|the (?:answer|solution"
    r"|result|(?:right|correct|best) \w+)|used|sold|made|remaining|empty|red|blue|girls|boys|students)\b.*)?)?"
    r"|\s*of (?:the|all|these|those|his|her|its|their)\b[^,;:]{1,80}|(?:\s+[a-z]+){0,3} (?:is|are|was|were|have been"
    r"|has been|will be|must be|can be)(?: (?!(?:a|an|the|not)\b)[a-z]+){1,4}",
    re.IGNORECASE,
)
_subordinate = re.compile(
    r"(?:as|since|because|by|for|with|from|using|when|while|after|before|on|in|at|if|[a-z]+ing)\b[^,]{0,200},\s+",
    re.IGNORECASE,
)
_among = re.compile(
    r"(?:(?:[Oo]ut )?[Oo]f|[Aa]mong|amongst|from) (?:all )?(?:the|these|those) [^,]{1,60}, ", re.IGNORECASE
)
_intro = re.compile(
    r"(?:together|combined|overall|in total|altogether|finally|now|clearly|indeed|in the end|in all|as a result"
    r"|in summary|ultimately|in conclusion|to summarize|to sum up),\s+",
    re.IGNORECASE,
)
_afternoon = re.compile(r"\s*(?:in the (?:morning|afternoon|evening)|at night)\b", re.IGNORECASE)
_relation = re.compile(r"[=<>≤≥≠≈≡∈]|\\(?:le|ge|leq|geq|ne|neq|lt|gt|in|equiv|approx)(?![A-Za-z])")
_all_but = re.compile(
    r"(?:all|every|any|the set of all) (?:non-?zero )?(?:real|integer|complex|natural|positive)[^,.]{0,30} except ",
    re.I,
)
_circumstance = re.compile(
    r",?\s+(?:before|after|until|once|by) (?:(?:he|she|they|it|we|you|the|his|her|their)\b(?! first)|[a-z]+ing\b)"
    r"|,\s+(?:when|whenever|at|if)\s|\s+(?:when|at) (?=[a-z] ?=)"
)
_apposition = re.compile(r",\s+(?:the|an?|its|their|our|one of)\s", re.IGNORECASE)
_copula = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals|get|find|obtain|gives|yields)|=)\s+(?:the |an? )?$", re.IGNORECASE
)
_of_two_things = re.compile(
    r"\bthe (?:larger|smaller|greater|lesser|bigger|lower|higher|longer|shorter|older|younger)(?: (?:of (?:the two"
    r"|them|these)(?: [a-z]+)?|one|number|value|root|solution|angle|integer|side|part|piece))(?= (?:is|was|=))",
    re.IGNORECASE,
)
_ruled_out = re.compile(
    r"(?:option |choice |answer )?\(?[A-J]\)? (?:is|was|would be|can(?:not|['’]t)|isn['’]t|fails)\b"
)
_PAIRS = ("()", "[]", "{}")
_alone = re.compile(r"\(?[A-J]\)?")
_one_of_many = re.compile(r"\b(?:a|an) $")
_reason = re.compile(r"(?:since|because|as)\b[^,]{0,200},\s+", re.IGNORECASE)
_group = re.compile(r"\(([^()]*)\)")
_functions = re.compile(r"sin|cos|tan|log|sqrt|exp")
_word = re.compile(r"[A-Za-z]{3,}")
_bold = re.compile(f"{BOLD}(.)")
_valued = re.compile(rf"[\d\ue000\W](?<![\s,'’-])|^{NUMERALS}\b|^[A-Z]$|^(?:yes|no|true|false)$", re.IGNORECASE)
_nearly = re.compile(r"(?<=[\ue010-\uf8ff\d)])((?:\s[A-Za-z]+)?)\s*≈\s*[\d.,]+(?:\s[A-Za-z]+)?$")
_as_large = re.compile(r" times as (?:large|big|tall|long|many|much|heavy|fast|old|great|likely|wide|high)(?: as .*)?$")
_times = re.compile(r"(?<=\w) times$", re.IGNORECASE)
_equation = re.compile(r"\s*([A-Za-z](?:_\{?\w\}?)?)\s*=\s*([^=<>]+)")

_condition = re.compile(r"\b(?:if|for|when|otherwise|else)\b", re.IGNORECASE)
_consequence = re.compile(
    r"(?<=[\d\ue010-\uf8ff)%]),\s+(?:so|and so|thus|hence|therefore|which means)\s+([a-z][a-z'’ -]*)\Z"
)
_by_cases = re.compile(
    "\ue000[^\ue000]{0,3}(?:if|for|when) \ue000"
    r"|\S+,? (?:if|for|when) [a-z] ?[<>≤≥=] ?\S+(?:,? and|[,;]) \S+,? (?:if|for|when) [a-z] ?[<>≤≥=]"
)
_ended = re.compile(
    r"\s+(?:is|are|was|were|have|has|had|remain|remains|needed|each|left|in total|altogether|of|for|per cent of|full"
    r"|will|on|at|from|by|to|in|as)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_listed = re.compile(r"[\s,;]*(?:(?:and|or|oder|et|y|,|;)\s*)?[\s,;]*", re.IGNORECASE)


def concluded(reply: str) -> str | None:
    """Return what the last statement of ``reply`` says, or its first one where that is a value alone ("Seven. The
    primes are …") and nothing is concluded below; None where neither says one thing. Linear time."""
    statement, masked = _statements(reply)
    if not statement:
        return None
    return _headline(statement, masked) or taken_choice(" ".join(statement[-2:])) or _statement(statement[-1], masked)


def last_statement(reply: str) -> tuple[str, Text]:
    """Return the last sentence of ``reply`` that is no remark, empty where there is none, and what is set off in it."""
    statement, masked = _statements(reply)
    return statement[-1] if statement else "", masked


def _statements(reply: str) -> tuple[list[str], Text]:
    masked = set_off(reply[-LONGEST:])
    statement = [one for one in sentences(masked.text) if not _small_talk.match(one.lstrip("*_ "))]
    while len(statement) > 1 and _remark.fullmatch(statement[-1].strip()):
        statement.pop()
    return statement, masked


def _headline(statements: list[str], masked: Text) -> str | None:
    """The first sentence where it is a value alone and nothing below concludes or revises."""
    if len(statements) < 2 or any(
        _concludes.search(statement) or _revises.search(statement) for statement in statements[1:]
    ):
        return None
    statement = masked.shown(statements[0]).strip().rstrip(".!:").strip()
    first = statements[0].strip(" .!")
    if (match := TRUTH.match(statement)) and (len(statement) == len(match[0]) or statement[len(match[0])] in ",."):
        return match[1]
    words = first.split()
    alone = len(words) <= 3 and bool(words) and (NUMERAL.fullmatch(words[0]) or first[:1] == BOLD or words[0].isdigit())
    alone = alone and not _heading.fullmatch(statement)
    return (
        statement if alone and not first.endswith(":") and not re.match(r"(?i)step|case|part|\w+:", statement) else None
    )


def _statement(statement: str, masked: Text) -> str | None:
    """What one sentence states."""
    statement = _opinion.sub("", statement.strip().rstrip(".!。 \u220e\u25a0\u2713\u2714\u2705").strip(), count=1)
    if len(statement.split()) > MOST_WORDS or "?" in statement or REFUTED.search(statement):
        return None
    if letter := taken_choice(statement):
        return letter
    statement = _before_consequence(statement)
    if (
        (_by_cases.search(statement) and len(_condition.findall(statement)) > 1)
        or _all_but.match(statement)
        or _alone.fullmatch(statement)
    ):
        return masked.shown(statement)
    if re.fullmatch("[\ue000-\uf8ff]+[^\\w]*", statement) and statement.count(BOLD) + statement.count(FORMULA) == 1:
        return _whole(statement, masked)
    if (parts := _parted(statement)) is not None:
        return _of_two(*parts, masked)
    statement = _unbolded(statement, masked)
    if (bold := _emphasised(statement, masked)) is not None:
        return bold or None
    if (found := verdict(statement)) is not None:
        return found
    statement = _label.sub("", statement, count=1) if _label.match(statement) else statement
    main = _joined(statement[_last_end(_connector, statement) :])
    among = _among.match(main) or _intro.match(main)
    return _main_clause(main[among.end() :] if among else main, masked)


def _before_consequence(statement: str) -> str:
    """``statement`` up to a last clause that concludes nothing: "she sold 72, so the farmer earns that much"."""
    match = _consequence.search(statement)
    tail = match[1] if match else ""
    states = HEDGE.search(tail) or COUNTED.search(tail) or NUMERAL.search(tail) or claim(tail) or verdict(tail)
    return statement[: match.start()] if match and not states else statement


def main_clause(statement: str) -> str:
    """Return the last clause of a sentence that its connectors part, with brackets as words."""
    main = _joined(statement.strip().rstrip(".!。").strip())
    main = main[_last_end(_connector, main) :]
    among = _among.match(main) or _intro.match(main)
    return main[among.end() :] if among else main


def _parted(statement: str) -> tuple[str, str] | None:
    """What a sentence says before and behind its last semicolon outside of brackets; None where it has none."""
    before, _, behind = statement.rpartition("; ")
    return (
        (before, behind) if before and all(before.count(pair[0]) == before.count(pair[1]) for pair in _PAIRS) else None
    )


def _of_two(before: str, behind: str, masked: Text) -> str | None:
    """What two main clauses state: the one that concludes, or the only one that states anything."""
    one = _statement(before, masked)
    if _remark.fullmatch(behind) or REFUTED.search(behind) or _ruled_out.match(behind):
        return one
    other = _statement(behind, masked)
    if one is None or _connector.match(behind) or one == other:
        return other
    return one if other is None or _alone.fullmatch(one) else None


def _unbolded(statement: str, masked: Text) -> str:
    """``statement`` with bold words as words where none of them says a value and something beside them does."""
    bold = [masked.pieces[ord(found[1]) - 0xE010] for found in _bold.finditer(statement)]
    if (
        not bold
        or follows_verb(_bold.split(statement)[0])
        or not re.search(f"[\\d{FORMULA}]", _bold.sub("", statement))
        or any(map(_valued.search, bold))
    ):
        return statement
    return _bold.sub(lambda found: masked.pieces[ord(found[1]) - 0xE010], statement)


def _main_clause(main: str, masked: Text) -> str | None:
    """What the main clause of a sentence states."""
    if (claimed := claim(main)) is not None:
        return claimed
    return _system(main, masked) or _value(main, masked) or _value(_cut(main), masked) or said_of_subject(main)


def _cut(main: str) -> str:
    """``main`` up to a comma behind which no value stands."""
    before, _, after = main.partition(", ")
    return "" if not after or HEDGE.search(main) or re.search("[\\d\ue000\ue001]", after) else before


def _joined(text: str) -> str:
    """``text`` with each bracket without words as one word."""
    return _group.sub(
        lambda match: match[0] if _word.search(_functions.sub("", match[1])) else match[0].replace(" ", "\u2060"), text
    )


def _system(main: str, masked: Text) -> str | None:
    """Values of several names, each in a formula of its own: ``b = -3`` and ``a = 1``."""
    places = [ord(letter) - 0xE010 for letter in main if ord(letter) >= 0xE010 and ord(letter) <= 0xF8FF]
    found = [_equation.fullmatch(masked.pieces[place]) for place in places if place < len(masked.pieces)]
    names = {one[1] for one in found if one}
    if len(found) < 2 or len(names) < len(found) or _subordinate.match(main) or HEDGE.search(main):
        return None
    bare = {name[0] for name in names} if all("_" in name for name in names) else names
    return ", ".join((one[2] if len(bare) == 1 else one[0]).strip() for one in found if one)


def _last_end(pattern: re.Pattern[str], text: str) -> int:
    """Where the last match that something follows ends, 0 where there is none."""
    return max((m.end() for m in pattern.finditer(text) if re.search(r"[\w\ue000-\uf8ff]", text[m.end() :])), default=0)


def _whole(statement: str, masked: Text) -> str | None:
    """The only piece of a statement: a formula, or a statement in bold."""
    place = ord(statement[1]) - 0xE010
    if not masked.bold[place]:
        return masked.pieces[place]
    inner = masked.pieces[place].strip()
    match = _statement(inner, masked) if re.search(r"[a-z]{3,} |: ", inner) else None
    return match or (None if HEDGE.search(inner) else masked.shown(inner).rstrip(" .!"))


def _emphasised(statement: str, masked: Text) -> str | None:
    """What stands in bold, or in several bold pieces that only commas and joints part; empty where that is rejected or
    stands apart, None where nothing does."""
    places = [n for n, letter in enumerate(statement) if letter == BOLD]
    if not places:
        return None
    before, last = statement[: places[0]], places[-1] + 2
    between = [statement[one + 2 : other] for one, other in itertools.pairwise(places)]
    if not all(_listed.fullmatch(gap) for gap in between):
        return ""
    main = before[_last_end(_connector, before + "x") :] if _connector.search(before) else before
    after = statement[last:]
    cut = CLAUSE.search(after)
    tail = after[: cut.start()] if cut else after
    if HEDGE.search(main) or stands_apart(main) or HEDGE.search(tail) or len(re.findall("[\\d\ue000]", tail)) > 0:
        return ""
    inner = statement[places[0] : last]
    if len(places) > 1:
        return masked.shown(inner)
    return _whole(inner, masked) or ""


def _value(main: str, masked: Text) -> str | None:
    """The value that the main clause of a statement ends in or is about."""
    reason = _reason.match(main)
    main = main[reason.end() :] if reason else main
    cut = CLAUSE.search(main, 1)
    main = _as_large.sub("", _nearly.sub(r"\1", main[: cut.start()] if cut else main))
    main = _subordinate.sub("", main, count=1) if _subordinate.match(main) else main
    main = _before_circumstance(main)
    main = _before_apposition(_of_two_things.sub("it", main) if len(_of_two_things.findall(main)) == 1 else main)
    if HEDGE.search(main):
        return None
    words = [(m[0], m.start(), m.end()) for m in re.finditer(r"\S+", main)]
    run = last_run(words)
    if run is None:
        return None
    start, end = run
    before, value, after = main[: words[start][1]], main[words[start][1] : words[end - 1][2]], main[words[end - 1][2] :]
    if noted := _afternoon.match(after):
        return masked.shown(value + noted[0])
    if len(after.split()) > 8 or not _stands_alone(before, value, after):
        return None
    return _times.sub("", masked.shown(f"{value}{_ended.sub('', after)}".strip(" ,;")).replace("\u2060", " ")) or None


def _before_circumstance(main: str) -> str:
    """``main`` up to what says when, behind a value: "42 after giving away 8", "-50, when x = 5"."""
    match = _circumstance.search(main)
    return main[: match.start()] if match and value_runs(main[: match.start()]) else main


def _before_apposition(main: str) -> str:
    """``main`` up to a noun that explains the value that the verb states: "is 5, the middle one of 3, 5 and 7"."""
    match = _apposition.search(main)
    runs = value_runs(main[: match.start()]) if match else []
    states = runs and _copula.search(runs[-1][0]) and not runs[-1][2].strip()
    return main[: match.start()] if match and states else main


def _stands_alone(before: str, value: str, after: str) -> bool:
    """Whether ``value`` is what the clause says: a verb or nothing of its kind stands before it."""
    if value.isdigit() and after.strip() and _one_of_many.search(before):
        return False
    if re.search(r"[\d\ue000]", after) or stands_apart(before) or not _behind.fullmatch(after):
        return False
    if follows_verb(before):
        return True
    apart = not re.search(r"[\d\ue000]", before) and not COUNTED.search(before)
    return apart or (not after.strip() and bool(_relation.search(value)))
