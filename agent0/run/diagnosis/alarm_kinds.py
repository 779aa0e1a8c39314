"""One kind of alarm for each way in which a run dies, whatever the alarm was named when it was raised."""

import re
from collections.abc import Mapping, Sequence

from agent0.run.diagnosis.case import Iteration, Observation
from agent0.run.diagnosis.causes.environment import FULL

MOST = 0.5
"""Share of an iteration's tasks."""
_OF_ONE = re.compile(r"-(?:(?:student|teacher)-\d+|[a-z_]+-\d+)$")
"""What an alarm's name ends with where it is of one checkpoint, or of one reaction."""
_UNTRAINED = re.compile(r"no-signal-(student|teacher)-(\d+)")


def kind_of(alarm: str, message: str, iterations: Sequence[Iteration] = ()) -> tuple[str, Observation | None]:
    """Name the kind of an alarm by its name and message: ``unreadable-tasks``, ``known-tasks``, ``refused-tasks``,
    ``no-contrast``, ``gave-up``, ``disk``, ``dependency/<name>``; any other is its name, without the checkpoint that it
    is of. Returns an example with it, where the iteration of a training that had nothing to learn from is known."""
    if alarm.startswith("dependency/"):
        full = any(text in message.lower() for text in FULL)
        return "disk" if full else alarm.rpartition("/")[0], None
    if alarm.startswith("failure-"):
        return "gave-up", None
    if match := _UNTRAINED.fullmatch(alarm):
        counts = {iteration.number: iteration for iteration in iterations}
        return _untrained(counts.get(int(match[2])))
    return _OF_ONE.sub("", alarm), None


def _untrained(iteration: Iteration | None) -> tuple[str, Observation | None]:
    if iteration is None or not iteration.screened:
        return "no-contrast", None
    if iteration.unreadable >= MOST * iteration.screened:
        return "unreadable-tasks", iteration.examples.get("malformed")
    if iteration.accepted:
        return "no-contrast", iteration.examples.get("wrong") or iteration.examples.get("right")
    if iteration.repeats >= MOST * iteration.screened:
        return "known-tasks", _example(iteration.examples, "similar", "duplicate")
    return "refused-tasks", _example(iteration.examples, *iteration.refused)


def _example(examples: Mapping[str, Observation], *names: str) -> Observation | None:
    return next((examples[name] for name in names if name in examples), None)
