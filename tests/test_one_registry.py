"""The registry behind every decorator that registers: order, names that are taken, modules imported once."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.registry import Registry

ROOT = Path(__file__).parents[1]
ENTRIES = st.lists(st.tuples(st.text(max_size=3), st.integers(0, 3)))


@given(ENTRIES)
def test_the_last_one_of_a_name_holds_and_names_are_sorted(entries: list[tuple[str, int]]) -> None:
    known = Registry[str, int]("numbers")
    for name, entry in entries:
        assert known.add(name, entry) == entry
    assert list(known.all().items()) == sorted(dict(entries).items())


@given(ENTRIES)
def test_an_order_of_its_own_goes_before_names(entries: list[tuple[str, int]]) -> None:
    known = Registry[str, int]("numbers", order=lambda name, entry: (-entry, name))
    for name, entry in entries:
        known.add(name, entry)
    ranks = list(known.all().values())
    assert ranks == sorted(ranks, reverse=True)


@given(ENTRIES)
def test_a_taken_name_is_refused_and_the_first_one_stays(entries: list[tuple[str, int]]) -> None:
    known, first = Registry[str, int]("numbers", same=int.__eq__), dict(reversed(entries))
    for name, entry in entries:
        if entry == first[name]:
            known.add(name, entry)
        else:
            with pytest.raises(ValueError, match="two numbers are named"):
                known.add(name, entry)
    assert known.all() == first


def test_a_decorator_returns_the_function_and_registers_what_is_made_of_it() -> None:
    known = Registry[str, tuple[str, Callable[[], int]]]("functions")

    @known.adding("one", lambda function: ("made", function))
    def one() -> int:
        return 1

    assert one() == 1
    assert known.all() == {"one": ("made", one)}


def test_modules_are_imported_once_at_the_first_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "registered_room"
    room.mkdir()
    (room / "__init__.py").write_text("from agent0.registry import Registry\nKNOWN = Registry('things', __name__)\n")
    for name in ("b", "a"):
        (room / f"{name}.py").write_text(f"from registered_room import KNOWN\nKNOWN.add({name!r}, object())\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    from registered_room import KNOWN  # type: ignore[import-not-found]

    assert KNOWN.entries == {}
    found = KNOWN.all()
    assert list(found) == ["a", "b"]
    assert KNOWN.all() == found
    del KNOWN.entries["a"]
    assert list(KNOWN.all()) == ["b"]


def test_no_other_room_looks_for_modules_by_itself() -> None:
    rooms = [
        path
        for room in ("agent0", "events", "handlers", "infra", "projections")
        for path in (ROOT / room).rglob("*.py")
    ]
    found = {str(path.relative_to(ROOT)) for path in rooms if "pkgutil" in path.read_text(encoding="utf-8")}
    assert found == {"agent0/registry.py", "agent0/cli/__init__.py"}
