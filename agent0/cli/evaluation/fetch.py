"""``agent0 bench fetch``: rows of benchmarks from where they were published, for those who have the internet."""

import json
from pathlib import Path
from typing import Annotated

import typer

from agent0.cli import console
from agent0.cli.evaluation.options import HERE, Data
from agent0.errors import ConfigError, OperationError
from agent0.evaluation.benchmarks import Benchmark, benchmarks, chosen, converted, read_items
from agent0.evaluation.benchmarks import benchmarks as known
from agent0.evaluation.benchmarks.rows.upstream import HOST, SOURCES, Upstream
from agent0.infra.web.download import fetched, store

Mirror = Annotated[str, typer.Option(help="Address that has the same files as raw.githubusercontent.com.")]


def fetch(
    benchmarks: Annotated[str, typer.Argument(help="Names, comma-separated; all: every one that can be fetched.")],
    data: Data = HERE,
    mirror: Mirror = "",
    again: Annotated[bool, typer.Option("--again", help="Fetch what is there already, too.")] = False,
    as_json: console.Json = False,
) -> None:
    """Fetch rows of benchmarks into a folder. Each file is pinned to a commit and a sha256; its licence is said first,
    and what does not read as that benchmark's rows is not written."""
    fetched = []
    for name in _names(benchmarks):
        entry, source = known()[name], SOURCES[name]
        path = data / source.name
        console.say(f"{name}: {entry.title}. Licence: {entry.licence}. From {_carriers(source)}.")
        if not entry.ships:
            console.say(f"{name} is for evaluation only: do not pass its rows on.", "yellow")
        if path.exists() and not again:
            console.say(f"{path} is there already; --again fetches it anew.")
            continue
        rows = _fetch(entry, source, path, mirror or HOST)
        fetched.append({"benchmark": name, "rows": rows, "file": str(path), "licence": entry.licence})
    console.table(fetched, as_json, ("benchmark", "rows", "file", "licence"))


def _names(text: str) -> list[str]:
    """Benchmarks that can be fetched.

    Raises:
        ConfigError: one cannot.
    """
    names = list(SOURCES) if text == "all" else list(dict.fromkeys(name.strip() for name in text.split(",")))
    chosen(names)
    for name in names:
        if name not in SOURCES:
            generated = name in benchmarks() and benchmarks()[name].make
            why = "Its items are made from a seed." if generated else "It has no address."
            raise ConfigError(f"There is nothing to fetch for {name}.", why, f"Known: {', '.join(SOURCES)}.")
    return names


def _carriers(source: Upstream) -> str:
    return ", ".join(sorted({f"{file.repository} @ {file.commit[:7]}" for file in source.files}))


def _fetch(entry: Benchmark, source: Upstream, path: Path, host: str) -> int:
    """Rows written."""
    lines = []
    for file in source.files:
        text = fetched(file.url(host), file.sha256)
        try:
            lines += [json.dumps(row, ensure_ascii=False) for _, row in converted(entry, text, file.path)]
        except ConfigError as error:
            raise OperationError(
                f"{file.url(host)} is not written as expected.", f"{error.what} {error.why}"
            ) from error
    text = "\n".join(lines) + "\n"
    count = len(read_items(entry, text, source.name))
    store(path, text)
    return count
