"""One real sandbox for every test that only calls it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from infra.sandbox import Bubblewrap, open_sandbox


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox() -> AsyncIterator[Bubblewrap]:
    opened = await open_sandbox(label="tests")
    yield opened
    await opened.close()
