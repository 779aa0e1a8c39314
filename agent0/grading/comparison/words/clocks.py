"""Times of day, days of the week and dates, in the spellings that ``spelling.calendar`` reads."""

import re

from agent0.grading.comparison.words.calendar import date_of, time_of
from agent0.grading.math.units import NUMERALS

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_day = re.compile(
    r"(?:(?:it|the (?:day|date|answer)) (?:is|was|will be|falls) |on |an? |the )*(mon|tues?|wed(?:nes)?|thu(?:rs?)?"
    r"|fri|sat(?:ur)?|sun)(?:day)?\.?",
    re.I,
)
_month = re.compile(
    r"(?:in |it is |the month is )*(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?", re.IGNORECASE
)
_markup = re.compile(r"\\(?:text(?:bf|rm)?|mathrm|mbox)\s*(?=\{)|\\[!,;: ]|[${}]")
_clock = re.compile("\\s+o['\u2019]clock")
_french = re.compile(r"(\d{1,2})\s*h\s*([0-5]\d)(?:\s*min(?:utes)?)?")
_military = re.compile(r"([01]\d|2[0-3]):?([0-5]\d)\s*(?:hours|hrs|h)\.?")
_dotted = re.compile(r"(\d{1,2})\.([0-5]\d)(?=\s*[ap]\.?\s?m)")
_spoken = re.compile(r"(half|quarter|[a-z]+(?:[ -][a-z]+)?(?: minutes)?) (past|to|after|before) (\w+)(.*)")
_HOURS = {"noon": 12, "midday": 12, "midnight": 0}
_dots = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_days_first = re.compile(r"(1[3-9]|2\d|3[01])/(\d{1,2})/(\d{4})")
LONGEST = 60


def timed(gold: str, said: str) -> tuple[str, str]:
    """Return both times of day, and days of the week, in one spelling, where the gold is one."""
    if len(gold) > LONGEST or len(said) > LONGEST:
        return gold, said
    if weekday(gold) is not None:
        return gold, weekday(said) or said
    if monthly(gold) is not None:
        return gold, monthly(said) or said
    wanted = clock(gold)
    return (wanted, clock(said)) if time_of(wanted) else (gold, said)


def weekday(text: str) -> str | None:
    """The day of the week that ``text`` is, None where it is none."""
    found = _day.fullmatch(" ".join(_markup.sub(" ", text).strip(" .*").split()))
    return next(day for day in _DAYS if day.startswith(found[1].lower()[:3])) if found else None


def monthly(text: str) -> str | None:
    """The month that ``text`` is, None where it is none."""
    found = _month.fullmatch(" ".join(_markup.sub(" ", text).strip(" .*").split()))
    return next((month for month in _MONTHS if month.startswith(found[1].lower()[:3])), None) if found else None


def clock(text: str) -> str:
    """``5:15 p.m.`` of ``17h15``, ``5.15 pm``, ``1715 hours`` and ``quarter past five p.m.``; else ``text``."""
    bare = " ".join(_markup.sub(" ", text.replace(r"\!", "")).lower().split()).strip(" .*")
    bare = _clock.sub(":00", bare.replace("midday", "noon"))
    if found := _french.fullmatch(bare) or _military.fullmatch(bare):
        return _of_day(60 * int(found[1]) + int(found[2])) if int(found[1]) < 24 else text
    if (found := _spoken.fullmatch(bare)) and (minute := _minute(found)) is not None:
        return minute
    bare = _dotted.sub(r"\1:\2", bare)
    return bare if time_of(bare) else text


def _of_day(minute: int) -> str:
    hour = minute // 60
    return f"{(hour - 1) % 12 + 1}:{minute % 60:02} {'p.m.' if hour >= 12 else 'a.m.'}"


def _minute(found: re.Match[str]) -> str | None:
    words = found[1].removesuffix(" minutes").removeprefix("a ")
    minutes = {"half": 30, "quarter": 15}.get(words) or NUMERALS.get(words)
    hour = _HOURS.get(found[3])
    hour = hour if hour is not None else int(found[3]) if found[3].isdigit() else NUMERALS.get(found[3])
    if not minutes or minutes > 59 or hour is None or hour > 12:
        return None
    total = (60 * hour + minutes * (1 if found[2] in ("past", "after") else -1)) % 1440
    if found[3] in _HOURS:
        return _of_day(total)
    return f"{(total // 60 - 1) % 12 + 1}:{total % 60:02}{found[4]}"


def dated(gold: str, said: str) -> tuple[str, str]:
    """``25.12.1999`` and ``25/12/1999`` as the day that they can only be, where the gold is a date."""
    if len(gold) > LONGEST or len(said) > LONGEST or not date_of(_plain_date(gold)):
        return gold, said
    return _plain_date(gold), _plain_date(said)


def _plain_date(text: str) -> str:
    bare = " ".join(_markup.sub(" ", text).split())
    if found := _dots.fullmatch(bare) or _days_first.fullmatch(bare):
        return f"{found[3]}-{int(found[2]):02}-{int(found[1]):02}"
    return text
