"""What the last statement of a reply says, where the reply marks no answer: "So the probability is $\\frac{7}{12}$."

One way for every statement: what only explains or comments is left out, then what it sets off, chooses, calls true or
states by its verb is what it says. What hedges, rejects, compares or lists says nothing.
"""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.extraction.choices import choice_of
from agent0.grading.extraction.phrases import ALTERS, CLAUSE, HEDGE, NUMERAL, NUMERALS, REFUTED, REPORTED
from agent0.grading.extraction.sentences import BOLD, FORMULA, Text, sentences, set_off
from agent0.grading.math.units import measure

LONGEST, MOST_WORDS = 4_000, 60
"""Characters from the end that are looked at, words of a statement."""
_connector = re.compile(
    r"(?i)(?:^|[\s,;:.])(?:and\s+)?(?:so(?: that)?|therefore|thus|hence|consequently|whence|concludes?(?: that)?"
    r"|that (?:is|leaves)|(?:it )?follows that|we (?:\w+ )?(?:find|get|obtain|see|deduce|have)(?: that)?"
    r"|which (?:leaves|gives|yields|makes|means)|(?<!by )(?<!after )(?<!before )(?<!for )(?<!of )(?:leaving(?: only"
    r"| us with)?|giving|yielding|obtaining|(?:meaning|implying)(?: that)?)|and (?:keep|retain|accept)"
    r"|(?<=, )(?:(?:[a-z]+ing(?: in| to)?|for)(?: (?:a|the) total (?:of|to))?)(?= [$\d\ue000])|(?:which )?(?:simplifies"
    r"|reduces|evaluates|works out|rounds)(?: down| up)? to|implies(?: that)?|if and only if|iff|but (?:it|this|that"
    r"|the \w+)(?:['’]s| is| are| was)(?= (?:actually|really|in fact)\b)|(?:it|this) (?:seems|appears)(?: that)?"
    r"|my (?:best )?guess is|i(?: would|['’]d) say(?: that)?)\b,?:?\s*|\s*(?:→|⇒|⟹|=>|-->|∴)\s*|\s—+\s+(?=[*$(]*[^\s()]"
    r"+[*$)]*$)|(?<=\w):\s+(?=[A-Za-z]\w{0,2} [=<>≤≥] )"
)
"""What stands between what a conclusion follows from and its clause."""
_truth = re.compile(r"(?i)(yes|no|true|false|ja|nein|oui|non|sí|sì|sim|não|да|нет)(?=\s*(?:[,.;—–]|$))")
_true = re.compile(
    r"(?i)(?P<subject>\b(?:statement|claim|assertion|proposition|conjecture|converse|inequality|identity|it|this|that"
    r"|answer) )?\b(?:is|are|must be) (?:therefore |thus |indeed |clearly )?(?P<truth>true|false)\b\s*(?:[:,;(]"
    r"|[-–—]\s|$|(?:because|since|as)\b)"
)
_none = re.compile(
    r"(?i)\b(?:there (?:is|are|exists?)|has|have|having|admits?|with|possesses)\s+no\s+(?:(?:real|such|possible"
    r"|valid)\s+)*(?:solutions?|((?:[a-z]+ )?[a-z]+))$"
)
_said_of = re.compile(
    r"(?i)(?:.*\b(?:is|are|was|were|becomes?|equals?|be|called|namely|prints?|returns?|outputs?|displays?|(?:falls?"
    r"|lands?(?: us)?|occurs?|happens?|takes place) on)|.*['’]s|[^:]*:)\s+(?:(?:always|therefore|thus|also|simply"
    r"|exactly)\s+)?(?:(?:a|an|the)\s+)?(\S.*)"
)
MOST_SAID = 8
_value = re.compile("[\\d\ue000\ue001]")
"""A digit, or a piece that is set off."""
_verb = re.compile(
    r"(?i)(?:\b(?:is|are|was|were|be|been|being|becomes?|equals?|gives?|yields?|leaves?|contains?|ha[sd]|have|takes?"
    r"|costs?|pays?|paid|up with|left with|makes?|gets?|comes to|amounts to|totals?|sums to|remains?|measures?|holds"
    r"|needs?|earns?|weighs?|reads?|spends?|sells?|as|to|at|of|namely|exactly|precisely|simply|just|only|there (?:are"
    r"|is)|ist|sind|beträgt|ergibt|est|vaut|sont|es|son|obtains?|finds?|(?:holds|true|satisfied|works?|valid) (?:for"
    r"|when)|lies|option|choice|answer)|[:：=→为是得]|等于)\s*(?:a |an |the |about |approximately )?$"
)
_apart = re.compile(
    r"(?i)(?:\bof (?:the|these|those|his|her|their)|\b(?:multiples?|\w+est|factors?|powers?|third|quarter|half"
    r"|divisors?|digits|out|root|square|(?<!an )(?<!a )(?:sum|product|average|mean)|each|any|both|one|some|most|all"
    r"|none) of(?: the)?|\b(?:and|n?or|before|after|until|over|under|above|below|from|(?<!left )(?<!up )with|without"
    r"|past|adding|subtracting|using|remove|drop|pages?|figure|table|chapter|section|step|problem|question|exercise"
    r"|line|case|theorem)|(?<!ed)(?<!rose)(?<!risen)(?<!fell)(?<!fallen)(?<!grew)(?<!grown)(?<!shrank)(?<!up)"
    r"(?<!down)\sby)\s*$"
)
"""What stands before a value that is no answer: a bound, a part, the second of two."""
_mathy = re.compile(
    r"\S*[\ue000\ue001\d∅∞ℝℤℕℚπ²³₀-₉⁰-⁹½⅓¼¾∠√{}\[\]|=<>≤≥≠≈≡±×÷+/^∪∩∈−…°→↔∧∨¬\\]\S*|[-–*·:,]|\(?[b-zB-HJ-Z]['’]?[,;)]?"
    r"|(?:USD|EUR|GBP|US\$|[$€£])|\(?[A-Za-z]{1,4}\([^\s()]*\)\)?|percent|infinity|[A-Za-z]{1,3}_\w+[,;]?|sin|cos|tan"
    r"|ln|log|sqrt|\(?mod|[a-zA-Z]['’]|\([A-J]\)|p\.?m\.?|a\.?m\.?|noon|midnight"
)
_joint = re.compile(
    r"(?i)(?:and|or|to|past|o'clock|hours?|minutes?|min|seconds?|h|quarter|until|,|&|plus|over|choose|C)[,]?"
)
_SIGNS = ("∪", "∩", "=", "<", ">", "≤", "≥", "≈", "≠", "≡", "∈")
_token = re.compile(
    r"(?:\((?:[^()A-Za-z]|[A-Za-z]{1,2}(?![A-Za-z])|sin|cos|tan|log|sqrt|exp)*\)|\S)+"  # brackets are part of a word
)
_run = re.compile(r"(?:xs)?m(?:j{0,2}[ms])*")
"""Words of mathematics with joints between them, and the name before a sign: m, j, x, s as in ``_letter``."""
Run = tuple[str, str, str]
"""What stands before a run of mathematics, the run, and what stands behind it."""
_small_talk = re.compile(
    r"(?i)(?:i hope|hope th|let me know|feel free|if you|please|(?:happy|glad) to|good luck|great question|does th"
    r"|is there any|would you|thank|q\.?e\.?d|this completes|(?:we are |and we're )?done|cheers|any questions"
    r"|(?:just )?ask\b|that['’]s (?:it|all)|there you|(?:great|nice|perfect|awesome|excellent|easy|simple|cool)\W*\Z)"
)
_remark = re.compile(
    r"(?is)(?:\([^()]*(?:\([^()]*\)[^()]*)*\)?|[*_]{0,2}(?:note|remark|check|checking|verification|(?:sanity"
    r"|proof) check|comment|side note|fun fact)\b.*|(?:to|we can|let's|let us|as a) (?:check|verify|double-check)\b.*"
    r"|this (?:matches|agrees|confirms|checks)\b.*|(?:(?:by |we )?(?:substitut|plug|check|verif|test|confirm|insert"
    r"|put)\w*|indeed)\b(?!.*\b(?:wait|actually|but|not|oops|hmm|instead|fails?|wrong)\b).*(?:\b(?:match\w*|agrees?"
    r"|checks? out|confirm\w*|verif\w*|satisf\w*|holds?|works|as (?:expected|required|desired)|(?:is|are) (?:correct"
    r"|consistent|true|right))\b|[\u2713\u2714]).*|[^\w\ue000-\uf8ff]*)[.!]?"
)
_revises = re.compile(
    r"(?i)(?:^|[\s,;:])(?:so|therefore|thus|hence|consequently|in conclusion|finally|altogether|in total|in the end"
    r"|overall|wait|actually|however|oops|hmm|correction|but (?:then|this|that))\b"
)
_doubts = re.compile(r"(?i)\b(?:wait|actually|however|oops|hmm|correction|but|yes|no|true|false)\b")
"""What takes back a first word that is a truth value, or says another."""
_lead = re.compile(
    r"(?i)(?:(?:out )?of|among(?:st)?|from) (?:all )?(?:the|these|those) [^,]{1,60}, |(?:together|combined|finally|now"
    r"|clearly|indeed|overall|in total|altogether|in (?:the end|all|summary|conclusion)|as a result|ultimately"
    r"|to sum(?:marize| up)|(?:yes|no), (?:really|seriously|honestly|truly)),\s+|(?:as|since|because|by|for|with|from"
    r"|using|when|while|after|before|on|in|at|if|[a-z]+ing)\b[^,]{0,200},\s+"
)
"""What stands before a main clause: from among which, in all, since when."""
_setting = re.compile(
    r"(?i)\s+(?:over|in|for|during|within|across|among|between|out of|of|after|by|on) (?:all )?(?:the|these|those|all"
    r"|both|his|her|their|its|our|my|your) (?:\d+|two|three|four|five|six|seven|eight|nine|ten"
    r"|twelve)[- ][a-z-]+(?: [a-z]+){0,2}(?=$|,)| times as [a-z]+(?: as .*)?$"
    r"|(?<=[\ue010-\uf8ff\d)])(?P<unit>\s[A-Za-z]+)?\s*≈\s*[\d.,]+(?=(?:\s[A-Za-z]+)?$)"
)
"""What has a number of its own and is no answer: over the 2 days, three times as long, about 0.33."""
_FOLLOWS = (
    r"(?:(?:and )?so|thus|hence|therefore|which (?:[a-z]+ ){0,3}?(?:means|gives|leaves|makes|becomes|explains"
    r"|rounds to)|meaning|implying|leaving|making|giving|to (?:get|obtain))(?: that)?"
)
_consequence = re.compile(rf",\s+{_FOLLOWS}\s+([a-z][\w'’ -]*)\Z")
_other_end = re.compile(
    rf"(?i)(?:^|[\s,;:?])(?:{_FOLLOWS}|no(?=[,:])|reaching|(?:really|actually|in fact)(?=,? \d)"
    r"|(?:(?:increas|ris|fall|grow|dropp|go)ing|(?:bring|tak|rais|lower)(?:e?s|ing)?\b[^.;,]{0,40}) to|(?:with(?:out)?"
    r"|after|before|including|counting|otherwise|then|though|but|yet|although)\b[^.;,]{0,80}?\b(?:it|this|that|there)"
    r"(?: would| will| should)? (?:is|are|was|be|becomes?|makes?))\b[,:]?\s+"
)
_plain_number = re.compile(r"\W*(\d[\d,./]*)(?:\s?%|\s+[a-z]{2,}.*)?\W*")
_word = re.compile(r"[\w\ue000-\uf8ff]")
_whole_set = re.compile(
    r"(?i)(?:all|every|any|the set of all) (?:non-?zero )?(?:real|integer|complex|natural|positive)[^,.]{0,30} except "
    r"|\(?[A-J]\)?$|(?=(?:.*\b(?:if|for|when|otherwise|else)\b){2})(?:.*\ue000.{0,4}(?:if|for|when) \ue000|\S+,? (?:if"
    r"|for|when) [a-z] ?[<>≤≥=] ?\S+(?:,? and|[,;]) \S+,? (?:if|for|when) [a-z] ?[<>≤≥=])"
)
"""A statement that is its value: all numbers but some, a letter, cases."""
_difference = re.compile(
    r"^(?P<value>[^\d\ue000-\uf8ff]*\d[\d,.]*) (?:more|fewer|less)"
    r"(?P<unit> (?!(?:to|than|or|of|and)\b)[a-z]+(?: [a-z]+)*?)(?: than [^\d,;\ue000-\uf8ff]+)?$"
)
"""The only number of a clause, by which one of two is more: ``John has 12 more apples than Mary``."""
_part = re.compile(r"[\d\ue010-\uf8ff] (?:out )?of (?:the|these|those) [\d\ue000]")
_second = re.compile(r"(?i)\S\s+(?:and|or|then|versus|vs)\b\s*(?:[A-Za-z]+\s+){0,3}$")
_counted = re.compile(rf"(?i)[\d\ue000]|\b(?!one\b){NUMERALS}\b")
_other_value = re.compile(
    r"(?is)(?!(?:\w+ ){1,4}(?:(?:ha(?:s|ve|d)|needs?) to|must|should|can|will)(?! (?:be|have)\b) [a-z]+|there is no\b)"
    rf".*?(?:[\d\ue000]|\b(?!one\b){NUMERALS}\b)"
)
"""What follows from a value and has one of its own, but is not what somebody does: ``he has to buy six packs``."""
_one_of_many = re.compile(r"\ban? $")
_of_several = re.compile(
    r"(?i)(?:^|[,;:]\s*|\b(?:so|thus|hence|therefore|then|and|that|also)\s+)(?:one|another)(?: (?:possible|such|valid"
    r"|real|positive|negative)){0,2}(?: (?:root|solution|value|answer|zero|possibility|number|choice|candidate"
    r"|factor))?(?: of (?!which)[^.,;:]{1,40}?)?,? (?:(?:is|was|equals|(?:must|would|could|can|may|might) be)\b|=)"
    r"|\b(?:is|was) another\b|\b(?:any(?:thing)?|all|either)(?: \w+)? (?:of|from) \(?(?-i:[A-J])\b"
    rf"|(?<=[\d\ue010-\uf8ff])\s\(\s*(?:{ALTERS}|[-+−×]\s*\d+\))"
)
"""What says that there are more values beside the one that it gives, or that a bracket makes another one of it."""
_elsewhere = re.compile(r"\b(?:out|away|off|short|long|apart|removed|left over|each other)\b")
_behind = re.compile(
    r"(?is)\s+(?!in the (?:morning|afternoon|evening)|at (?:night|noon|midnight))(?:is|are|was|were|have|has|had|will"
    r"|would|can|must|remain|remains|on|at|from|by|to|in|as|for|of|over|after|before|during|between|among|so|per|with"
    r"|each|every|left|altogether|total|needed|remaining|when|while|if|that|who|which|because|since|full)\b.*$"
)
_measured = re.compile(
    r"(?i)[%°$€£]|\b(?:[ap]\.?m\b|radians?|percent|noon|midnight|night|morning|evening|hundred|thousand|million"
    r"|billion|dozen)"
)
_listed = re.compile(r"(?i)[\s,;]*(?:(?:and|or|oder|et|y|,|;)\s*)?[\s,;]*")


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
    shown, first = masked.shown(statements[0]).strip().rstrip(".!:").strip(), statements[0].strip(" .!")
    if len(statements) > 1 and (match := _truth.match(shown)) and not any(map(_doubts.search, statements[1:])):
        return match[1]
    if len(statements) < 2 or any(map(_revises.search, statements[1:])):
        return None
    is_value = first[:1] == BOLD or re.match(rf"(?:{NUMERAL.pattern}|\d+)(?!\S)", first, re.IGNORECASE)
    is_label = first.endswith(":") or re.match(r"(?i)step|case|part|\w+:", shown)
    return shown if len(first.split()) <= 3 and is_value and not is_label else None


def stated(statement: str, masked: Text) -> list[str]:
    """Return what one sentence states: its value as it is written, with its unit, and alone; nothing where it states
    nothing or several things."""
    statement = statement.strip().rstrip(".!。 \u220e\u25a0\u2713\u2714\u2705").strip()
    if _says_nothing(statement):
        return []
    if letter := choice_of(statement):
        return [letter]
    if _whole_set.match(statement):
        return [masked.shown(statement)]
    if re.fullmatch("[\ue000-\uf8ff]{2}[^\\w\ue000-\uf8ff]*", statement):
        return _set_off(statement, masked)
    before, _, behind = statement.rpartition("; ")
    if before and all(before.count(pair[0]) == before.count(pair[1]) for pair in ("()", "[]", "{}")):
        first, second = stated(before, masked), stated(behind, masked)
        return second if not first or first[:1] == second[:1] else [] if second else first
    if BOLD in statement:
        return _emphasised(statement, masked)
    main = _main_clause(statement)
    if truth := _truth_of(main):
        return [truth, *_of_verb(main, masked)]
    phrase = said_of_subject(main)
    return _of_verb(main, masked) or ([phrase] if phrase else [])


def _says_nothing(statement: str) -> bool:
    """Whether a sentence is too long to be one statement, asks, is taken back, tells another's opinion or gives one of
    several values."""
    reported = REPORTED.search(statement)
    of_another = reported is not None and not _value.search(statement[: reported.start()])
    is_silent = "?" in statement or bool(REFUTED.search(statement) or _of_several.search(statement))
    return len(statement.split()) > MOST_WORDS or is_silent or of_another


def _main_clause(statement: str) -> str:
    """Return the last clause of a sentence that its connectors part, without its lead, nor a last one that concludes
    nothing: "she sold 72, so the farmer earns that much"."""
    if (tail := _consequence.search(statement)) and not (HEDGE.search(tail[1]) or _other_value.match(tail[1])):
        statement = (
            statement
            if _truth_of(tail[1]) or not _counted.search(statement, 0, tail.start())
            else statement[: tail.start()]
        )
    ends = [match.end() for match in _connector.finditer(statement) if _word.search(statement, match.end())]
    main = statement[max(ends, default=0) :]
    lead = _lead.match(main)
    states = lead and re.match(r"\w+ing\b", lead[0]) and any(_follows_verb(run[0]) for run in _value_runs(lead[0]))
    return main[lead.end() :] if lead and not states else main


def other_end(value: str, behind: str) -> str:
    """Return the end of a sentence that says the number ``value`` and ``behind`` it another one that follows from it
    (``80`` of "72, with 8 more to come, hence 80"); empty where it does not."""
    number = _plain_number.fullmatch(value)
    *_, last = None, *_other_end.finditer(behind)
    tail = behind[last.end() :] if last and number else ""
    is_same = number and number[1].rstrip(",./") in re.findall(r"\d[\d,./]*\b", tail)
    return tail if _other_value.match(tail) and not is_same else ""


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
    first, last = statement.index(BOLD), statement.rindex(BOLD) + 2
    before, inner, after = _connector.split(statement[:first])[-1], statement[first:last], statement[last:]
    cut = CLAUSE.search(after)
    after = after[: cut.start()] if cut else after
    rejected = HEDGE.search(before) or _apart.search(before) or HEDGE.search(after) or _value.search(after)
    if rejected or not all(map(_listed.fullmatch, re.split(f"{BOLD}.", inner))):
        return []
    return [masked.shown(inner)] if len(inner) > 2 else _set_off(inner, masked)


def _of_verb(main: str, masked: Text) -> list[str]:
    """The value behind the verb, where no other stands there; the only one where none does."""
    main = _difference.sub(r"\g<value>\g<unit>", main)
    cut = CLAUSE.search(main, 1)
    main = main[: cut.start()] if cut and _value_runs(main[: cut.start()]) else main
    runs = _value_runs(clause := _setting.sub(lambda match: match["unit"] or " ", main))
    able = [run for run in runs if not _apart.search(run[0])]
    of_verb = [run for run in able if _follows_verb(run[0])]
    if able and able[-1] is runs[-1] and (of_verb[-1:] == able[-1:] or not _counted.search(able[-1][0])):
        of_verb = able[-1:]
    if HEDGE.search(clause) or _part.search(main) or len(of_verb) != 1 or any(_second.search(run[0]) for run in runs):
        return []
    before, value, behind = of_verb[0]
    if (value.isdigit() and behind.strip() and _one_of_many.search(before)) or _elsewhere.search(behind):
        return []
    behind = "" if value.endswith(",") else re.split(r"[,;:]|\s[—–-]\s", behind)[0]
    unit = _behind.sub("", behind)
    is_bare = not _measured.search(unit) and not any(map(measure, re.findall(r"[A-Za-z°]+", unit)))
    forms = [f"{value}{unit}", f"{value}{behind}", *([value] if is_bare else [])]
    return [masked.shown(form).strip(" ,;") for form in dict.fromkeys(forms)]


def _truth_of(clause: str) -> str | None:
    """Return the truth value that a clause is, or says of its subject last."""
    if match := _truth.match(clause):
        return None if re.search(r"(?i)\bwait\b", clause) else match[1]
    *_, last = None, *_true.finditer(clause)
    says = last and (last["subject"] or not _value.search(clause)) and not HEDGE.search(clause[: last.end()])
    return last["truth"] if last and says else None


def said_of_subject(main: str) -> str | None:
    """Return the words that a sentence without a value says of its subject: ``Paris`` of "The capital is Paris"."""
    cut = CLAUSE.search(main, 1)
    main = (main[: cut.start()] if cut else main).strip()
    if HEDGE.search(main):
        return None
    if match := _none.search(main):
        return f"no {match[1] or 'solution'}"
    match = _said_of.search(main)
    phrase = match[1] if match else ""
    return None if not phrase or _value.search(phrase) or len(phrase.split()) > MOST_SAID else phrase


def _follows_verb(before: str) -> bool:
    """Whether what stands before a value ends in the verb that states it."""
    return bool(_verb.search(before.rstrip() + " ") or _verb.search(before.rstrip()))


def _value_runs(clause: str) -> list[Run]:
    """Return each run of mathematics in a clause, the first one first."""
    tokens = list(_token.finditer(clause))
    runs = _run.finditer("".join(_letter(token[0]) for token in tokens))
    places = [(tokens[run.start()].start(), tokens[run.end() - 1].end()) for run in runs]
    return [(clause[:start], clause[start:end], clause[end:]) for start, end in places]


def _letter(token: str) -> str:
    """What a word is: a sign, mathematics, a joint, another that a sign may follow, or anything else."""
    if token in _SIGNS:
        return "s"
    if NUMERAL.fullmatch(token) or _mathy.fullmatch(re.sub(r"\s", "", token)):
        return "m"
    return "j" if _joint.fullmatch(token) else "-" if token.endswith((",", ":", ".")) else "x"
