"""The digest of a state leaves out only where a field says so."""

from dataclasses import dataclass
from typing import Annotated

from agent0.events.base import Value
from agent0.events.digest import NEVER, digest_of

# --- what is left out


class Open(Value):
    text: str = ""
    asked: int = 0
    votes: tuple[str, ...] = ()


class Quiet(Value):
    text: Annotated[str, NEVER] = ""


@dataclass(frozen=True)
class Holder:
    held: Open | Quiet
    calls: tuple[int, ...] = ()


def test_a_field_of_a_nested_value_counts_whatever_its_name_is() -> None:
    """Names that fields of a state use to stay out of its digest mean nothing elsewhere."""
    seen = [Open(), Open(text="a"), Open(asked=1), Open(votes=("a",))]
    held = [*map(Holder, seen), Holder(Open(), calls=(1,))]
    assert len({digest_of(one) for one in held}) == len(held)
    assert '"text"' in Open().model_dump_json() and digest_of(Open()) != digest_of({"asked": 0, "votes": ()})


def test_a_field_that_says_so_is_left_out() -> None:
    assert digest_of(Holder(Quiet(text="a"))) == digest_of(Holder(Quiet())) == digest_of({"calls": (), "held": {}})
