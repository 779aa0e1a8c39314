"""A world for each test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.settings import NatsSettings, Settings
from tests.bus.toys import QUICK, World


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    return getattr(request, "param", Settings(handlers=QUICK))


@pytest.fixture
def nats_settings(settings: Settings) -> NatsSettings:
    return settings.nats


@pytest_asyncio.fixture
async def world(nats_server: Server, log: Log, settings: Settings) -> AsyncIterator[World]:
    made = World(nats_server, log, settings)
    yield made
    for bus in list(made.buses):
        await made.stop(bus)
