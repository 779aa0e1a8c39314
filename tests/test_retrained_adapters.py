"""`experiment retrain` says whether an adapter is the very same, and what recorded explains it where it is not."""

from typing import Any

import pytest

from agent0.events.checkpoints import CheckpointTrained
from agent0.events.values import Artifact
from agent0.experiments.compare_runs import adapters_answer, compare_adapters

HERE = {"processor": "Xeon 8481C", "threads": "1", "torch": "2.9.0+cpu"}


def trained(number: int, digest: str, **changes: Any) -> CheckpointTrained:
    adapter = Artifact(sha256=digest * 64, size=1, media="application/x-tar")
    fields = {"role": "student", "iteration": number, "parent": "base", "samples": 4, "environment": HERE, **changes}
    return CheckpointTrained(checkpoint=f"student-{number}", adapter=adapter, **fields)


def answered(again: list[CheckpointTrained], changed: bool = False) -> str:
    own = {one.checkpoint: one for one in (trained(0, "a"), trained(1, "b"))}
    return adapters_answer(compare_adapters(own, again), changed)


@pytest.mark.parametrize(
    ("again", "changed", "answer"),
    [
        ([trained(0, "a"), trained(1, "b")], False, "The adapters are the very same as the run's own."),
        ([trained(0, "a")], False, "The adapter is the very same as the run's own."),
        (
            [trained(0, "a"), trained(1, "c", environment=HERE | {"processor": "EPYC 9B14"})],
            False,
            "student-1 is not the very same adapter as the run's own. Where it was computed differs (processor Xeon "
            "8481C, now EPYC 9B14), which changes roundings and so explains it.",
        ),
        (
            [trained(0, "d"), trained(1, "c")],
            False,
            "student-0 is not the very same adapter as the run's own, on the same processor, threads and packages: "
            "nothing that is recorded explains it.",
        ),
        (
            [trained(0, "d", environment=HERE | {"threads": "2"})],
            True,
            "student-0 is not the very same adapter as the run's own: what it was trained on, or how, is another.",
        ),
        (
            [trained(0, "d", samples=5)],
            False,
            "student-0 is not the very same adapter as the run's own: what it was trained on, or how, is another.",
        ),
        ([trained(7, "d")], False, "The run has no adapter of its own beside them."),
    ],
)
def test_a_training_that_is_repeated_says_whether_its_adapter_is_the_very_same(
    again: list[CheckpointTrained], changed: bool, answer: str
) -> None:
    assert answered(again, changed) == answer
