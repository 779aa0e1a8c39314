"""The option of a multiple choice that a sentence takes, whatever it says of the others."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.extraction.phrases import HEDGE

LETTER = re.compile(r"\s*\$*\s*\(?\\?(?:text|textbf|mathrm|mathbf)?\{?\(?([A-J])\)?\}?\s*\$*\s*")
"""The letter of a choice, as it is expected."""
_letter = r"\(?(?-i:([A-J]))(?![\w'’^=+*/])\)?"
_NOUN = r"(?:final |correct |best |right )?(?:option|choice|answer|statement|letter|selection)"
_TAKES = (
    r"(?:choose|prefer|pick|select|chose|opt for|vote for|go(?:ing)? with|take|say|(?:it|that)(?: is|['’]s| must be)"
    r"|that leaves|leaves(?: only| us)?(?: with)?|must be|only|just)"
)
_HOLDS = (
    r"(?:holds|works|fits|matches|applies|it is|stands|is it|makes the most sense|best (?:fits|describes|matches"
    r"|explains|answers|completes)|comes (?:closest|nearest)|(?:is|must be|would be|seems|appears)(?: to be)?"
    r" (?:the |my )?(?:\w+ ){0,2}(?:correct|right|best|better|true|valid|one|only|answer|choice|option|\w+able)\b)"
)
_named = re.compile(
    rf"(?i)(?:{_NOUN}|{_TAKES})[*_]*\s*(?:(?:is|:|→|=|->|-)[*_]*\s*)?(?:{_NOUN} )?{_letter}(?=\W|$)"
    rf"|{_letter} (?={_HOLDS})|(?<!\w)\((?-i:([A-J]))\)(?! (?:is|was|are|has|does|says|states|would)\b)"
    rf"|^\W*{_letter}\W*$|^\W*{_letter}(?=[).:] )|(?:one|option|choice) (?:left|remaining)(?: is|:) {_letter}"
    rf"|^\W*{_letter}(?=,? (?:it is|over|rather|not|and not)\b)"
)
_small = re.compile(rf"(?i){_TAKES} (?:option|choice|answer|letter) \(?([a-j])\)?$")
_clauses = re.compile(
    r"(?i)\s*(?:[;.]|(?<!\b[A-J]),|,(?!\s+(?:and |or )?[A-J]\b))\s+|\s+(?=(?:while|whereas|because|but|since|instead of"
    r"|and (?:not|(?:all |the )*(?:others?|rest))|rather than) |(?:not|over) (?:option |choice |answer )?\(?[A-J]\b)"
)
_rules_out = re.compile(
    r"(?i)n['’]t\b|\b(?:not|fails?|cannot|wrong|incorrect|false|ruled|eliminated?|impossible|invalid|too|rather than"
    r"|over|rul(?:e|es|ing) out|instead of|distractor|trap|least|worst|except|neither|nor)\b"
)
_affirms = re.compile(r"(?i)\b(?:seems?|appears?|think|believe|would|(?:more|most) \w+|first|than)\b")
_all_but = re.compile(
    r"(?i)\b(?:every|all|any|each|no)\b[^,;.]* (?:but|except|from)\b|\balmost correct\b|\bwould be\b.*\b(?:if|unless"
    r"|but|though|however|except|were)\b|\b(?:if|unless|were)\b.*\bwould be\b"
)
_compared = re.compile(
    r"(?i)^\W*(?:so |thus )?(?:between|comparing|of) \(?[A-J]\)?(?:(?:,|,? (?:and|or)) \(?[A-J]\)?)+,\s+"
)
_leaves = re.compile(rf"(?i)\bleav(?:es|ing)(?: only| us)*(?: with)?(?: only)? (?:{_NOUN} )?{_letter}(?= as\b|\W*$)")
_concedes = re.compile(r"(?i)\s*(?:(?:al)?though|even (?:though|if))\b")
_but = re.compile(r"(?i)\s*but\b(?!.*\bA\b)")
LONGEST = 600
_bare = re.compile(r"(?<![\w'’])(?:[B-HJ]|\([A-J]\)|(?<=\bor )A(?=\W*\Z))(?![\w'’])")


def choice_of(sentence: str) -> str | None:
    """Return the letter of the one option that ``sentence`` takes; None where it takes none, several, or doubts it."""
    if match := _small.search(sentence) or _leaves.search(sentence):
        return match[1].upper()
    if len(sentence) > LONGEST or _all_but.search(sentence):
        return None
    taken: set[str] = set()
    ruled_out: set[str] = set()
    for clause in filter(None, _clauses.split(_compared.sub("", sentence.strip(" .!*")))):
        named = {next(filter(None, match.groups())) for match in _named.finditer(clause)}
        letters = named | {letter.strip("()") for letter in _bare.findall(clause)}
        if not letters:
            if taken and _but.match(clause) and _rules_out.search(clause):
                return None
        elif _rules_out.search(clause) or (taken and _concedes.match(clause)):
            ruled_out |= letters
        elif HEDGE.search(_affirms.sub("", clause)) or len(named) != 1 or letters - named:
            return None
        else:
            taken |= named
    return taken.pop() if len(taken) == 1 and not taken & ruled_out else None
