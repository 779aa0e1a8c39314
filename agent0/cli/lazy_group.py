"""Loads commands: the module of a verb is imported when the verb is called, so that it can have all of its imports at
the top and no other command waits for them."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from agent0.cli.examples import epilog


@dataclass(frozen=True)
class Noun:
    """What ``agent0 NOUN`` offers: verbs, each as ``module:function`` below ``agent0.cli``, or nouns of its own."""

    help: str
    verbs: "Mapping[str, str | Noun]"
    default: str = ""
    """The verb that is called where none is given; empty: the help is shown."""


class LazyCommands(Mapping[str, Any]):
    """The commands of a noun by name, each made at its first use."""

    def __init__(self, path: str, verbs: Mapping[str, str | Noun], others: Mapping[str, Any]) -> None:
        """``path`` leads here, such as ``run ``; ``others`` are commands that are made already."""
        self.verbs, self._path, self._commands = verbs, path, dict(others)

    def __getitem__(self, name: str) -> Any:
        if name not in self._commands:
            self._commands[name] = self._command(name, self.verbs[name])
        return self._commands[name]

    def __contains__(self, name: object) -> bool:
        return name in self.verbs or name in self._commands

    def __iter__(self) -> Iterator[str]:
        yield from self.verbs
        yield from (name for name in self._commands if name not in self.verbs)

    def __len__(self) -> int:
        return len({*self.verbs, *self._commands})

    def summary(self, name: str) -> Any:
        """A command with nothing but the help of ``name``, whose module is read and not imported."""
        verb = self.verbs.get(name)
        if isinstance(verb, str) and name not in self._commands:
            return TyperCommand(name, help=_docstrings(verb.partition(":")[0])[verb.partition(":")[2]])
        return self[name]

    def _command(self, name: str, verb: str | Noun) -> Any:
        path = f"{self._path}{name}"
        if isinstance(verb, Noun):
            return LazyGroup(
                name=name,
                commands=LazyCommands(f"{path} ", verb.verbs, {}),
                help=verb.help,
                epilog=epilog(path),
                default=verb.default,
                no_args_is_help=True,
                rich_markup_mode=None,
            )
        module, _, function = verb.partition(":")
        callback = getattr(import_module(f"{__package__}.{module}"), function)
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        app.command(name, epilog=epilog(path), context_settings=getattr(callback, "context_settings", None))(callback)
        return get_command(app)


class LazyGroup(TyperGroup):
    """A noun whose help lists its verbs without importing them."""

    commands: LazyCommands  # type: ignore[assignment]

    def __init__(self, *, default: str = "", **values: Any) -> None:
        super().__init__(**values)
        self.default = default

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without any argument: the verb that stands for the noun, where one does."""
        return super().parse_args(ctx, args or [*filter(None, [self.default])])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; None where there is none, and not where its module raises KeyError."""
        return self.commands[cmd_name] if cmd_name in self.commands else None  # noqa: SIM401

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the verbs, in their order."""
        return [*self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each verb: the beginning of its docstring."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.commands.summary(name).get_short_help_str(limit)) for name in self.commands]
            )


def takes_dashes(command: Callable[..., None]) -> Callable[..., None]:
    """Mark a command whose arguments may begin with a dash: what is no option of it is taken as a word."""
    command.context_settings = {"ignore_unknown_options": True}  # type: ignore[attr-defined]
    return command


@cache
def _docstrings(module: str) -> dict[str, str]:
    """Docstrings of the functions of a module below ``agent0.cli``, from its source."""
    source = (Path(__file__).parent / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    functions = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    return {function.name: ast.get_docstring(function) or "" for function in functions}
