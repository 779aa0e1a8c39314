"""One row a fitted calibrator: what a confidence was worth before and after."""

from collections.abc import Iterator

from events import benchmarks as facts
from events.base import Recorded
from projections.base import Row, as_json, projection, stamp


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
    """Every revision is kept."""
    x = e.event
    assert isinstance(x, facts.CalibratorFitted)  # noqa: S101 - declared above
    lists = {"parameters": as_json(x.parameters), "reliability": as_json([each.model_dump() for each in x.reliability])}
    yield {"run": e.run, **x.model_dump(), **lists, "fitted": stamp(e)}
