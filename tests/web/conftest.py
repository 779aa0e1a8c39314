"""One proxy process whose internet is 127.0.0.1, and one real sandbox, for every test that only uses them."""

from collections.abc import AsyncIterator

import pytest_asyncio

from agent0.infra.sandbox import Bubblewrap
from agent0.infra.web.proxy import WebProxy
from agent0.settings import WebSettings
from tests.sandbox.opened import open_bubblewrap

OPEN = ("tests.web.open_worker",)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def proxy() -> AsyncIterator[WebProxy]:
    opened = WebProxy(WebSettings(enabled=True, timeout_s=5, max_bytes=10_000), worker=OPEN)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox() -> AsyncIterator[Bubblewrap]:
    opened = await open_bubblewrap()
    yield opened
    await opened.close()
