"""Whoever ends an owner while its sandbox starts, and whenever: nothing of it stays alive."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TRIALS = 6
"""Three ways to end, two of each. With bubblewrap killed at any moment one in three left something, or hung."""


@pytest.mark.slow  # part of make knockout
def test_an_owner_that_ends_during_a_start_leaves_nothing() -> None:
    words = [sys.executable, "-m", "tests.sandbox.orphans", "1", str(TRIALS)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=True)
    assert json.loads(done.stdout) == []
