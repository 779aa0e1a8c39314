"""Values that are said in words, as they are written: a dozen, 3 in 8, one and a half, at most 9, the root of 5."""

# ruff: noqa: RUF001 (signs as they are written)
import re

from agent0.grading.rules import rewrite, rules

_SMALL = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_PARTS = {"half": 2, "third": 3, "quarter": 4}
_RELATIONS = {
    "greater than or equal to": "≥",
    "at least": "≥",
    "no less than": "≥",
    "not less than": "≥",
    "less than or equal to": "≤",
    "at most": "≤",
    "no more than": "≤",
    "no greater than": "≤",
    "greater than": ">",
    "more than": ">",
    "less than": "<",
    "smaller than": "<",
}
_NUMBER = r"(?:\$[^$\n]+\$|[-−]?\d+(?:[./]\d+)?)"
_COUNT = rf"(?:{'|'.join(_SMALL)}|\d{{1,3}})"
_DIGITS = ("zero", *_SMALL[:9])
_relation = "|".join(_RELATIONS)
_END = r"(?=\s*(?:[.,;]?\s*$|[.,;]\s))"
_WORDINGS = rules(
    (r"\bhalf a dozen\b", "6"),
    (r"\ba dozen\b", "12"),
    (r"\b(?:exactly |just )?an? (hundred|thousand|million|billion)\b", r"one \1"),
    (r"\bthree[- ]quarters of an hour\b", "45 minutes"),
    (r"\bthree[- ]quarters of a minute\b", "45 seconds"),
    (r"\ba quarter of an hour\b", "15 minutes"),
    (r"\ba quarter of a minute\b", "15 seconds"),
    (rf"\b(?:the )?closed interval (?:from|between) ({_NUMBER}) (?:to|and) ({_NUMBER})", r"[\1, \2]"),
    (rf"\b(?:the )?open interval (?:from|between) ({_NUMBER}) (?:to|and) ({_NUMBER})", r"(\1, \2)"),
    (r"\bhalf a percent\b|\bhalf of (?:a|one) percent\b", "0.5 percent"),
    (r"\b(\d{1,9}) out of (\d{1,9})\b", r"\1/\2"),
    (r"\b((?:probability|chance|likelihood)\b[^.\n\d]{0,60}?\b)(\d{1,9}) in (\d{1,9})\b", r"\1\2/\3"),
    (r"\b(\d{1,6}) root (\d{1,6})\b", r"\1√\2"),
    (r"\b(?:the )?(?:positive )?square root of (\d{1,9})\b", r"√\1"),
    (r"\b(\d{1,9}) (dollars?|euros?|pounds?) and (\d)(?: cents?| pence| pennies)\b", r"\1.0\3 \2"),
    (r"\b(\d{1,9}) (dollars?|euros?|pounds?) and (\d\d)(?: cents?| pence| pennies)\b", r"\1.\3 \2"),
    flags=re.IGNORECASE,
)
_dozens = re.compile(rf"\b({_COUNT}) dozen\b", re.IGNORECASE)
_and_part = re.compile(rf"\b({_COUNT}) and (?:a|one)[ -](half|third|quarter)\b", re.IGNORECASE)
_point = re.compile(rf"\b({'|'.join(_DIGITS)}) point ((?:(?:{'|'.join(_DIGITS)})\b ?)+)", re.IGNORECASE)
_bounded = re.compile(
    rf"(?<![\w$\\])\$?([a-z])\$? (?:is|must be|has to be|should be|needs to be) ({_relation}) ({_NUMBER}){_END}",
    re.IGNORECASE | re.MULTILINE,
)
_all_bounded = re.compile(
    rf"\ball (?:the )?(?:real )?(?:numbers|values|\$?[a-z]\$?)(?: of \$?\w\$?)?(?: that are"
    rf"| which are)? ({_relation}) ({_NUMBER}){_END}",
    re.IGNORECASE | re.MULTILINE,
)


def written_out(text: str) -> str:
    """Return ``text`` with the values that it says in words as they are written."""
    text = _point.sub(_decimal, rewrite(text, _WORDINGS))
    text = _dozens.sub(lambda match: str(12 * _count(match[1])), text)
    text = _and_part.sub(lambda match: f"{_count(match[1])} 1/{_PARTS[match[2].lower()]}", text)
    text = _all_bounded.sub(lambda match: f"x {_RELATIONS[match[1].lower()]} {match[2].strip('$')}", text)
    return _bounded.sub(lambda match: f"{match[1]} {_RELATIONS[match[2].lower()]} {match[3].strip('$')}", text)


def _decimal(match: re.Match[str]) -> str:
    """``one point five`` in figures."""
    behind = "".join(str(_DIGITS.index(word)) for word in match[2].lower().split())
    return f"{_DIGITS.index(match[1].lower())}.{behind}" + " " * match[2].endswith(" ")


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _SMALL.index(word.lower()) + 1
