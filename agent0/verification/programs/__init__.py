"""Verifies programs by tests. Tests run against stand-ins in a process of their own, each call is carried out in the
candidate's sandbox, and values cross as plain data. So an exit code, a patched assertion or an object that equals
everything proves nothing, and the candidate never sees what is expected of it. Where tests need the candidate's objects
beside them they run there, without the literals that they compare with (``observed``)."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

from agent0.ports.sandbox import Sandbox, SandboxCall, SandboxResult
from agent0.verification.programs.inside import values
from agent0.verification.programs.observed import OBSERVER, judged, rewritten, together
from agent0.verification.programs.source import foreseen, modules, prefix, program_of, stands
from events.values import ToolState

MOST_ROUNDS = 12
_NOBODYS_FAULT = (ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR, ToolState.REFUSED)
_sends = re.compile(r"\.(?:send|throw|close)\s*\(")
"""What tests do with a generator itself, which then is not read at once."""
_inside = resources.files(__name__) / "inside"
_PACKAGE = "judged"
_MODULES = ("__init__", "values", "operators", "candidate", "stand_ins", "judge", "observer")
_FIRST = {"broken", "loaded", "place", "done", "opaque", "failed"}
"""Fields, one of which the first row has."""
_FILES = {f"{name}.py": (_inside / f"{name}.py").read_bytes() for name in _MODULES}


@dataclass(frozen=True)
class Problem:
    """The tests of a program.

    ``setup`` is the prompt's code (imports, other functions, perhaps an open ``def``), ``test`` asserts or defines
    ``check(candidate)``; ``entry`` is the function that is asked for, empty where tests name it themselves; ``calls``
    are those that tests are known to make, as ``values.pack`` writes them (``foreseen`` otherwise); ``reference`` is a
    reply that is right, empty where none is known.
    """

    test: str
    setup: str = ""
    entry: str = ""
    wall_s: float = 10.0
    mem_mib: int = 512
    calls: tuple[str, ...] = ()
    reference: str = ""


Opaque = Literal["", "result", "size", "argument"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of testing a program. ``passed`` None: undecided (a value that is no plain data, or a sandbox
    failure).

    ``opaque`` says what was no plain data: a result of the program, too large a result, or an argument of the tests;
    ``broken``: the program does not run at all.
    """

    passed: bool | None
    reason: str
    calls: int = 0
    opaque: Opaque = ""
    broken: bool = field(default=False, compare=False)


async def check(problem: Problem, reply: str, sandbox: Sandbox) -> Outcome:
    """Run ``problem``'s tests against the program in ``reply``. Both run in fresh calls of ``sandbox``.

    A program whose results are no plain data, or too large, where plain data is needed is wrong. It is undecided where
    the reference's are the same; without a reference also where tests hand such a result on. A result that is too large
    still has a length and a truth value, and equals no small one.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    found = await _tested(problem, reply, sandbox)
    if found.passed is not True and not found.broken:
        found = await _beside(problem, reply, sandbox, found)
    if not found.opaque:
        return found
    if not problem.reference:
        return found if found.opaque == "argument" else replace(found, passed=False)
    plain = (await _tested(problem, problem.reference, sandbox)).passed is True
    return replace(found, passed=False) if plain else found


async def _tested(problem: Problem, reply: str, sandbox: Sandbox) -> Outcome:
    """The outcome; what is opaque is undecided."""
    entry = problem.entry if "def check(" in problem.test else ""
    program = program_of(reply, problem.setup, problem.entry)
    names = stands(problem.test, problem.setup, problem.entry)
    known: dict[str, Any] = {}
    needed = list(problem.calls) or foreseen(problem.test, names, entry)
    for _ in range(MOST_ROUNDS):
        if any("\n" in call for call in needed):
            needed = [*known, *needed]  # what answers otherwise the second time must be asked from the beginning
        if needed:
            results = await perform(program, needed, problem, sandbox, names)
            if isinstance(results, Outcome):
                return results
            known |= results
        verdict = await _judge(problem, names, entry, known, sandbox)
        if isinstance(verdict, Outcome):
            return verdict
        needed, whole = verdict
        known = {} if whole else known
    return Outcome(None, f"still calling after {MOST_ROUNDS} rounds", len(known))


async def _beside(problem: Problem, reply: str, sandbox: Sandbox, found: Outcome) -> Outcome:
    """The outcome of tests that need the candidate beside them; ``found`` where these are no such tests, and undecided
    where neither way can tell."""
    program, names = program_of(reply, problem.setup, problem.entry), stands(problem.test, problem.setup, problem.entry)
    if not together(problem.test, program, names):
        return found
    tests = rewritten(problem.test)
    request = {
        "source": program,
        "setup": _setup(problem),
        "test": tests.source,
        "entry": problem.entry if "def check(" in problem.test else "",
        "names": names,
        "observer": OBSERVER,
    }
    result = await _run_inside("observer", request, problem, sandbox)
    if result.state in _NOBODYS_FAULT:
        return found
    passed, reason = judged(tests, _lines(result))
    return Outcome(passed, reason if passed is not None else found.reason, found.calls)


async def perform(
    program: str, calls: Sequence[str], problem: Problem, sandbox: Sandbox, names: Sequence[str] = ()
) -> dict[str, dict[str, Any]] | Outcome:
    """Carry out ``calls`` of the candidate in its own sandbox call; objects of its classes among ``names`` stay there.

    Returns what each call comes to (packed ``value``, ``raised`` or ``opaque``), or the outcome where it fails already.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    result = await _run_inside(
        "candidate",
        {"source": program, "calls": list(calls), "names": list(names), "sent": bool(_sends.search(problem.test))},
        problem,
        sandbox,
    )
    if result.state in _NOBODYS_FAULT:
        return Outcome(None, f"the sandbox: {result.state.value} {result.reason}".strip())
    lines = _lines(result)
    if not lines or "broken" in lines[0]:
        why = str(lines[0]["broken"]) if lines else _ending(result)
        return Outcome(False, f"the program does not run: {why}"[:300], broken=True)
    results = dict(zip(calls, lines[1:], strict=False))
    if len(results) < len(calls):
        return Outcome(
            False, f"call {len(results) + 1} of {len(calls)} did not return: {_ending(result)}", len(results)
        )
    return results


async def _judge(
    problem: Problem, names: list[str], entry: str, known: dict[str, Any], sandbox: Sandbox
) -> tuple[list[str], bool] | Outcome:
    """The outcome, or calls that have to be made first, and whether these are all from the beginning."""
    request = {"setup": _setup(problem), "test": problem.test, "entry": entry, "names": names, "known": known}
    result = await _run_inside("judge", request, problem, sandbox)
    try:
        verdict = json.loads(result.files["verdict.json"])
    except (KeyError, ValueError):
        return Outcome(None, f"the tests did not end: {_ending(result)}", len(known))
    if "needs" in verdict:
        needs = [str(call) for call in verdict["needs"]]
        again = not needs or (bool(verdict["whole"]) and needs == list(known))
        return Outcome(None, "the tests call otherwise each time", len(known)) if again else (needs, verdict["whole"])
    if opaque := verdict.get("opaque"):
        what: Opaque = "argument" if verdict.get("argument") else "size" if opaque in values.SIZES else "result"
        kind = f"a value that is {opaque}" if opaque in values.SIZES else f"a value of type {opaque}"
        return Outcome(None, f"{kind} cannot be compared", len(known), what)
    failure = verdict["failure"]
    return Outcome(not failure, failure or "all tests pass", len(known))


def _setup(problem: Problem) -> str:
    """What tests find there beside the candidate."""
    imports = "\n".join(f"import {name}" for name in modules(problem.test))
    return f"{imports}\n{prefix(problem.setup, problem.entry)}"


async def _run_inside(name: str, request: dict[str, Any], problem: Problem, sandbox: Sandbox) -> SandboxResult:
    files = {f"{_PACKAGE}/{file}": data for file, data in _FILES.items()}
    files["request.json"] = json.dumps(request).encode()
    code = f"import random\nrandom.seed(0)\nfrom {_PACKAGE} import {name}"
    return await sandbox.call(SandboxCall("python", code, files, problem.wall_s, problem.mem_mib))


def _lines(result: SandboxResult) -> list[dict[str, Any]]:
    """The rows that the candidate's process wrote, as far as they can be read."""
    out: list[dict[str, Any]] = []
    for line in result.files.get("results.jsonl", b"").split(b"\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(row, dict) or not (out or row.keys() & _FIRST):
            break
        out.append(row)
    return out


def _ending(result: SandboxResult) -> str:
    said = (result.stderr.strip().splitlines() or [""])[-1][:200]
    return f"{result.state.value}{f', {said}' if said else ''}"
