"""One row per checkpoint: what it was trained on and how, and whether it became the student."""

import re
import sqlite3
from collections.abc import Iterator

from agent0.errors import NotFoundError
from agent0.events import checkpoints as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, find, projection, select, stamp
from agent0.settings import RecipeConfig
from agent0.state.run_state import BASE

OBJECTIVE = RecipeConfig.model_fields["objective"].default
_PARSED = ("skipped", "metrics", "recipe", "environment", "distilled")
_READ = (*_PARSED, "test")


@projection(
    key=("run", "checkpoint"),
    columns={
        "run": str,
        "checkpoint": str,
        "role": str,
        "iteration": int,
        "parent": str,
        "status": str,
        "accuracy": float,
        "against": float,
        "reason": str,
        "test": str,
        "improved": bool,
        "samples": int,
        "replay": int,
        "examples": int,
        "distilled": str,
        "skipped": str,
        "adapter": str,
        "adapter_bytes": int,
        "manifest": str,
        "metrics": str,
        "recipe": str,
        "environment": str,
        "seed": int,
        "wall_s": float,
        "requested": str,
        "trained": str,
        "trained_seq": int,
        "pruned": bool,
    },
    events=(
        facts.TrainingRequested,
        facts.CheckpointTrained,
        facts.CheckpointPromoted,
        facts.CheckpointRejected,
        facts.TeacherJudged,
        facts.CheckpointRolledBack,
        facts.CheckpointPruned,
    ),
)
def checkpoints(e: Recorded) -> Iterator[Row]:
    """Checkpoints by id. ``status``: requested, trained, unchanged (nothing to learn from), promoted, rejected,
    rolled_back.

    Queries say failed where a training was given up. ``improved`` and ``test`` are the gate's. ``pruned``: its adapter
    was deleted.
    """
    match e.event:
        case facts.TrainingRequested() as x:
            request = x.model_dump(include={"checkpoint", "role", "iteration", "parent", "seed"})
            yield {"run": e.run, **request, "status": "requested", "requested": stamp(e)}
        case facts.CheckpointTrained() as x:
            yield {"run": e.run, **_trained(x), "trained": stamp(e), "trained_seq": e.seq}
        case facts.CheckpointPromoted(by="person") as x:  # what the gate found stays
            judged = x.model_dump(include={"checkpoint", "accuracy", "reason"})
            yield {"run": e.run, **judged, "status": "promoted"}
        case facts.CheckpointPromoted() | facts.CheckpointRejected() | facts.TeacherJudged() as x:
            yield {"run": e.run, **_judged(x)}
        case facts.CheckpointRolledBack() as x:
            for name in (x.checkpoint, *x.let_go):
                yield {"run": e.run, "checkpoint": name, "status": "rolled_back", "reason": x.reason}
        case facts.CheckpointPruned() as x:
            yield {"run": e.run, "checkpoint": x.checkpoint, "pruned": True}


def training_times(db: sqlite3.Connection, run: str, role: str) -> dict[str, tuple[str, float]]:
    """When each training of a role ended, and the seconds that it took, by its checkpoint; of one under way, when it
    was asked for."""
    query = "SELECT checkpoint, coalesce(trained, requested), wall_s FROM checkpoints WHERE run = ? AND role = ?"
    return {checkpoint: (end, seconds or 0.0) for checkpoint, end, seconds in db.execute(query, (run, role)) if end}


def _judged(x: facts.CheckpointPromoted | facts.CheckpointRejected | facts.TeacherJudged) -> Row:
    if isinstance(x, facts.TeacherJudged):
        status = "promoted" if x.promoted else "rejected"
        return {"checkpoint": x.checkpoint, "role": "teacher", "status": status, "reason": x.reason}
    promoted = isinstance(x, facts.CheckpointPromoted)
    return {
        **x.model_dump(include={"checkpoint", "accuracy", "against", "reason"}),
        "status": "promoted" if promoted else "rejected",
        "test": as_json(x.test.model_dump()) if x.test else None,
        "improved": getattr(x, "improved", False),
    }


def _trained(x: facts.CheckpointTrained) -> Row:
    return {
        **x.model_dump(include={"checkpoint", "role", "iteration", "parent", "samples", "replay", "wall_s"}),
        **{name: as_json(getattr(x, name)) for name in _PARSED},
        "examples": int(x.metrics.get("examples", 0)),
        "status": "trained" if x.adapter else "unchanged",
        "adapter": x.adapter.sha256 if x.adapter else None,
        "adapter_bytes": x.adapter.size if x.adapter else None,
        "manifest": x.manifest.sha256 if x.manifest else None,
    }


_STATUS = (
    "CASE WHEN status = 'requested' AND checkpoint IN (SELECT json_extract(body, '$.data.checkpoint') FROM failures"
    " JOIN events ON seq = cause_seq WHERE failures.run = checkpoints.run AND cause_type = 'TrainingRequested'"
    " AND failures.status IN ('open', 'dropped')) THEN 'failed' ELSE status END AS status"
)
"""A failure names the request that was not met, and that the checkpoint."""


def list_checkpoints(db: sqlite3.Connection, run: str) -> list[Row]:
    """List the checkpoints of a run, ordered by iteration and role. ``mismatch``: nats a token by which sampler and
    trainer differ, on average."""
    return select(
        db,
        f"SELECT checkpoint, role, iteration, parent, {_STATUS}, accuracy, against, samples, replay, examples,"  # noqa: S608 - a constant
        " wall_s, adapter, reason, round(json_extract(metrics, '$.mismatch_mean'), 4) AS mismatch FROM checkpoints"
        " WHERE run = ? ORDER BY iteration, role, checkpoint",
        (run,),
    )


def requested_trainings(db: sqlite3.Connection, run: str) -> list[Row]:
    """List the trainings of a run that have not come to an end, with the seed by which each is found on its machine."""
    sql = "SELECT run, checkpoint, role, iteration, seed FROM checkpoints WHERE run = ? AND trained IS NULL"
    return select(db, f"{sql} ORDER BY iteration, role", (run,))


def registry(db: sqlite3.Connection, run: str = "", role: str = "", status: str = "", limit: int = 100) -> list[Row]:
    """List checkpoints of all runs and experiments, newest first; ``model`` is the name that every command accepts."""
    columns = "role, status, accuracy, improved, samples, examples, adapter_bytes, pruned, adapter, trained"
    expressions = columns.replace("status", _STATUS)
    sql = (
        f"SELECT model, {columns} FROM"  # noqa: S608 - constants
        f" (SELECT run || '/' || checkpoint AS model, run, trained_seq, {expressions} FROM checkpoints)"
    )
    filters = {"run": run, "role": role, "status": status}
    return find(db, sql, filters, "trained_seq IS NULL, trained_seq DESC, model", limit)


def find_checkpoint(db: sqlite3.Connection, reference: str) -> Row:
    """Find one checkpoint by RUN/CHECKPOINT, or by the beginning of its adapter's digest.

    Raises:
        NotFoundError: there is none, or several adapters begin so.
    """
    run, slash, checkpoint = reference.partition("/")
    if slash:
        return show_checkpoint(db, run, checkpoint)
    sql = "SELECT min(run) AS run, min(checkpoint) AS checkpoint FROM checkpoints WHERE adapter GLOB ? GROUP BY adapter"
    digest = re.fullmatch(r"[0-9a-f]{6,64}", reference.lower())
    rows = select(db, sql, (f"{digest[0]}*",)) if digest else []
    if len(rows) == 1:
        return show_checkpoint(db, rows[0]["run"], rows[0]["checkpoint"])
    what = f"{len(rows)} adapters begin with" if rows else "There is no checkpoint"
    raise NotFoundError(f"{what} {reference[:80]!r}.", fix="Name RUN/CHECKPOINT; `agent0 model list` shows them.")


def show_checkpoint(db: sqlite3.Connection, run: str, checkpoint: str) -> Row:
    """One checkpoint with everything recorded of its training.

    Raises:
        NotFoundError: the run has no such checkpoint.
    """
    sql = f"SELECT *, {_STATUS} FROM checkpoints WHERE run = ? AND checkpoint = ?"  # noqa: S608 - a constant
    rows = select(db, sql, (run, checkpoint), parse=_READ)
    if not rows:
        if checkpoint == BASE:
            fix = f"Its scores: agent0 run show {run}; beside another's: agent0 model compare {run}/base OTHER"
            raise NotFoundError(f"{run}/base is no checkpoint.", "It is the untrained model.", fix)
        raise NotFoundError(f"Run {run} has no checkpoint {checkpoint!r}.", fix="See: agent0 model list")
    recipe = rows[0]["recipe"]  # what is not named is the default
    return rows[0] | {"recipe": recipe and {"objective": OBJECTIVE, **recipe}}


def find_student(db: sqlite3.Connection, reference: str) -> Row:
    """Find a checkpoint as ``find_checkpoint`` does; for RUN/base, what is known of the model that the run began with,
    and of its adapter where it began with one."""
    run, _, name = reference.partition("/")
    if name == BASE:
        sql = "SELECT body FROM events WHERE run = ? AND type = 'RunStarted'"
        begun = next(iter(select(db, sql, (run,), ("body",))), None)
        adapter = begun and begun["body"]["data"].get("student_adapter")
        base: Row = {"run": run, "checkpoint": BASE, "status": "untrained", "recipe": None}
        return base | ({"adapter": adapter["sha256"], "adapter_bytes": adapter["size"]} if adapter else {})
    return find_checkpoint(db, reference)


def list_protocol_results(db: sqlite3.Connection, run: str, checkpoint: str) -> list[facts.StudentExamined]:
    """List the evaluation protocol results of a checkpoint, oldest first."""
    sql = (
        "SELECT body FROM events WHERE run = ? AND type = 'StudentExamined'"
        " AND json_extract(body, '$.data.checkpoint') = ? ORDER BY seq"
    )
    return [facts.StudentExamined(**row["body"]["data"]) for row in select(db, sql, (run, checkpoint), ("body",))]
