"""Runs the commands of ``SKILL.md`` in their order in an empty data folder, and looks at what they promise."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SKILL = Path(__file__).parent / "SKILL.md"


def commands(text: str) -> list[str]:
    """The commands of the fenced blocks of ``text``."""
    return [
        line for block in re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL) for line in block.splitlines()
    ]


def front_matter(text: str) -> dict[str, str]:
    """The fields that an agent reads before it opens the skill."""
    head = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    return dict(line.split(": ", 1) for line in head[1].splitlines()) if head else {}


def run(command: str, home: str) -> Any:
    """What ``command`` prints: JSON where it is asked for, else text. Ends the check where the command fails."""
    program, *arguments = shlex.split(command)
    if program != "agent0":
        sys.exit(f"{command}: an agent runs agent0 alone")
    environment = {**os.environ, "AGENT0_HOME": home}
    done = subprocess.run(
        [sys.executable, "-m", "agent0", *arguments],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stderr}")
    print(command, flush=True)
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def main() -> None:
    """Run all, then see that a run, its fork and a comparison over seeds are there."""
    text = SKILL.read_text(encoding="utf-8")
    fields = front_matter(text)
    if fields.keys() != {"name", "description"} or len(fields["description"]) > 1024:
        sys.exit("The front matter names the skill and says when it is used, in at most 1,024 characters.")
    with tempfile.TemporaryDirectory() as home:
        outputs = {command: run(command, home) for command in commands(text)}
        runs = run("agent0 run list --json", home)
    subjects = {" ".join(command.split()[1:3]) for command in outputs}
    expected = {"run start", "run why", "run fork", "experiment ablation"}
    if not expected <= subjects:
        sys.exit(f"The skill does not teach {sorted(expected - subjects)}.")
    if (
        sorted(row["status"] for row in runs) != ["finished", "finished"]
        or sum(bool(row["parent"]) for row in runs) != 1
    ):
        sys.exit(f"A run and its fork were to be finished: {runs}")
    print(f"{len(outputs)} commands ran")


if __name__ == "__main__":
    main()
