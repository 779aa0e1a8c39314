"""Whoever watches a long run from a snapshot on is told what those are told who read it from its start."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from agent0.assembly.replay.past_states import state_at
from agent0.assembly.runtime.progress import Milestone, Progress, taken_up
from tests.bus.test_state_snapshots import RUN, kept, knows_quickly, positions
from tests.bus.toys import World
from tests.test_run import brief, played
from tests.world import NOON


async def milestones(world: World, progress: Progress, after: int) -> list[Milestone]:
    found = [progress.feed(one) async for one in world.log.read(RUN, after=after)]
    return [replace(one, left_s=None) for one in found if one]


async def test_progress_from_a_snapshot_is_that_from_the_start(world: World, tmp_path: Path) -> None:
    await world.put(*played(brief(iterations=5), seed=3))
    plain, begun = await taken_up(world.log, RUN)
    whole = await milestones(world, plain, begun)
    await knows_quickly(world.log, kept(world.log, tmp_path))
    assert begun == 0 and [one.iteration for one in whole] == [-1, 0, 1, 2, 3, 4]

    progress, after = await taken_up(world.log, RUN, kept(world.log, tmp_path))
    assert after in positions(tmp_path) and progress.state == await state_at(world.log, RUN, after)
    told = await milestones(world, progress, after)
    assert told and told == whole[-len(told) :] and told[-1].iteration == 4
    later = NOON + timedelta(hours=1)
    assert progress.pace(later) == plain.pace(later)
    assert (progress.state, progress.over, progress.trainings) == (plain.state, plain.over, plain.trainings)


async def test_a_short_run_is_told_from_its_start(world: World, tmp_path: Path) -> None:
    await world.put(*played(brief(iterations=1), seed=3)[:40])
    await knows_quickly(world.log, kept(world.log, tmp_path))
    assert (await taken_up(world.log, RUN, kept(world.log, tmp_path)))[1] == 0
