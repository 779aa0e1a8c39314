"""One row a calibrator: what a confidence was worth before and after."""

from collections.abc import Iterator

from events import benchmarks as facts
from events.base import Recorded
from projections.base import Row, as_json, projection, stamp


@projection(
    key=("run", "name"),
    columns={
        "run": str,
        "name": str,
        "signal": str,
        "method": str,
        "parameters": str,
        "fitted_on": int,
        "scored_on": int,
        "ece_before": float,
        "ece_after": float,
        "lower95": float,
        "upper95": float,
        "brier_before": float,
        "brier_after": float,
        "source": str,
        "fitted": str,
    },
    events=(facts.CalibratorFitted,),
)
def calibrators(e: Recorded) -> Iterator[Row]:
    """The last one of each name."""
    x = e.event
    assert isinstance(x, facts.CalibratorFitted)  # noqa: S101 - declared above
    yield {"run": e.run, **x.model_dump(), "parameters": as_json(x.parameters), "fitted": stamp(e)}
