"""Names say what they hold: few are one of sixteen words that fit everything.

``LIMITS``: how many there may be in each folder, none where it is not listed. They only fall."""

import ast
from collections import Counter
from pathlib import Path

from tests.test_architecture import ROOT

VAGUE = frozenset(
    {"found", "one", "held", "said", "told", "given", "wanted", "asked", "made", "seen", "now"}
    | {"own", "word", "words", "known", "place"}
)
LIMITS = {
    "agent0/cli": 1,
    "agent0/evaluation": 11,
    "agent0/grading": 48,
    "agent0/rewards": 1,
    "agent0/training": 1,
    "infra/integrity": 1,
}


def names(tree: ast.AST) -> list[str]:
    """Every name that is bound as a variable, parameter, field, function or class."""
    bound = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.append(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.append(name)
    return bound


def room_of(path: Path) -> str:
    """The folder that a file is counted in: of ``agent0`` and ``infra`` the room, else the top-level folder."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 2 if parts[0] in ("agent0", "infra") and len(parts) > 2 else 1])


def test_vague_names_only_become_fewer() -> None:
    """No folder has more vague names than its limit."""
    counts: Counter[str] = Counter()
    for folder in ("agent0", "events", "handlers", "infra", "projections"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                counts[room_of(path)] += sum(name.strip("_") in VAGUE for name in names(ast.parse(path.read_text())))
    assert {room: count for room, count in counts.items() if count > LIMITS.get(room, 0)} == {}
