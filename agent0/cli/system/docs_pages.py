"""Writes the pages of docs/reference/ from the code.

``python -m agent0.cli.system.docs_pages [FOLDER]`` writes them; without a folder, into docs/reference/ of the checkout.
"""

import ast
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

from typer.main import get_command

import agent0
from agent0.cli import build
from agent0.cli.examples import examples_of
from agent0.cli.system.config import reference
from agent0.config.loading import PROFILES, profiles
from agent0.errors import ErrorKind
from agent0.events import base, values
from agent0.handlers import handlers
from agent0.projections import tables
from agent0.report.markdown.rendering import render
from agent0.report.markdown.rewards import reference as reward_reference
from agent0.tools import tools

TEMPLATES = Path(__file__).parent
NOUNS = (
    "runs", "tasks", "submissions", "checkpoints", "models", "budgets", "alarms", "policies", "benchmarks",
    "experiments",
)  # fmt: skip
"""Modules of events in the order in which their story is told."""


def _render(template: str, **values: Any) -> str:
    return render(template, TEMPLATES, **values)


def events_page() -> str:
    """Every event: what it means, its fields, who reacts to it, which tables read it."""
    reactions = {h.name: set(h.events) for h in handlers().values()}
    readers = {t.name: {kind.__name__ for kind in t.events} for t in tables().values() if t.events}
    nouns = [(noun, importlib.import_module(f"agent0.events.{noun}"), base.Event) for noun in NOUNS]
    return _render(
        "events.md.jinja",
        envelope=base.Recorded,
        nouns=[
            (noun, module, _classes(module, kind)) for noun, module, kind in [*nouns, ("values", values, base.Value)]
        ],
        reactions=reactions,
        readers=readers,
        prose=_prose,
        type=_type,
        default=_default,
        meanings=_meanings,
    )


def cli_page() -> str:
    """Write the Markdown page of every command with its arguments and options."""
    codes: dict[int, list[str]] = {}
    for kind in ErrorKind:
        codes.setdefault(kind.exit_code, []).append(kind.slug.replace("_", " "))
    commands = _commands(get_command(build()), "agent0")
    return _render(
        "cli.md.jinja", codes=codes, commands=commands, metavar=_metavar, given=_default_text, examples=_examples
    )


def _examples(path: str) -> list[str]:
    return examples_of(path.removeprefix("agent0 "))


def python_page() -> str:
    """Write the Markdown page of every name that ``import agent0`` offers."""
    return _render(
        "python.md.jinja", calls=[entries(name) for name in CALLS], others=[*others()], paragraphs=_paragraphs
    )


def _paragraphs(text: str) -> str:
    """A docstring as Markdown: paragraphs on one line, each argument and error on its own."""
    parts = []
    for part in text.split("\n\n"):
        head, *rest = part.splitlines()
        if head in ("Args:", "Raises:"):
            parts.append("\n".join(f"- {line.strip()}" for line in rest))
            parts[-1] = f"{head.rstrip(':')}:\n\n{parts[-1]}"
        else:
            parts.append(" ".join(part.split()))
    return "\n\n".join(parts)


def config_page() -> str:
    """Every setting with default and meaning, and the packaged profiles."""
    about = {}
    for name in profiles():
        comments = re.findall(
            r"^# ?(.*)", (PROFILES / f"{name}.toml").read_text(encoding="utf-8").split("\n\n")[0], re.M
        )
        about[name] = " ".join(comments)
    return _render("config.md.jinja", profiles=about, settings=reference())


STATES = {
    "ok": "it did what was asked",
    "error": "what was asked cannot be done as it was asked, or the code failed; the output says why",
    "timeout": "stopped at its time limit",
    "memory": "stopped at its memory limit",
    "output_flood": "stopped for printing far too much",
    "refused": "not run: not allowed, too large, or the task's tool time is used up",
    "busy": "not run: too many calls are waiting",
    "cancelled": "ended with the attempt it belonged to",
    "sandbox_error": "the sandbox failed: nothing is known of the code, and the attempt is made again",
}


def tools_page() -> str:
    """Every tool of the package: what the model reads, its arguments, how it can end, examples with their output."""
    packaged = [entry for entry in tools().values() if entry.run.__module__.startswith("agent0.tools.builtin.")]
    return _render("tools.md.jinja", states=STATES, tools=packaged, kind=_kind, standing=_standing, json=_json)


def _json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)


def _kind(field: Mapping[str, Any]) -> str:
    """A JSON schema's type in words."""
    if "enum" in field:
        return " or ".join(f"`{choice}`" for choice in field["enum"])
    if "anyOf" in field:
        return " or ".join(_kind(option) for option in field["anyOf"])
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    bounds = [
        f"{preposition} {field[key]}" for key, preposition in (("minimum", "from"), ("maximum", "to")) if key in field
    ]
    return " ".join([str(field.get("type", "object")), *bounds])


def _standing(name: str, schema: Mapping[str, Any]) -> str:
    if name in schema.get("required", ()):
        return "required"
    value = schema["properties"][name].get("default")
    return "empty" if value in ("", [], {}) else f"`{value}`"


def _classes(module: ModuleType, kind: type[base.Value]) -> list[type[base.Value]]:
    classes = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
    return [c for c in classes if issubclass(c, kind)]


def _prose(described: object) -> str:
    """A docstring without its indentation."""
    return inspect.getdoc(described) or ""


def _meanings(cls: type[base.Value]) -> dict[str, str]:
    """The text below each field in the source."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    texts: dict[str, str] = {}
    for field, after in zip(getattr(body, "body", []), getattr(body, "body", [])[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            texts[field.target.id] = " ".join(str(ast.literal_eval(after.value)).split())
    return texts


def _type(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is type(None):
        return "null"
    if origin is None:
        return getattr(annotation, "__name__", str(annotation))
    if origin in (tuple, list):
        return f"list of {_type(inner[0])}"
    if origin is dict:
        return f"object of {_type(inner[1])}"
    if not isinstance(inner[0], type):
        return " or ".join(f"`{member}`" for member in inner)
    return " or ".join(_type(member) for member in inner)


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, base.Value):
        return "its defaults"
    if value in ("", (), {}):
        return "empty"
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), f"`{value}`")


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
    for name, sub in (inner or {}).items():
        yield from _commands(sub, f"{path} {name}")


def _metavar(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper())
    return f"{name}…" if parameter.nargs == -1 else name


def _default_text(parameter: Any) -> str:
    value = parameter.default
    if value is None or value is False or value in ("", [], ()) or callable(value):
        return "required" if parameter.required else ""
    return f"`{value}`"


PAGES: Mapping[str, Callable[[], str]] = {
    "events.md": events_page,
    "cli.md": cli_page,
    "config.md": config_page,
    "tools.md": tools_page,
    "rewards.md": reward_reference,
    "python.md": python_page,
}
"""Each generated page, and what makes its text."""
DOCS = Path(__file__).resolve().parents[3] / "docs"
"""The written pages; an installed package has none."""


def pages() -> dict[str, str]:
    """Name of each generated page and its text."""
    return {name: page() for name, page in PAGES.items()}


def write(folder: Path) -> None:
    """Write every generated page into ``folder``, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


CALLS = (
    "open",
    "Folder",
    "connect",
    "Server",
    "RunHandle",
    "Run",
    "AsyncRuns",
    "AsyncRun",
    "Trajectory",
    "Rows",
    "Study",
)
"""What is described whole; the others are named with their first line."""


@dataclass(frozen=True)
class Entry:
    """One function, class or member: its name with its parameters, and its docstring as paragraphs."""

    title: str
    text: str


def entries(name: str) -> tuple[Entry, list[Entry]]:
    """A name of ``agent0`` and, of a class, its public methods and properties."""
    node, text = _definition(name)
    if isinstance(node, ast.ClassDef):
        members = [_entry(statement, f"{name.lower()}.") for statement in node.body if _is_public(statement)]
        return Entry(name, text), members
    return _entry(node, "agent0."), []


def others() -> Iterator[tuple[str, str, str]]:
    """(name, where it is defined, first line of its docstring) of everything else that is offered."""
    for name in sorted(set(agent0.__all__) - {*CALLS}):
        value: Any = getattr(agent0, name)
        documentation = inspect.getdoc(value) if isinstance(value, type) or inspect.isfunction(value) else ""
        yield name, agent0._HOMES[name], " ".join((documentation or "").split("\n\n")[0].split())


def _definition(name: str) -> tuple[ast.AST, str]:
    module = importlib.import_module(agent0._HOMES[name])
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    node = next(statement for statement in tree.body if getattr(statement, "name", "") == name)
    return node, _text(node)


def _is_public(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_")


def _entry(node: ast.AST, before: str) -> Entry:
    assert isinstance(node, ast.FunctionDef)  # noqa: S101 - only functions come here
    if any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in node.decorator_list):
        return Entry(f"{before}{node.name}", _text(node))
    node.args.args = [argument for argument in node.args.args if argument.arg != "self"]
    gives = ast.unparse(node.returns).replace("'", "") if node.returns else "None"
    parameters = ast.unparse(node.args).replace("'Run | str'", "Run | str")
    return Entry(f"{before}{node.name}({parameters}) -> {gives}", _text(node))


def _text(node: ast.AST) -> str:
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)  # noqa: S101 - what has a docstring
    return (ast.get_docstring(node) or "").replace("``", "`")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "reference")
