"""Every spelling of a teacher's reply is read as before, with its problem.

``python -m tests.test_readings`` writes what is recorded anew, where a reading is meant to change.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agent0.rollout.teacher import read_proposal
from tests.spellings import STYLES, spellings
from tests.test_same_seed import plain

RECORDED = Path(__file__).parent / "golden" / "readings.json"


def proposed(style: str) -> Iterable[Any]:
    """What is read of the replies of one style, as a short and as a long task."""
    for name, text, _ in spellings():
        if name == style:
            yield [read_proposal(text, "math", family, 3, unchecked=family == "open") for family in ("open", "ledger")]


READ = {f"replies {style.__name__}": lambda name=style.__name__: proposed(name) for style in STYLES}


def digest(name: str) -> str:
    return hashlib.sha256(json.dumps(plain(READ[name]())).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", READ)
def test_texts_are_read_as_before(name: str) -> None:
    assert digest(name) == json.loads(RECORDED.read_text())[name], "python -m tests.test_readings records it anew"


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: digest(name) for name in READ}, indent=1) + "\n")
