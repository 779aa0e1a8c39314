"""The walls between rooms, checked on the source: who imports whom, and who may know which outsider."""

import ast
import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache, cached_property
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture_rules import (
    BESIDE,
    ENVIRONMENT,
    FRONT,
    GUESTS,
    INNER,
    OUTSIDERS,
    PAIRS,
    REACH,
    RIM,
    RIM_KNOWS,
    ROOMS,
    WORLDLY,
)

ROOT = Path(__file__).parents[1]

FILES = sorted(str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


class Source:
    """One file: its path from the root, its text and its tree."""

    def __init__(self, path: str, text: str | None = None) -> None:
        self.path, self.room = path, path.partition("/")[0]
        self.text = (ROOT / path).read_text(encoding="utf-8") if text is None else text
        self.tree = ast.parse(self.text)
        self.rim = path == FRONT or matches(path, RIM)
        self.pure = self.room in ("events", "agent0", "handlers") and not self.rim

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of its tree, as every check walks it."""
        return (*ast.walk(self.tree),)

    def imports(self) -> Iterator[tuple[str, str]]:
        """(module, name) of every import, those in functions too, without the ``agent0.`` before a room beside it."""
        return (_in_room(module, name) for module, name in self.written())

    def written(self) -> Iterator[tuple[str, str]]:
        """(module, name) of every import as it is written; relative ones made absolute."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = ("agent0",) if self.room in BESIDE else ()
                package = (*above, *Path(self.path).parts[: -node.level]) if node.level else ()
                module = ".".join((*package, *filter(None, [node.module])))
                yield from ((module, alias.name) for alias in node.names)

    def attributes(self) -> Iterator[tuple[str, str]]:
        """(name or nothing, attribute) of every dot."""
        for node in self.nodes:
            if isinstance(node, ast.Attribute):
                yield node.value.id if isinstance(node.value, ast.Name) else "", node.attr


def _in_room(module: str, name: str) -> tuple[str, str]:
    """(``agent0.events.base``, name) for ``agent0.events.base``, (``infra``, nothing) for ``infra`` from ``agent0``."""
    if module == "agent0" and name in BESIDE:
        return name, ""
    first, _, rest = module.partition(".")
    return (rest if first == "agent0" and rest.partition(".")[0] in BESIDE else module), name


@cache
def source(path: str) -> Source:
    """A file of the project, parsed once for all checks."""
    return Source(path)


@cache
def matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def walls(file: Source) -> Iterator[str]:
    """Who imports whom: rooms know what is below them, nobody knows the rim, nobody uses another's private names."""
    for module, name in file.imports():
        room, path = module.partition(".")[0], module.replace(".", "/")
        if room in ROOMS:
            if not file.rim and room not in ROOMS[file.room]:
                yield f"imports {module}"
            named = (f"{path}.py", f"{path}/__init__.py", f"{path}/{name}.py", f"{path}/{name}/__init__.py")
            if not file.rim and any(matches(one, RIM) for one in named):
                yield f"imports {module} of the rim"
            if name.startswith("_"):
                yield f"imports {module}.{name}"
    for module, _ in file.written():
        if module.partition(".")[0] in BESIDE:
            yield f"imports {module}, which is agent0.{module} wherever it is installed"


def directions(file: Source) -> Iterator[str]:
    """A room imports lower ones only; what reaches further is a pair with a name."""
    room, inner = file.path.split("/")[:2]
    mine = "" if room != "agent0" else inner.removesuffix(".py")
    known = RIM_KNOWS.get("assembly/api" if file.path.startswith("agent0/assembly/api/") else mine, set())
    for module, name in file.imports():
        top, *rest = [*module.split("."), name]
        theirs = rest[0] if top == "agent0" and rest else ""
        if mine in RIM_KNOWS:
            if top in ROOMS and mine != theirs and (theirs or top) not in known:
                yield f"imports {module}, which {mine} does without"
        elif theirs in INNER and theirs != mine and mine not in ("api", "cli", "__init__", "__main__"):
            pairs = {(file.path, theirs), (f"{room}/{inner}", theirs)}
            if INNER[theirs] > INNER.get(mine, REACH.get(room, -1)) and not pairs & PAIRS:
                yield f"imports {module}, which stands above it"


def outsiders(file: Source) -> Iterator[str]:
    """Who may know which package, and what thought does without."""
    for module, _ in file.imports():
        top = module.partition(".")[0]
        if top in OUTSIDERS and not matches(file.path, OUTSIDERS[top]):
            yield f"imports {top}"
        if top not in {*OUTSIDERS, *ROOMS, *sys.stdlib_module_names}:
            yield f"imports {top}, which the table of outsiders does not name"
        if top in WORLDLY and file.pure and not matches(file.path, ("events/base.py", *GUESTS)):
            yield f"imports {top}, though thought does without the world"


def manners(file: Source) -> Iterator[str]:
    """Thought draws from a seed and reads no clock; settings read the environment, the log publishes."""
    for name, attribute in file.attributes():
        if file.pure and name == "random" and attribute != "Random" and not matches(file.path, GUESTS):
            yield f"random.{attribute} draws without a seed"
        if file.pure and attribute in ("now", "utcnow", "today"):
            yield "reads a clock"
        if attribute in ("environ", "getenv") and not matches(file.path, ENVIRONMENT):
            yield "reads the environment"
        if attribute == "publish" and not matches(file.path, ("infra/log/*", "infra/bus/*")):
            yield "publishes"


def sizes(file: Source) -> Iterator[str]:
    """A file fits into a head, a function onto a screen, and both say why they exist."""
    if len(file.text.splitlines()) > 400:
        yield "has more than 400 lines"
    if not ast.get_docstring(file.tree):
        yield "does not say why it exists"
    if Path(file.path).stem in ("utils", "common", "helpers", "manager", "core"):
        yield "has a name that says nothing"
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 40:
            yield f"{node.name} has more than 40 lines"


def verbs(file: Source) -> Iterator[str]:
    """A handler is its file and its durable; it neither catches, logs nor waits."""
    if file.room != "handlers" or Path(file.path).stem == "__init__":
        return
    reactions = [n for n in file.tree.body if isinstance(n, ast.AsyncFunctionDef) and n.decorator_list]
    if [n.name for n in reactions] != [Path(file.path).stem]:
        yield "does not hold the one reaction of its name"
    if any(isinstance(n, ast.Try) for n in file.nodes):
        yield "catches"
    if {"logging", "sleep"} & {part for pair in (*file.imports(), *file.attributes()) for part in pair}:
        yield "logs or waits"


CHECKS: tuple[Callable[[Source], Iterator[str]], ...] = (walls, directions, outsiders, manners, sizes, verbs)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_house(check: Callable[[Source], Iterator[str]]) -> None:
    assert [f"{path} {told}" for path in FILES for told in check(source(path))] == []


PLANTED = [
    ("handlers/x.py", "from agent0.infra.log.event_log import Log", "imports infra.log.event_log"),
    ("projections/x.py", "import agent0.handlers", "imports handlers"),
    ("projections/x.py", "import events", "imports events, which is agent0.events wherever it is installed"),
    ("events/x.py", "from agent0 import run", "imports agent0"),
    ("infra/x.py", "from agent0 import assembly", "imports agent0 of the rim"),
    ("agent0/x.py", "from agent0.cli.runs.run import start", "imports agent0.cli.runs.run of the rim"),
    ("agent0/cli/x.py", "from agent0.infra.log.event_log import _body", "imports infra.log.event_log._body"),
    ("agent0/tasks/x.py", "from agent0.rollout import y", "imports agent0.rollout, which stands above it"),
    ("infra/web/x.py", "from agent0 import tasks", "imports agent0, which stands above it"),
    ("agent0/report/x.py", "from agent0.infra.log import y", "imports infra.log, which report does without"),
    ("agent0/x.py", "import torch", "imports torch"),
    ("infra/x.py", "def f():\n    import requests", "imports requests, which the table of outsiders does not name"),
    ("agent0/x.py", "import subprocess", "imports subprocess, though thought does without the world"),
    ("agent0/x.py", "import random\nx = random.random()", "random.random draws without a seed"),
    ("handlers/x.py", "x = datetime.now()", "reads a clock"),
    ("projections/x.py", "x = os.environ", "reads the environment"),
    ("handlers/x.py", "await nc.publish('a')", "publishes"),
    ("infra/x.py", "x = 1\n" * 401, "has more than 400 lines"),
    ("infra/x.py", "def f():\n" + "    x = 1\n" * 41, "f has more than 40 lines"),
    ("agent0/utils.py", "x = 1", "has a name that says nothing"),
    ("agent0/x.py", "x = 1", "does not say why it exists"),
    ("handlers/x.py", "@on(E)\nasync def y(): ...", "does not hold the one reaction of its name"),
    ("handlers/x.py", "try:\n    x()\nfinally: pass", "catches"),
    ("handlers/x.py", "from asyncio import sleep", "logs or waits"),
]


@pytest.mark.parametrize(("path", "text", "told"), PLANTED, ids=[told for _, _, told in PLANTED])
def test_what_is_planted_is_found(path: str, text: str, told: str) -> None:
    assert told in [found for check in CHECKS for found in check(Source(path, text))]


def test_no_module_imports_itself_through_others() -> None:
    """Imports inside functions count; a name of a package is an import of its module where there is one."""
    known = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in FILES}
    graph = {
        module: {f"{m}.{n}" if f"{m}.{n}" in known else m for m, n in source(path).imports()} - {module}
        for module, path in known.items()
    }
    TopologicalSorter({m: {t for t in to if t in known} for m, to in graph.items()}).prepare()


CROWDED = ("agent0/tasks/families", "agent0/tools/builtin", "handlers", "projections")
"""Registries: one file per addition, however many."""


def test_no_room_is_crowded() -> None:
    rooms = Counter(str(Path(path).parent) for path in FILES if not path.endswith("__init__.py"))
    assert {room: n for room, n in rooms.items() if n > 14 and room not in CROWDED} == {}
    assert len({Path(path).parts[1] for path in FILES if path.startswith("agent0/") and path[7] != "_"}) <= 25


def test_every_pair_is_needed() -> None:
    for path, inner in PAIRS:
        files = [file for file in FILES if file == path or file.startswith(path + "/")]
        assert any(f"agent0.{inner}" in f"{m}.{n}" for file in files for m, n in source(file).imports()), (path, inner)


def test_one_name_is_on_the_path() -> None:
    """A stranger's wheel ``events`` or a user's folder ``infra`` is never taken for ours, nor ours for theirs."""
    assert {path.name for path in (ROOT / "src").iterdir() if path.suffix != ".egg-info"} == {"agent0"}
    assert (ROOT / "src" / "agent0").readlink() == Path("../agent0")
    for room in BESIDE:
        assert (ROOT / "agent0" / room).readlink() == Path("..") / room
        module = importlib.import_module(f"agent0.{room}")
        assert Path(str(module.__file__)).resolve() == ROOT / room / "__init__.py"


def test_the_table_names_nobody_who_is_gone() -> None:
    assert set(OUTSIDERS) <= {module.partition(".")[0] for path in FILES for module, _ in source(path).imports()}
