"""A changed value is what ``dataclasses.replace`` makes of it, and the value before stays what it was."""

from dataclasses import FrozenInstanceError, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.state.replace import changed
from agent0.state.run_state import AttemptState, TaskState

NAMES = [field.name for field in fields(AttemptState)]


@given(
    fresh=st.dictionaries(st.sampled_from(NAMES), st.integers()),
    more=st.dictionaries(st.sampled_from(NAMES), st.text()),
)
def test_it_is_what_replace_makes(fresh: dict[str, object], more: dict[str, object]) -> None:
    before = AttemptState(3, answer="7")
    kept = dict(vars(before))
    after = changed(changed(before, **fresh), **more)  # type: ignore[arg-type]
    assert after == replace(before, **{**fresh, **more})  # type: ignore[arg-type]
    assert (type(after), vars(before), repr(after)) == (AttemptState, kept, repr(replace(after)))


def test_it_is_as_frozen_as_before() -> None:
    task = changed(TaskState(0, "math", "sums", 1), accepted=True)
    assert task.resolved and task.attempts == {}
    with pytest.raises(FrozenInstanceError):
        task.accepted = False  # type: ignore[misc]


@pytest.mark.parametrize("name", ["corect", "settled", "__class__"])
def test_a_name_that_is_no_field_is_an_error(name: str) -> None:
    """A misspelt one and a property's: either would be kept beside the fields and enter the state's digest."""
    before = AttemptState(0)
    with pytest.raises(TypeError, match=f"AttemptState has no field {name}"):
        changed(before, **{name: True})  # type: ignore[arg-type]
    assert "corect" not in vars(before)
