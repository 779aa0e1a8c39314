"""Verifies answers by a teacher's checker: a function that is given an answer as text and says whether it is right.

The answer is handed to it as data in a process that cannot write the verdict (``agent0.verification.programs``). What
the checker does not accept is wrong, and so is what makes it fail; where it does not end, nothing is decided.
"""

import ast
import sys
from collections.abc import Sequence
from dataclasses import replace
from string import ascii_lowercase, ascii_uppercase, digits

from agent0.events.values import Task
from agent0.grading import answer_in
from agent0.grading.math.cleaning import unmarked
from agent0.ports.sandbox import Sandbox
from agent0.tasks.screening import Fault
from agent0.turns.assertions import parsed
from agent0.verification.programs import Problem, ProgramOutcome, check
from agent0.verification.verifiers import Verdict, verifier
from agent0.verification.verifiers.execution import STATED, output_of

WALL_S = 5.0
REFUSED = "the checker does not accept it"
ACCEPTS = "accepts_answer"
_PROGRAM = """{checker}

def {accepts}(answer):
    try:
        return bool(check(answer))
    except Exception:
        return False
"""
JUNK = ("", "?", "no answer")
"""Answers that are right to no question."""
OPPOSITES = (("yes", "no"), ("true", "false"))
RUNNING = {"eval", "exec", "builtins", "__builtins__", "__import__", "importlib", "runpy", "pickle", "subprocess", "os"}
"""Names by which a program runs what it was given as text."""


@verifier("checker", applies=lambda task: bool(task.checker), rank=2)
async def checker(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[Verdict]:
    """Hand each answer to the task's checker, in a fresh process each."""
    return [await verdict_by_checker(task, answer, sandbox) for answer in answers]


async def verdict_by_checker(task: Task, answer: str | None, sandbox: Sandbox) -> Verdict:
    """Hand ``answer`` to the checker of ``task``; undecided where that does not end."""
    if answer is None:
        return Verdict(False, "no answer")
    outcome = await _checked(task, answer, sandbox)
    if outcome.passed:
        return Verdict(True, "the checker accepts it", "", answer[:200])
    return Verdict(outcome.passed, REFUSED if outcome.passed is False else outcome.reason, "", answer[:200])


async def _checked(task: Task, answer: str, sandbox: Sandbox) -> ProgramOutcome:
    """Whether the checker accepts ``answer`` without its markup, undecided where it does not come to say so."""
    test = f"assert {ACCEPTS}({unmarked(answer)!a}), {REFUSED!r}"
    program = _PROGRAM.format(checker=task.checker, accepts=ACCEPTS)
    outcome = await check(Problem(test, "", ACCEPTS, WALL_S), program, sandbox)
    return outcome if outcome.passed or REFUSED in outcome.reason else replace(outcome, passed=None)


async def fault_of_checker(task: Task, sandbox: Sandbox) -> Fault | None:
    """Return what is wrong with a teacher's checker, before anybody is asked its question: it may run what an answer
    says, does not accept what the task's program prints, accepts what is right to no question, or all that resembles
    its own answer. None where nothing is, or the sandbox itself failed.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    if names := _running(task.checker):
        return "weak_check", f"its checker may run what an answer says: {', '.join(names)}"
    reference, _ = await output_of(task.program, sandbox)
    outcome = await _checked(task, reference, sandbox) if reference is not None else None
    if reference is None or outcome is None or outcome.sandbox_failed:
        return None
    if not outcome.passed:
        return "broken_program", f"its checker does not accept its own answer: {outcome.reason}"[:300]
    if fault := await _fault_on_other_answers(task, reference, sandbox):
        return fault
    stated = answer_in(task.question)
    states = stated is not None and (await _checked(task, stated, sandbox)).passed
    return ("trivial", STATED) if states else None


async def _fault_on_other_answers(task: Task, reference: str, sandbox: Sandbox) -> Fault | None:
    """What is wrong with a checker's verdicts on answers beside ``reference``: one at a time, since it may not end."""
    for answer in _wrong_answers(reference):
        outcome = await _checked(task, answer, sandbox)
        if outcome.passed:
            return _lax(answer)
        if outcome.passed is None:
            return _undecided(outcome)
    near = _near(reference)
    for answer in near:
        outcome = await _checked(task, answer, sandbox)
        if not outcome.passed:
            return _undecided(outcome)
    return _lax(near[0]) if near else None


def _lax(answer: str) -> Fault:
    return "weak_check", f"its checker accepts {answer!r}, too"[:300]


def _undecided(outcome: ProgramOutcome) -> Fault | None:
    if outcome.sandbox_failed or outcome.passed is False:
        return None
    return "broken_program", f"its checker does not decide: {outcome.reason}"[:300]


def _running(source: str) -> list[str]:
    """What ``source`` could run an answer with: names that do, and packages, since some of them evaluate texts."""
    names, modules = set[str](), set[str]()
    for node in (node for statement in parsed(source) for node in ast.walk(statement)):
        names |= {node.id} if isinstance(node, ast.Name) else {node.attr} if isinstance(node, ast.Attribute) else set()
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.name for alias in node.names}
            modules |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else {node.module or ""}
    packages = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
    return sorted((names | modules) & RUNNING | packages)


def _wrong_answers(reference: str) -> list[str]:
    """Answers that are right to no question, and the opposite of ``reference``."""
    return [
        *JUNK,
        *(no if reference.lower() == yes else yes for yes, no in OPPOSITES if reference.lower() in (yes, no)),
    ]


def _near(reference: str) -> list[str]:
    """Answers that resemble ``reference``: with another last digit or letter."""
    kinds = (digits, ascii_lowercase, ascii_uppercase)
    places = [(place, kind) for place, letter in enumerate(reference) for kind in kinds if letter in kind]
    if not places:
        return []
    place, kind = places[-1]
    others = (kind[(kind.index(reference[place]) + step) % len(kind)] for step in (1, 2, 3, 5, 7))
    return [f"{reference[:place]}{other}{reference[place + 1 :]}" for other in others]
