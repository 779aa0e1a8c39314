"""A template of the user's that makes a row's question of its columns. It runs in Jinja's sandbox: it reads the row and
nothing else."""

from collections.abc import Callable
from functools import lru_cache

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows import ColumnError, Row

ROW = "row"
"""The name of the whole row, for columns whose names are no names in a template: ``row["Frage 1"]``."""
Render = Callable[[Row], str]


@lru_cache(maxsize=8)
def question_template(text: str) -> tuple[Render, frozenset[str]]:
    """Compile a template; returns what renders a row, which raises ColumnError, and the columns that it names.

    Raises:
        ConfigError: it is none.
    """
    from jinja2 import StrictUndefined, TemplateError, meta  # noqa: PLC0415 - files without a template do without
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    try:
        template = environment.from_string(text)
        columns = meta.find_undeclared_variables(environment.parse(text))
    except TemplateError as error:
        why = f"Line {getattr(error, 'lineno', 1)}: {error.message}."
        raise ConfigError("The template of questions cannot be read.", why, "See Jinja: {{ column }}") from error

    def render(row: Row) -> str:
        try:
            question = template.render({**row, ROW: row})
        except (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            missing = sorted(columns - row.keys() - {ROW})
            raise ColumnError(missing[0] if missing else "", f"the template cannot be filled in: {error}") from error
        if not question.strip():
            raise ColumnError("", "the template makes no question of it")
        return question.strip()

    return render, frozenset(columns)
