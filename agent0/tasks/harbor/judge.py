"""The judge of an exported task: it lies in the task's ``tests`` beside the code of its family, and writes the reward.

``python check.py TASK ANSWER REWARD``: three files. Nothing but the standard library is needed.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

from agent0.grading.normal_form import same
from agent0.tasks.families import families

LONGEST = 65_536
"""Bytes of an answer that are read."""


def reward_of(family: str, question: str, answer: str) -> int:
    """Judge ``answer`` to ``question`` by the family's own check or computation: 1 where it is right, else 0."""
    entry = families(long=None)[family]
    params = entry.parse(question)
    if params is None or not answer:
        return 0
    return int(not entry.check(params, answer) if entry.check else same(entry.solve(params), answer))


def main(task: str, answer: str, reward: str) -> None:
    """Judge the file ``answer`` by the file ``task``, and write the file ``reward``; no file is an empty answer."""
    named = json.loads(Path(task).read_text(encoding="utf-8"))
    import_module(named["module"])
    try:
        with Path(answer).open("rb") as file:
            text = file.read(LONGEST).decode(errors="replace").strip()
    except OSError:
        text = ""
    Path(reward).parent.mkdir(parents=True, exist_ok=True)
    Path(reward).write_text(f"{reward_of(named['family'], named['question'], text)}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
