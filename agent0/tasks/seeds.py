"""Seeds derived from what they are for."""

from agent0.events.base import sha256


def derive_seed(*parts: object) -> int:
    """Derive a 63-bit seed from ``parts`` by sha256: one for each purpose, the same parts always give the same seed."""
    return int(sha256("/".join(map(str, parts)))[:16], 16) >> 1
