"""What today's monitors say of a recorded run: which alarm stands from which iteration on. Pure: from events alone."""

from collections.abc import Iterable

from agent0.events.base import Recorded
from agent0.events.runs import IterationMeasured
from agent0.run.lifecycle import evolve
from agent0.run.monitors import guards
from agent0.run.monitors.iteration_metrics import measure
from agent0.state.run_state import RunState


def alarms_in(events: Iterable[Recorded]) -> dict[str, int]:
    """Measure each iteration of a run again where it was measured; returns the first iteration in which each monitor
    would have raised its alarm, by the monitor's name."""
    state: RunState | None = None
    history: list[dict[str, float]] = []
    first: dict[str, int] = {}
    for recorded in events:
        state = evolve(state, recorded)
        if state is None or not isinstance(recorded.event, IterationMeasured):
            continue
        history.append(measure(state))
        for name, watch in guards(state.config).items():
            if getattr(state.config.guards, name) != "off" and watch(history, state.config.guards):
                first.setdefault(name, recorded.event.iteration)
    return first
