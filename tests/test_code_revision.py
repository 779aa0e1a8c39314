"""Events name the commit that wrote them."""

import subprocess
from pathlib import Path

import pytest

from agent0.assembly.runtime.stamping import code_rev

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the tests run outside of a checkout")
def test_the_revision_is_the_commit_of_the_checkout() -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert code_rev.__wrapped__().endswith("+" + head.stdout[:12])
