"""What the documents say is what the code does: pages, links, commands, settings, messages, exit codes."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin

import pytest
from typer.main import get_command

from agent0.cli import build
from agent0.cli.system import docs_pages
from agent0.config.setting_entries import fields
from agent0.errors import ErrorKind
from agent0.events.base import event_types
from agent0.events.values import ToolState
from agent0.grading.math import symbolic
from agent0.settings import PolicyConfig
from agent0.tools import tools
from agent0.tools.builtin import run_tests
from tests import test_architecture

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference" / "README.md"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for page in ROOT.glob("docs/**/*.md") if page.parent != REFERENCE.parent),
        REFERENCE,
        *ROOT.glob("integrations/*.md"),
        *ROOT.glob("integrations/*/*.md"),
    ]
)
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

OTHERS = {
    "setting up uid map: Permission denied",
    "No permissions to create new namespace",
    "No matching distribution found",
    "Cannot connect to the Docker daemon",
    "No such image: agent0-sandbox",
}
"""Messages of bubblewrap, pip and Docker."""


def test_the_reference_is_built_from_the_code(tmp_path: Path) -> None:
    docs_pages.write(tmp_path)
    ours = [name for name, kind in event_types().items() if kind.__module__.startswith("agent0.events.")]
    built = {page.name: page.read_text() for page in tmp_path.iterdir()}
    assert built.keys() == set(re.findall(r"^\| `([a-z]+\.md)`", REFERENCE.read_text(), re.MULTILINE))
    assert all(f"| `{key}` |" in built["config.md"] for key, _ in fields())
    assert all(f"### {kind}\n" in built["events.md"] for kind in ours)


def test_every_command_is_on_its_page() -> None:
    text = docs_pages.cli_page()
    known = {path: command for path, command in commands(get_command(build()), ("agent0",)) if not inner(command)}
    assert len(known) > 25
    for path, command in known.items():
        said = text.partition(f"## {' '.join(path)}\n")[2].partition("\n## ")[0]
        assert " ".join(command.help.split()) in said, path
        options = [opt for p in command.params if p.name != "help" for opt in p.opts if opt.startswith("--")]
        assert all(opt in said for opt in options), path


def test_every_tool_is_on_its_page() -> None:
    text = docs_pages.tools_page()
    assert list(docs_pages.STATES) == [state.value for state in ToolState]
    assert len(tools()) > 10
    for name, entry in tools().items():
        said = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert entry.spec.description in said, name
        assert all(f"| `{argument}` |" in said for argument in entry.arguments.model_fields)
        assert all(example.output in said for example in entry.examples if example.output is not None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not re.match(r"https?:", target):
            name, _, anchor = target.partition("#")
            there = page.parent / name if name else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), target


def anchors(page: Path) -> set[str]:
    """What a link into a page may name: GitHub's anchors of its headings."""
    headings = re.findall(r"^#+ (.+)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.stem)
def test_a_result_begins_with_its_answer_then_one_table(page: Path) -> None:
    before, _, rest = page.read_text().partition("\n| ")
    said = [line for line in before.partition("\n# ")[2].splitlines()[1:] or before.splitlines()[1:] if line]
    answer = [line for line in said if line.startswith("- ")] or said
    assert 1 <= len(answer) <= 5 and rest
    assert "<details>" not in before and "\n## " not in before


def test_every_guide_reference_design_and_result_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    named = {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", index)}
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert {page for page in pages if "/decisions/" not in page} - {"index.md"} <= named


def test_the_overview_is_short() -> None:
    assert len((ROOT / "docs" / "overview.md").read_text().split()) <= 2000


def test_the_walk_of_a_task_opens_at_most_25_files_that_exist() -> None:
    text = (ROOT / "docs" / "design" / "architecture.md").read_text()
    walk = text.partition("## From TaskProposed to CheckpointTrained\n")[2].partition("\n## ")[0]
    files = re.findall(r"^\d+\. `([^`]+\.py)`", walk, re.MULTILINE)
    assert 10 < len(set(files)) == len(files) <= 25
    assert [file for file in files if not (ROOT / file).exists()] == []


ROOT_COMMAND = get_command(build())


@every_page
def test_commands_exist(page: Path) -> None:
    for line in code(page):
        for found in re.finditer(r"(?:^|[ `/])agent0 ((?:[a-z-]+ ?)+[^`#;|>]*)", line):
            words = found[1].split()
            command, path = ROOT_COMMAND, []
            while inner(command):
                assert words and words[0] in inner(command), line
                path.append(words.pop(0))
                command = inner(command)[path[-1]]
            flags = {opt for p in command.params for opt in (*p.opts, *p.secondary_opts)} | {"--help"}
            assert {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)} <= flags, line


@every_page
def test_make_words_exist(page: Path) -> None:
    known = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in code(page):
        for found in re.finditer(r"(?:^|[ `])make ([a-z0-9]+)", line):
            assert found[1] in known, line


TABLES = [key for key, field in fields() if get_origin(field.annotation) is dict]
"""Settings whose keys users name."""


@every_page
def test_settings_exist(page: Path) -> None:
    known = [key for key, _ in fields()]
    pattern = r"(?<![\w./])((?:run|nats|handlers|sandbox|models)(?:\.[a-z_<>]+)+)(?!\.?\w|\()"
    for line in code(page):
        for key in re.findall(pattern, line):
            wanted = re.escape(key).replace("<role>", "(student|teacher)")
            table = any(key.startswith(f"{table}.") for table in TABLES)
            assert key.endswith(".py") or table or any(re.match(rf"{wanted}($|\.)", one) for one in known), line


@every_page
def test_files_exist(page: Path) -> None:
    rooms = "agent0|events|handlers|infra|projections|tests|benchmarks|studies|docs|integrations"
    for line in code(page):
        for path in re.findall(rf"(?<![\w./-])((?:{rooms})/[a-z][\w./-]*\w)(?![\w<])", line):
            assert (ROOT / path).exists(), line


def test_messages_are_the_ones_people_meet() -> None:
    rooms = ("agent0", "events", "handlers", "infra", "projections")
    sources = [path.read_text() for room in rooms for path in (ROOT / room).rglob("*.py")]
    text = re.sub(r"\{[^{}\n]*\}", "…", "\n".join(sources)) + (ROOT / "Makefile").read_text()
    for page, cell in first_cells():
        for quoted in re.findall(r"`([^`]+)`", cell):
            parts = [] if quoted in OTHERS else [part.strip(" :") for part in quoted.split("…")]
            for part in filter(None, parts):
                name = part.partition(" is not available")[0]
                assert part in text or f'DependencyError("{name}"' in text, (page, quoted)


def first_cells() -> Iterator[tuple[str, str]]:
    text = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text()
    for line in text.partition("## Setting up")[2].splitlines():
        if line.startswith("| ") and not line.startswith("| you see"):
            yield "troubleshooting.md", line.split(" | ")[0]


def test_exit_codes_are_all_told() -> None:
    page = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text()
    text = page.partition("## Exit codes")[2].partition("\n## ")[0]
    told = {int(code) for cell in re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE) for code in cell.split(",")}
    assert told == {0, 129, 130, 143, *(kind.exit_code for kind in ErrorKind)}


def test_the_readme_names_the_folders() -> None:
    text = (ROOT / "README.md").read_text()
    drawn = text.partition("## The five folders\n\n```\n")[2].partition("```")[0].splitlines()
    assert sorted(line.partition("/")[0] for line in drawn) == sorted(test_architecture.ROOMS)


def test_the_first_screen_of_the_readme_has_a_picture_and_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    first = text.splitlines()[:24]
    assert any(line.startswith("![") and "(docs/results/run-tiny.png)" in line for line in first)
    assert [line.split("  ")[0] for line in first if line.startswith("make ")] == ["make run", "make test"]
    assert len(text.split()) <= 1000


def test_decisions_are_listed() -> None:
    listed = re.findall(r"\]\((\d{3}-[a-z0-9-]+\.md)\)", (ROOT / "docs/design/decisions/README.md").read_text())
    assert listed == sorted(page.name for page in (ROOT / "docs/design/decisions").glob("[0-9]*.md"))
    for page in listed:
        text = (ROOT / "docs/design/decisions" / page).read_text()
        assert text.startswith(f"# {page[:3]} ")
        assert all(f"**{word}.**" in text for word in ("Context", "Choice", "Price"))


def fake(folder: Path, **said: str) -> dict[str, str]:
    """An environment whose programs say just this."""
    for name, line in said.items():
        (folder / name).write_text(f"#!/bin/sh\necho {line}\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize(
    ("word", "said", "told"),
    [
        ("linux", {"uname": "Darwin"}, "brew install lima"),
        ("linux", {"uname": "MINGW64_NT-10.0"}, "wsl --install"),
        ("bubblewrap", {"uname": "Linux", "id": "1000"}, "sudo apt-get install -y bubblewrap"),
    ],
)
def test_make_says_what_is_missing(tmp_path: Path, word: str, said: dict[str, str], told: str) -> None:
    make = shutil.which("make") or ""
    done = subprocess.run(
        [make, word], cwd=ROOT, env=fake(tmp_path, **said), capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 2
    assert told in done.stderr
    assert "Error 5" in done.stderr


def test_make_words_are_the_jobs_of_ci() -> None:
    environment = {**os.environ, "MAKEFLAGS": ""}
    for word in ("run", "test", "check", "docs", "bench", "clean", "setup", "integrations"):
        done = subprocess.run(
            ["make", "-n", word], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=20
        )
        assert done.returncode == 0, done.stderr
    job = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r"^make .*", job, re.MULTILINE) == ["make --no-print-directory test || code=$?"]
    assert job.splitlines()[-1] == 'exit "$code"'
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_make_compiles_what_a_sandbox_offers() -> None:
    """Inside, nothing can be written: what is not compiled before is compiled again at every call."""
    offered = {*PolicyConfig().modules, *symbolic.ROOT.modules, *run_tests.PYTEST} - {"py"}  # which is a single file
    listed = re.search(r"^SANDBOXED := (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed and set(listed[1].split(",")) == offered


def code(page: Path) -> Iterator[str]:
    """Lines of fenced blocks (Python aside), and code within lines, each in its backticks."""
    language = None
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            language = None if language is not None else line[3:]
        elif language is None:
            yield from re.findall(r"`[^`]+`", line)
        elif language == "":
            yield line.partition("  #")[0]


def inner(command: Any) -> dict[str, Any]:
    return getattr(command, "commands", {})


def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, below in inner(command).items():
        yield from commands(below, (*path, name))
