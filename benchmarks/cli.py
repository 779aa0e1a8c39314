"""What everyday commands cost, as CPU time of the whole command and as a ratio to ``python -c "import typer, rich"``.

``python -m benchmarks.cli`` makes a scripted run in a folder of its own, then calls each command several times and
takes the least: what else the machine does adds to the others. A server that the command leaves behind is not counted.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence

TIMES = 5
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


def cpu_s(arguments: Sequence[str], env: dict[str, str]) -> float:
    """Seconds of CPU of ``python ARGUMENTS`` and its children, the least of ``TIMES`` calls."""
    return min(_once(arguments, env) for _ in range(TIMES))


def _once(arguments: Sequence[str], env: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print a table."""
    with tempfile.TemporaryDirectory(prefix="agent0-bench-cli-") as home:
        env = {**os.environ, "AGENT0_HOME": home}
        subprocess.run([sys.executable, "-m", "agent0", "run", "start", "--profile", "scripted"], env=env, check=True)
        one = cpu_s(MEASURE, env)
        print(f"python -c 'import typer, rich': {one:.3f} s of CPU")
        print("| command | CPU s | ratio | at most |\n|---|---|---|---|")
        for command, most in LEAST_S.items():
            took = cpu_s(["-m", "agent0", *command.split()], env)
            print(f"| {command} | {took:.2f} | {took / one:.1f} | {most:g} |", flush=True)


if __name__ == "__main__":
    main()
