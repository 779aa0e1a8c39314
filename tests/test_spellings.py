"""A teacher's reply is read where it holds one task, refused where it holds none or two, and never read as another."""

import pytest

from agent0.rollout.teacher import read_proposal
from tests.spellings import STYLES, Fields, spellings


@pytest.mark.parametrize("style", [style.__name__ for style in STYLES])
def test_what_is_unambiguous_is_read_and_the_rest_is_refused(style: str) -> None:
    for name, text, fields in spellings():
        if name == style:
            proposal, problem = read_proposal(text, "math", "arithmetic", 3)
            found: Fields | None = None
            if proposal:
                found = {"question": proposal.question, "program": proposal.program} | proposal.params
            wanted = fields and {key: value.strip("\n") for key, value in fields.items()}
            assert found == wanted, f"{problem}\n{text}"
            assert bool(problem) == (proposal is None)


def test_there_are_200_spellings_of_ten_styles() -> None:
    made = spellings()
    assert len({name for name, *_ in made}) >= 10 and len(made) >= 200
    assert 40 <= sum(fields is None for *_, fields in made) <= 100
