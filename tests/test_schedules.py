"""Who is trained when: both, in turns, or one alone; and a run under any schedule comes to its end."""

import asyncio

import pytest

from agent0.events.checkpoints import CheckpointTrained
from agent0.settings import RunConfig
from tests.play import play
from tests.world import ports, small, started

WANTED = {
    "joint": [(0, "student"), (0, "teacher"), (1, "student"), (1, "teacher")],
    "alternate": [(0, "teacher"), (1, "student")],
    "student": [(0, "student"), (1, "student")],
    "teacher": [(0, "teacher"), (1, "teacher")],
}


@pytest.mark.parametrize("schedule", WANTED)
def test_a_schedule_says_who_is_trained(schedule: str) -> None:
    plain = small().model_dump() | {"iterations": 2}
    config = RunConfig.model_validate(plain | {"training": plain["training"] | {"schedule": schedule}})
    told = asyncio.run(play(started(config), ports()))
    assert told[-1].type == "RunFinished"
    trained = [r.event for r in told if isinstance(r.event, CheckpointTrained)]
    assert sorted((event.iteration, event.role) for event in trained) == WANTED[schedule]
