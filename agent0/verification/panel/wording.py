"""Check: where the question states the form of an answer (length, words, letters), does the answer keep it? Breaking a
rule is a no; keeping one is no proof, keeping several is a yes."""

import operator
import re
from collections.abc import Callable, Iterator

from agent0.verification.panel import PanelCase, VoteAndReason, check

SEVERAL = 2
Rule = tuple[str, Callable[[str], bool]]

_COUNTED = re.compile(
    r"\b(exactly|at most|at least|no more than|no fewer than|fewer than|more than|in)\s+"
    r"(\d{1,4}|one|two|three|four|five|six|seven|eight|nine|ten)\s+(words?|letters?|characters?|sentences?|lines?)\b",
    re.IGNORECASE,
)
_NUMBERS = "one two three four five six seven eight nine ten".split()  # noqa: SIM905 (reads better)
_SIZES: dict[str, Callable[[str], int]] = {
    "word": lambda text: len(text.split()),
    "letter": lambda text: sum(c.isalpha() for c in text),
    "character": len,
    "sentence": lambda text: len(re.findall(r"[^.!?]+[.!?]*", text.strip())),
    "line": lambda text: len(text.strip().splitlines()),
}
_BOUNDS: dict[str, Callable[[int, int], bool]] = {
    "exactly": operator.eq, "in": operator.eq, "at most": operator.le, "no more than": operator.le,
    "at least": operator.ge, "no fewer than": operator.ge, "fewer than": operator.lt, "more than": operator.gt,
}  # fmt: skip
_QUOTED = r"[\"'\u201c\u2018]([^\"'\u201d\u2019]{1,60})[\"'\u201d\u2019]"
_HOLDS = re.compile(
    r"\b(without|not|never|avoid(?:ing)?|no)?\s*\b(?:us|contain|includ|mention)(?:e|es|s|ing)?\s+the\s+"
    rf"(word|letter|phrase)\s+{_QUOTED}",
    re.IGNORECASE,
)
_ENDS = re.compile(
    rf"\b(start|begin|end)(?:s|ning|ing)?\s+with\s+(?:the\s+(?:word|letter|phrase)\s+)?{_QUOTED}", re.IGNORECASE
)
_CASED = re.compile(r"\bin\s+(?:all\s+)?(upper|lower)[ -]?case\b", re.IGNORECASE)


@check("wording")
async def wording(case: PanelCase) -> list[VoteAndReason]:
    """Vote by the rules of form that the question states explicitly."""
    rules = list(stated_rules(case.task.question))
    if not rules:
        return [(None, "the question states no form")] * len(case.answers)
    return [(None, "no answer") if answer is None else _kept(rules, answer) for answer in case.answers]


def _kept(rules: list[Rule], answer: str) -> VoteAndReason:
    broken = [name for name, holds in rules if not holds(answer)]
    if broken:
        return False, f"asked for and not kept: {broken[0]}"
    return (True, f"{len(rules)} stated rules are kept") if len(rules) >= SEVERAL else (None, "one stated rule is kept")


def stated_rules(question: str) -> Iterator[Rule]:
    """Yield the rules of form that ``question`` states: (its words, a function that says whether an answer
    keeps it)."""
    for match in _COUNTED.finditer(question):
        yield match[0], _counted(match[1].lower(), match[2].lower(), match[3].lower().removesuffix("s"))
    for match in _HOLDS.finditer(question):
        yield match[0], _holding(match[3].casefold(), match[2].lower() == "letter", not match[1])
    for match in _ENDS.finditer(question):
        yield match[0], _ending(match[2].casefold(), match[1].lower() == "end")
    for match in _CASED.finditer(question):
        yield match[0], str.isupper if match[1].lower() == "upper" else str.islower


def _counted(bound: str, number: str, what: str) -> Callable[[str], bool]:
    target = int(number) if number.isdigit() else _NUMBERS.index(number) + 1
    return lambda answer: _BOUNDS[bound](_SIZES[what](answer), target)


def _holding(text: str, letter: bool, present: bool) -> Callable[[str], bool]:
    pattern = re.compile(re.escape(text) if letter else rf"(?<!\w){re.escape(text)}(?!\w)")
    return lambda answer: bool(pattern.search(answer.casefold())) is present


def _ending(text: str, end: bool) -> Callable[[str], bool]:
    def holds(answer: str) -> bool:
        plain = answer.strip().casefold()
        return plain.rstrip(".!?").endswith(text) or plain.endswith(text) if end else plain.startswith(text)

    return holds
