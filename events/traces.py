"""Trace context as the W3C recommends it: the trace of an attempt, and the span that what belongs to it is a part of.
Both follow from ids of the log, so every process names them alike. https://www.w3.org/TR/trace-context/"""

import hashlib

HEADER = "traceparent"
"""Header of a message of the log: whoever consumes it and makes spans of its own joins the attempt's trace."""
VERSION, SAMPLED = "00", "01"


def trace_of(run: str, task: str, attempt: str) -> tuple[str, str]:
    """The ids of an attempt's trace (16 bytes) and of its first span (8 bytes), in hex."""
    digest = hashlib.sha256("/".join((run, task, attempt)).encode()).hexdigest()
    return digest[:32], digest[32:48]


def traceparent(run: str, task: str, attempt: str) -> str:
    """The value of ``HEADER`` for an event of an attempt."""
    return "-".join((VERSION, *trace_of(run, task, attempt), SAMPLED))
