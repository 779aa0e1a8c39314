"""Whether traces pass between Agent0 and the libraries of other frameworks unchanged, and what re-judging costs.

``make traces`` installs the libraries in build/traces and runs ``python -m benchmarks.traces --write``: a run is
exported in each format, the format's own library reads it and writes what it read, and that is imported again; then
1,000 rollouts that the libraries wrote are imported and judged again, and they ask the endpoint of a run that is served
as they ask a model server. The tables go to docs/results/traces.md.
"""

import argparse
import json
import random
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent0.tasks.families import families
from benchmarks.capture import graded
from benchmarks.measured_page import write
from benchmarks.trace_bench import LIBRARIES, Bench, Library

COUNT, LIE = 1_000, 10
"""Rollouts of others; each tenth is rewarded for a wrong answer."""


def round_trips(bench: Bench, run: str, stepwise: str) -> Iterator[str]:
    """A row of the table for each library, and for the formats that it only reads. ``stepwise`` is a run of long
    tasks."""
    ours, rows = bench.rows(run), dict[tuple[str, bool], list[tuple[str, int, str]]]()
    for kind, library in LIBRARIES.items():
        source = bench.files / f"ours-{kind}.{library.ending.replace('eval', 'json')}"
        of = stepwise if kind == "trl-stepwise" else run
        source.write_bytes(bench.agent0("trajectory", "export", of, "--format", kind))
        out = source.with_name(f"theirs-{kind}.{library.ending}")
        count = bench.library("read", kind, source, out)
        back = _returned(bench, out, ours, library) if library.returns else "-"
        print(f"{kind}: {count} accepted, {back} back", file=sys.stderr, flush=True)
        rows.setdefault((library.packages, bool(library.returns)), []).append((kind, count, back))
    for (packages, _), trips in rows.items():
        kinds, counts, backs = zip(*trips, strict=True)
        accepted, unchanged = ", ".join(map(str, counts)), ", ".join(dict.fromkeys(backs))
        yield f"| {', '.join(kinds)} | {packages} | {accepted} | {unchanged} |\n"


def _returned(bench: Bench, out: Path, ours: list[Any], library: Library) -> str:
    run = json.loads(bench.agent0("trajectory", "import", str(out), "--json"))["run"]
    theirs = bench.rows(run)
    if "trajectory" not in library.returns:
        return _same(
            sorted(f"{row[name]}" for row in ours for name in library.returns if row[name] is not None),
            sorted(f"{row[name]}" for row in theirs for name in library.returns if row[name] is not None),
        )
    return _same(*([json.dumps([row[name] for name in library.returns]) for row in rows] for rows in (ours, theirs)))


def _same(ours: list[str], theirs: list[str]) -> str:
    same = sum(before == after for before, after in zip(ours, theirs, strict=False))
    if same == len(ours) == len(theirs):
        return f"{same}"
    return f"**{same} of {len(ours)}, {len(theirs)} came back**"


def rollouts() -> list[dict[str, Any]]:
    """Rollouts of others on tasks that a family of ours reads: of each ten two are wrong, one of which is rewarded."""
    entry, rng, rows = families(long=None)["arithmetic"], random.Random(7), dict[str, dict[str, Any]]()
    while len(rows) < COUNT:
        params = entry.sample(2, rng)
        question, answer, number = entry.render(params, rng), entry.solve(params), len(rows)
        wrong = number % LIE in (0, 1)
        text = f"I compute it. \\boxed{{{f'{answer}1' if wrong else answer}}}"
        row = {"question": question, "answer": answer, "text": text, "reward": float(number % LIE != 0)}
        rows.setdefault(question, row)
    return [*rows.values()]


def judged(bench: Bench) -> Iterator[str]:
    """A row of the table for each library that wrote rollouts of its own."""
    source = bench.files / "rollouts.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rollouts()), encoding="utf-8")
    for kind in ("verifiers-trace", "inspect", "atif"):
        out = bench.files / f"rollouts-{kind}.{LIBRARIES[kind].ending}"
        bench.library("write", kind, source, out)
        begin = _processor_s()
        run = json.loads(bench.agent0("trajectory", "import", str(out), "--json"))["run"]
        imported, begin = _processor_s() - begin, _processor_s()
        result = json.loads(bench.agent0("experiment", "reverify", run, "--json"))
        again, flips = _processor_s() - begin, result["flips"]
        changes = ", ".join(f"{count} {flip}" for flip, count in sorted(flips.items())) or "none"
        library = LIBRARIES[kind].packages.partition(" ")[0]
        print(f"{kind}: {imported:.0f} + {again:.0f} s, {changes}", file=sys.stderr, flush=True)
        yield f"| {library} | {imported:.0f} + {again:.0f} s | {changes} |\n"


def _processor_s() -> float:
    """Seconds of a processor that commands took which have ended: other work on the machine does not count."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the tables; with ``--write`` put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", type=Path, default=Path("build/traces"))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "home", Path(folder) / "files", options.libraries)
        bench.files.mkdir()
        run, stepwise = (json.loads(bench.agent0("run", "start", *words, "--json"))["run"] for words in RUNS)
        trips = "| format | library | accepted | back unchanged |\n|---|---|---|---|\n"
        trips += "".join(round_trips(bench, run, stepwise))
        costs = "| 1,000 rollouts by | import, judging (processor) | changed |\n|---|---|---|\n"
        costs += "".join(judged(bench))
        grades = "| grader | of model `tiny` |\n|---|---|\n" + "".join(graded(bench))
    print(trips, costs, grades, sep="\n")
    if options.write:
        write("traces.md", f"{trips}\n{costs}")
        write("traces.md", grades, "capture")
    if "**" in trips + grades:
        raise SystemExit("Not everything came back as it went, or a grader does not take what it got.")


RUNS = (("--profile", "scripted"), ("--profile", "long"))

if __name__ == "__main__":
    main()
