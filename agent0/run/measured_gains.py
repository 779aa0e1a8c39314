"""What the events of a measurement of gains change in a run's state."""

from agent0.events.alarms import ReactionDropped
from agent0.events.tasks import GainRequested, ProbeSelected, SubsetMeasured
from agent0.state.measurements import GainState
from agent0.state.replace import changed
from agent0.state.run_state import RunState


def gain_requested(state: RunState, event: GainRequested) -> RunState:
    """Begin the measurement that the phase waits for."""
    return changed(state, gain=GainState(event)) if event.measurement in state.pending else state


def gain_measured(state: RunState, event: ProbeSelected | SubsetMeasured) -> RunState:
    """Take in a result; the phase waits no longer once every subset has one."""
    gain = state.gain
    if gain is None or event.measurement not in state.pending:
        return state
    if isinstance(event, ProbeSelected):
        gain = changed(gain, probe=event)
    else:
        gain = changed(gain, gains=(*gain.gains, event.gain))
    pending = state.pending - {event.measurement} if gain.complete else state.pending
    return changed(state, gain=gain, pending=pending)


def unmeasured(state: RunState, event: ReactionDropped) -> RunState:
    """A measurement was given up, and all of its results with it; or the rewards that had waited for it were."""
    match event.failed_handler:
        case "measure_gain":
            return changed(state, gain=None, pending=state.pending - {event.cause_task})
        case "assign_reward":
            return changed(state, tasks={name: changed(task, closed=True) for name, task in state.tasks.items()})
    return state
