"""Durations as people write them: ``2h``, ``90m``, ``1h30m``, ``45s``, ``1d``."""

import re

from agent0.errors import ConfigError

_part = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|m|s)")
_UNITS = {"d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}
_LONGEST = 365 * _UNITS["d"]


def seconds_of(text: str, option: str = "--for") -> float:
    """Seconds of a duration that a person gave for ``option``.

    Raises:
        ConfigError: it is none, nothing, or over a year.
    """
    plain = text.strip().lower()
    parts = _part.findall(plain)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if _part.sub("", plain).strip() or not 0 < seconds <= _LONGEST:
        why = "A duration is a number and d, h, m or s, or several of them, up to a year."
        raise ConfigError(f"{option} {text[:40]!r} is no duration.", why, f"For example: {option} 2h, {option} 1h30m")
    return seconds


def time_or_iterations(duration: str, iterations: int | None) -> float | None:
    """What ``--for`` sets ``run.time_limit`` to; None where it is not given.

    Raises:
        ConfigError: it is no duration, or ``--iterations`` stands beside it.
    """
    if not duration:
        return None
    if iterations is not None:
        why = "A run ends by its time or by its iterations."
        raise ConfigError("--for and --iterations do not go together.", why, "Leave one of them out.")
    return seconds_of(duration)
