"""Verifies programs by tests: those that a teacher wrote for the program it asks for, or those of a row."""

import asyncio
from collections.abc import Sequence

from agent0.events.values import Task
from agent0.ports.sandbox import Sandbox
from agent0.tasks.screening import Fault
from agent0.turns.assertions import tested
from agent0.verification.programs import Problem, check
from agent0.verification.programs.source import holds_program, written_program
from agent0.verification.verifiers import Verdict, verifier

LONGEST = 32_768
"""Characters of a turn that is an answer: it stands in an event."""
UNANSWERED = ("no_answer", "turn_limit")
"""Ends of attempts that a program in one of their turns answers all the same."""
ROW_S, WALL_S = 30.0, 5.0
"""Seconds of all tests of a program: of a row, of a teacher."""
VALUES = {**{value: value for value in ("None", "True", "''", "[]")}, "its argument": "(*a, *k.values(), None)[0]"}
"""What programs return that compute nothing."""
AGAIN = "its first result again"
_AGAIN = """results = {{}}
names = {{"__name__": "candidate"}}
exec({program!a}, names)
def again(name, a, k):
    if name not in results:
        results[name] = names[name](*a, **k)
    return results[name]
"""


@verifier("tests", applies=lambda task: bool(task.tests), rank=2)
async def tests(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[Verdict]:
    """Run the tests of the task on each program."""
    return [await verdict_by_tests(task, answer, sandbox) for answer in answers]


async def verdict_by_tests(task: Task, answer: str | None, sandbox: Sandbox) -> Verdict:
    """Run the tests that ``task`` has on the program in ``answer``, a whole turn."""
    problem = problem_of(task)
    if problem is None or answer is None:
        return Verdict(None if problem is None else False, "no tests" if problem is None else "no program")
    outcome = await check(problem, answer, sandbox)
    return Verdict(outcome.passed, outcome.reason, problem.entry, f"{outcome.calls} calls")


def problem_of(task: Task) -> Problem | None:
    """Return the tests of the program that ``task`` asks for; None where it asks for none."""
    if task.tests:
        names = [*tested(task.program, task.tests)]
        return Problem(task.tests, "", names[0] if len(names) == 1 else "", WALL_S, reference=task.program)
    if task.row is not None and task.row.tests:
        return Problem(task.row.tests, "", task.row.entry, ROW_S, reference=task.row.answer)
    return None


def program_of(task: Task, turns: Sequence[str]) -> str:
    """Return the turn of a student that is its answer where ``task`` asks for a program: the last that has it. Empty
    where none has, and for any other task."""
    problem = problem_of(task)
    return written_program([turn for turn in turns if len(turn) <= LONGEST], problem.entry) if problem else ""


async def fault_of_tests(task: Task, sandbox: Sandbox) -> Fault | None:
    """Return what is wrong with a teacher's tests, before anybody is asked for the program: its own does not pass
    them, or one does that computes nothing; None where nothing is, or the sandbox itself failed.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    problem = problem_of(task)
    if problem is None:
        return None
    outcome = await check(problem, task.program, sandbox)
    if outcome.sandbox_failed:
        return None
    if not outcome.passed:
        return "broken_program", f"its program does not pass its own tests: {outcome.reason}"[:300]
    if holds_program(task.question, problem.entry) and (await check(problem, task.question, sandbox)).passed:
        return "trivial", "the question holds a program that passes its tests"
    programs = _empty_programs(task)
    outcomes = await asyncio.gather(*(check(problem, program, sandbox) for program in programs.values()))
    returned = next((value for value, outcome in zip(programs, outcomes, strict=True) if outcome.passed), "")
    return ("weak_check", f"its tests pass a program that returns {returned}"[:300]) if returned else None


def _empty_programs(task: Task) -> dict[str, str]:
    """Programs that compute nothing, by what they return."""
    heads = tested(task.program, task.tests)
    programs = {
        name: "\n".join(f"def {function}(*a, **k): return {value}" for function in heads)
        for name, value in VALUES.items()
    }
    if not any(head.startswith("class") for head in heads.values()):  # an object again is a right one
        again = [f"def {function}(*a, **k): return again({function!r}, a, k)" for function in heads]
        programs[AGAIN] = "\n".join([_AGAIN.format(program=task.program), *again])
    return programs
