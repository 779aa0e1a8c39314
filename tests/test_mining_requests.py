"""Of mining, what needs no package: mutations of a source, names of packages, addresses of an index."""

import ast
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.errors import ConfigError
from agent0.infra.web.package_index import PackageIndex
from agent0.tasks.mining.complication import complicated_function
from agent0.tasks.mining.mutations import compiles, mutated, mutations_of
from agent0.tasks.mining.packages import package_request
from agent0.tasks.mining.varied_calls import varied
from agent0.verification.repositories.simpler_function import function_measures
from agent0.verification.repositories.wrong_versions import called

MUTABLE = '''import os


@property
def f(a, b=1):
    """Its docstring stays."""
    if not a and (b or
                  a == 2):
        g(a, b)
        return -a
    else:
        x = a[1:b]
    for i in range(b):
        if i in a:
            continue
        x += max(a) * 3
    with a as c:
        x = any(c)
    return x
'''


def test_mutations_touch_one_place_of_a_function() -> None:
    source = MUTABLE.encode()
    mutations = mutations_of("m.py", source)
    assert {mutation.kind for mutation in mutations} == {
        *("arguments swapped", "block removed", "bound off by one", "branch removed", "comparison changed"),
        *("condition inverted", "constant changed", "jump exchanged", "name exchanged", "operator changed"),
        *("sign removed", "statement removed"),
    }
    assert len({mutation.key for mutation in mutations}) == len(mutations)
    for mutation in mutations:
        text = mutated(source, [mutation])
        assert (mutation.function, mutation.line, mutation.path) == ("f", 4, "m.py")
        assert text[: mutation.start] == source[: mutation.start]
        assert text.endswith(source[mutation.end :])
        assert compiles(text), mutation
        first, last = mutation.lines(source)
        after, before = text.split(b"\n"), source.split(b"\n")
        assert after[: first - 1] == before[: first - 1] and after[first - 1] != before[first - 1], mutation
        assert last == first or after[last - 1] not in before, mutation
        assert ast.get_docstring(ast.parse(text).body[1]) == "Its docstring stays."
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(source)), mutation


SIMPLE = b'''X = 1  # stays


def f(a, b):
    """Its docstring stays."""
    while a > b:
        a -= X
    if a == 3 or b == 2:
        return a + b
    return [a,
        b]


Y = (2,
     3)
'''


def test_a_complicated_function_gives_the_same_and_all_else_stays() -> None:
    head, tail = SIMPLE.partition(b"def f")[0], SIMPLE.partition(b"b]\n")[2]
    expected = _values(SIMPLE)
    texts = [complicated_function(SIMPLE, "f", 4, random.Random(seed)) for seed in range(60)]
    assert len(set(texts)) > 30
    for text in texts:
        assert text.startswith(head) and text.endswith(tail)
        assert _values(text) == expected
        assert function_measures(text, SIMPLE, "f").complexity > function_measures(SIMPLE, text, "f").complexity


def _values(source: bytes) -> list[object]:
    names: dict[str, Any] = {}
    exec(source, names)
    return [names["f"].__doc__, *(names["f"](a, b) for a in range(-2, 6) for b in range(-2, 6))]


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=6,
)


@given(st.lists(LITERALS, max_size=3), st.sampled_from(["f({})", "list(f({}))"]), st.randoms())
def test_a_varied_call_is_one_with_as_many_literals(values: list[object], form: str, rng: random.Random) -> None:
    text = varied(form.format(", ".join(map(repr, values))), rng)
    _, expression = called(text, 1, {"f"})
    inner = ast.parse(expression, mode="eval").body
    call = inner if form[0] == "f" else inner.args[0]  # type: ignore[attr-defined]
    assert len(call.args) == len(values)  # type: ignore[attr-defined]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_file_without_mutations_or_with_some(data: bytes) -> None:
    for mutation in mutations_of("m.py", b"def f():\n    return 1 + 2\n" + data):
        assert mutation.end > mutation.start


@pytest.mark.parametrize("text", ["", "../etc", "a b", "a==", "a==1..0", "a==x", "a==1..", "-a", "a" * 101, "a\n==1"])
def test_what_names_no_package_is_said(text: str) -> None:
    if text == "a==1..":
        assert package_request(text).text == "a==1"
        return
    with pytest.raises(ConfigError, match=r"names no|holds no"):
        package_request(text)


def test_names_are_normal_and_ranges_inclusive() -> None:
    request = package_request("More_Itertools==10.1..10.2")
    assert (request.name, request.text) == ("more-itertools", "more-itertools==10.1..10.2")


@pytest.mark.parametrize("url", ["http://example.org/simple", "file:///etc", "", "ftp://localhost/simple"])
def test_an_index_is_asked_where_its_digests_can_be_believed(url: str) -> None:
    with pytest.raises(ConfigError, match="no address of a package index"):
        PackageIndex(url)
