"""A work folder as a value: stored folders are loaded again, equal ones have equal manifests, differences are whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.errors import NotFoundError
from agent0.tools.snapshots import (
    LONGEST_NAME,
    MOST_BYTES,
    MOST_FILES,
    difference,
    entries,
    fingerprint,
    inventory,
    is_inside,
    kept,
    load,
    save,
)
from tests.memory import MemoryArtifacts

NAMES = st.lists(st.text(alphabet="ab./\\ \u00e9\n", max_size=4), min_size=1, max_size=3).map("/".join)
FOLDERS = st.dictionaries(NAMES.filter(is_inside), st.binary(max_size=20), max_size=6)


@given(FOLDERS)
def test_a_folder_that_is_stored_is_loaded_again(files: dict[str, bytes]) -> None:
    store = MemoryArtifacts()
    manifest = save(files, store)
    assert load(manifest, store) == files
    assert entries(manifest, store) == inventory(files)
    assert (manifest is None) == (not files)


@given(FOLDERS, FOLDERS)
def test_equal_folders_have_equal_manifests_and_fingerprints(one: dict[str, bytes], two: dict[str, bytes]) -> None:
    store = MemoryArtifacts()
    turned = dict(reversed(one.items()))
    assert save(turned, store) == save(one, store)
    assert fingerprint(turned) == fingerprint(one)
    assert (save(one, store) == save(two, store)) == (one == two) == (fingerprint(one) == fingerprint(two))


@given(FOLDERS, st.binary(max_size=5))
def test_files_that_stay_are_stored_once(files: dict[str, bytes], data: bytes) -> None:
    store = MemoryArtifacts()
    save(files, store)
    before = len(store.held)
    save({**files, "new": data}, store)
    assert len(store.held) <= before + 2


@given(FOLDERS, FOLDERS)
def test_a_difference_leads_from_one_folder_to_the_other(one: dict[str, bytes], two: dict[str, bytes]) -> None:
    changes = difference(inventory(one), inventory(two))
    built = dict(one)
    for change in changes:
        assert change.before == (len(one[change.path]) if change.path in one else None)
        assert change.after == (len(two[change.path]) if change.path in two else None)
        assert change.kind == ("added" if change.before is None else "removed" if change.after is None else "changed")
        built.pop(change.path, None)
        built |= {change.path: two[change.path]} if change.path in two else {}
    assert built == two
    assert [change.path for change in changes] == sorted({change.path for change in changes})
    assert (changes == []) == (one == two)


@given(st.dictionaries(NAMES, st.binary(max_size=20), max_size=8))
def test_what_is_kept_can_be_laid_out_again(files: dict[str, bytes]) -> None:
    held, lost = kept(files)
    assert lost == len(files) - len(held)
    for name, data in files.items():
        below = any(name.startswith(f"{other}/") for other in held)
        assert held.get(name) == (data if is_inside(name) and not below else None)
    assert kept(held) == (held, 0)
    assert list(held) == sorted(held)


def test_what_is_kept_is_bounded() -> None:
    many, lost = kept({f"{n:05}": b"" for n in range(MOST_FILES + 7)})
    assert (len(many), lost) == (MOST_FILES, 7)
    large = bytes(MOST_BYTES)
    held, lost = kept({"a": b"x", "b": large, "c": b"y"})
    assert (held, lost) == ({"a": b"x", "c": b"y"}, 1)
    assert kept({"b": large})[1] == 0
    swelling = {str(n): bytes(41_000) for n in range(1490)}
    assert sum(-(-len(data) // 4096) for data in kept(swelling)[0].values()) * 4096 <= MOST_BYTES
    assert kept({"a": b"1", "a/b": b"2", "c/d": b"3", "c": b"4"}) == ({"a": b"1", "c": b"4"}, 2)


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("a", True),
        ("a/b c/\u00e9.txt", True),
        ("..a/.b/c..", True),
        ("\n", True),
        ("x/" * (LONGEST_NAME // 2 - 1) + "x", True),
        ("x/" * (LONGEST_NAME // 2) + "x", False),
        ("x" * 255, True),
        ("x" * 256, False),
        ("\u00e9" * 128, False),
        ("\ud800", False),
        *[(name, False) for name in ("", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/..", "a/../b", "a\0b")],
    ],
)
def test_a_name_is_inside_or_not(name: str, inside: bool) -> None:
    assert is_inside(name) == inside


def test_a_folder_that_lost_a_file_is_not_loaded() -> None:
    store = MemoryArtifacts()
    manifest = save({"a": b"1", "b": b"2"}, store)
    assert manifest is not None
    store.held.pop(inventory({"a": b"1"})["a"].sha256)
    with pytest.raises(NotFoundError):
        load(manifest, store)
    store.held.pop(manifest.sha256)
    with pytest.raises(NotFoundError):
        entries(manifest, store)
