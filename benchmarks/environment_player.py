"""``agent0`` with a student that draws every action from what its tools say they take, and every answer from the
numbers below 100: it plays any environment, and knows none.

``KILLS`` in its surroundings, as ``environment:5 run:9``, says at which of its turns it kills what serves the
environment, and at which the run.
"""

import os
import random
import signal
from itertools import count
from pathlib import Path
from typing import Any

from agent0.chat_format import format_call
from agent0.cli import main
from agent0.infra.models import scripted
from agent0.ports.models import GenerateRequest

KILLS = {int(turn): what for what, turn in (kill.split(":") for kill in os.environ.get("KILLS", "").split())}
_turns = count(1)


def draw(schema: dict[str, Any], rng: random.Random) -> object:
    """A value of ``schema``: one of its choices, a whole number between its bounds (else of the first four), a text."""
    if choices := schema.get("enum"):
        return rng.choice(choices)
    if schema.get("type") == "integer":
        return rng.randint(schema.get("minimum", 0), schema.get("maximum", 3))
    return f"<answer>{rng.randrange(100)}</answer>"


def play(request: GenerateRequest, skill: int, rng: random.Random) -> str:
    """A call of a tool of the environment; where there is none, an answer."""
    what = KILLS.get(next(_turns))
    if what:
        for pid in servers() if what == "environment" else [os.getpid()]:
            os.kill(pid, signal.SIGKILL)
    if not request.tools or "python" in {tool.name for tool in request.tools}:
        return f"\\boxed{{{rng.randrange(100)}}}"
    tool = rng.choice(request.tools)
    needed = tool.parameters.get("required", ())
    return format_call(tool.name, {name: draw(tool.parameters["properties"][name], rng) for name in needed})


def servers() -> list[int]:
    """The processes of environments that this one has started."""
    out = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
            if ours and b"_episodes.py" in (folder / "cmdline").read_bytes():
                out.append(int(folder.name))
        except OSError:  # it has ended
            continue
    return out


if __name__ == "__main__":
    scripted._say = play
    main()
