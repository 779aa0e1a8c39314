"""A server without a socket over a data folder that holds the story of one run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.events.base import Recorded
from agent0.settings import ApiSettings, Settings
from tests.api.served import ADDRESS, stored
from tests.story import benchmark_run, budget_entries, experiment, renumbered, whole_run
from tests.story_hostile import hostile_words
from tests.story_submissions import batch_run, submitted_task
from tests.test_report import poisoned


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose tables hold a whole run; nobody writes to it."""
    return stored(tmp_path_factory.mktemp("api"), whole_run(iterations=3))


def everything() -> list[Recorded]:
    """Two runs, a benchmark run, an experiment, budgets and submitted tasks: something for every page."""
    told = whole_run(iterations=3)
    told += renumbered(whole_run("r2", iterations=1), after=len(told))
    for more in (benchmark_run, batch_run, experiment, budget_entries, submitted_task):
        told += more(len(told))
    return told


def seeing(home: Path) -> TestClient:
    """A browser of a server that only reads ``home``."""
    held = Settings(home=home)
    context = ApiContext(held, KeyFile(home), PastTables(held))
    return TestClient(create_app(context), base_url=ADDRESS, headers={"Accept": "text/html"})


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """A browser of a folder in which every page has something to show."""
    return seeing(stored(tmp_path_factory.mktemp("whole"), everything()))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """The same, its texts written by somebody who wants to be markup."""
    return seeing(stored(tmp_path_factory.mktemp("hostile"), [hostile_words(poisoned(one)) for one in everything()]))


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
