"""Names say what they hold: few are one of sixteen words that fit everything."""

import ast
from collections.abc import Iterable

from tests.test_architecture import FILES, source

VAGUE = frozenset(
    {"found", "one", "held", "said", "told", "given", "wanted", "asked", "made", "seen", "now"}
    | {"own", "word", "words", "known", "place"}
)
LARGEST_SHARE = 0.003
"""Of all names that the product binds."""
LAYERS = frozenset({"ForkServer", "Tool", "ToolCall", "Trajectory"})
"""Classes of one name that are the same idea: in the log and in an API, outside and inside the
sandbox."""
OVERLOADED = frozenset(
    {"Answer", "Asked", "Check", "Decoder", "Engine", "FullError", "Guard", "Link", "Loss"}
    | {"Pace", "Plan", "Probe", "Progress", "Reporter", "Row", "Score", "Server", "Shape"}
    | {"Span", "Standing", "Training", "Views", "Weights"}
)
"""Classes of one name that are different things. Their number only falls."""


def names(nodes: Iterable[ast.AST]) -> list[str]:
    """Every name that is bound as a variable, parameter, field, function or class."""
    bound = []
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.append(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.append(name)
    return bound


def test_few_names_are_words_that_fit_everything() -> None:
    """Where this fails, ``vague`` has the places of all."""
    bound = [(path, name) for path in FILES for name in names(source(path).nodes)]
    vague = [(path, name) for path, name in bound if name.strip("_") in VAGUE]
    assert len(vague) <= LARGEST_SHARE * len(bound), vague


def test_a_class_name_stands_for_one_thing() -> None:
    """Where this fails, name the class for what sets it apart; or it is the same idea in two ``LAYERS``."""
    files: dict[str, list[str]] = {}
    for path in FILES:
        for node in source(path).nodes:
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name.strip("_"), []).append(f"{path}:{node.lineno}")
    several = {name: places for name, places in files.items() if len(places) > 1}
    assert {name: places for name, places in several.items() if name not in LAYERS | OVERLOADED} == {}
