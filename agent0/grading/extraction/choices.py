"""The option of a multiple choice that a sentence takes, whatever it says of the others."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.extraction.clauses import HEDGE

LETTER = re.compile(r"\s*\$*\s*\(?\\?(?:text|textbf|mathrm|mathbf)?\{?\(?([A-J])\)?\}?\s*\$*\s*")
"""The letter of a choice, as it is expected."""
_letter = r"\(?(?-i:([A-J]))(?![\w'’^=+*/])\)?"
_NOUN = r"(?:final |correct |best |right )?(?:option|choice|answer|statement|letter|selection)"
_TAKES = (
    r"(?:choose|pick|select|chose|opt for|vote for|go(?:ing)? with|take|say|(?:it|that)(?: is|['’]s| must be)"
    r"|that leaves|leaves(?: only| us)?(?: with)?|must be|only|just)"
)
_HOLDS = (
    r"(?:holds|works|fits|matches|applies|it is|stands|is it|makes the most sense|best (?:fits|describes|matches"
    r"|explains|answers|completes)|(?:is|must be|seems|appears)(?: to be)? (?:the )?(?:\w+ ){0,2}(?:correct|right|best"
    r"|true|valid|one|only|answer|choice|option|\w+able)\b)"
)
_named = re.compile(
    rf"(?:{_NOUN}|{_TAKES})[*_]*\s*(?:(?:is|:|→|=|->|-)[*_]*\s*)?(?:{_NOUN} )?{_letter}(?=\W|$)|{_letter} (?={_HOLDS})"
    rf"|(?<!\w)\((?-i:([A-J]))\)(?! (?:is|was|are|has|does|says|states|would)\b)|^\W*{_letter}\W*$|^\W*{_letter}(?=[)."
    rf":] )|(?:one|option|choice) (?:left|remaining)(?: is|:) {_letter}|^\W*{_letter}(?=,? (?:it is|over|rather|not"
    rf"|and not)\b)",
    re.IGNORECASE,
)
_small = re.compile(rf"{_TAKES} (?:option|choice|answer|letter) \(?([a-j])\)?$", re.IGNORECASE)
_clauses = re.compile(
    r"\s*(?:[;.]|(?<!\b[A-J]),|,(?!\s+(?:and |or )?[A-J]\b))\s+|\s+(?=(?:while|whereas|because|since|but|and not"
    r"|rather than|instead of) |(?:not|over) (?:option |choice |answer )?\(?[A-J]\b)",
    re.IGNORECASE,
)
_rules_out = re.compile(
    r"n['’]t\b|\b(?:not|fails?|cannot|wrong|incorrect|false|ruled|eliminated?|impossible|invalid|too|rather than|over"
    r"|rul(?:e|es|ing) out|instead of|distractor|trap|except|neither|nor)\b",
    re.IGNORECASE,
)
_affirms = re.compile(r"\b(?:seems?|appears?|think|believe|would|(?:more|most) \w+|first|than)\b", re.IGNORECASE)
_all_but = re.compile(r"\b(?:every|all|any|each|no)\b[^,;.]* (?:but|except)\b|\balmost correct\b", re.IGNORECASE)
_leaves = re.compile(
    rf"\bleav(?:es|ing)(?: only| us)*(?: with)?(?: only)? (?:{_NOUN} )?{_letter}(?= as\b|\W*$)", re.IGNORECASE
)
LONGEST = 600
_bare = re.compile(r"(?<![\w'’])(?:[B-HJ]|\([A-J]\))(?![\w'’])")


def choice_of(sentence: str) -> str | None:
    """Return the letter of the one option that ``sentence`` takes; None where it takes none, several, or doubts it."""
    if match := _small.search(sentence) or _leaves.search(sentence):
        return match[1].upper()
    if len(sentence) > LONGEST or _all_but.search(sentence):
        return None
    taken: set[str] = set()
    ruled_out: set[str] = set()
    for clause in filter(None, _clauses.split(sentence.strip(" .!*"))):
        named = {next(filter(None, match.groups())) for match in _named.finditer(clause)}
        if not named and not _bare.search(clause):
            if (
                taken
                and _rules_out.search(clause)
                and not re.search(r"\bA\b", clause)
                and clause.lstrip().lower().startswith("but")
            ):
                return None
            continue
        if _rules_out.search(clause):
            ruled_out |= named | {letter.strip("()") for letter in _bare.findall(clause)}
        elif (
            HEDGE.search(_affirms.sub("", clause))
            or len(named) != 1
            or {x.strip("()") for x in _bare.findall(clause)} - named
        ):
            return None
        else:
            taken |= named
    return taken.pop() if len(taken) == 1 and not taken & ruled_out else None
