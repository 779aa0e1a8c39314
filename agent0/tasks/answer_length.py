"""Whether a ladder's task fits into a student's turn and context. Pure."""

import random

from agent0.chat_format import CANONICAL as BOX
from agent0.events.values import Task
from agent0.tasks.families import Family, Params, families


def tokens_needed(entry: Family, params: Params) -> int:
    """Tokens of the right answer in its box, each digit counted as one."""
    return len(entry.solve(params)) + len(BOX) + 1


def context_needed(entry: Family, params: Params) -> int:
    """Tokens of the question and of its right answer together, each character counted as one."""
    return len(entry.render(params, random.Random(0))) + tokens_needed(entry, params)


def too_long(task: Task, max_tokens: int) -> str:
    """Why nobody can answer ``task`` in a turn of ``max_tokens``; empty where the answer fits, or no ladder asks."""
    entry = families().get(task.family)
    if entry is None or not entry.ladder:
        return ""
    needed = tokens_needed(entry, task.params)
    return f"its answer needs {needed} tokens, and run.student.max_tokens is {max_tokens}" * (needed > max_tokens)
