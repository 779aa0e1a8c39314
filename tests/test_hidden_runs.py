"""How long tests of a repository may take: by their processor's time, so that a busy machine refuses nothing."""

import pytest

from agent0.infra.sandbox import open_sandbox
from agent0.settings import SandboxSettings
from agent0.verification.repositories import hidden_tests
from agent0.verification.repositories.hidden_tests import run_hidden_tests

SLEEPS = "import time\n\ndef test():\n    time.sleep({})\n"
DEAF = (
    "import signal\n\ndef test():\n    signal.signal(signal.SIGXCPU, lambda *_: None)\n    while True:\n        pass\n"
)
CASES = {
    "waits as long as a busy machine makes it": (SLEEPS.format(2.5), ""),
    "waits for ever": (SLEEPS.format(600), "its tests hang"),
    "works for ever": ("def test():\n    while True:\n        pass\n", "its tests hang"),
    "works for ever, and takes no signal": (DEAF, "its tests hang"),
}


@pytest.mark.parametrize("case", CASES)
async def test_tests_hang_by_their_processors_time(case: str) -> None:
    source, problem = CASES[case]
    seconds = 1.0 if problem else 2.0
    sandbox = await open_sandbox(SandboxSettings(), root=hidden_tests.ROOT)
    try:
        run = await run_hidden_tests({"test_a.py": source.encode()}, [""], ["test_a.py"], sandbox, seconds)
    finally:
        await sandbox.close()
    assert run.problem == problem
    assert run.passed == (frozenset() if problem else {"test_a.py::test"})
