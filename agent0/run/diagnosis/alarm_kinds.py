"""One kind of alarm for each way in which a run dies, whatever the alarm was named when it was raised."""

import re
from collections.abc import Mapping, Sequence

from agent0.run.diagnosis.case import Iteration, Observation
from agent0.run.diagnosis.causes.disk import FULL

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
        full = any(word in message.lower() for word in FULL)
        return "disk" if full else alarm.rpartition("/")[0], None
    if alarm.startswith("failure-"):
        return "gave-up", None
    if found := _UNTRAINED.fullmatch(alarm):
        counts = {one.number: one for one in iterations}
        return _untrained(counts.get(int(found[2])))
    return _OF_ONE.sub("", alarm), None


def _untrained(one: Iteration | None) -> tuple[str, Observation | None]:
    if one is None or not one.screened:
        return "no-contrast", None
    if one.unreadable >= MOST * one.screened:
        return "unreadable-tasks", one.examples.get("malformed")
    if one.accepted:
        return "no-contrast", one.examples.get("wrong") or one.examples.get("right")
    if one.known >= MOST * one.screened:
        return "known-tasks", _example(one.examples, "similar", "duplicate")
    return "refused-tasks", _example(one.examples, *one.refused)


def _example(examples: Mapping[str, Observation], *names: str) -> Observation | None:
    return next((examples[name] for name in names if name in examples), None)
