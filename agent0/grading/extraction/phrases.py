"""Phrases that several readers of a reply know, by what they mean; and an answer without what a sentence puts around
it: closing marks, quotation marks, an aside behind a comma."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.math.units import NUMERALS as WHOLE_NUMBERS

ALTERS = (
    r"(?:wrong|incorrect|minus|plus|times|less|doubled|halved|reduced|increased|add|subtract|\d+ (?:with(?:out)?|if"
    r"|when|including|counting|after|before|to be exact|really|in fact))\b"
)
"""What a bracket begins with that makes another value of the one before it."""
CLAUSE = re.compile(
    r",?\s+(?:which(?<!to which)(?<!from which)|because|since|where(?:as)?|while|whose|whom|rather than|instead of"
    r"|(?:down|up) from|i\.e\.|with(?<!left with)(?<!up with)|for (?:all|some|any|every)|of (?:the|a) (?=\d+ ?%)"
    r"|if (?:I|we) (?:ha(?:ve|d)|am|are|did|count\w*|calculat\w*|add\w*|includ\w*)|when (?:s?he|they|the|it|we"
    r"|divided?|round|\w+ed))(?!\w)|,\s+(?:(?:\d+|(?!half)[a-z]+) of (?:them|these|which|whom)|(?:twice|half"
    r"|[a-z]+ times) as [a-z]+ as|one for (?:each|every)|no matter|(?:an?|the) (?:[a-z]+ )?(?:square|sum|product|cube"
    r"|[a-z]+est)|(?:[a-z]+ ){0,3}(?:more|less|fewer|(?!other)[a-z]+er) than(?![^.]*\d)|who|as|of who?m|of which"
    r"|not(?! (?:really|quite|exactly|yet)\b)|and not|in other words|after|namely|up to|it|this|they|s?he|we"
    r"|or (?:about|roughly|approximately|around)|given|taken|found|(?!doubl|tripl|halv|squar|cub|divid|multipl|reduc"
    r"|increas|decreas|rais|lower|add|subtract|hundr)[a-z]{3,}ed|[a-z]{3,}ing)\b|;\s(?![^()\[\]{}]*[)\]}])"
    r"|\s[-–—]+\s+(?=[A-Za-z]{2})"
    r"|\s+\((?!mod\b|base\b|or,?\s+[-−$\\]*\d|no,|" + ALTERS + r"|(?:i\.\s?e\.|that is),?\s+[-−\d.,/$\\%\s]+\)"
    r"|[^()]{0,3}\)|[^()]*(?:sqrt|sin|cos|tan|log|pi|exp)\b)(?=[^()\[\]\\]*[A-Za-z]{2})",
    re.IGNORECASE,
)
"""Where a clause begins that only explains."""
HEDGE = re.compile(
    r"\?|n['’]t\b|n['’]est\b|不|\b(?:pas|nicht|kein\w*|sondern|non|no (?:es|son|está|pued\w+|podr\w+|ser[íá]\w*)"
    r"|minore|maggiore|moins|plus de|(?:mehr|weniger) als|(?:más|menos|mais) de"
    r"|(?:più|meno) di|больше|меньше|не|нет|maybe|perhaps|probably|possibly|likely|might|may|could|not|never|unsure"
    r"|guess|unclear|cannot|unless|if|doubt\w*|den(?:y|ies|ied)|disagree|depend\w*|either|neither|nor|suppose|assume"
    r"|otherwise|would|wrong|incorrect|impossible to|mistake|error|try|wait|e\.g\.|for (?:example|instance)|such as"
    r"|at (?:least|most)|more|less|fewer|greater|larger|smaller|than|exceeds?|between|differs?|reject\w*"
    r"|eliminate[sd]?|think|believe|seems?|appears?|unknown|exclud\w*|discard\w*|rul(?:e|es|ed|ing) out|ruled"
    r"|remov\w*|except|other than|but|however|although|though|compared?|versus|vs|almost|nearly|let|initial(?:ly)?"
    r"|first(?! (?:\w+ )?(?:terms?|digits?|primes?|numbers?|elements?|multiples?|values?|positive))"
    r"|start(?:s|ed)?(?! at \d\d?(?::\d\d| o['’]clock| ?[ap]\.?m))"
    r"|(?<!\\)times(?=[\s,]+\S)|twice|too|misconceptions?|misleading|lowers?|raises?|fails?|cancels?|contradict\w*"
    r"|violat\w*|dubious|invalid|extraneous|least \w+[ai]ble"
    r"|tempting|candidates?|distractors?|decoy|trap|out of|option [a-j] (?:and|or)|correct to"
    r"|close to|or a(?=\W*\Z))\b",
    re.IGNORECASE,
)
REFUTED = re.compile(
    r"(?i)\bwhich (?:is|are|was|were|would be) (?:\w+ )?(?:incorrect|wrong|not|false|impossible|invalid|mistaken)\b"
    r"|\b(?:that|this|it) (?:is|was) (?:\w+ )?(?:incorrect|wrong|mistaken)\b|\bcommon (?:mistake|error|wrong)\b"
    r"|,\s+(?:(?:to|from|by|of) )?which\b[^.]*?\b(?:must|ha(?:s|ve) to|should|is|are) (?:\w+ )?(?:be )?(?:added"
    r"|subtracted|taken (?:away|off)|deducted|multiplied|divided|doubled|halved)\b"
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
NUMERALS = (
    rf"(?:{'|'.join(name for name in WHOLE_NUMBERS if name.isalpha())}|hundred|thousand|million|billion|dozen|half"
    r"|halves|(?:third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth)s?|minus|negative)"
)
NUMERAL = re.compile(rf"{NUMERALS}(?:-{NUMERALS})*[.,]?", re.IGNORECASE)
MOST = 4
_QUOTES = "\"\" '' ‘’ “” ”” ’’ «» »« ‹› „“ „” ‚‘ 「」 『』 《》 【】 〔〕 〈〉 <>"
_smiley = re.compile(r"\s*(?:[:;=]['’]?-?[)D\]pP(]|\^_\^|<3|[\U0001f300-\U0001faff☀-➿\ufe0f]+)\s*\Z")
_closing = re.compile(r"(?:[\s.;:,!…~∎■□–—]|\\(?:[!,;: ]|\Z)|\(!+\)|(?<=\s)-+|(?<=[\w)}\]])-(?=\Z))++\Z")
_in_text = re.compile(r"\\(?:text(?:bf)?|mbox)\s*\{([^{}]*)\}")
_dots = re.compile(r"(?:[,+]\s*|\.\d+\s*|\\[a-z]*\s*)(?:\.{3}|…)\Z")
_brackets = re.compile(r"\s*([()\[\]{}<>](?:\s*[()\[\]{}<>])*)\s*\.?\s*")
"""Brackets alone, which are then the answer and close nothing."""
_aside = re.compile(
    r"(?P<value>(?=.*[\d$\\])[^\n]*?[\w)}\]%$°*])\s*,\s+(?P<words>(?:QED|Q\.E\.D|I (?:believe|think|am sure|am certain"
    r"|am confident)|(?!(?:[a-z]|pi|infinity|oo|undefined|none|zero)\b)[^\W\dA-Z_][^\W\d_]*"
    r"(?:['’ -]+[^\W\d_]+|,\s+[^\W\dA-Z_]+)*))"
)
_alters = re.compile(
    rf"(?i)\b(?:or|and|plus|minus|per ?cent|double[ds]?|halved|rather|unsure|approximately|about|roughly (?!speaking)"
    rf"|hmm|actually|(?:to|from|by) which|squared|cubed|positive|respectively|degrees?|radians?|cents?|minutes?"
    rf"|seconds?|should|else|no|presumably|mistaken|{NUMERALS}|oder|ou|o|или|vielleicht|ungefähr|etwa|circa|falsch"
    rf"|peut-être|environ|faux|quizás?|tal vez|falso|forse|talvez|примерно|возможно|неверно)\b|{HEDGE.pattern}"
)
"""Words that make another answer of what stands before them, or none."""
_sure = re.compile(r"(?i)\bI (?:believe|think)\b|\b(?:without|no|beyond) (?:an?y? )?doubt\b")


def trimmed(text: str) -> str:
    """Return ``text`` without marks that end a sentence and quotation marks around all of it."""
    if alone := _brackets.fullmatch(text):
        return alone[1]
    for _ in range(MOST):
        bare = text if _dots.search(text) else _closing.sub("", _smiley.sub("", text))
        shorter = unquoted(_unclosed(bare)).strip(" *`_\n\t")
        if shorter == text:
            break
        text = shorter
    return text


def unquoted(text: str) -> str:
    """Return ``text`` without quotation marks around all of it; those of feet, inches and derivatives stay."""
    text = text.strip()
    if text.startswith(("``", "''")) and text.endswith("''") and len(text) > len("''''"):
        return text[2:-2].strip()
    if (inner := _in_text.fullmatch(text)) and (bare := unquoted(inner[1])) != inner[1].strip():
        return bare
    inside = text[1:-1]
    quoted = len(text) > 2 and text[0] + text[-1] in _QUOTES and not {text[0], text[-1]} & set(inside)
    return inside.strip() if quoted and not (text[0] == "<" and "," in inside) else text


def _unclosed(text: str) -> str:
    """``text`` without one bracket or quotation mark at its end that nothing in it opens."""
    left, right = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«"}.get(text[-1:], ""), text[-1:]
    alone = left and text.count(left) + 1 == text.count(right) and not text.endswith("\\" + right)
    return text[:-1] if alone and not re.search(r"[\[(].*,", text) else text


def without_aside(text: str) -> str:
    """Return ``text`` up to the comma behind which words stand that are no part of its value: ``72, in total``."""
    aside = _aside.fullmatch(text)
    return aside["value"] if aside and not _alters.search(_sure.sub("", aside["words"])) else text
