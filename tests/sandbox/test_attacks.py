"""Every attack through the engine, once, several at a time: what it may end in, and that nothing of the host was seen,
touched, reached or left running, and that the next call is served.
"""

import asyncio
import os
from collections.abc import Iterator

import pytest

from tests.sandbox import campaign as campaigns
from tests.sandbox.attacks import ATTACKS, Attack
from tests.sandbox.campaign import SECRET, VARIABLE, Campaign, canaries, through_engine
from tests.sandbox.opened import open_bubblewrap
from tests.sandbox.processes import descendants


@pytest.fixture(scope="module")
def campaign() -> Iterator[Campaign]:
    with pytest.MonkeyPatch.context() as patch, canaries() as planted:
        patch.setenv(VARIABLE, SECRET)
        yield asyncio.run(_campaign(planted))


async def _campaign(planted: campaigns.Canaries) -> Campaign:
    others = frozenset(descendants(os.getpid()))  # of tests that ran before in this process
    sandbox = await open_bubblewrap()
    try:
        return await campaigns.run(through_engine(sandbox), ATTACKS, planted, others)
    finally:
        await sandbox.close()


@pytest.mark.parametrize("attack", ATTACKS, ids=[a.id for a in ATTACKS])
def test_attack_comes_to_nothing(attack: Attack, campaign: Campaign) -> None:
    assert campaign.faults(attack) == [], str(campaign.seen[attack.id])


def test_nothing_reached_the_host(campaign: Campaign) -> None:
    assert campaign.wounds == []


def test_the_suite_is_whole() -> None:
    assert len(ATTACKS) == len({a.id for a in ATTACKS}) >= 155
