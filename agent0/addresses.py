"""Addresses as they may be shown: a user and a password in one are for the server alone."""

import re

_CREDENTIALS = re.compile(r"(?<=://)(?:(?:(?!://)[^\s@'\"])*@)+")


def bare_url(text: str) -> str:
    """``text`` with no user and no password in any address in it."""
    return _CREDENTIALS.sub("", text) if "@" in text else text
