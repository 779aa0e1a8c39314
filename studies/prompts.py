"""Prompts that the shipped ones are compared with: the same student and rows, another text. ``--set
plugins=studies/prompts.py --set run.student.prompts=bare``; which scores best is in docs/results/real-models.md."""

import agent0
from agent0.rollout.prompts import prompt

SOLVED = (
    "She fills 6 * 14 = 84 rolls. She sells 84 - 9 = 75 of them, which are 75 / 5 = 15 bags. She earns 15 * 4 = 60 "
    "dollars. \\boxed{60}",
    "25% of 20 is 5, so a shirt costs 20 - 5 = 15 dollars. Ben pays 4 * 15 = 60 dollars. \\boxed{60}",
    "From Monday to Friday she reads 5 * 12 = 60 pages. On the weekend she reads 2 * 24 = 48 pages. A week has 60 + 48 "
    "= 108 pages. She needs 540 / 108 = 5 weeks. \\boxed{5}",
)
"""In words, what the first three examples of style programs compute."""


def _turns() -> list[str]:
    """The turns of style programs, each with its mark."""
    return ["@" + turn for turn in prompt("programs", "any", "student").text.split("@")[1:]]


@agent0.prompt_text("zero-shot/any/student")
def zero_shot() -> str:
    """Without examples."""
    system, *_, question = _turns()
    return system + question


@agent0.prompt_text("two-shot/any/student")
def two_shot() -> str:
    """With the first two examples only."""
    turns = _turns()
    return "".join([*turns[:5], turns[-1]])


@agent0.prompt_text("bare/any/student")
def bare() -> str:
    """With two examples, whose steps have no comments."""
    lines = two_shot().replace("; a comment before each line says what it computes", "")
    return "".join(_without_comments(line) for line in lines.splitlines(keepends=True))


def _without_comments(line: str) -> str:
    """A line of a prompt without the comments of the program that it may hold in JSON."""
    before, mark, code = line.partition('"code": "')
    steps = [step for step in code.split("\\n") if not step.startswith("#")]
    return before + mark + "\\n".join(steps)


@agent0.prompt_text("in-words/any/student_plain")
def in_words() -> str:
    """Three examples that reason in words, to a box."""
    questions = [turn for turn in _turns() if turn.startswith("@user")]
    examples = [f"{question}@assistant\n{answer}\n" for question, answer in zip(questions, SOLVED, strict=False)]
    return "".join([prompt("full", "any", "student_plain").text.partition("@user")[0], *examples, questions[-1]])
