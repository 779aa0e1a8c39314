"""What a clause says: the value that its verb states, a truth value, a word for its subject; and what makes of a value
no answer: doubt, a bound, a part, the second of two, another's opinion."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

CLAUSE = re.compile(
    r",?\s+(?:which|because|since|where|whereas|while|whose|whom|rather than|instead of|(?:down|up) from|with(?<!left "
    r"with)(?<!up with)|for (?:all|some|any|every)|of (?:the|a) (?=\d+ ?%)|when (?:he|she|they|the)|when (?:it is "
    r"|we )?(?:divided|divide|rounded|round|simplified|expressed|written|reduced))\b|,?\s+i\.e\.|,\s+(?:who|attained"
    r"|achieved|reached|occurring|taken|realized|as|of whom|of which|given|provided|assuming|obtained|found|confirming"
    r"|making|using|based|namely|after|in other words|or (?:about|roughly|approximately|around)|as required|as desired"
    r"|as claimed|not|and not|meaning|since|up to|it|this|they|he|she|we)\b|;\s(?![^()\[\]{}]*[)\]}])|\s[-–—]+\s+"
    r"(?=[A-Za-z]{2})|\s+\((?!mod\b|base\b|[^()]{0,3}\)|[^()]*(?:sqrt|sin|cos|tan|log|pi|exp)\b)(?=[^()\[\]\\]*[A-Za-z"
    r"]{2})",
    re.IGNORECASE,
)
"""Where a clause begins that only explains."""
HEDGE = re.compile(
    r"\?|n['’]t\b|n['’]est\b|不|\b(?:pas|nicht|kein\w*|sondern|non|no (?:es|son|está)|minore|maggiore|moins|plus de|не"
    r"|нет|maybe|perhaps|probably|possibly|likely|might|may|could|not|never|unsure|guess|unclear|cannot|unless|if"
    r"|doubt\w*|den(?:y|ies|ied)|disagree|depend\w*|either|neither|nor|suppose|assume|otherwise|would|wrong|incorrect"
    r"|impossible to|mistake|error|try|wait|e\.g\.|for (?:example|instance)|such as|at (?:least|most)|more|less|fewer"
    r"|greater|larger|smaller|than|exceeds?|between|differs?|reject\w*|eliminate[sd]?|think|believe|seems?|appears?"
    r"|unknown|exclud\w*|discard\w*|rul(?:e|es|ed|ing) out|ruled|remov\w*|except|other than|but|however|although"
    r"|though|compared?|versus|vs|almost|nearly|let|initial(?:ly)?|first(?! (?:\w+ )?(?:terms?|digits?|primes?"
    r"|numbers?|elements?|multiples?|values?|positive))|start(?:s|ed)?|(?<!\\)times(?=[\s,]+\S)|twice|too"
    r"|misconceptions?|misleading|lowers?|raises?|fails?|cancels?|contradict\w*|violat\w*|dubious|invalid|extraneous"
    r"|tempting|candidates?|distractors?|decoy|trap|out of|option [a-j] (?:and|or)|correct to)\b",
    re.IGNORECASE,
)
REFUTED = re.compile(
    r"\bwhich (?:is|are|was|were|would be) (?:\w+ )?(?:incorrect|wrong|not|false|impossible|invalid|mistaken)\b"
    r"|\b(?:that|this|it) (?:is|was) (?:\w+ )?(?:incorrect|wrong|mistaken)\b|\bcommon (?:mistake|error|wrong)\b",
    re.IGNORECASE,
)
"""What makes of a value before it no answer."""
OPINION = (
    r"\b(?!(?:i|we|you|us|this|that|which|it|to|can|must|should|so|and|d|ll|ve|let['’]s|\w+ly)\b)[a-z]+,? (?:(?:would"
    r"|might|may|could|also|even|once|often|first|has|have|had) )?(?:claim(?:s|ed)?|thinks?|thought|believe[sd]?"
    r"|sa(?:ys?|id)|argue[sd]?|insist(?:s|ed)?|guess(?:es|ed)|reckons?|assume[sd]|suspect(?:s|ed)?|wrote|writes)"
    r"(?: that)?"
)
REPORTED = re.compile(rf"{OPINION},?\s+(?=\S)", re.IGNORECASE)
"""What makes of a statement behind it another's opinion."""
TRUTH = re.compile(r"(yes|no|true|false)\b", re.IGNORECASE)
_true = re.compile(
    r"(?P<subject>\b(?:statement|claim|assertion|proposition|conjecture|converse|inequality|identity|it|this|that"
    r"|answer) )?\b(?:is|are|must be) (?:therefore |thus |indeed |clearly )?(?P<truth>true|false)\b\s*(?:[:,;(]"
    r"|[-–—]\s|$|(?:because|since|as)\b)",
    re.IGNORECASE,
)
_none = re.compile(
    r"\b(?:there (?:is|are|exists?)|has|have|having|admits?|with|possesses)\s+no\s+(?:(?:real|such|possible"
    r"|valid)\s+)*(?:solutions?|((?:[a-z]+ )?[a-z]+))$",
    re.IGNORECASE,
)
_said_of = re.compile(
    r"(?:.*\b(?:is|are|was|were|becomes?|equals?|be|called|namely|prints?|returns?|outputs?|displays?|(?:falls?"
    r"|lands?(?: us)?|occurs?|happens?|takes place) on)|.*['’]s|[^:]*:)\s+(?:(?:always|therefore|thus|also|simply"
    r"|exactly)\s+)?(?:(?:a|an|the)\s+)?(\S.*)",
    re.IGNORECASE,
)
_next_one = re.compile(r"\band (?:next|then|second|after)\b")
MOST_SAID = 8
_VERBS = (
    r"(?:is|are|was|were|be|been|being|becomes?|equals?|gives?|yields?|leaves?|contains?|has|have|had|takes?|costs?"
    r"|pays?|paid|up with|left with|makes?|gets?|comes to|amounts to|totals?|sums to|remains?|measures?|holds|needs?"
    r"|earns?|weighs?|reads?|spends?|sells?|as|to|at|of|namely|exactly|precisely|simply|just|only|there are|ist|sind"
    r"|beträgt|ergibt|est|vaut|sont|es|son|为|是|得|等于|there is|obtains?|finds?|find|get|obtain|(?:holds|true"
    r"|satisfied|works?|valid) (?:for|when)|lies|option|choice|answer)"
)
_verb = re.compile(rf"(?:\b{_VERBS}|[:：=→为是得])\s*(?:a |an |the |about |approximately )?$", re.IGNORECASE)
_apart = re.compile(
    r"(?:\bof (?:the|these|those|his|her|their)|\b(?:multiples?|\w+est|factors?|powers?|third|quarter|half|divisors?"
    r"|digits|out|(?<!an )(?<!a )sum|(?<!an )(?<!a )product|root|square|(?<!an )(?<!a )average|(?<!an )(?<!a )mean"
    r"|each|any|both|one|some|most|all|none) of(?: the)?|\b(?:and|or|nor|before|after|until|over|under|above|below"
    r"|from|(?<!left )(?<!up )with|without|past|adding|subtracting|using|remove|drop|pages?|figure|table|chapter"
    r"|section|step|problem|question|exercise|line|case|theorem)|(?<!dropped)(?<!increased)(?<!decreased)(?<!reduced)"
    r"(?<!rose)(?<!risen)(?<!fell)(?<!fallen)(?<!grew)(?<!grown)(?<!changed)(?<!shrank)(?<!satisfied)(?<!gone up)"
    r"(?<!went up)(?<!gone down)(?<!went down)\sby)\s*$",
    re.IGNORECASE,
)
NUMERALS = (
    r"(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million"
    r"|billion|dozen|half|halves|thirds?|quarters?|fourths?|fifths|sixths|sevenths|eighths|ninths|tenths|minus"
    r"|negative)"
)
NUMERAL = re.compile(rf"{NUMERALS}(?:-{NUMERALS})*[.,]?", re.IGNORECASE)
COUNTED = re.compile(rf"\b(?!one\b){NUMERALS}\b", re.IGNORECASE)
_mathy = re.compile(
    r"\S*[\ue000\ue001\d∅∞ℝℤℕℚπ²³₀-₉⁰-⁹½⅓¼¾∠√{}\[\]|=<>≤≥≠≈≡±×÷+/^∪∩∈−…°→↔∧∨¬\\]\S*|[-–*·:,]|\(?[b-zB-HJ-Z]['’]?[,;)]?"
    r"|(?:USD|EUR|GBP|US\$|[$€£])|\(?[A-Za-z]{1,4}\([^\s()]*\)\)?|percent|infinity|[A-Za-z]{1,3}_\w+[,;]?|sin|cos|tan"
    r"|ln|log|sqrt|\(?mod|[a-zA-Z]['’]|\([A-J]\)|p\.?m\.?|a\.?m\.?|noon|midnight"
)
_joint = re.compile(
    r"(?:and|or|to|past|o'clock|hours?|minutes?|min|seconds?|h|quarter|until|,|&|plus|over|choose|C)[,]?", re.IGNORECASE
)
_wanting = re.compile(r"(?:and|or|to|,|&|plus|past|[:*·,–-]|over|choose)$", re.IGNORECASE)
_ordinal = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_SIGNS = ("∪", "∩", "=", "<", ">", "≤", "≥", "≈", "≠", "≡", "∈")
Run = tuple[str, str, str]
"""What stands before a run of mathematics, the run, and what stands behind it."""
_Words = list[tuple[str, int, int]]


def truth_of(clause: str) -> str | None:
    """Return the truth value that a clause is, or says of its subject last."""
    if (match := TRUTH.match(clause)) and clause[len(match[0]) :].lstrip()[:1] in ("", ",", ";"):
        return match[1]
    for match in reversed(list(_true.finditer(clause))):
        if (match["subject"] or not has_value(clause)) and not HEDGE.search(clause[: match.end()]):
            return match["truth"]
    return None


def said_of_subject(main: str) -> str | None:
    """Return the words that a sentence without a value says of its subject: ``Paris`` of "The capital is Paris"."""
    cut = CLAUSE.search(main, 1)
    main = (main[: cut.start()] if cut else main).strip()
    if HEDGE.search(main) or _next_one.search(main):
        return None
    if match := _none.search(main):
        return f"no {match[1]}" if match[1] else "no solution"
    match = _said_of.search(main)
    phrase = match[1] if match else ""
    return None if not phrase or has_value(phrase) or len(phrase.split()) > MOST_SAID else phrase


def has_value(text: str) -> bool:
    """Whether there is a digit or a piece that is set off."""
    return bool(re.search("[\\d\ue000\ue001]", text))


def follows_verb(before: str) -> bool:
    """Whether what stands before a value ends in the verb that states it."""
    return bool(_verb.search(before.rstrip() + " ") or _verb.search(before.rstrip()))


def stands_apart(before: str) -> bool:
    """Whether what stands before a value makes it no answer: a bound, a part, the second of two."""
    return bool(_apart.search(before))


def value_runs(clause: str) -> list[Run]:
    """Return each run of mathematics in a clause, the first one first."""
    tokens = [(m[0], m.start(), m.end()) for m in re.finditer(r"\S+", clause)]
    runs: list[Run] = []
    while (run := _last_run(tokens)) is not None:
        start, end = tokens[run[0]][1], tokens[run[1] - 1][2]
        runs.insert(0, (clause[:start], clause[start:end], clause[end:]))
        tokens = tokens[: run[0]]
    return runs


def _last_run(tokens: _Words) -> tuple[int, int] | None:
    """The last run of words that are mathematics, with joints inside of it: (first, one behind the last)."""
    marks = [
        not _ordinal.fullmatch(word) and bool(_mathy.fullmatch(word) or NUMERAL.fullmatch(word)) for word, *_ in tokens
    ]
    if not any(marks):
        return None
    end = len(marks) - marks[::-1].index(True)
    start = end - 1
    while start and (step := next((n for n in (1, 2, 3) if _joins(tokens, marks, start, n)), 0)):
        start -= step
    while start < end - 1 and _wanting.fullmatch(tokens[start][0]):
        start += 1
    while 0 < start < end - 1 and tokens[start][0] in _SIGNS and not tokens[start - 1][0].endswith((",", ":", ".")):
        start -= 1
    while start < end - 1 and tokens[start][0] in _SIGNS:
        start += 1
    return start, end


def _joins(tokens: _Words, marks: list[bool], start: int, size: int) -> bool:
    """Whether the word ``size`` before ``start`` is mathematics, and those between are joints."""
    between = tokens[max(0, start - size + 1) : start]
    return start >= size and marks[start - size] and all(_joint.fullmatch(word) for word, *_ in between)
