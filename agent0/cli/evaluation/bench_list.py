"""Benchmarks that there are, and the runs of them."""

from importlib.util import find_spec
from pathlib import Path

from agent0.cli import console
from agent0.cli.evaluation.options import HERE, Data
from agent0.errors import Agent0Error, NotFoundError
from agent0.evaluation.benchmarks import Benchmark, benchmarks, read_items
from agent0.infra.storage.datasets import find


def list_(data: Data = HERE, as_json: console.Json = False) -> None:
    """Every benchmark: how many rows the folder has, or are made by default, and its licence."""
    rows = []
    for name, entry in benchmarks().items():
        count, problem = count_rows(data, entry)
        rows.append(
            {
                "benchmark": name,
                "title": entry.title,
                "domain": entry.domain,
                "rows": count,
                "licence": entry.licence,
                "source": entry.source,
                "files": ", ".join(entry.files),
                "made": entry.make is not None,
                "problem": problem,
            }
        )
    console.table(rows, as_json, ("benchmark", "title", "domain", "rows", "licence"))
    for row in rows:
        if row["problem"]:
            console.say(f"{row['benchmark']} cannot be read: {row['problem']}", "yellow")


def count_rows(folder: Path, entry: Benchmark) -> tuple[int | None, str]:
    """Items that a run would read, or make where what makes them is installed; None where there are none. With it, why
    the file that is there cannot be read."""
    if entry.make:
        there = not entry.package or find_spec(entry.package.replace("-", "_")) is not None
        return entry.size if there else None, ""
    try:
        rows = find(folder, entry.files, entry.name, entry.parts)
        return len(read_items(entry, rows.text, rows.name)), ""
    except NotFoundError:
        return None, ""
    except Agent0Error as error:
        return None, f"{error}"
