"""Times of day, days, months and dates: the same one, however it is written."""

import re

from agent0.grading.math.units import NUMERALS

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_NUMBER = {name: n for n, month in enumerate(MONTHS, 1) for name in (month, month[:3])} | {"sept": 9}
_LONGEST = 60
_markup = re.compile(r"\\(?:text(?:bf|rm)?|mathrm|mbox)\s*(?=\{)|\\[!,;: ]|[${}*]")
_calendar_name = re.compile(
    r"(?:(?:it|the (?:day|date|month|answer)) (?:is|was|will be|falls) |on |in |an? |the )*(?:(mon|tues?|wed(?:nes)?"
    r"|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?|(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*)"
)
_filler = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:on|the|of)\b|(?<=\d)(?:st|nd|rd|th)\b|,|\.(?= )"
)
_numeric = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})")
_time = re.compile(
    r"(?:at\s+)?(\d{1,2})(?:([:.])([0-5]\d))?\s*(a\.?\s?m|p\.?\s?m|noon|midnight|in the (?:morning|afternoon|evening)"
    r"|at night)?"
)
_whole_day = re.compile(r"(\d{1,2})\s*h\s*([0-5]\d)(?:\s*min(?:utes)?)?|([01]\d|2[0-3]):?([0-5]\d)\s*(?:hours|hrs|h)")
_spoken = re.compile(r"(?:a )?(half|quarter|[a-z]+(?:[ -][a-z]+)?)(?: minutes)? (past|to|after|before) (\w+)(.*)")
_clock = re.compile("\\s+o['\u2019]clock")
_HOURS = {**{name: n for name, n in NUMERALS.items() if n <= 12}, "noon": 12, "midnight": 0}
_MINUTES = {**{name: n for name, n in NUMERALS.items() if n < 60}, "half": 30, "quarter": 15}


def timed(gold: str, answer: str) -> tuple[str, str]:
    """Return both times of day, days of the week or months in one spelling, where the gold is one."""
    if (name := _name_of(gold)) is not None:
        return name, _name_of(answer) or answer
    if time_of(gold) is None:
        return gold, answer
    return _spelling(gold), _spelling(answer)


def same_date(gold: str, answer: str) -> bool | None:
    """Whether both are the same day; None where ``gold`` is no date. 3/5/2024 is read as in the United States."""
    expected = date_of(gold)
    return expected == date_of(answer) if expected else None


def date_of(text: str) -> tuple[int, int, int] | None:
    """Return (year, 0 where none is given, month, day); None where ``text`` is no date."""
    parts = _filler.sub(" ", _plain(text)).split()
    months, figures = [part for part in parts if part in _NUMBER], [part for part in parts if part.isdigit()]
    if len(months) == 1 and 2 <= len(parts) == len(figures) + 1 <= 3:
        year = figures[1] if len(figures) > 1 else "0000"
        date = int(year), _NUMBER[months[0]], int(figures[0])
    elif match := _numeric.fullmatch(_plain(text)):
        first, sign, second, third = match.groups()
        year, month, day = (first, second, third) if len(first) == 4 else (third, first, second)
        if len(first) < 4 and (sign == "." or int(first) > 12):
            month, day = day, month
        date = int(year), int(month), int(day)
        year = year if sign != "-" or len(first) == 4 else ""
    else:
        return None
    return date if len(year) == 4 and 1 <= date[1] <= 12 and 1 <= date[2] <= 31 else None


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
    """Return (minute of the day, whether its half is known); None where ``text`` is no time of day.

    ``17h15``, ``1715 hours``, ``5.15 pm`` and ``quarter past five p.m.`` are times, too.
    """
    bare = _clock.sub(":00", _plain(text).replace("midday", "noon").replace("twelve noon", "noon"))
    if bare in ("noon", "midnight"):
        return (720 if bare == "noon" else 0), True
    if (match := _whole_day.fullmatch(bare)) and int(match[1] or match[3]) < 24:
        return 60 * int(match[1] or match[3]) + int(match[2] or match[4]), True
    if (match := _spoken.fullmatch(bare)) and (bare := _figures(match)) == "":
        return None
    match = _time.fullmatch(bare)
    if match is None or not (match[2] == ":" or match[4]):
        return None
    hour, minute, half = int(match[1]), int(match[3] or 0), re.sub(r"[.\s](?=\s?m)|\.", "", match[4] or "")
    if hour > (12 if half else 24) or (half and not hour):
        return None
    if not half:
        return hour * 60 + minute, hour == 0 or hour > 12 or match[1][0] == "0"
    is_late = half in ("pm", "noon", "in the afternoon", "in the evening") or (half == "at night" and hour != 12)
    return (hour % 12 + 12 * is_late) * 60 + minute, True


def _plain(text: str) -> str:
    bare = _markup.sub(" ", text.replace(r"\!", "")).lower() if len(text) <= _LONGEST else ""
    return " ".join(bare.split()).strip(" .")


def _name_of(text: str) -> str | None:
    """The day of the week or month that ``text`` is."""
    match = _calendar_name.fullmatch(_plain(text))
    short = (match[1] or match[2])[:3] if match else "?"
    return next((name for name in (*DAYS, *MONTHS) if name.startswith(short)), None)


def _spelling(text: str) -> str:
    """A time of day in figures, ``text`` where it is none."""
    if (time := time_of(text)) is None:
        return text
    hour, minute = divmod(time[0] % 1440, 60)
    return f"{(hour - 1) % 12 + 1}:{minute:02}{(' p.m.' if hour >= 12 else ' a.m.') if time[1] else ''}"


def _figures(match: re.Match[str]) -> str:
    """``5:15 pm`` of ``quarter past five pm``, nothing where it is no time."""
    minutes, hour = _MINUTES.get(match[1], 0), int(match[3]) if match[3].isdigit() else _HOURS.get(match[3], 99)
    if not minutes or hour > 12:
        return ""
    total = (60 * hour + minutes * (1 if match[2] in ("past", "after") else -1)) % 1440
    half = (" pm" if total >= 720 else " am") if match[3] in ("noon", "midnight") else match[4]
    return f"{(total // 60 - 1) % 12 + 1}:{total % 60:02}{half}"
