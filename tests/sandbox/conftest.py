"""One real sandbox for every test that only calls it, and the count of attacks that were held."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent0.infra.sandbox import Bubblewrap
from tests.sandbox.opened import open_bubblewrap

ENTRIES = {"test_attacks.py": "the engine", "test_attacks_served.py": "agent0 tool serve"}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox() -> AsyncIterator[Bubblewrap]:
    opened = await open_bubblewrap()
    yield opened
    await opened.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many attacks came through which entry point, and how many of them were held."""
    tried: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            path, _, test = report.nodeid.partition("::")
            if test.startswith("test_attack_comes_to_nothing"):
                entry = ENTRIES[Path(path).name]
                tried[entry] += 1
                held[entry] += outcome == "passed"
    for entry, count in sorted(tried.items()):
        terminalreporter.write_line(f"{count} hostile programs through {entry}, {held[entry]} held")
