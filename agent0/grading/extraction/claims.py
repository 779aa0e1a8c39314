"""What a clause claims in words: a choice, that something is true or false, a word for its subject."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

LETTER = re.compile(r"\s*\$*\s*\(?\\?(?:text|textbf|mathrm|mathbf)?\{?\(?([A-J])\)?\}?\s*\$*\s*")
"""The letter of a choice, as it is expected."""
CLAUSE = re.compile(
    r",?\s+(?:which|because|since|where|whereas|while|whose|whom|rather than|instead of|(?:down|up) from"
    r"|with(?<!left with)(?<!up with)|for (?:all|some|any|every)|of (?:the|a) (?=\d+ ?%)|when (?:he|she|they|the)"
    r"|when (?:it is |we )?(?:divided|divide|rounded|round|simplified|expressed|written|reduced))\b|,?\s+i\.e\."
    r"|,\s+(?:who|attained|achieved|reached|occurring|taken|realized|as|of whom|of which|given|provided|assuming"
    r"|obtained|found|confirming|making|using|based|namely|after|in other words|or (?:about|roughly|approximately"
    r"|around)|as required|as desired|as claimed|not|and not|meaning|since|up to|it|this|they|he|she|we)\b"
    r"|;\s(?![^()\[\]{}]*[)\]}])|\s[-–—]+\s+(?=[A-Za-z]{2})|\s+\((?!mod\b|[^()]{0,3}\))(?=[^()]*[A-Za-z]{2})",
    re.IGNORECASE,
)
HEDGE = re.compile(
    r"\?|n['’]t\b|n['’]est\b|不|\b(?:pas|nicht|kein\w*|sondern|non|no (?:es|son|está)|minore|maggiore|moins|plus de|не"
    r"|нет|maybe|perhaps|probably|possibly|likely|might|may|could|not|never|unsure|guess|unclear|cannot|unless|if"
    r"|doubt\w*|den(?:y|ies|ied)|disagree|depend\w*|either|neither|nor|suppose|assume|otherwise|would|wrong|incorrect"
    r"|impossible to|mistake|error|try|wait|e\.g\.|for (?:example|instance)|such as|at (?:least|most)|more|less|fewer"
    r"|greater|larger|smaller|than|exceeds?|between|differs?|reject\w*|eliminate[sd]?|think|believe|seems?|appears?"
    r"|unknown|exclud\w*|discard\w*|rul(?:e|es|ed|ing) out|ruled|remov\w*|except|other than|but|however|although"
    r"|though|compared?|versus|vs|almost|nearly|let|initial(?:ly)?|first(?! (?:\w+ )?(?:terms?|digits?|primes?"
    r"|numbers?|elements?|multiples?|values?|positive))|start(?:s|ed)?|times(?=[\s,]+\S)|twice|too|misconceptions?"
    r"|misleading|lowers?|raises?|fails?|cancels?|contradict\w*|violat\w*|dubious|invalid|extraneous|tempting"
    r"|candidates?|distractors?|decoy|trap|out of|option [a-j] (?:and|or)|correct to)\b",
    re.IGNORECASE,
)
_chooses = re.compile(
    r"(?:[Oo]ption |[Cc]hoice |[Aa]nswer )?\(?([A-J])\)?(?: is (?:the )?(?:correct|right|best|true|one that (?:works"
    r"|fits|holds)|only)\b[^A-J]*|: [^A-J]*| (?:makes the most sense|fits best|works best|best (?:fits|describes"
    r"|matches|explains|answers|completes)\b[^A-J]*))"
)
_only = re.compile(r"(?i:only|just) (?:option |choice |statement |answer )?\(?([A-J])\)? [a-z]+")
_picked = re.compile(
    r"(?i:(?:i(?:['’]d| would|['’]ll| will)? |we |my )?(?:choose|pick|select|go with|chose|opt for|vote for))"
    r" (?i:option |choice |answer |letter )?(?:\(?([A-J])\)?$|(?:\((?=[A-J]\))|(?=[A-J]\)))([A-J])\) \S.*)"
    r"|(?i:(?:i(?:['’]d| would|['’]ll| will)? |we )?(?:choose|pick|select|go with|chose|opt for) (?:option|choice"
    r"|answer|letter) \(?)([a-j])\)?$"
)
_seems = re.compile(
    r"(?:.*, )?(?:[Oo]ption |[Cc]hoice |[Aa]nswer )?\(?([A-J])\)? (?:seems|appears)(?: to be)? (?:the )?(?:most \w+"
    r"|best|correct|right|only)\b[^A-J]*"
)
_it_is = re.compile(r"(?i:so,? |then,? )?\(?([A-J]|-?\d[\d.,]*)\)? it is|(?i:i['’]m going with) \(?([A-J])\)?")
_after_word = re.compile(
    r"(?<!ncorrect )(?<!wrong )(?<!Wrong )\b(?i:choice|option|answer|letter|selection)\s*(?:is|:|→|=|->"
    r"|-)\s*\(?([A-J])\)?$"
)
_true = re.compile(r"\b(?:is|are) (true|false)$", re.IGNORECASE)
_CHOICE = r"(?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer|[Ss]tatement) )?\(?([A-J])\)?"
_holds = (
    r"(?:holds|works|fits|matches|applies|it is|stands|is it|(?:is|must be) (?:the )?(?:\w+ )?(?:correct|right|best"
    r"|true|valid|one|only|answer|choice|option)\b.*)"
)
_fails = (
    r"(?:(?:is|are|does|do|can|was|would|will)(?:n['’]t|not| not)|fails?|can(?:no|['’])t|cannot|is (?:too|wrong"
    r"|incorrect|false|ruled|out|impossible|invalid)|are (?:too|wrong|incorrect|false|ruled|out|impossible|invalid"
    r"|both wrong))\b.*"
)
_taken_clause = re.compile(
    rf"(?:(?:so|thus|hence|therefore|then|and|but|because|since|only|just|that leaves|it(?: is|['’]s| must be)"
    rf"|i(?:['’]d| would) (?:go with|choose|pick|take|say)),?\s+)*{_CHOICE}(?: {_holds})?(?: over {_CHOICE})?",
    re.IGNORECASE,
)
_ruled_out_clause = re.compile(
    rf"(?:(?:so|and|but|because|since|as|while|whereas|it|the|other|others|options?|choices?|rest)[, ]+)*"
    rf"(?:(?:{_CHOICE}(?:, | and |, and | or )*)+|(?:all )?(?:the )?(?:others?|rest)(?: options| choices)?) {_fails}"
    rf"|(?:it )?(?:is not|isn['’]t|can['’]t be|cannot be|not|rather than|instead of) {_CHOICE}",
    re.IGNORECASE,
)
_clauses = re.compile(
    r"\s*(?:[;.]|,(?!\s+[A-J](?:,| and | or )))\s+|\s+(?=(?:while|whereas|because|since|but|and not|rather than"
    r"|instead of)\b)",
    re.IGNORECASE,
)
_letters = re.compile(r"(?<![A-Za-z'’])[A-J](?![A-Za-z'’])")
_verdict = re.compile(
    r"(?:^|.*\b)(?:statement|claim|assertion|proposition|conjecture|converse|inequality|identity|it|this|that|answer)"
    r" (?:is|must be) (?:therefore |thus |indeed |clearly )?(true|false)\b\s*(?:[:,;(]|[-–—]\s|$|because\b|since\b"
    r"|as\b)",
    re.IGNORECASE,
)
REFUTED = re.compile(
    r"\bwhich (?:is|are|was|were|would be) (?:\w+ )?(?:incorrect|wrong|not|false|impossible|invalid|mistaken)\b"
    r"|\b(?:that|this|it) (?:is|was) (?:\w+ )?(?:incorrect|wrong|mistaken)\b|\bcommon (?:mistake|error|wrong)\b",
    re.IGNORECASE,
)
"""What makes of a value before it no answer."""
TRUTH = re.compile(r"(yes|no|true|false)\b", re.IGNORECASE)
_none = re.compile(
    r"\b(?:there (?:is|are|exists?)|has|have|having|admits?|with|possesses)\s+no\s+(?:(?:real|such|possible|valid)\s+)*"
    r"(?:solutions?|((?:[a-z]+ )?[a-z]+))$",
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


def verdict(statement: str) -> str | None:
    """Return the choice or truth value that a whole sentence begins with or ends in: ``A`` of "Final choice → A"."""
    if (match := _verdict.match(statement)) and not HEDGE.search(match[0]):
        return match[1]
    if match := _it_is.fullmatch(statement):
        return match[1] or match[2]
    match = _after_word.search(statement)
    return match[1] if match and not HEDGE.search(statement) else None


def taken_choice(sentence: str) -> str | None:
    """Return the letter that a sentence takes where it rules out others in clauses of their own: ``C`` of "C is
    correct, D isn't"; None for every other sentence."""
    taken: set[str] = set()
    ruled_out: set[str] = set()
    clauses = [clause for clause in _clauses.split(sentence.strip(" .!*")) if clause]
    if len(clauses) == 1:
        preferred = _taken_clause.fullmatch(clauses[0])
        return preferred[1].upper() if preferred and preferred[2] else None
    for clause in clauses:
        if _ruled_out_clause.fullmatch(clause):
            ruled_out |= set(_letters.findall(clause))
        elif match := _taken_clause.fullmatch(clause):
            taken.add(match[1].upper())
            ruled_out |= {match[2].upper()} if match[2] else set()
        else:
            return None
    return taken.pop() if len(taken) == 1 and not taken & ruled_out else None


def claim(main: str) -> str | None:
    """Return the choice or truth value that a clause states."""
    if (match := TRUTH.match(main)) and main[len(match[0]) :].lstrip()[:1] in ("", ",", ";"):
        return match[1]
    if picked := _picked.fullmatch(main):
        return str(next(filter(None, picked.groups()))).upper()
    if (match := _seems.fullmatch(main)) and " not " not in main:
        return match[1]
    if HEDGE.search(main):
        return None
    match = _only.match(main) or _chooses.fullmatch(main)
    if match is None and not re.search("[\\d\ue000]", main):
        match = _true.search(main)
    return match[1] if match else None


def said_of_subject(main: str) -> str | None:
    """Return the words that a sentence without a value says of its subject: ``Paris`` of "The capital is Paris"."""
    cut = CLAUSE.search(main, 1)
    main = (main[: cut.start()] if cut else main).strip()
    if HEDGE.search(main) or _next_one.search(main):
        return None
    if match := _none.search(main):
        return f"no {match[1]}" if match[1] else "no solution"
    match = _said_of.search(main)
    statement = match[1] if match else ""
    return (
        None
        if not statement or re.search("[\\d\ue000\ue001]", statement) or len(statement.split()) > MOST_SAID
        else statement
    )
