"""Part of the rim: a person's verdict on answers as the events to append."""

from agent0.errors import ConfigError, OperationError
from agent0.events.base import Event
from agent0.events.benchmarks import TaskReviewed
from agent0.grading.normal_form import normal_form
from agent0.projections.base import Row
from agent0.verification.human_review import reviewed

LONGEST_NAME = 100
LONGEST_REASON = 2000
"""Characters of a review."""


def review_events(rows: list[Row], verdicts: list[bool | None], reviewer: str, reason: str) -> list[Event]:
    """Make the events of one verdict about all of ``rows``, attempts as ``projections.reviews.judged`` gives them.

    Raises:
        ConfigError: no attempt, no verdict or several, no reviewer, attempts that answer differently.
        OperationError: an attempt without an answer yet.
    """
    if not rows:
        raise ConfigError(
            "A verdict needs an attempt.", "None was named.", "agent0 task review RUN ATTEMPT --correct …"
        )
    if len(verdicts) != 1:
        why = "Exactly one of --correct, --wrong and --cannot-tell says it."
        raise ConfigError("There is no verdict." if not verdicts else "There are several verdicts.", why)
    if not 0 < len(reviewer.strip()) <= LONGEST_NAME or len(reason) > LONGEST_REASON:
        why = f"--reviewer has 1 to {LONGEST_NAME} characters, --reason at most {LONGEST_REASON}."
        raise ConfigError("A verdict needs somebody who gives it.", why)
    if open_ones := [row["attempt"] for row in rows if row["status"] in ("requested", "working")]:
        raise OperationError(f"Attempt {open_ones[0]} is still under way.", "There is no answer to judge yet.")
    if len({row["answer"] and normal_form(row["answer"]) for row in rows}) > 1:
        names = ", ".join(row["attempt"] for row in rows)
        raise ConfigError("The attempts of this task gave different answers.", f"Name an attempt: {names}.")
    fields = {"correct": verdicts[0], "reviewer": reviewer.strip(), "reason": reason.strip()}
    out: list[Event] = []
    for row in rows:
        review = TaskReviewed(task=row["task"], attempt=row["attempt"], **fields)
        out += reviewed(review, None if row["correct"] is None else bool(row["correct"]), row["verifier"] or "")
    return out
