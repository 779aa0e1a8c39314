"""Shared by long families: wording of a list of steps, parsing it back, and the turns of a perfect student."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agent0.chat_format import format_call
from agent0.tasks.subgoals import split

FEWEST, MOST = 3, 6
"""Steps of a task: level + 2."""
LONGEST = 800

OPENINGS = (
    "Take these steps; the last gives the answer.",
    "Keep a file and answer with the last result.",
    "One after another; answer with what comes last.",
)
_WORDS = ("First", "Then", "Finally")


def question_of(steps: Sequence[str], rng: random.Random) -> str:
    """Word ``steps``, sentences without their full stop, as one question."""
    return rng.choice(_wordings(steps))


def _wordings(steps: Sequence[str]) -> list[str]:
    numbered = "\n".join(f"{n}. {text}." for n, text in enumerate(steps, 1))
    labelled = "\n".join(f"Step {n}: {text}." for n, text in enumerate(steps, 1))
    order = (_WORDS[0], *(_WORDS[1] for _ in steps[2:]), _WORDS[2])
    sentences = " ".join(f"{when}, {text[0].lower()}{text[1:]}." for when, text in zip(order, steps, strict=True))
    return [f"{opening}{body}" for opening in OPENINGS for body in (f"\n{numbered}", f"\n{labelled}", f" {sentences}")]


def read(question: str) -> tuple[str, ...] | None:
    """Parse the steps from a question that ``word`` made; None for any other text."""
    if len(question) > LONGEST or not question.startswith(OPENINGS):
        return None
    steps = split(question)
    return steps if FEWEST <= len(steps) <= MOST and question in _wordings(steps) else None


@dataclass(frozen=True)
class StepActions:
    """How one step is done: the change in the file (old text, new text), then the code that prints the
    step's answer."""

    code: str
    old: str = ""
    new: str = ""


def script(
    file: str, text: str, done: Sequence[StepActions], answers: Sequence[str], slip: StepActions
) -> tuple[str, ...]:
    """The turns of a scripted student: it writes ``text`` to ``file``, does each step and submits its answer.

    The last answer ends the attempt. Before the second step it makes the mistake ``slip``, notices it and rolls back.
    """
    turns = [f"I keep everything in {file}.\n{format_call('write_file', {'path': file, 'content': text})}"]
    for number, actions in enumerate(done):
        submitted = [_submit(answers[number - 1], number)] if number else []
        if number == 1:
            turns += ["\n".join((*submitted, *_done(file, slip))), _undone(file, 1 + len(_done(file, done[0])))]
            submitted = []
        turns.append("\n".join((*submitted, *_done(file, actions))))
    return (*turns, f"\\boxed{{{answers[-1]}}}")


def _done(file: str, actions: StepActions) -> list[str]:
    change = format_call("edit_file", {"path": file, "old": actions.old, "new": actions.new})
    return [*([change] if actions.old else []), format_call("python", {"code": actions.code})]


def _submit(answer: str, number: int) -> str:
    return format_call("submit_answer", {"answer": answer, "subgoal": number})


def _undone(file: str, call: int) -> str:
    back, look = format_call("rollback", {"call": call}), format_call("read_file", {"path": file})
    return f"That was not asked. I go back.\n{back}\n{look}"
