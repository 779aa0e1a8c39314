"""One HTML file about a run: it opens from disk and asks nothing of any network."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.cli import terminal


def register(root: typer.Typer) -> None:
    """A verb of its own: it has no noun."""
    root.command("report")(report)


def report(
    run: terminal.Run = "LAST",
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where to write; '-': standard output.")] = "",
    as_json: terminal.Json = False,
) -> None:
    """Write one self-contained HTML file about a run and print its path."""
    from agent0.errors import DependencyError, OperationError
    from projections.runs import resolve

    try:
        from agent0.report import page
    except ImportError as error:
        why, fix = f"{error}.", "Install it: pip install 'agent0[train]'"
        raise DependencyError("matplotlib", why, fix) from error
    with terminal.tables() as db:
        name = resolve(db, run)
        text = page(db, name)
    if out == "-":
        typer.echo(text)
        return
    path = Path(out) if out else terminal.settings().home / "reports" / f"{name}.html"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        what, why = "The report cannot be written.", f"{path}: {error.strerror}."
        raise OperationError(what, why, "Name another place: --out FILE") from error
    if as_json:
        terminal.data({"run": name, "path": str(path), "bytes": path.stat().st_size})
    else:
        terminal.text(path)
