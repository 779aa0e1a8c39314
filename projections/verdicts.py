"""One row a verdict: whether an attempt's answer holds, by which verifier and why."""

from collections.abc import Iterator

from events import tasks as facts
from events.base import Recorded
from projections.base import Row, projection, stamp


@projection(
    key=("run", "attempt", "verifier"),
    columns={
        "run": str,
        "attempt": str,
        "verifier": str,
        "task": str,
        "iteration": int,
        "correct": bool,
        "reason": str,
        "expected": str,
        "got": str,
        "time": str,
    },
    events=(facts.ResultVerified,),
)
def verdicts(e: Recorded) -> Iterator[Row]:
    """``correct`` NULL means undecided, which is not false."""
    x = e.event
    assert isinstance(x, facts.ResultVerified)  # noqa: S101 - declared above
    yield {
        "run": e.run,
        "attempt": e.attempt,
        "verifier": x.verifier,
        "task": e.task,
        "iteration": x.iteration,
        "correct": x.correct,
        "reason": x.reason,
        "expected": x.expected,
        "got": x.got,
        "time": stamp(e),
    }
