"""What the last statement of a reply says, where the reply marks no answer: "So the probability is $\\frac{7}{12}$."

One way for every statement: what only explains or comments is left out, then what it sets off, chooses, calls true or
states by its verb is what it says. What hedges, rejects, compares or lists says nothing.
"""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import itertools
import re

from agent0.grading.comparison.quantities import known_unit
from agent0.grading.extraction.choices import choice_of
from agent0.grading.extraction.clauses import (
    CLAUSE,
    COUNTED,
    HEDGE,
    NUMERAL,
    NUMERALS,
    REFUTED,
    REPORTED,
    TRUTH,
    follows_verb,
    has_value,
    said_of_subject,
    stands_apart,
    truth_of,
    value_runs,
)
from agent0.grading.extraction.sentences import BOLD, FORMULA, Text, sentences, set_off

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
    r"|happy to|good luck|great question|does (?:this|that)|is there anything|would you like|thanks|thank you"
    r"|q\.?e\.?d|this completes|(?:we are |and we're )?done|cheers|any questions|(?:just )?ask\b|glad to|that['’]s "
    r"(?:it|all)|there you (?:go|have it)|(?:great|nice|perfect|awesome|voil[aà]|hooray|yay|excellent|easy|simple"
    r"|cool)\W*\Z)",
    re.IGNORECASE,
)
_remark = re.compile(
    r"(?:\([^()]*(?:\([^()]*\)[^()]*)*\)?|[*_]{0,2}(?:note|remark|check|checking|verification|sanity check|proof check"
    r"|comment|side note|fun fact)\b.*|(?:to (?:check|verify|double-check)|(?:we can|let's|let us) (?:check|verify"
    r"|double-check)|as a check|this (?:matches|agrees|confirms|checks))\b.*|(?:(?:by |we )?(?:substitut|plug|check"
    r"|verif|test|confirm|insert|put)\w*|indeed)\b(?!.*\b(?:wait|actually|but|not|oops|hmm|instead|fails?"
    r"|wrong)\b).*(?:\b(?:match\w*|agrees?|checks? out|confirm\w*|verif\w*|satisf\w*|holds?|works|as (?:expected"
    r"|required|desired)|(?:is|are) (?:correct|consistent|true|right))\b|[\u2713\u2714]).*|[^\w\ue000-\uf8ff]*)[.!]?",
    re.IGNORECASE | re.DOTALL,
)
_revises = re.compile(
    r"(?:^|[\s,;:])(?:so|therefore|thus|hence|consequently|in conclusion|finally|altogether|in total|in the end"
    r"|overall|wait|actually|however|oops|hmm|correction|but (?:then|this|that))\b",
    re.IGNORECASE,
)
_opinion = re.compile(
    r"I (?:believe|think|am confident)(?: that)?,? (?=(?:it|the (?:\w+ ){0,2}(?:answer|option|choice))(?:['’]s"
    r"| is) (?:option |choice )?\(?[A-J]\b)"
)
_connector = re.compile(
    r"(?:^|[\s,;:.])(?:and\s+)?(?:so(?: that)?|therefore|thus|hence|consequently|whence|conclude(?:s)?(?: that)?"
    r"|it follows that|follows that|we (?:now |can |then |therefore )?(?:find|get|obtain|see|deduce|have)(?: that)?"
    r"|that leaves|which (?:leaves|gives|yields|makes|means)|(?<!by )(?<!after )(?<!before )(?<!for )(?<!of )(?:leavin"
    r"g(?: only| us with)?|giving|yielding|obtaining|meaning(?: that)?|implying(?: that)?)|that is|and (?:keep|retain"
    r"|accept)|(?<=, )(?:(?:covering|earning|saving|making|producing|reaching|bringing|totall?ing|resulting in"
    r"|amounting to)|for)(?: (?:a|the) total (?:of|to))?(?= [$\d\ue000])|(?:which )?(?:simplifies|reduces|evaluates"
    r"|works out|rounds)(?: down| up)? to|implies(?: that)?|if and only if|iff|but (?:it|this|that|the \w+)(?:['’]s"
    r"| is| are| was)(?= (?:actually|really|in fact)\b)|(?:it|this) (?:seems|appears)(?: that)?|my (?:best )?guess is"
    r"|i(?: would|['’]d) say(?: that)?)\b,?:?\s*|\s*(?:→|⇒|⟹|=>|-->|∴)\s*|\s—+\s+(?=[*$(]*[^\s()]+[*$)]*$)"
    r"|(?<=\w):\s+(?=[A-Za-z]\w{0,2} [=<>≤≥] )",
    re.IGNORECASE,
)
_label = re.compile(
    r"(?:(?:step|case|part) \w+|conclusion|result|answer|final answer|solution|total|[A-Z][a-z]+(?: [a-z]+){0,3})\s*:"
    r"\s*(?=\S)",
    re.IGNORECASE,
)
_lead = re.compile(
    r"(?:(?:out )?of|among|amongst|from) (?:all )?(?:the|these|those) [^,]{1,60}, |(?:together|combined|overall"
    r"|in total|altogether|finally|now|clearly|indeed|in the end|in all|as a result|in summary|ultimately"
    r"|in conclusion|to summarize|to sum up),\s+|(?:as|since|because|by|for|with|from|using|when|while|after|before|on"
    r"|in|at|if|[a-z]+ing)\b[^,]{0,200},\s+",
    re.IGNORECASE,
)
"""What stands before a main clause: from among which, in all, since when."""
_setting = re.compile(
    r"\s+(?:over|in|for|during|within|across|among|between|out of|of|after|by|on) (?:all )?(?:the|these|those|all|both"
    r"|his|her|their|its|our|my|your) (?:\d+|two|three|four|five|six|seven|eight|nine|ten|twelve)(?:-| )[a-z-]+(?: [a-"
    r"z]+){0,2}(?=$|,)| times as (?:large|big|tall|long|many|much|heavy|fast|old|great|likely|wide|high)(?: as .*)?$"
    r"|(?<=[\ue010-\uf8ff\d)])(?P<unit>\s[A-Za-z]+)?\s*≈\s*[\d.,]+(?=(?:\s[A-Za-z]+)?$)",
    re.IGNORECASE,
)
"""What has a number of its own and is no answer: over the 2 days, three times as long, about 0.33."""
_circumstance = re.compile(
    r",?\s+(?:before|after|until|once|by) (?:(?:he|she|they|it|we|you|the|his|her|their)\b(?! first)|[a-z]+ing\b)"
    r"|,\s+(?:when|whenever|at|if|the|an?|its|their|our|one of)\s(?=[a-z]{2}|[a-z] ?=)|\s+(?:when|at) (?=[a-z] ?=)",
    re.IGNORECASE,
)
"""What says when, or names a value again, behind it: after giving away 8, the middle one of 3, 5 and 7."""
_consequence = re.compile(
    r"(?<=[\d\ue010-\uf8ff)%]),\s+(?:so|and so|thus|hence|therefore|which means)\s+([a-z][a-z'’ -]*)\Z"
)
_whole_set = re.compile(
    r"(?:all|every|any|the set of all) (?:non-?zero )?(?:real|integer|complex|natural|positive)[^,.]{0,30} except "
    r"|\(?[A-J]\)?$|(?=.*\b(?:if|for|when|otherwise|else)\b.*\b(?:if|for|when|otherwise|else)\b)(?:.*\ue000.{0,4}"
    r"(?:if|for|when) \ue000|\S+,? (?:if|for|when) [a-z] ?[<>≤≥=] ?\S+(?:,? and|[,;]) \S+,? (?:if|for|when) [a-z] ?[<>"
    r"≤≥=])",
    re.IGNORECASE,
)
"""A statement that is its value: all numbers but some, a letter, cases."""
_valued = re.compile(rf"[\d\ue000\W](?<![\s,'’-])|^{NUMERALS}\b|^[A-Z]$|^(?:yes|no|true|false)$", re.IGNORECASE)
_second = re.compile(r"\S\s+(?:and|or|then|versus|vs)\b\s*(?:[A-Za-z]+\s+){0,3}$", re.IGNORECASE)
_counted = re.compile(rf"[\d\ue000]|{COUNTED.pattern}", re.IGNORECASE)
_part = re.compile(r"[\d\ue010-\uf8ff] (?:out )?of (?:the|these|those) [\d\ue000]")
_has_verb = re.compile(
    r"\s*(?:is|are|was|were)\s+(?:the(?! (?:only|correct|right|best|final|answer|solution|result|value|one)\b)|an?"
    r"|not)\b",
    re.IGNORECASE,
)
_bound = re.compile(r"[<>≤≥≠≈]\s*$")
_one_of_many = re.compile(r"\ban? $")
_elsewhere = re.compile(r"\b(?:out|away|off|short|long|apart|removed|left over|each other)\b")
_half_day = re.compile(r"\s*(?:in the (?:morning|afternoon|evening)|at (?:night|noon|midnight))\b", re.IGNORECASE)
_behind = re.compile(
    r"\s+(?:is|are|was|were|have|has|had|will|would|can|must|remain|remains|on|at|from|by|to|in|as|for|of|over|after"
    r"|before|during|between|among|so|per|with|each|every|left|altogether|total|needed|remaining|when|while|if|that"
    r"|who|which|because|since|full)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_measured = re.compile(
    r"[%°$€£]|\b(?:[ap]\.?m\b|radians?|percent|noon|midnight|hundred|thousand|million|billion|dozen)", re.IGNORECASE
)
_listed = re.compile(r"[\s,;]*(?:(?:and|or|oder|et|y|,|;)\s*)?[\s,;]*", re.IGNORECASE)
_equation = re.compile(r"\s*([A-Za-z](?:_\{?\w\}?)?)\s*=\s*([^=<>]+)")
_group = re.compile(r"\(((?:[^()A-Za-z]|[A-Za-z]{1,2}(?![A-Za-z])|sin|cos|tan|log|sqrt|exp)*)\)")
_JOINED = "\u2060"
"""Stands for a blank within brackets that are one word."""


def concluded(reply: str) -> str | None:
    """Return what the last statement of ``reply`` says, or its first one where that is a value alone ("Seven. The
    primes are …") and nothing is concluded below; None where neither says one thing. Linear time."""
    statements, masked = statements_of(reply)
    if not statements:
        return None
    headline = _headline(statements, masked)
    return headline or choice_of(" ".join(statements[-2:])) or next(iter(stated(statements[-1], masked)), None)


def statements_of(reply: str) -> tuple[list[str], Text]:
    """Return the sentences of ``reply`` that are no small talk, without remarks at their end, and what is set off."""
    masked = set_off(reply[-LONGEST:])
    statements = [sentence for sentence in sentences(masked.text) if not _small_talk.match(sentence.lstrip("*_ "))]
    while len(statements) > 1 and _remark.fullmatch(statements[-1].strip()):
        statements.pop()
    return statements, masked


def _headline(statements: list[str], masked: Text) -> str | None:
    """The first sentence where it is a value alone and nothing below concludes or revises."""
    if len(statements) < 2 or any(map(_revises.search, statements[1:])):
        return None
    shown, first = masked.shown(statements[0]).strip().rstrip(".!:").strip(), statements[0].strip(" .!")
    if (match := TRUTH.match(shown)) and (len(shown) == len(match[0]) or shown[len(match[0])] in ",."):
        return match[1]
    tokens = first.split()
    is_value = bool(tokens) and (NUMERAL.fullmatch(tokens[0]) or first[:1] == BOLD or tokens[0].isdigit())
    is_label = first.endswith(":") or _heading.fullmatch(shown) or re.match(r"(?i)step|case|part|\w+:", shown)
    return shown if len(tokens) <= 3 and is_value and not is_label else None


def stated(statement: str, masked: Text) -> list[str]:
    """Return what one sentence states: its value as it is written, with its unit, and alone; nothing where it states
    nothing or several things."""
    statement = _opinion.sub("", statement.strip().rstrip(".!。 \u220e\u25a0\u2713\u2714\u2705").strip(), count=1)
    if _says_nothing(statement):
        return []
    if letter := choice_of(statement):
        return [letter]
    statement = _before_consequence(statement)
    if _whole_set.match(statement):
        return [masked.shown(statement)]
    if re.fullmatch("[\ue000-\uf8ff]{2}[^\\w\ue000-\uf8ff]*", statement):
        return _set_off(statement, masked)
    before, _, behind = statement.rpartition("; ")
    if before and all(before.count(pair[0]) == before.count(pair[1]) for pair in ("()", "[]", "{}")):
        return _of_two(stated(before, masked), behind, masked)
    statement = _unbolded(statement, masked)
    if BOLD in statement:
        return _emphasised(statement, masked)
    label = _label.match(statement)
    main = main_clause(statement[label.end() :] if label else statement)
    if truth := truth_of(main) or truth_of(statement):
        return [truth]
    phrase = said_of_subject(main)
    return _system(main, masked) or _of_verb(main, masked) or ([phrase] if phrase else [])


def _says_nothing(statement: str) -> bool:
    """Whether a sentence is too long to be one statement, asks, is taken back or tells another's opinion."""
    reported = REPORTED.search(statement)
    of_another = reported is not None and not has_value(statement[: reported.start()])
    return len(statement.split()) > MOST_WORDS or "?" in statement or bool(REFUTED.search(statement)) or of_another


def _before_consequence(statement: str) -> str:
    """``statement`` up to a last clause that concludes nothing: "she sold 72, so the farmer earns that much"."""
    match = _consequence.search(statement)
    tail = match[1] if match else ""
    concludes = HEDGE.search(tail) or COUNTED.search(tail) or NUMERAL.search(tail) or truth_of(tail) or choice_of(tail)
    return statement[: match.start()] if match and not concludes else statement


def _of_two(first: list[str], behind: str, masked: Text) -> list[str]:
    """What two main clauses state: the one that concludes, or the only one that states anything."""
    if _remark.fullmatch(behind) or REFUTED.search(behind):
        return first
    second = stated(behind, masked)
    if not first or _connector.match(behind) or first[:1] == second[:1]:
        return second
    return [] if second else first


def main_clause(statement: str) -> str:
    """Return the last clause of a sentence that its connectors part, without its lead; brackets are one word."""
    main = _group.sub(lambda match: match[0].replace(" ", _JOINED), statement.strip().rstrip(".!。").strip())
    ends = [match.end() for match in _connector.finditer(main) if re.search(r"[\w\ue000-\uf8ff]", main[match.end() :])]
    main = main[max(ends, default=0) :]
    lead = _lead.match(main)
    states = lead and re.match(r"\w+ing\b", lead[0]) and any(follows_verb(run[0]) for run in value_runs(lead[0]))
    return main[lead.end() :] if lead and not states else main


def _unbolded(statement: str, masked: Text) -> str:
    """``statement`` with bold words as words where none of them says a value and something beside them does."""
    pattern = re.compile(f"{BOLD}(.)")
    bold = [masked.piece(letter) for letter in pattern.findall(statement)]
    beside = re.search(f"[\\d{FORMULA}]", pattern.sub("", statement))
    if not bold or not beside or any(map(_valued.search, bold)) or follows_verb(statement.partition(BOLD)[0]):
        return statement
    return pattern.sub(lambda match: masked.piece(match[1]), statement)


def _set_off(statement: str, masked: Text) -> list[str]:
    """The only piece of a statement: a formula, or a statement in bold."""
    inner = masked.piece(statement[1])
    if statement[0] == FORMULA or "\\begin{" in inner:
        return [inner]
    inside = stated(inner, masked) if re.search(r"[a-z]{3,} |: ", inner) else []
    return inside or ([] if HEDGE.search(inner) else [masked.shown(inner).rstrip(" .!")])


def _emphasised(statement: str, masked: Text) -> list[str]:
    """What stands in bold, or in several bold pieces that only commas and joints part; nothing where that is rejected
    or stands apart."""
    places = [place for place, letter in enumerate(statement) if letter == BOLD]
    between = [statement[place + 2 : other] for place, other in itertools.pairwise(places)]
    before, after = statement[: places[0]], statement[places[-1] + 2 :]
    before = before[max((match.end() for match in _connector.finditer(before)), default=0) :]
    cut = CLAUSE.search(after)
    after = after[: cut.start()] if cut else after
    rejected = HEDGE.search(before) or stands_apart(before) or HEDGE.search(after) or has_value(after)
    if rejected or not all(map(_listed.fullmatch, between)):
        return []
    inner = statement[places[0] : places[-1] + 2]
    return [masked.shown(inner)] if len(places) > 1 else _set_off(inner, masked)


def _system(main: str, masked: Text) -> list[str]:
    """Values of several names, each in a formula of its own: ``b = -3`` and ``a = 1``."""
    equations = [_equation.fullmatch(masked.piece(letter)) for letter in main if "\ue010" <= letter <= "\uf8ff"]
    named = [match for match in equations if match]
    names = {match[1] for match in named}
    if len(named) < 2 or len(names) < len(named) or _lead.match(main) or HEDGE.search(main):
        return []
    one_name = len({name[0] for name in names}) == 1 and all("_" in name for name in names)
    return [", ".join((match[2] if one_name else match[0]).strip() for match in named)]


def _of_verb(main: str, masked: Text) -> list[str]:
    """The value behind the verb, where no other stands there; the only one where none does."""
    if _part.search(main):
        return []
    cut = CLAUSE.search(main, 1)
    clause = _setting.sub(
        lambda match: match["unit"] or " ", main[: cut.start()] if cut and value_runs(main[: cut.start()]) else main
    )
    if (cut := _circumstance.search(clause)) and (runs := value_runs(clause[: cut.start()])):
        is_named_again = cut[0].endswith(("the ", "a ", "an ", "its ", "their ", "our ", "of "))
        clause = clause if is_named_again and runs[-1][2].strip() else clause[: cut.start()]
    runs = value_runs(clause)
    able = [run for run in runs if not stands_apart(run[0])]
    behind_verb = [run for run in able if follows_verb(run[0])]
    if able and able[-1] is runs[-1] and (behind_verb[-1:] == able[-1:] or not _counted.search(able[-1][0])):
        behind_verb = able[-1:]
    if HEDGE.search(clause) or len(behind_verb) != 1 or any(_second.search(run[0]) for run in runs):
        return []
    before, value, behind = behind_verb[0]
    if noted := _half_day.match(behind):
        return [masked.shown(value + noted[0])]
    is_one = value.isdigit() and behind.strip() and _one_of_many.search(before)
    is_subject = not follows_verb(before) and _has_verb.match(behind)
    if is_one or is_subject or _bound.search(before) or _elsewhere.search(behind):
        return []
    behind = "" if value.endswith(",") else re.split(r"[,;:]|\s[—–-]\s", behind)[0]
    unit = _behind.sub("", behind)
    is_bare = not _measured.search(unit) and not any(map(known_unit, re.findall(r"[A-Za-z°]+", unit)))
    forms = [f"{value}{unit}", f"{value}{behind}", *([value] if is_bare else [])]
    return [masked.shown(form).replace(_JOINED, " ").strip(" ,;") for form in dict.fromkeys(forms)]
