"""Phrases that several readers of a reply know, by what they mean."""

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
NUMERALS = (
    rf"(?:{'|'.join(name for name in WHOLE_NUMBERS if name.isalpha())}|hundred|thousand|million|billion|dozen|half"
    r"|halves|(?:third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth)s?|minus|negative)"
)
NUMERAL = re.compile(rf"{NUMERALS}(?:-{NUMERALS})*[.,]?", re.IGNORECASE)
