"""No room: the disk, or the log's largest size."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Loss, Observation, Wait

FULL = (
    "the disk is full",
    "no space left",
    "errno 28",
    "disk quota",
    "refuses to store",
    "insufficient",
    "maximum bytes",
    "device is full",
)
"""What a server, a file system and a database say where they are full."""
OVER = ("running", "paused", "failed")
LEFT = 256 << 10
"""Bytes: a log with less room refuses batches of events."""


@cause(10)
def disk(case: Case) -> Cause | None:
    """Report a full disk or a full log: of a run that is not finished, by what handlers met or by a look at it now."""
    if case.status not in OVER:
        return None
    met = _met(case)
    free, least = case.here.get("disk_free"), case.here.get("disk_least", 0)
    room = case.here.get("log_left", LEFT)
    if room < LEFT:
        conclusion = f"the log is full: {room:,} bytes of nats.max_bytes are left, so it stores no more events"
        advice = "Raise nats.max_bytes (agent0 log init applies it), or archive the log: agent0 events archive PATH"
    elif met or (free is not None and free < least):
        left = "" if free is None else f": {free / (1 << 20):,.0f} MiB are free, a run needs {least / (1 << 20):,.0f}"
        conclusion = f"the disk is full{left}"
        advice = "Free disk space first; nothing is lost."
    else:
        return None
    return Cause("disk", case.iteration, conclusion, met, case.go_on(), advice, event=case.last)


def _met(case: Case) -> tuple[Observation, ...]:
    """What handlers met: waits that stand, and reactions given up."""
    reports: list[Wait | Loss] = [*case.waits, *case.losses]
    return tuple(
        Observation(report.message, event=report.event)
        for report in reports
        if any(sign in report.message.lower() for sign in FULL)
    )
