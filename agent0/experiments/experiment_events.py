"""Events of experiments: how one begins and ends, and the ids of what it says, the same however often it is said."""

import json
from collections.abc import Iterable, Mapping
from typing import Literal

from agent0.errors import OperationError
from agent0.events.base import Event, effect_id, sha256
from agent0.events.experiments import ExperimentStarted


def start_of(
    kind: Literal["rescore", "reverify"], name: str, run: str, until: int, policy: Mapping[str, object]
) -> ExperimentStarted:
    """The first event of an experiment on ``run`` up to ``until``, in which something is decided again."""
    return ExperimentStarted(
        name=name,
        kind=kind,
        source=run,
        run=run,
        until=until,
        policy=dict(policy),
        policy_sha=sha256(str(sorted(policy.items()))),
    )


def check_same(name: str, begun: ExperimentStarted | None, start: ExperimentStarted) -> None:
    """Raises OperationError where the experiment of this name asked something else than ``start``."""
    if begun is not None and begun != start:
        why = f"It is a {begun.kind} of {begun.source}." if begun.source != start.source else "Its rules were others."
        raise OperationError(f"Experiment {name} asked something else.", why, "Choose another name.")


def experiment_event_id(experiment: str, cause: str, number: int) -> str:
    """The id of an experiment's event about ``cause``: the same however often it is run."""
    return effect_id(cause, experiment, number)


def events_digest(events: Iterable[Event]) -> str:
    """sha256 over the canonical data of an experiment's events, in order."""
    return sha256("\n".join(json.dumps(each.model_dump(mode="json"), sort_keys=True) for each in events))


def numbers(summary: Mapping[str, object]) -> dict[str, float]:
    """Of a summary, what is a number, by dotted name."""
    out: dict[str, float] = {}
    for key, value in summary.items():
        if isinstance(value, Mapping):
            out |= {f"{key}.{name}": number for name, number in numbers(value).items()}
        elif isinstance(value, int | float):
            out[key] = float(value)
    return out
