"""Columns that pages and tables share."""

WITHIN = ("checked", "checkable", "solved_at_once", "solved_within", "lower95_within", "upper95_within")
"""What stands beside accuracy where answers could be checked."""
