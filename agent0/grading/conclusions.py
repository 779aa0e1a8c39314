"""What the last statement of a reply says, where the reply marks no answer: "So the probability is $\\frac{7}{12}$."

Only a statement counts that says one thing: what hedges, rejects, compares or lists apart from one another says none.
"""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import itertools
import re

from agent0.grading.replies.claims import CLAUSE, HEDGE, REFUTED, TRUTH, claim, said_of_subject, verdict
from agent0.grading.replies.set_off import BOLD, FORMULA, Text, sentences, set_off

LONGEST, MOST_WORDS = 4_000, 60
"""Characters from the end that are looked at, words of a statement."""
_heading = re.compile(
    r"(?:final |short |full |detailed )?(?:solution|results?|answers?|explanation|conclusion|summary|reasoning"
    r"|analysis|given"
    r"|proof|approach|calculations?|derivation|details|work|steps|verification|check|method|setup|problem|overview)",
    re.IGNORECASE,
)
_small_talk = re.compile(
    r"(?:i hope|hope (?:this|that)|let me know|feel free|if you (?:have|need|want|would)|please (?:let|note"
    r"|feel)|happy to"
    r"|good luck|great question|does (?:this|that)|is there anything|would you like|thanks|thank you|q\.?e\.?d"
    r"|this completes"
    r"|(?:we are |and we're )?done|cheers|any questions|(?:just )?ask\b|glad to)",
    re.IGNORECASE,
)
_remark = re.compile(
    r"(?:\([^()]*(?:\([^()]*\)[^()]*)*\)?|[*_]{0,2}(?:note|remark|check|checking|verification|sanity check"
    r"|proof check|comment|side note"
    r"|fun fact)\b.*"
    r"|(?:to (?:check|verify|double-check)|(?:we can|let's|let us) (?:check|verify|double-check)|as a check"
    r"|this (?:matches|agrees|confirms|checks))\b.*"
    r"|(?:(?:by |we )?(?:substitut|plug|check|verif|test|confirm|insert|put)\w*|indeed)\b"
    r"(?!.*\b(?:wait|actually|but|not|oops|hmm|instead|fails?|wrong)\b).*(?:\b(?:match\w*|agrees?|checks? out"
    r"|confirm\w*"
    r"|verif\w*|satisf\w*|holds?|works|as (?:expected|required|desired)|(?:is|are) (?:correct|consistent|true|right))\b"
    r"|[\u2713\u2714]).*"
    r"|[^\w\ue000-\uf8ff]*)[.!]?",
    re.IGNORECASE | re.DOTALL,
)
_concludes = re.compile(
    r"(?:^|[\s,;:])(?:so|therefore|thus|hence|consequently|in conclusion|finally|altogether|in total"
    r"|in the end|overall)\b",
    re.IGNORECASE,
)
_revises = re.compile(r"\b(?:wait|actually|however|oops|hmm|correction|but (?:then|this|that))\b", re.IGNORECASE)
_opinion = re.compile(
    r"I (?:believe|think|am confident)(?: that)?,? (?=(?:it|the (?:\w+ ){0,2}(?:answer|option|choice))(?:['’]s| is)"
    r" (?:option |choice )?\(?[A-J]\b)"
)
_label = re.compile(
    r"(?:(?:step|case|part) \w+|conclusion|result|answer|final answer|solution|total"
    r"|[A-Z][a-z]+(?: [a-z]+){0,3})\s*:\s*(?=\S)",
    re.IGNORECASE,
)
_VERBS = (
    r"(?:is|are|was|were|be|been|being|becomes?|equals?|gives?|yields?|leaves?|contains?|has|have|had|takes?"
    r"|costs?|pays?|paid"
    r"|makes?|gets?|comes to|amounts to|totals?|sums to|remains?|measures?|holds|needs?|earns?|weighs?|reads?"
    r"|spends?|sells?"
    r"|as|to|at|of|namely|exactly|precisely|simply|just|only|there are|ist|sind|beträgt|ergibt|est|vaut|sont|es"
    r"|son|为|是|得|等于|there is|obtains?|finds?|find|get|obtain|(?:holds|true|satisfied|works?|valid) (?:for"
    r"|when)|lies|option|choice|answer)"
)
_verb = re.compile(rf"(?:\b{_VERBS}|[:：=→为是得])\s*(?:a |an |the |about |approximately )?$", re.IGNORECASE)
_connector = re.compile(
    r"(?:^|[\s,;:.])(?:and\s+)?(?:so(?: that)?|therefore|thus|hence|consequently|whence|conclude(?:s)?(?: that)?"
    r"|it follows that|follows that|we (?:now |can |then |therefore )?(?:find|get|obtain|see|deduce"
    r"|have)(?: that)?|that leaves"
    r"|which (?:leaves|gives|yields)|leaving(?: only| us with)?|giving|yielding|obtaining|meaning(?: that)?"
    r"|implying(?: that)?|that is"
    r"|leaves(?: only| us)*(?: with)?(?: only)?(?= (?:option |choice |answer )?\(?[A-J]\)?$)"
    r"|(?:which )?(?:simplifies|reduces|evaluates|works out|rounds)(?: down| up)? to"
    r"|implies(?: that)?|if and only if|iff|but (?:it|this|that|the \w+)(?:['’]s| is| are| was)(?= (?:actually"
    r"|really|in fact)\b)"
    r"|(?:it|this) (?:seems|appears)(?: that)?|my (?:best )?guess is|i(?: would|['’]d) say(?: that)?)\b,?:?\s*"
    r"|\s*(?:→|⇒|⟹|=>|-->|∴)\s*|(?<=\w):\s+(?=[A-Za-z]\w{0,2} [=<>≤≥] )",
    re.IGNORECASE,
)
_apart = re.compile(
    r"(?:\b(?:multiple|\w+est|factor|power|third|quarter|half|divisor|out|(?<!an )(?<!a )sum"
    r"|(?<!an )(?<!a )product|root|square|(?<!an )(?<!a )average|(?<!an )(?<!a )mean|each"
    r"|any|both|one|some"
    r"|most|all|none) of(?: the)?|\b(?:and|or|nor|before|after|until|over|under|above|below|from|(?<!left )with"
    r"|without|past|adding"
    r"|subtracting|using|remove|drop|pages?|figure|table|chapter|section|step|problem|question|exercise|line"
    r"|case|theorem)|(?<!dropped)(?<!increased)(?<!decreased)(?<!reduced)(?<!rose)(?<!risen)(?<!fell)(?<!fallen)"
    r"(?<!grew)(?<!grown)(?<!changed)(?<!shrank)(?<!satisfied)"
    r"(?<!gone up)(?<!went up)(?<!gone down)(?<!went down)\sby)\s*$",
    re.IGNORECASE,
)
"""What stands before a value that is no answer: a bound, a part, the second of two."""
_behind = re.compile(
    r"(?!.*\b(?:out|away|off|short|long|apart|each other|removed|large|small|big)\b)"
    r"(?:\s*(?!(?:is|are|was|were|has|have|had|will|must|can|do|does)\b)[^\s,;:.]+){0,7}?(?:\s+(?:is|are|was"
    r"|were|have|has|will be|must be)(?:\s+(?:needed|required|left|full|possible|there|in"
    r"|of|correct|right|best|the (?:answer|solution|result|(?:right|correct|best) \w+)|used|sold|made"
    r"|remaining|empty|red|blue"
    r"|girls|boys|students)\b.*)?)?|\s*of (?:the|all|these|those|his|her|its|their)\b[^,;:]{1,80}"
    r"|(?:\s+[a-z]+){0,3} (?:is|are|was|were|have been|has been|will be|must be|can be)"
    r"(?: (?!(?:a|an|the|not)\b)[a-z]+){1,4}",
    re.IGNORECASE,
)
_subordinate = re.compile(
    r"(?:as|since|because|by|for|with|from|using|when|while|after|before|on|in|at|if|[a-z]+ing)\b[^,]{0,200},\s+",
    re.IGNORECASE,
)
_NUMERALS = (
    r"(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million"
    r"|billion|dozen|half"
    r"|halves|thirds?|quarters?|fourths?|fifths|sixths|sevenths|eighths|ninths|tenths|minus|negative)"
)
_numeral = re.compile(rf"{_NUMERALS}(?:-{_NUMERALS})*[.,]?", re.IGNORECASE)
_CURRENCY = r"(?:USD|EUR|GBP|US\$|[$€£])"
_mathy = re.compile(
    rf"\S*[\ue000\ue001\d∅∞ℝℤℕℚπ²³₀-₉⁰-⁹½⅓¼¾∠√{{}}\[\]|=<>≤≥≠≈≡±×÷+/^∪∩∈−…°→↔∧∨¬\\]\S*|[-–*·:,]"
    rf"|\(?[b-zB-HJ-Z]['’]?[,;)]?|{_CURRENCY}"
    r"|\(?[A-Za-z]{1,4}\([^\s()]*\)\)?|percent|infinity|log_\w+|sin|cos|tan|ln|log|sqrt|\(?mod|[a-zA-Z]['’]"
    r"|\([A-J]\)|p\.?m\.?"
    r"|a\.?m\.?|noon|midnight",
)
_joint = re.compile(
    r"(?:and|or|to|past|o'clock|hours?|minutes?|min|seconds?|h|quarter|until|,|&|plus|over|choose"
    r"|C)[,]?",
    re.IGNORECASE,
)
_wanting = re.compile(r"(?:and|or|to|,|&|plus|past|[:*·,–-]|over|choose)$", re.IGNORECASE)
_among = re.compile(
    r"(?:(?:[Oo]ut )?[Oo]f|[Aa]mong|amongst|from) (?:all )?(?:the|these|those) [^,]{1,60}, ", re.IGNORECASE
)
_intro = re.compile(
    r"(?:together|combined|overall|in total|altogether|finally|now|clearly|indeed|in the end|in all|as a result"
    r"|in summary"
    r"|ultimately|in conclusion|to summarize|to sum up),\s+",
    re.IGNORECASE,
)
_afternoon = re.compile(r"\s*(?:in the (?:morning|afternoon|evening)|at night)\b", re.IGNORECASE)
_relation = re.compile(r"[=<>≤≥≠≈≡∈]|\\(?:le|ge|leq|geq|ne|neq|lt|gt|in|equiv|approx)(?![A-Za-z])")
_all_but = re.compile(
    r"(?:all|every|any|the set of all) (?:non-?zero )?(?:real|integer|complex|natural|positive)[^,.]{0,30} except ",
    re.I,
)
_one_of_many = re.compile(r"\b(?:a|an) $")
_reason = re.compile(r"(?:since|because|as)\b[^,]{0,200},\s+", re.IGNORECASE)
_ordinal = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_group = re.compile(r"\(([^()]*)\)")
_functions = re.compile(r"sin|cos|tan|log|sqrt|exp")
_word = re.compile(r"[A-Za-z]{3,}")
_bold = re.compile(f"{BOLD}(.)")
_valued = re.compile(rf"[\d\ue000\W](?<![\s,'’-])|^{_NUMERALS}\b|^[A-Z]$|^(?:yes|no|true|false)$", re.IGNORECASE)
_nearly = re.compile(r"(?<=[\ue010-\uf8ff\d)])((?:\s[A-Za-z]+)?)\s*≈\s*[\d.,]+(?:\s[A-Za-z]+)?$")
_as_large = re.compile(r" times as (?:large|big|tall|long|many|much|heavy|fast|old|great|likely|wide|high)(?: as .*)?$")
_times = re.compile(r"(?<=\w) times$", re.IGNORECASE)
_equation = re.compile(r"\s*([A-Za-z](?:_\{?\w\}?)?)\s*=\s*([^=<>]+)")

_by_cases = re.compile(
    "\ue000[^\ue000]{0,3}(?:if|for|when) \ue000"
    r"|\S+,? (?:if|for|when) [a-z] ?[<>≤≥=] ?\S+(?:,? and|[,;]) \S+,? (?:if|for|when) [a-z] ?[<>≤≥=]"
)
_ended = re.compile(
    r"\s+(?:is|are|was|were|have|has|had|remain|remains|needed|each|left|in total|altogether|of|for"
    r"|per cent of|full|will|on|at|from|by|to|in|as)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_SIGNS = ("∪", "∩", "=", "<", ">", "≤", "≥", "≈", "≠", "≡", "∈")
_listed = re.compile(r"[\s,;]*(?:(?:and|or|oder|et|y|,|;)\s*)?[\s,;]*", re.IGNORECASE)


def concluded(reply: str) -> str | None:
    """Return what the last statement of ``reply`` says, or its first one where that is a value alone ("Seven. The
    primes are …") and nothing is concluded below; None where neither says one thing. Linear time."""
    held = set_off(reply[-LONGEST:])
    said = [one for one in sentences(held.text) if not _small_talk.match(one.lstrip("*_ "))]
    while len(said) > 1 and _remark.fullmatch(said[-1].strip()):
        said.pop()
    if not said:
        return None
    first = _headline(said, held)
    return first or _statement(said[-1], held)


def _headline(statements: list[str], held: Text) -> str | None:
    """The first sentence where it is a value alone and nothing below concludes or revises."""
    if len(statements) < 2 or any(_concludes.search(said) or _revises.search(said) for said in statements[1:]):
        return None
    said = held.shown(statements[0]).strip().rstrip(".!:").strip()
    first = statements[0].strip(" .!")
    if (found := TRUTH.match(said)) and (len(said) == len(found[0]) or said[len(found[0])] in ",."):
        return found[1]
    words = first.split()
    alone = (
        len(words) <= 3 and bool(words) and (_numeral.fullmatch(words[0]) or first[:1] == BOLD or words[0].isdigit())
    )
    alone = alone and not _heading.fullmatch(said)
    return said if alone and not first.endswith(":") and not re.match(r"(?i)step|case|part|\w+:", said) else None


def _statement(said: str, held: Text) -> str | None:
    """What one sentence states."""
    said = _opinion.sub("", said.strip().rstrip(".!。 \u220e\u25a0\u2713\u2714\u2705").strip(), count=1)
    if len(said.split()) > MOST_WORDS or "?" in said or REFUTED.search(said):
        return None
    if _by_cases.search(said) or _all_but.match(said):
        return held.shown(said)
    if re.fullmatch("[\ue000-\uf8ff]+[^\\w]*", said) and said.count(BOLD) + said.count(FORMULA) == 1:
        return _whole(said, held)
    said = _unbolded(said, held)
    if (bold := _emphasised(said, held)) is not None:
        return bold or None
    if (found := verdict(said)) is not None:
        return found
    said = _label.sub("", said, count=1) if _label.match(said) else said
    main = _joined(said[_last_end(_connector, said) :])
    among = _among.match(main) or _intro.match(main)
    return _main_clause(main[among.end() :] if among else main, held)


def _unbolded(said: str, held: Text) -> str:
    """``said`` with bold words as words where none of them says a value and something beside them does."""
    bold = [held.pieces[ord(found[1]) - 0xE010] for found in _bold.finditer(said)]
    if (
        not bold
        or _verb.search(_bold.split(said)[0])
        or not re.search(f"[\\d{FORMULA}]", _bold.sub("", said))
        or any(map(_valued.search, bold))
    ):
        return said
    return _bold.sub(lambda found: held.pieces[ord(found[1]) - 0xE010], said)


def _main_clause(main: str, held: Text) -> str | None:
    """What the main clause of a sentence states."""
    if (claimed := claim(main)) is not None:
        return claimed
    return _system(main, held) or _value(main, held) or _value(_cut(main), held) or said_of_subject(main)


def _cut(main: str) -> str:
    """``main`` up to a comma behind which no value stands."""
    before, _, after = main.partition(", ")
    return "" if not after or HEDGE.search(main) or re.search("[\\d\ue000\ue001]", after) else before


def _joined(text: str) -> str:
    """``text`` with each bracket without words as one word."""
    return _group.sub(
        lambda found: found[0] if _word.search(_functions.sub("", found[1])) else found[0].replace(" ", "\u2060"), text
    )


def _system(main: str, held: Text) -> str | None:
    """Values of several names, each in a formula of its own: ``b = -3`` and ``a = 1``."""
    places = [ord(letter) - 0xE010 for letter in main if ord(letter) >= 0xE010 and ord(letter) <= 0xF8FF]
    found = [_equation.fullmatch(held.pieces[place]) for place in places if place < len(held.pieces)]
    names = {one[1] for one in found if one}
    if len(found) < 2 or len(names) < len(found) or _subordinate.match(main) or HEDGE.search(main):
        return None
    bare = {name[0] for name in names} if all("_" in name for name in names) else names
    return ", ".join((one[2] if len(bare) == 1 else one[0]).strip() for one in found if one)


def _last_end(pattern: re.Pattern[str], text: str) -> int:
    """Where the last match that something follows ends, 0 where there is none."""
    return max((m.end() for m in pattern.finditer(text) if re.search(r"[\w\ue000-\uf8ff]", text[m.end() :])), default=0)


def _whole(said: str, held: Text) -> str | None:
    """The only piece of a statement: a formula, or a statement in bold."""
    place = ord(said[1]) - 0xE010
    if not held.bold[place]:
        return held.pieces[place]
    inner = held.pieces[place].strip()
    found = _statement(inner, held) if re.search(r"[a-z]{3,} |: ", inner) else None
    return found or (None if HEDGE.search(inner) else held.shown(inner).rstrip(" .!"))


def _emphasised(said: str, held: Text) -> str | None:
    """What stands in bold, or in several bold pieces that only commas and joints part; empty where that is rejected or
    stands apart, None where nothing does."""
    places = [n for n, letter in enumerate(said) if letter == BOLD]
    if not places:
        return None
    before, last = said[: places[0]], places[-1] + 2
    between = [said[one + 2 : other] for one, other in itertools.pairwise(places)]
    if not all(_listed.fullmatch(gap) for gap in between):
        return ""
    main = before[_last_end(_connector, before + "x") :] if _connector.search(before) else before
    after = said[last:]
    cut = CLAUSE.search(after)
    tail = after[: cut.start()] if cut else after
    if HEDGE.search(main) or _apart.search(main) or HEDGE.search(tail) or len(re.findall("[\\d\ue000]", tail)) > 0:
        return ""
    inner = said[places[0] : last]
    if len(places) > 1:
        return held.shown(inner)
    return _whole(inner, held) or ""


def _value(main: str, held: Text) -> str | None:
    """The value that the main clause of a statement ends in or is about."""
    reason = _reason.match(main)
    main = main[reason.end() :] if reason else main
    cut = CLAUSE.search(main, 1)
    main = _as_large.sub("", _nearly.sub(r"\1", main[: cut.start()] if cut else main))
    main = _subordinate.sub("", main, count=1) if _subordinate.match(main) else main
    if HEDGE.search(main):
        return None
    words = [(m[0], m.start(), m.end()) for m in re.finditer(r"\S+", main)]
    run = _run(words)
    if run is None:
        return None
    start, end = run
    before, value, after = main[: words[start][1]], main[words[start][1] : words[end - 1][2]], main[words[end - 1][2] :]
    if noted := _afternoon.match(after):
        return held.shown(value + noted[0])
    if len(after.split()) > 8 or not _stands_alone(before, value, after):
        return None
    return _times.sub("", held.shown(f"{value}{_ended.sub('', after)}".strip(" ,;")).replace("\u2060", " ")) or None


def _stands_alone(before: str, value: str, after: str) -> bool:
    """Whether ``value`` is what the clause says: a verb or nothing of its kind stands before it."""
    if value.isdigit() and after.strip() and _one_of_many.search(before):
        return False
    if re.search(r"[\d\ue000]", after) or _apart.search(before) or not _behind.fullmatch(after):
        return False
    if _verb.search(before.rstrip() + " ") or _verb.search(before.rstrip()):
        return True
    apart = not re.search(r"[\d\ue000]", before)
    return apart or (not after.strip() and bool(_relation.search(value)))


def _run(words: list[tuple[str, int, int]]) -> tuple[int, int] | None:
    """The last run of words that are mathematics, with joints inside of it: (first, one behind the last)."""
    marks = [
        not _ordinal.fullmatch(word) and bool(_mathy.fullmatch(word) or _numeral.fullmatch(word)) for word, *_ in words
    ]
    if not any(marks):
        return None
    end = len(marks) - marks[::-1].index(True)
    start = end - 1
    while start and (step := next((n for n in (1, 2, 3) if _joins(words, marks, start, n)), 0)):
        start -= step
    while start < end - 1 and _wanting.fullmatch(words[start][0]):
        start += 1
    while 0 < start < end - 1 and words[start][0] in _SIGNS and not words[start - 1][0].endswith((",", ":", ".")):
        start -= 1
    while start < end - 1 and words[start][0] in _SIGNS:
        start += 1
    return start, end


def _joins(words: list[tuple[str, int, int]], marks: list[bool], start: int, size: int) -> bool:
    """Whether the word ``size`` before ``start`` is mathematics, and those between are joints."""
    between = words[max(0, start - size + 1) : start]
    return start >= size and marks[start - size] and all(_joint.fullmatch(word) for word, *_ in between)
