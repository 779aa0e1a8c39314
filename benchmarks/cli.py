"""What everyday commands cost, as CPU time of the whole command and as a ratio to ``python -c "import typer, rich"``.

``python -m benchmarks.cli`` makes a scripted run in a folder of its own, then calls each command several times, in
turns. ``--beside PATH`` measures another checkout with an environment of its own (``PATH/.venv``) in the same turns,
over a scripted run that it made itself; ``--write`` puts the table into docs/results/commands.md. The median counts. A
server that a command leaves behind is not counted.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.measured_page import write

TIMES = 7
LEAST_S = {
    "--help": 0.5,
    "run list": 0.5,
    "run show": 0.5,
    "task list": 0.5,
    "events tail": 0.5,
    "doctor": 3.0,
    "tool call python --code 1": 1.5,
}
"""Commands, and how many seconds of CPU each is to take at most."""
MEASURE = ("-c", "import typer, rich")
HERE = Path(__file__).parents[1]
WHICH = "import agent0, pathlib; print(pathlib.Path(agent0.__file__).resolve().parents[1])"


@dataclass(frozen=True)
class Checkout:
    """A tree with its Python, and a data folder with a scripted run that it made."""

    path: Path
    python: str
    home: str
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Command -> CPU seconds of each call; empty: of ``MEASURE``."""

    @property
    def env(self) -> dict[str, str]:
        """Its own packages only, and its own data folder."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENT0_", "PYTHONPATH"))}
        return {**kept, "AGENT0_HOME": self.home}

    def name(self) -> str:
        """Its commit."""
        told = subprocess.run(
            ("git", "-C", self.path, "describe", "--always", "--dirty"), capture_output=True, text=True
        )
        return told.stdout.strip() or self.path.name

    def prepare(self) -> None:
        """Make the run.

        Raises:
            SystemExit: its Python imports another tree.
        """
        said = subprocess.run((self.python, "-c", WHICH), env=self.env, cwd=self.home, capture_output=True, text=True)
        if Path(said.stdout.strip()).resolve() != self.path.resolve():
            raise SystemExit(f"{self.python} imports agent0 of {said.stdout.strip() or 'nowhere'}, not of {self.path}.")
        start = (self.python, "-m", "agent0", "run", "start", "--profile", "scripted")
        subprocess.run(start, env=self.env, cwd=self.home, check=True, stdout=subprocess.DEVNULL)

    def call(self, command: str) -> None:
        """Call a command once, and keep its CPU seconds with those of its children."""
        arguments = ("-m", "agent0", *command.split()) if command else MEASURE
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run((self.python, *arguments), env=self.env, cwd=self.home, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode and not command.startswith("doctor"):  # doctor's code tells what this machine lacks
            raise SystemExit(f"{command} of {self.path} ended with exit code {done.returncode}.")
        self.took[command].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(checkouts: Sequence[Checkout], times: int) -> None:
    """Call each command of each checkout ``times`` times, in turns."""
    for one in checkouts:
        one.prepare()
        for command in ("", *LEAST_S):
            one.call(command)  # the first call compiles, and may catch tables up
        one.took.clear()
    for turn in range(times):
        for command in ("", *LEAST_S):
            for one in checkouts if turn % 2 else reversed(checkouts):
                one.call(command)


def table(names: Sequence[str], took: Sequence[Mapping[str, Sequence[float]]]) -> str:
    """Lay out medians, and their ratios to ``MEASURE`` of the same checkout; of two, the second's less the first's."""
    heads = [f"{name}: CPU s | ratio" for name in names]
    both = ["now / before"] if len(took) > 1 else []
    lines = [" | ".join(["| command", *heads, *both, "at most, s |"])]
    lines.append("|---" * (2 + 2 * len(took) + len(both)) + "|")
    for command, most in LEAST_S.items():
        cells = [f"`{command}`"]
        spent = [median(one[command]) for one in took]
        for one, s in zip(took, spent, strict=True):
            cells += [f"{s:.2f}", f"{s / median(one['']):.1f}"]
        cells += [f"{spent[-1] / spent[0]:.2f}"] if both else []
        lines.append(f"| {' | '.join([*cells, f'{most:g}'])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and print or write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, metavar="PATH", help="another checkout, with PATH/.venv")
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--write", action="store_true", help="write docs/results/commands.md")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agent0-bench-cli-") as folder:
        paths = [(chosen.beside, str(chosen.beside.absolute() / ".venv/bin/python"))] if chosen.beside else []
        checkouts = []
        for number, (path, python) in enumerate([*paths, (HERE, sys.executable)]):
            home = Path(folder, str(number))
            home.mkdir()
            checkouts.append(Checkout(path, python, str(home)))
        measure(checkouts, chosen.times)
        found = table([checkout.name() for checkout in checkouts], [checkout.took for checkout in checkouts])
        bases = ", ".join(f"{median(checkout.took['']):.3f}" for checkout in checkouts)
    busy = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    told = f"{found}\n`python -c 'import typer, rich'`: {bases} s of CPU. Medians of {chosen.times} calls, {busy}.\n"
    print(told)
    if chosen.write:
        write("commands.md", told)


if __name__ == "__main__":
    main()
