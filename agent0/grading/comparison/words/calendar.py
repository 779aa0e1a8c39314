"""Times of day and dates: the same minute, the same day, however they are written."""

import re

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
    (re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})"), (3, 1, 2)),
)
_time = re.compile(
    r"(?:at\s+)?(\d{1,2})(?::([0-5]\d))?\s*(a\.?m\.?|p\.?m\.?|noon|midnight|in the (?:morning|afternoon|evening)"
    r"|at night)?\.?"
)
_markup = re.compile(r"\\(?:text(?:bf|rm)?|mathrm|mbox)\s*(?=\{)|\\[!,;: ]|[${}]")
_LONGEST = 60


def _words(text: str) -> str:
    return (
        "" if len(text) > _LONGEST else " ".join(_markup.sub(" ", text.replace(r"\!", "")).lower().split()).rstrip(".")
    )


def same_date(gold: str, said: str) -> bool | None:
    """Whether both are the same day; None where ``gold`` is no date. 3/5/2024 is read as in the United States."""
    wanted = date_of(gold)
    return wanted == date_of(said) if wanted else None


def date_of(text: str) -> tuple[int, int, int] | None:
    """Return (year, 0 where none is given, month, day); None where ``text`` is no date."""
    bare = _words(text)
    for pattern, places in _DATES:
        if found := pattern.fullmatch(bare):
            year, month, day = (found[place] or "0" for place in places)
            date = (int(year), _NUMBER.get(month) or int(month), int(day))
            return date if 1 <= date[1] <= 12 and 1 <= date[2] <= 31 else None
    return None


def same_time(gold: str, said: str) -> bool | None:
    """Whether both are the same minute of the day; None where ``gold`` names no half of the day, nor ``said``.

    Hours from 1 to 12 without one are of either half.
    """
    wanted, given = time_of(gold), time_of(said)
    if wanted is None or given is None or not (wanted[1] or given[1]):
        return None
    whole = 1440 if wanted[1] and given[1] else 720
    return wanted[0] % whole == given[0] % whole


def time_of(text: str) -> tuple[int, bool] | None:
    """Return (minute of the day, whether its half is known); None where ``text`` is no time of day."""
    bare = _words(text)
    if bare in ("noon", "midnight"):
        return (720 if bare == "noon" else 0), True
    found = _time.fullmatch(bare)
    if found is None or not (found[2] or found[3]):
        return None
    hour, minute, half = int(found[1]), int(found[2] or 0), (found[3] or "").replace(".", "")
    if hour > (12 if half else 24) or (half and not hour):
        return None
    if not half:
        return hour * 60 + minute, hour == 0 or hour > 12 or found[1][0] == "0"
    late = half in ("pm", "noon", "in the afternoon", "in the evening") or (half == "at night" and hour != 12)
    return (hour % 12 + 12 * late) * 60 + minute, True
