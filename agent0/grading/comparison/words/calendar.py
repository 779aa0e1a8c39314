"""Times of day, days, months and dates: the same one, however it is written."""

import re

from agent0.grading.math.units import NUMERALS

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_NUMBER = {name: n for n, month in enumerate(_MONTHS, 1) for name in (month, month[:3])} | {"sept": 9}
_month = "|".join(sorted(_NUMBER, key=len, reverse=True))
_day = r"(\d{1,2})(?:st|nd|rd|th)?"
_weekday = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+)?(?:on\s+)?(?:the\s+)?"
_DATES = (
    (re.compile(rf"{_weekday}({_month})\.?\s+{_day}(?:,?\s+(\d{{4}}))?"), (3, 1, 2)),
    (re.compile(rf"{_weekday}{_day}\s+(?:of\s+)?({_month})\.?(?:,?\s+(\d{{4}}))?"), (3, 2, 1)),
    (re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})"), (1, 2, 3)),
    (re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})"), (3, 2, 1)),
    (re.compile(r"(1[3-9]|2\d|3[01])/(\d{1,2})/(\d{4})"), (3, 2, 1)),
    (re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})"), (3, 1, 2)),
)
_time = re.compile(
    r"(?:at\s+)?(\d{1,2})(?::([0-5]\d))?\s*(a\.?m\.?|p\.?m\.?|noon|midnight|in the (?:morning|afternoon|evening)"
    r"|at night)?\.?"
)
_markup = re.compile(r"\\(?:text(?:bf|rm)?|mathrm|mbox)\s*(?=\{)|\\[!,;: ]|[${}]")
_LONGEST = 60
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_week = re.compile(
    r"(?:(?:it|the (?:day|date|answer)) (?:is|was|will be|falls) |on |an? |the )*(mon|tues?|wed(?:nes)?|thu(?:rs?)?"
    r"|fri|sat(?:ur)?|sun)(?:day)?\.?",
    re.I,
)
_month_name = re.compile(
    r"(?:in |it is |the month is )*(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?", re.IGNORECASE
)
_clock = re.compile("\\s+o['\u2019]clock")
_french = re.compile(r"(\d{1,2})\s*h\s*([0-5]\d)(?:\s*min(?:utes)?)?")
_military = re.compile(r"([01]\d|2[0-3]):?([0-5]\d)\s*(?:hours|hrs|h)\.?")
_dotted = re.compile(r"(\d{1,2})\.([0-5]\d)(?=\s*[ap]\.?\s?m)")
_spoken = re.compile(r"(half|quarter|[a-z]+(?:[ -][a-z]+)?(?: minutes)?) (past|to|after|before) (\w+)(.*)")
_HOURS = {"noon": 12, "midday": 12, "midnight": 0}


def _plain(text: str) -> str:
    return (
        "" if len(text) > _LONGEST else " ".join(_markup.sub(" ", text.replace(r"\!", "")).lower().split()).rstrip(".")
    )


def same_date(gold: str, answer: str) -> bool | None:
    """Whether both are the same day; None where ``gold`` is no date. 3/5/2024 is read as in the United States."""
    expected = date_of(gold)
    return expected == date_of(answer) if expected else None


def date_of(text: str) -> tuple[int, int, int] | None:
    """Return (year, 0 where none is given, month, day); None where ``text`` is no date."""
    bare = _plain(text)
    for pattern, places in _DATES:
        if match := pattern.fullmatch(bare):
            year, month, day = (match[group] or "0" for group in places)
            date = (int(year), _NUMBER.get(month) or int(month), int(day))
            return date if 1 <= date[1] <= 12 and 1 <= date[2] <= 31 else None
    return None


def same_time(gold: str, answer: str) -> bool | None:
    """Whether both are the same minute of the day; None where ``gold`` names no half of the day, nor ``answer``.

    Hours from 1 to 12 without one are of either half.
    """
    expected, time = time_of(gold), time_of(answer)
    if expected is None or time is None or not (expected[1] or time[1]):
        return None
    whole = 1440 if expected[1] and time[1] else 720
    return expected[0] % whole == time[0] % whole


def time_of(text: str) -> tuple[int, bool] | None:
    """Return (minute of the day, whether its half is known); None where ``text`` is no time of day."""
    bare = _plain(text)
    if bare in ("noon", "midnight"):
        return (720 if bare == "noon" else 0), True
    match = _time.fullmatch(bare)
    if match is None or not (match[2] or match[3]):
        return None
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").replace(".", "")
    if hour > (12 if half else 24) or (half and not hour):
        return None
    if not half:
        return hour * 60 + minute, hour == 0 or hour > 12 or match[1][0] == "0"
    late = half in ("pm", "noon", "in the afternoon", "in the evening") or (half == "at night" and hour != 12)
    return (hour % 12 + 12 * late) * 60 + minute, True


def timed(gold: str, answer: str) -> tuple[str, str]:
    """Return both times of day, and days of the week, in one spelling, where the gold is one."""
    if len(gold) > _LONGEST or len(answer) > _LONGEST:
        return gold, answer
    if weekday(gold) is not None:
        return gold, weekday(answer) or answer
    if monthly(gold) is not None:
        return gold, monthly(answer) or answer
    expected = clock(gold)
    return (expected, clock(answer)) if time_of(expected) else (gold, answer)


def weekday(text: str) -> str | None:
    """The day of the week that ``text`` is, None where it is none."""
    match = _week.fullmatch(" ".join(_markup.sub(" ", text).strip(" .*").split()))
    return next(day for day in _DAYS if day.startswith(match[1].lower()[:3])) if match else None


def monthly(text: str) -> str | None:
    """The month that ``text`` is, None where it is none."""
    match = _month_name.fullmatch(" ".join(_markup.sub(" ", text).strip(" .*").split()))
    return next((month for month in _MONTHS if month.startswith(match[1].lower()[:3])), None) if match else None


def clock(text: str) -> str:
    """``5:15 p.m.`` of ``17h15``, ``5.15 pm``, ``1715 hours`` and ``quarter past five p.m.``; else ``text``."""
    bare = " ".join(_markup.sub(" ", text.replace(r"\!", "")).lower().split()).strip(" .*")
    bare = _clock.sub(":00", bare.replace("midday", "noon"))
    if match := _french.fullmatch(bare) or _military.fullmatch(bare):
        return _of_day(60 * int(match[1]) + int(match[2])) if int(match[1]) < 24 else text
    if (match := _spoken.fullmatch(bare)) and (minute := _minute(match)) is not None:
        return minute
    bare = _dotted.sub(r"\1:\2", bare)
    return bare if time_of(bare) else text


def _of_day(minute: int) -> str:
    hour = minute // 60
    return f"{(hour - 1) % 12 + 1}:{minute % 60:02} {'p.m.' if hour >= 12 else 'a.m.'}"


def _minute(match: re.Match[str]) -> str | None:
    duration = match[1].removesuffix(" minutes").removeprefix("a ")
    minutes = {"half": 30, "quarter": 15}.get(duration) or NUMERALS.get(duration)
    hour = _HOURS.get(match[3])
    hour = hour if hour is not None else int(match[3]) if match[3].isdigit() else NUMERALS.get(match[3])
    if not minutes or minutes > 59 or hour is None or hour > 12:
        return None
    total = (60 * hour + minutes * (1 if match[2] in ("past", "after") else -1)) % 1440
    if match[3] in _HOURS:
        return _of_day(total)
    return f"{(total // 60 - 1) % 12 + 1}:{total % 60:02}{match[4]}"
