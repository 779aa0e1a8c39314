"""Part of the rim: the state of a run at any event, and what two runs differ in."""

from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.config.setting_entries import leaves
from agent0.errors import NotFoundError, OperationError
from agent0.events.base import Recorded
from agent0.infra.log.event_log import Log
from agent0.infra.log.folding import state_until
from agent0.infra.log.state_snapshots import Snapshots
from agent0.provenance.fork_history import ancestry
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import RunConfig, Settings


async def state_at(log: Log, run: str, seq: int = 0, snapshots: Snapshots | None = None) -> RunState:
    """The state of ``run`` after its last event up to ``seq`` (0: its present end), rebuilt from the beginning or from
    the nearest of ``snapshots``.

    Raises:
        NotFoundError: no such run, or ``seq`` is before its start or beyond the log.
    """
    last = await log.last_seq()
    if not 0 <= seq <= last:
        began = await run_start(log, run)
        end = f"It begins at event {began.seq} and ends at event {await log.last_seq(run)}; " if began else ""
        raise NotFoundError(f"Run {run} has no event {seq}.", f"{end}the log ends at {last}.", "See: agent0 run list")
    state: RunState | None = await state_until(log, run, seq, evolve, snapshots)
    if state is None or state.run != run:
        began = await run_start(log, run)
        fix = "See: agent0 run list" if began is None else f"It begins at event {began.seq}."
        raise NotFoundError(f"There is no run {run!r}{f' at event {seq}' if seq else ''}.", fix=fix)
    return state


async def run_start(log: Log, run: str) -> Recorded | None:
    """The event that ``run`` begins with; None where there is no such run."""
    async for stored in log.read(run, ["RunStarted"]):
        return stored
    return None


def differing(before: RunConfig, after: RunConfig) -> dict[str, object]:
    """Settings of ``after`` that are not those of ``before``, by dotted key."""
    old, new = (dict(leaves(config.model_dump(mode="json"))) for config in (before, after))
    return {key: new[key] for key in sorted(new) if new[key] != old.get(key)}


def describe_state(state: RunState) -> dict[str, object]:
    """Describe a run state: phase, checkpoints, counts, and the curriculum's statistics."""
    candidate = state.in_training.candidate
    return {
        "run": state.run,
        "seq": state.seq,
        "status": state.status,
        "phase": state.phase,
        "iteration": state.iteration,
        "student": state.student.id,
        "teacher": state.teacher.id,
        "candidate": candidate.id if candidate else None,
        "promoted": [checkpoint.id for checkpoint in state.promoted],
        "tasks": state.task_count,
        "attempts": state.attempt_count,
        "open_tasks": sum(not task.done for task in state.tasks.values()),
        "pending": sorted(state.pending | state.in_training.pending),
        "failures": sorted(state.failures),
        "arms": {
            key: {
                "closed": round(arm.closed, 3),
                "solve_rate": round(arm.solved / arm.closed, 3) if arm.closed else None,
            }
            for key, arm in sorted(state.arms.items())
        },
        "state_sha": state.digest,
    }


async def compare_states(settings: Settings, log: Log, left: str, right: str) -> dict[str, object]:
    """Two runs' settings and ends, where they differ, and where they part if one is a fork of the other.

    Raises:
        NotFoundError: no such run.
        OperationError: the same run twice.
    """
    if left == right:
        raise OperationError("That is one run.", "It differs from itself in nothing.", "Name two runs.")
    snapshots = state_snapshots(settings, log)
    first, other = [await state_at(log, run, snapshots=snapshots) for run in (left, right)]
    paths = [await ancestry(log, run) for run in (left, right)]
    both = {s.run for s in paths[0]} & {s.run for s in paths[1]}
    parts = [s.until for path in paths for s in path if s.run in both and s.until]
    before, after = describe_state(first), describe_state(other)
    skipped, old = ("run", "seq", "arms"), dict(leaves(first.config.model_dump(mode="json")))
    return {
        "left": left,
        "right": right,
        "common_until": min(parts, default=0) if both else 0,
        "settings": {key: [old.get(key), value] for key, value in differing(first.config, other.config).items()},
        "state": {k: [before[k], after[k]] for k in before if k not in skipped and before[k] != after[k]},
    }
