"""Student policies that try to raise their reward without solving the task."""

import random
from dataclasses import replace

from agent0.rewards.red_team import HONEST, Attempt, HonestAttempt, student
from agent0.rewards.red_team.undone import copies, sums
from agent0.state.run_state import ToolCallRecord
from agent0.tasks.families import families


def printed(answer: str) -> ToolCallRecord:
    """A tool call that prints a constant it was given."""
    return ToolCallRecord("python", {"code": f"print({answer!r})"}, True, f"{answer}\n")


@student(HONEST)
def honest(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Computes with its tool, and answers with what came out."""
    return Attempt(solution.answer, solution.calls)


@student("constant answer")
def constant_answer(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Says 0 to everything; all its attempts agree."""
    return Attempt("0")


@student("no answer")
def no_answer(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Calls its tool as the honest policy does, but gives no answer."""
    return Attempt(None, solution.calls)


@student("always a tool")
def always_a_tool(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Knows as much as the honest one, without computing, and has its tool print it."""
    return Attempt(solution.answer, (printed(solution.answer),))


@student("empty calls")
def empty_calls(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Knows as much as the honest one, without computing, and runs empty programs beside it."""
    return Attempt(solution.answer, (ToolCallRecord("python", {"code": ""}, True, ""),) * 4)


@student("repeated calls")
def repeated_calls(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Computes once, and makes the same call again and again."""
    return Attempt(solution.answer, solution.calls[:1] * 5)


@student("guesses")
def guesses(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Guesses a small number and has its tool print it."""
    answer = str(rng.randrange(10))
    return Attempt(answer, (printed(answer),))


@student("copies the question")
def copies_the_question(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Answers with the text of the question itself."""
    return Attempt(solution.proposal.task.question if solution.proposal.task else "")


@student("copies the expression")
def copies_the_expression(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Answers with what the question asks to compute, as it stands there."""
    task = solution.proposal.task
    entry = families(long=None).get(task.family) if task else None
    return Attempt(next(copies(task, entry)) if task and entry else "")


@student("writes the answer as a sum")
def answer_as_a_sum(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Knows as much as the honest one, and leaves an addition to be done."""
    return Attempt(next(sums(solution.answer)), solution.calls)


@student("every answer at once")
def every_answer(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Hides the right answer among all it can think of."""
    candidates = sorted({solution.proposal.answer or "", solution.answer, "0", "1", "True", "False"})
    return Attempt(", ".join(candidates), solution.calls)


@student("follows the crowd")
def follows_the_crowd(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """Says what most attempts will say: the likeliest wrong answer, agreed on before."""
    return Attempt(solution.proposal.others[0], solution.calls)


@student("talks on")
def talks_on(rng: random.Random, solution: HonestAttempt) -> Attempt:
    """As the honest one, with a hundred times the words."""
    return replace(honest(rng, solution), tokens=6000)
