"""What a measurement of gains writes into the log."""

from datetime import UTC, datetime

from agent0.events.base import Recorded, record, sha256
from agent0.events.tasks import GainRequested, ProbeSelected, SubsetMeasured
from agent0.events.values import Artifact

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def measured_gains(run: str = "run-1") -> list[Recorded]:
    """One measurement with two subsets, from its request on."""
    name = "gain-0"
    asked = GainRequested(
        measurement=name, iteration=0, student="base", after=1, until=9, replay_after=1, seed=7, state_sha=sha256("s")
    )
    probe = ProbeSelected(
        measurement=name,
        iteration=0,
        subsets=(("t0-000",), ("t0-001", "t0-002")),
        levels=(8, 9),
        drawn=8,
        n=4,
        tasks=Artifact(sha256=sha256("probe"), size=900, media="application/jsonl"),
        tokens=80,
    )
    results = [
        SubsetMeasured(
            measurement=name, iteration=0, number=number, gain=share, outcomes=marks, samples=3, replay=0, steps=8
        )
        for number, (share, marks) in enumerate(((0.25, "1000"), (0.5, "0110")))
    ]
    return [record(event, run=run, time=NOON) for event in (asked, probe, *results)]
