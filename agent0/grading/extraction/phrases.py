"""Phrases by what they mean, and what a clause says by them: the value that its verb states, a truth value, a word for
its subject; and what makes of a value no answer: doubt, a bound, a part, the second of two, another's opinion."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.math.units import NUMERALS as WHOLE_NUMBERS

CLAUSE = re.compile(
    r",?\s+(?:which|because|since|where(?:as)?|while|whose|whom|rather than|instead of|(?:down|up) from|i\.e\."
    r"|with(?<!left with)(?<!up with)|for (?:all|some|any|every)|of (?:the|a) (?=\d+ ?%)|when (?:s?he|they|the|it|we"
    r"|divided?|round|\w+ed))(?!\w)|,\s+(?:who|as|of who?m|of which|not|and not|in other words|after|namely|up to|it"
    r"|this|they|s?he|we|or (?:about|roughly|approximately|around)|given|taken|found|(?!doubl|tripl|halv|squar|cub"
    r"|hundr)[a-z]{3,}ed|[a-z]{3,}ing)\b|;\s(?![^()\[\]{}]*[)\]}])|\s[-–—]+\s+(?=[A-Za-z]{2})|\s+\((?!mod\b|base\b"
    r"|[^()]{0,3}\)|[^()]*(?:sqrt|sin|cos|tan|log|pi|exp)\b)(?=[^()\[\]\\]*[A-Za-z]{2})",
    re.IGNORECASE,
)
"""Where a clause begins that only explains."""
CONNECTOR = re.compile(
    r"(?:^|[\s,;:.])(?:and\s+)?(?:so(?: that)?|therefore|thus|hence|consequently|whence|concludes?(?: that)?"
    r"|that (?:is|leaves)|(?:it )?follows that|we (?:\w+ )?(?:find|get|obtain|see|deduce|have)(?: that)?"
    r"|which (?:leaves|gives|yields|makes|means)|(?<!by )(?<!after )(?<!before )(?<!for )(?<!of )(?:leaving(?: only"
    r"| us with)?|giving|yielding|obtaining|(?:meaning|implying)(?: that)?)|and (?:keep|retain|accept)"
    r"|(?<=, )(?:(?:[a-z]+ing(?: in| to)?|for)(?: (?:a|the) total (?:of|to))?)(?= [$\d\ue000])"
    r"|(?:which )?(?:simplifies|reduces|evaluates|works out|rounds)(?: down| up)? to|implies(?: that)?|if and only if"
    r"|iff|but (?:it|this|that|the \w+)(?:['’]s| is| are| was)(?= (?:actually|really|in fact)\b)|(?:it|this) (?:seems"
    r"|appears)(?: that)?|my (?:best )?guess is|i(?: would|['’]d) say(?: that)?)\b,?:?\s*|\s*(?:→|⇒|⟹|=>|-->|∴)\s*"
    r"|\s—+\s+(?=[*$(]*[^\s()]+[*$)]*$)|(?<=\w):\s+(?=[A-Za-z]\w{0,2} [=<>≤≥] )",
    re.IGNORECASE,
)
"""What stands between what a conclusion follows from and its clause."""
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
    r"(?i)\bwhich (?:is|are|was|were|would be) (?:\w+ )?(?:incorrect|wrong|not|false|impossible|invalid|mistaken)\b"
    r"|\b(?:that|this|it) (?:is|was) (?:\w+ )?(?:incorrect|wrong|mistaken)\b|\bcommon (?:mistake|error|wrong)\b"
)
"""What makes of a value before it no answer."""
OPINION = (
    r"\b(?!(?:i|we|you|us|this|that|which|it|to|can|must|should|so|and|d|ll|ve|let['’]s|\w+ly)\b)[a-z]+,? (?:(?:would"
    r"|might|may|could|also|even|once|often|first|has|have|had) )?(?:claim(?:s|ed)?|thinks?|thought|believe[sd]?"
    r"|sa(?:ys?|id)|argue[sd]?|insist(?:s|ed)?|guess(?:es|ed)|reckons?|assume[sd]|suspect(?:s|ed)?|wrote"
    r"|writes)(?: that)?"
)
REPORTED = re.compile(rf"(?i){OPINION},?\s+(?=\S)")
"""What makes of a statement behind it another's opinion."""
TRUTH = re.compile(r"(?i)(yes|no|true|false)(?=\s*(?:[,.;]|$))")
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
NUMERALS = (
    rf"(?:{'|'.join(name for name in WHOLE_NUMBERS if name.isalpha())}|hundred|thousand|million|billion|dozen|half"
    r"|halves|(?:third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth)s?|minus|negative)"
)
NUMERAL = re.compile(rf"{NUMERALS}(?:-{NUMERALS})*[.,]?", re.IGNORECASE)
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


def truth_of(clause: str) -> str | None:
    """Return the truth value that a clause is, or says of its subject last."""
    if match := TRUTH.match(clause):
        return match[1]
    *_, last = None, *_true.finditer(clause)
    says = last and (last["subject"] or not has_value(clause)) and not HEDGE.search(clause[: last.end()])
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
