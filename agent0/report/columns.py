"""Columns that pages and tables share."""

UNTRAINED = "untrained"


def shown_iteration(number: int) -> str:
    """An iteration as people read it: counted from 1, and ``untrained`` for what stands before the first. In events,
    ids and JSON the first one is 0, and -1 stands before it."""
    return UNTRAINED if number < 0 else str(number + 1)


WITHIN = ("checked", "checkable", "solved_at_once", "solved_within", "lower95_within", "upper95_within")
"""What stands beside accuracy where answers could be checked."""
