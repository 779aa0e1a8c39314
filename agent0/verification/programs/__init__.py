"""Verifies programs by tests. One sandbox call runs two processes: the tests, and as its guest the candidate, which
cannot read the memory of the tests. Each call is carried out by the candidate, values cross as plain data, and the
tests alone write the verdict. So an exit code, a patched assertion or an object that equals everything proves nothing,
and the candidate never sees what is expected of it."""

import functools
import json
from dataclasses import dataclass, field, replace
from typing import Literal

from agent0.events.values import ToolState
from agent0.ports.sandbox import Root, Sandbox, SandboxCall, SandboxResult
from agent0.verification.programs.judged import request_text
from agent0.verification.programs.judged.request_text import CandidateRequest, JudgeRequest, SharedRequest
from agent0.verification.programs.source import classes, modules, own_modules, prefix, program_of, stands, top_level

GRACE_S = 2.0
"""What the sandbox leaves the tests beyond their time, to say that it is over."""
_NOBODYS_FAULT = (ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR, ToolState.REFUSED)
TRUSTED = (f"{__name__}.judged",)
"""What runs in both processes, imported before they are forked, where they are."""
_CODE = """
import os, sys
sys.path[:] = [folder for folder in sys.path if folder not in ("", os.getcwd())]  # the candidate may write there
from judged import {side}, request_text
{side}.main(request_text.unpack("{request}"))
"""


@dataclass(frozen=True)
class Problem:
    """The tests of a program.

    ``setup`` is the prompt's code (imports, other functions, perhaps an open ``def``), ``test`` asserts, defines
    ``check(candidate)``, or defines tests as pytest and unittest have them; ``entry`` is the function that is asked
    for, empty where tests name it themselves; ``reference`` is a reply that is right, empty where none is known.
    """

    test: str
    setup: str = ""
    entry: str = ""
    wall_s: float = 10.0
    mem_mib: int = 512
    reference: str = ""


Opaque = Literal["", "result", "size"]


@dataclass(frozen=True)
class ProgramOutcome:
    """The outcome of testing a program. ``passed`` None: undecided (a value that is no plain data, tests that never
    ran, or a sandbox failure).

    ``opaque`` says what was no plain data: a result of the program, or too large a result; ``broken``: the program does
    not run at all; ``reached`` numbers the assertions that were come to, ``missed`` counts the others;
    ``sandbox_failed``: nothing is known of it.
    """

    passed: bool | None
    reason: str
    calls: int = 0
    opaque: Opaque = ""
    broken: bool = field(default=False, compare=False)
    reached: frozenset[int] = field(default=frozenset(), compare=False)
    missed: int = field(default=0, compare=False)
    sandbox_failed: bool = field(default=False, compare=False)


async def check(problem: Problem, reply: str, sandbox: Sandbox) -> ProgramOutcome:
    """Run ``problem``'s tests against the program in ``reply``, in one fresh call of ``sandbox``.

    A program whose results are no plain data, or too large, where plain data is needed is wrong, and so is one with
    which tests do not come to assertions that the reference comes to. What the reference cannot do either is
    undecided, and where none is known, assertions that were not come to.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    outcome = await _tested(problem, reply, sandbox)
    if outcome.sandbox_failed or outcome.passed is False or not (outcome.passed is None or outcome.missed):
        return outcome
    reference = await _tested(problem, problem.reference, sandbox) if problem.reference else None
    if reference is not None and reference.passed:
        same = outcome.passed and reference.reached <= outcome.reached
        why = "it does not come to all assertions that the reference comes to" if outcome.passed else outcome.reason
        return outcome if same else replace(outcome, passed=False, reason=why)
    if outcome.passed:
        return replace(outcome, passed=None, reason=f"{outcome.missed} assertions were not come to")
    return replace(outcome, passed=False) if outcome.opaque and reference is None else outcome


async def _tested(problem: Problem, reply: str, sandbox: Sandbox) -> ProgramOutcome:
    """The outcome of one run."""
    both, tests = _requests(problem)
    program: CandidateRequest = {**both, "source": program_of(reply, problem.setup, problem.entry)}
    result = await sandbox.call(
        SandboxCall(
            "python",
            _code("judge", tests),
            wall_s=problem.wall_s + GRACE_S,
            mem_mib=problem.mem_mib,
            guest=_code("candidate", program),
            root=_root(json.dumps([tests, program])),
        )
    )
    return _read(result)


@functools.lru_cache(maxsize=256)
def _requests(problem: Problem) -> tuple[SharedRequest, JudgeRequest]:
    """What both processes get, and all that the tests get."""
    names, setup = stands(problem.test, problem.setup, problem.entry), prefix(problem.setup, problem.entry)
    class_names = (
        classes(program_of(problem.reference, problem.setup, problem.entry)) if "class" in problem.reference else set()
    )
    candidate_classes = [name for name in names if name[:1].isupper() or name in class_names]
    both: SharedRequest = {"names": names, "own": candidate_classes, "shared": sorted(classes(setup))}
    tests: JudgeRequest = {
        **both,
        "setup": "\n".join([setup, *(f"import {name}" for name in modules(problem.test))]),
        "test": problem.test,
        "entry": problem.entry if "check" in top_level(problem.test) else "",
        "modules": own_modules(problem.test),
        "wall_s": problem.wall_s,
    }
    return both, tests


def _root(text: str) -> Root:
    """Packages only where ``text`` names one: it takes the time of a program to fork an interpreter that has them."""
    modules = Root().modules
    return Root(modules=modules if any(name in text for name in modules) else (), trusted=TRUSTED)


def _read(result: SandboxResult) -> ProgramOutcome:
    """The verdict that the tests wrote. Where they wrote none, the program has kept them from it."""
    if result.state in _NOBODYS_FAULT:
        return ProgramOutcome(None, f"the sandbox: {result.state.value} {result.reason}".strip(), sandbox_failed=True)
    try:
        verdict = json.loads(result.stdout)
    except ValueError:
        return ProgramOutcome(False, f"the tests did not end: {_ending(result)}")
    return ProgramOutcome(
        verdict["passed"],
        verdict["reason"],
        verdict["calls"],
        verdict.get("opaque", ""),
        verdict.get("broken", False),
        frozenset(verdict.get("reached", ())),
        verdict.get("missed", 0),
    )


def _ending(result: SandboxResult) -> str:
    message = (result.stderr.strip().splitlines() or [""])[-1][:200]
    return f"{result.state.value}{f', {message}' if message else ''}"


def _code(side: str, request: SharedRequest) -> str:
    """The code of one of the two processes, "judge" or "candidate"."""
    return _CODE.format(side=side, request=request_text.pack(request))
