"""A batch of questions whose process is killed at any moment: is each row answered once? And how much memory it takes.

``python -m benchmarks.batch`` answers 20,000 rows with the scripted model, killed five times (SIGKILL), and prints what
docs/guide/batches.md says; ``--rows`` and ``--kills`` are others, ``--sleep`` seconds of each call.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

LEAST = 10
"""Rows that are written between two kills at least, so that each process gets into its work."""
AWAY = 5
"""The exit code of a command that is to be given again: a machine with too much else to do keeps the log waiting."""
EARLY = 0.7
"""Share of the rows behind which none is killed any more: the last process has work left."""


@dataclass(frozen=True)
class KillReport:
    """What became of a batch: lines of its answers and how many rows have other than one, answers in the log and how
    many rows have other than one; rows that were written when each process was killed; the exit code of the last
    process, what it printed, and the most memory of any of them in MiB."""

    lines: int
    not_once: int
    events: int
    events_not_once: int
    kills: tuple[int, ...]
    code: int
    printed: str
    peak_mib: float


def write_questions(path: Path, rows: int) -> None:
    """Write ``rows`` sums to be computed."""
    with path.open("w") as file:
        for number in range(1, rows + 1):
            file.write(json.dumps({"id": f"q{number}", "question": f"What is {number} + {3 * number}?"}) + "\n")


def kill_and_go_on(folder: Path, rows: int, kills: int, rng: random.Random, sleep_s: float = 0.0) -> KillReport:
    """Answer ``rows`` rows in ``folder`` with one command, which is killed ``kills`` times at moments of ``rng``, and
    then given again."""
    questions, out, home = folder / "questions.jsonl", folder / "answers.jsonl", folder / "home"
    write_questions(questions, rows)
    model = (
        "--provider",
        "scripted",
        "--model",
        f"latency={sleep_s}",
        "--no-tools",
        "--set",
        "run.student.parallel=128",
    )
    command = [sys.executable, "-m", "agent0", "batch", "run", str(questions), "--out", str(out), *model, "--json"]
    env = {**os.environ, "AGENT0_HOME": str(home)}
    peak, moments = 0.0, list[int]()
    for number in range(kills):
        aim = rng.randint(*(int(EARLY * rows * end / kills) for end in (number, number + 1)))
        with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            begun = _lines(out)
            while process.poll() is None and _lines(out) < max(aim, begun + LEAST):
                peak = max(peak, _memory_mib(process.pid))
                time.sleep(0.01 if rows < 1_000 else 0.25)
            process.kill()
        moments.append(_lines(out))
    code = AWAY
    while code == AWAY:
        with (folder / "last.json").open("w") as printed, subprocess.Popen(command, env=env, stdout=printed) as process:
            while process.poll() is None:
                peak = max(peak, _memory_mib(process.pid))
                time.sleep(0.05)
            code = process.returncode
    return _report(env, folder, rows, tuple(moments), code, peak)


def _report(
    env: dict[str, str], folder: Path, rows: int, moments: tuple[int, ...], code: int, peak: float
) -> KillReport:
    printed = (folder / "last.json").read_text()
    lines = (folder / "answers.jsonl").read_text().splitlines()
    written = Counter(json.loads(line)["row"] for line in lines)
    query = "SELECT number, count(*) AS n FROM (SELECT json_extract(body, '$.data.row') AS number FROM events "
    query += "WHERE type = 'RowAnswered') GROUP BY number"
    told = subprocess.run(
        [sys.executable, "-m", "agent0", "projections", "query", query, "--limit", "100000", "--json"],
        env=env, capture_output=True, check=True,
    )  # fmt: skip
    events = {row["number"]: row["n"] for row in json.loads(told.stdout)}
    numbers = range(1, rows + 1)
    return KillReport(
        len(lines),
        sum(written[number] != 1 for number in numbers),
        sum(events.values()),
        sum(events.get(number) != 1 for number in numbers),
        moments,
        code,
        printed,
        peak,
    )


def _lines(path: Path) -> int:
    """Whole lines of a file; 0 where there is none."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _memory_mib(pid: int) -> float:
    """The memory of a process that is in use."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError):
        return 0.0


def main() -> None:
    """Run it, and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--sleep", type=float, default=0.0)
    arguments = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = kill_and_go_on(Path(folder), arguments.rows, arguments.kills, random.Random(0), arguments.sleep)
    print(
        f"{arguments.rows:,} rows, killed when {', '.join(f'{rows:,}' for rows in report.kills)} were written: "
        f"{report.lines:,} lines, {report.not_once} rows not once in the file; {report.events:,} answers in the log, "
        f"{report.events_not_once} rows not once; at most {report.peak_mib:.0f} MiB; {time.monotonic() - start:.0f} s."
    )
    print(report.printed)
    if report.code or report.not_once or report.events_not_once:
        sys.exit(3)


if __name__ == "__main__":
    main()
