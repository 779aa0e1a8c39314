"""One row per part of a receipt: its inputs, value and weight."""

from collections.abc import Iterator

from agent0.events import tasks as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, projection


@projection(
    key=("run", "task", "attempt", "role", "reward_set", "name"),
    columns={
        "run": str,
        "task": str,
        "attempt": str,
        "role": str,
        "reward_set": str,
        "name": str,
        "iteration": int,
        "inputs": str,
        "value": float,
        "weight": float,
    },
    events=(facts.RewardAssigned,),
    computed={"worth": "value * weight"},
)
def reward_parts(e: Recorded) -> Iterator[Row]:
    """``value`` NULL means unscored, which is not zero."""
    x = e.event
    assert isinstance(x, facts.RewardAssigned)  # noqa: S101 - declared above
    for part in x.parts:
        yield {
            "run": e.run,
            "task": e.task,
            "attempt": e.attempt,
            "role": x.role,
            "reward_set": x.set,
            "name": part.name,
            "iteration": x.iteration,
            "inputs": as_json(part.inputs),
            "value": part.value,
            "weight": part.weight,
        }
