"""One row per fitted calibrator: the calibration of a confidence before and after."""

import sqlite3
from collections.abc import Iterator, Mapping

from agent0.events import benchmarks as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, find, projection, select, stamp


@projection(
    key=("run", "name", "signal", "revision"),
    columns={
        "run": str,
        "name": str,
        "signal": str,
        "revision": int,
        "checkpoint": str,
        "method": str,
        "parameters": str,
        "fitted_on": int,
        "scored_on": int,
        "ece_before": float,
        "ece_after": float,
        "before_lower95": float,
        "before_upper95": float,
        "lower95": float,
        "upper95": float,
        "brier_before": float,
        "brier_after": float,
        "log_loss": float,
        "auroc": float,
        "ece_floor": float,
        "reliability": str,
        "source": str,
        "fitted": str,
    },
    events=(facts.CalibratorFitted,),
)
def calibrators(e: Recorded) -> Iterator[Row]:
    """Fitted calibrators by model, checkpoint and signal; every revision is kept."""
    x = e.event
    assert isinstance(x, facts.CalibratorFitted)  # noqa: S101 - declared above
    lists = {"parameters": as_json(x.parameters), "reliability": as_json([each.model_dump() for each in x.reliability])}
    yield {"run": e.run, **x.model_dump(), **lists, "fitted": stamp(e)}


def list_calibrators(db: sqlite3.Connection, name: str = "", checkpoint: str = "", limit: int = -1) -> list[Row]:
    """List calibrators: the newest measurement first, best first within it, by cross-validated log loss."""
    filters = {"name": name, "checkpoint": checkpoint}
    order = "fitted DESC, log_loss IS NULL, log_loss, signal"
    return find(db, "SELECT * FROM calibrators", filters, order, limit, parse=("parameters", "reliability"))


def confidence(db: sqlite3.Connection, signals: Mapping[str, float], name: str, checkpoint: str) -> Row | None:
    """The probability that an answer with these signals is right, by the best calibrator that can read them.

    Of the newest measurement of model ``name`` at ``checkpoint`` (``base``, or RUN/CHECKPOINT); returns ``probability``
    and which calibrator it was. None where there is none: a calibrator of another student says nothing about this one.
    Sampled answers have calibrators of their own: ``sampled`` behind the model's name.
    """
    newest = "SELECT run FROM calibrators WHERE name = ? AND checkpoint = ? ORDER BY fitted DESC LIMIT 1"
    rows = select(
        db,
        f"SELECT * FROM calibrators WHERE run = ({newest}) AND name = ? AND checkpoint = ?"  # noqa: S608 - ours
        " ORDER BY log_loss IS NULL, log_loss, signal",
        (name, checkpoint, name, checkpoint),
        parse=("parameters",),
    )
    if not rows:
        return None
    from agent0.rollout.confidence.calibration import Candidate  # noqa: PLC0415 - takes numpy and the readers of answers with it

    for row in rows:
        candidate = Candidate(row["signal"], row["method"], tuple(row["parameters"]), row["fitted_on"])
        if candidate.fits(signals):
            fields = {
                key: row[key] for key in ("signal", "method", "run", "revision", "ece_after", "lower95", "upper95")
            }
            return {"probability": candidate.apply(signals), **fields}
    return None
