"""A server without a socket over a data folder that holds the story of one run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.keys import KeyFile
from agent0.api.past import PastTables
from agent0.settings import ApiSettings, Settings
from tests.api.served import ADDRESS, stored
from tests.story import whole_run


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose tables hold a whole run; nobody writes to it."""
    return stored(tmp_path_factory.mktemp("api"), whole_run(iterations=3))


@pytest.fixture(scope="session")
def context(home: Path) -> Iterator[ApiContext]:
    settings = Settings(home=home, api=ApiSettings(hosts=("testserver",)))
    held = ApiContext(settings, KeyFile(home), PastTables(settings))
    yield held
    held.past.close()


@pytest.fixture(scope="session")
def app(context: ApiContext) -> FastAPI:
    return create_app(context)


@pytest.fixture(scope="session")
def client(app: FastAPI) -> TestClient:
    return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)
