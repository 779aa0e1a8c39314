"""What a check says of a repository, and what is tried of each kind of work on one, in the real sandbox."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from agent0.assembly.runtime import port_openers
from agent0.assembly.solving.repository_copy import RepositoryCopy
from agent0.assembly.solving.solutions import SolutionRequest, solution_of, submission_of
from agent0.errors import OperationError
from agent0.events.submissions import TaskSubmitted
from agent0.events.tasks import ResultVerified, TaskAttempted, ToolCalled
from agent0.handlers.solve_submission import solve_submission
from agent0.infra.models.replay import ReplayedTurns
from agent0.ports.sandbox import Sandbox, SandboxCall, SandboxResult
from agent0.tools import tools
from agent0.tools.cache import ToolCache
from agent0.tools.snapshots import save
from agent0.verification.solutions import module_values
from agent0.verification.solutions import solution_votes as votes_module
from agent0.verification.solutions.check_runs import NO_TESTS, CheckRun, RepositoryCheck
from agent0.verification.solutions.equal_behaviour import behaviour_vote
from agent0.verification.solutions.new_tests import new_test_votes
from agent0.verification.solutions.patches import patched
from agent0.verification.solutions.repository_job import RepositoryJob, Verb, refusal
from agent0.verification.solutions.review_claims import review_votes
from agent0.verification.solutions.solution_votes import solution_votes
from tests.memory import MemoryArtifacts
from tests.solved import BROKEN, REPAIR, RIGHT, SOUND, TESTS, WRONG
from tests.world import Opened, small


@pytest_asyncio.fixture
async def sandbox(shared_sandbox: None) -> AsyncIterator[Sandbox]:
    yield await port_openers.open_sandbox()


def job(verb: Verb, files: Mapping[str, bytes], **more: object) -> RepositoryJob:
    tree = save(files, MemoryArtifacts())
    plain = {"verb": verb, "check": "python tests/run.py", "seconds": 20.0, "modules": (), "tree": tree}
    return RepositoryJob.model_validate(plain | more)


@pytest.mark.parametrize(
    "command, files, problem",
    [
        ("pytest -q", {"sums.py": RIGHT}, "it finds no tests"),
        (
            "pytest -q",
            {"tests/test_x.py": b"def test_x():\n    while True:\n        pass\n"},
            "it did not end within 2 s",
        ),
        ("tox -e py", SOUND, "it needs the command tox, which the sandbox does not have"),
        ("pytest -q --cov", SOUND, "pytest cannot be called so"),
        ("pytest -q", {"tests/test_x.py": b"import nowhere\n"}, "it needs the package nowhere"),
        (
            "pytest -q",
            {"tests/test_x.py": b"import socket\n\n\ndef test_x():\n    socket.getaddrinfo('example.org', 80)\n"},
            "it needs the network, which the sandbox does not have",
        ),
        (
            "pytest -q",
            {"tests/test_x.py": b"def test_x():\n    open('/etc/solved', 'w')\n"},
            "it uses /etc/solved, outside of its folder",
        ),
        ("pytest -q", SOUND, ""),
        ("pytest -q", {"src/sums.py": RIGHT, "tests/test_sums.py": TESTS}, ""),
    ],
)
async def test_a_check_that_says_nothing_says_why_in_a_line(
    command: str, files: Mapping[str, bytes], problem: str, sandbox: Sandbox
) -> None:
    run = await RepositoryCheck(command, 2.0 if "end within" in problem else 20.0).run(files, sandbox)
    assert run.problem.startswith(problem) and bool(run.problem) == bool(problem), run
    assert "\n" not in run.summary and not Path("/etc/solved").exists()
    if not problem:
        assert run.passes and run.tests in (2, None)


RUN = b"""import test_sums

for name, test in vars(test_sums).items():
    if name.startswith("test_"):
        test()
"""
"""Runs the tests in a fifth of the time that pytest takes."""
CHEAT = b"import os\n\nos._exit(0)\n"
SIMPLER = RIGHT.replace(
    b"    result = 0\n    for at in range(len(values)):\n        result += values[at]\n    return result\n",
    b"    return sum(values)\n",
)
MORE = TESTS + b"\n\ndef test_of_none():\n    assert largest([]) == 0 and total([]) == 0\n"
WEAK = TESTS + b"\n\ndef test_again():\n    assert largest([3, 1]) == 3\n"
LESS = RIGHT.replace(b"    if not values:\n        return 0\n    return max(values)", b"    return max(values)")
EMPTY = MORE + b"\n\ndef test_of_nothing():\n    assert largest\n"
TEXT = SIMPLER.replace(b"return sum(values)", b"return eval('sum(values)')")
SPLIT = b"".join(b"def f%d(x):\n    return x + %d\n\n\n" % (n, n) for n in range(9))
SPLIT_TEST = (
    b"import sums\n\n\ndef test_x():\n    assert [getattr(sums, f'f{n}')(1) for n in range(9)] == list(range(1, 10))\n"
)
MISSED = {"sums.py": SPLIT.replace(b"x + ", b"x - "), "tests/test_sums.py": SPLIT_TEST}
DOCUMENTED = b'"""Sums of numbers."""\n\n\n' + RIGHT.replace(
    b"def total(values):\n", b'def total(values):\n    """Add.\n\n    >>> total([1, 2])\n    3\n    """\n'
).replace(b"def largest(values):\n", b'def largest(values):\n    """The largest value."""\n')


@pytest.mark.parametrize(
    "verb, before, changes, holds, against",
    [
        ("fix", BROKEN, {"sums.py": RIGHT}, True, ""),
        ("fix", BROKEN, {"sums.py": RIGHT + b"\n\nspare = 1\n"}, False, "only what is needed"),
        ("fix", BROKEN, {"sums.py": RIGHT, "notes.py": b""}, False, "only what is needed"),
        ("fix", BROKEN, {"tests/test_sums.py": b"", "pytest.ini": b"", "tests/conftest.py": b""}, False, "changes"),
        ("fix", BROKEN, {"pytest.py": b"", "sitecustomize.py": CHEAT, "tests/test_sums.py": b""}, False, "changes"),
        ("fix", BROKEN, {"sums.py": CHEAT}, False, "check after"),
        ("fix", BROKEN, {"sums.py": b"\xff\0"}, False, "changes"),
        ("fix", BROKEN, {}, False, "changes"),
        ("fix", MISSED, {"sums.py": SPLIT}, True, ""),
        ("test", SOUND, {"tests/test_sums.py": MORE}, True, ""),
        ("test", SOUND, {"tests/test_sums.py": EMPTY}, False, "no empty tests"),
        ("test", SOUND, {"tests/test_sums.py": WEAK}, False, "wrong versions"),
        ("test", SOUND, {"tests/test_sums.py": b"def test_x():\n    pass\n"}, False, "check after"),
        ("test", SOUND, {"sums.py": WRONG}, False, "changes"),
        ("refactor", SOUND, {"sums.py": SIMPLER}, True, ""),
        ("refactor", SOUND, {"sums.py": RIGHT + b"\n\nspare = 1\n"}, False, "simpler"),
        ("refactor", SOUND, {"sums.py": WRONG}, False, "check after"),
        ("refactor", SOUND, {"sums.py": LESS}, False, "drawn calls"),
        ("refactor", SOUND, {"sums.py": TEXT}, False, "simpler"),
        ("refactor", SOUND, {"sums.py": SIMPLER.replace(b"largest", b"_largest")}, False, "check after"),
        ("document", SOUND, {"sums.py": DOCUMENTED}, True, ""),
        ("document", SOUND, {"sums.py": DOCUMENTED.replace(b"    3\n", b"    4\n")}, False, "doctests"),
        ("document", SOUND, {"sums.py": DOCUMENTED.replace(b'"""The largest value."""', b"")}, False, "public names"),
        ("document", SOUND, {"sums.py": DOCUMENTED.replace(b"The largest value.", b"Largest.")}, False, "public names"),
        (
            "document",
            SOUND,
            {"sums.py": DOCUMENTED.replace(b"The largest value.", b":param x: y")},
            False,
            "public names",
        ),
        ("document", SOUND, {"sums.py": DOCUMENTED.replace(b"2])", b"2])  # doctest: +SKIP")}, False, "public names"),
        ("document", SOUND, {"sums.py": DOCUMENTED + b"\n\nspare = 1\n"}, False, "docstrings alone"),
    ],
)
async def test_votes_are_for_work_that_is_done_and_for_no_other(
    verb: Verb,
    before: Mapping[str, bytes],
    changes: Mapping[str, bytes],
    holds: bool,
    against: str,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(votes_module, "SURVIVORS", 2)
    monkeypatch.setattr(votes_module, "MOST_HUNKS", 4)
    before = {**before, "tests/run.py": RUN}
    counted = {"check": "pytest -q"} if against == "check after" and verb != "refactor" else {}
    votes = await solution_votes(job(verb, before, **counted), before, {**before, **changes}, sandbox)
    assert all(vote.correct for vote in votes) is holds, votes
    assert against in ("", *(vote.check for vote in votes if vote.correct is False)), votes
    assert set(patched(verb, before, {**before, **changes})) >= set(before)


@pytest.mark.parametrize(
    "old, new, correct, compared",
    [
        (b"def f(x: list[int]):\n    yield from x\n", b"def f(x):\n    yield from x[1:]\n", False, ""),
        (b"def f(x: list[int]):\n    return max(x)\n", b"def f(x):\n    return max(iter(x))\n", True, "1 of 1"),
        (b"def f(x: list[int]):\n    return sorted(x)\n", b"def f(x):\n    x.sort()\n    return x\n", False, ""),
        (b"def f(x):\n    return x[0]\n", b"def f(x):\n    return next(iter(x))\n", True, "1 of 1"),
        (b"def f(x: int):\n    while x:\n        pass\n", b"def f(x):\n    return 1\n", True, "0 of 1"),
        (
            b"def f(x: int):\n    return x\n",
            b"def f(x):\n    while x > 3:\n        pass\n    return x\n",
            False,
            "hang",
        ),
        (b"import random\n\ndef f():\n    return random.random()\n", b"def f():\n    return 1\n", True, "0 of 1"),
        (b"def f(x):\n    return x.nothing\n", b"def f(x):\n    return 1\n", True, "0 of 1"),
        (b"import nowhere\n\ndef f():\n    return 1\n", b"def f():\n    return 2\n", True, "0 of 1"),
    ],
)
async def test_functions_are_compared_where_their_arguments_can_be_drawn(
    old: bytes, new: bytes, correct: bool, compared: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_values, "CALLS_S", 0.5)
    before, after = {"src/part/sums.py": old}, {"src/part/sums.py": new}
    vote = await behaviour_vote(job("refactor", before), before, after, ["src/part/sums.py"], sandbox)
    assert vote.correct is correct and compared in vote.reason, vote


async def test_tests_that_pass_by_chance_are_refused(sandbox: Sandbox) -> None:
    class Counted:
        """The sandbox, with the number of the run in a file."""

        runs = 0

        async def call(self, call: SandboxCall) -> SandboxResult:
            self.runs += 1
            return await sandbox.call(replace(call, files={**call.files, "runs.txt": b"%d" % self.runs}))

    chance = job("test", SOUND, check="""python -c 'assert open("runs.txt").read() == "1"'""")
    [vote] = await new_test_votes(chance, SOUND, SOUND, CheckRun(0), Counted())  # type: ignore[arg-type]
    assert vote.correct is False and "by chance" in vote.reason


@pytest.mark.parametrize(
    "review, base, verdicts",
    [
        (b"no defects\n", {}, [True]),
        (b"sums.py:3: total([1, 2])\n", SOUND, [True, True]),
        (b"sums.py:3: total([1, 2])\n", {}, [True, None]),
        (b"sums.py:3: total(None)\nsums.py:3: the bound looks wrong\n", {}, [True, None, None]),
        (b"sums.py:10: largest([1, 'a'][:0] or {1: 2}[3])\n", {}, [True, None]),
        (b"sums.py:9: total([1, 2])\nsums.py:4: total([1, 2])\n", SOUND, [True, None, True]),
        (b"sums.py:99: total([1])\nnowhere.py:1: f(1)\n", {}, [True, False, False]),
        (b"sums.py:3: total(__import__('os').listdir())\n", {}, [True, None]),
        (b"it is all wrong\n", {}, [False]),
        (b"".join(b"sums.py:%d: x\n" % n for n in range(1, 12)), {}, [False]),
        (b"", {}, [False]),
    ],
)
async def test_a_review_is_confirmed_where_execution_shows_it(
    review: bytes, base: Mapping[str, bytes], verdicts: list[bool | None], sandbox: Sandbox
) -> None:
    votes = await review_votes(job("review", BROKEN), BROKEN, base, {**BROKEN, "review.txt": review}, sandbox)
    assert [vote.correct for vote in votes] == verdicts, votes


def submitted(files: Mapping[str, bytes], artifacts: MemoryArtifacts, check: str = "pytest -q") -> TaskSubmitted:
    copy = RepositoryCopy(Path("sums"), files)
    event = submission_of(small(), artifacts, SolutionRequest("fix", check, 20.0), copy).event
    assert isinstance(event, TaskSubmitted)
    return event


async def test_each_turn_is_stored_and_goes_on_anywhere(sandbox: Sandbox) -> None:
    artifacts, told = MemoryArtifacts(), list[object]()
    event: object = submitted(BROKEN, artifacts)
    for number, turn in enumerate(REPAIR):
        assert isinstance(event, TaskSubmitted) and event.turn == number
        models = Opened(ReplayedTurns([turn]))  # it knows this turn alone: nothing is asked twice
        effects = await solve_submission(event, models, sandbox, sandbox, ToolCache(), artifacts, None, tools())  # type: ignore[arg-type]
        told += [event, *effects] if not number else effects
        event = effects[-1]
    solution = solution_of("submission-1", (e for e in told), artifacts)  # type: ignore[misc]
    assert isinstance(event, ResultVerified) and event.correct and solution is not None
    assert solution.solved and solution.after == SOUND and "+    for at in range(len(values)):" in solution.diff
    assert [type(e) for e in told if isinstance(e, ToolCalled | TaskAttempted)] == [ToolCalled, TaskAttempted]


@pytest.mark.parametrize(
    "verb, run, words",
    [
        ("refactor", CheckRun(1, "1 failed"), "it fails before any change: 1 failed. agent0 solve fix PATH"),
        ("document", CheckRun(problem="it did not end within 2 s"), "--timeout SECONDS"),
        ("fix", CheckRun(5, "no tests ran", NO_TESTS), "it finds no tests. agent0 solve test PATH writes some."),
        ("fix", CheckRun(1, "", "it needs the network, which …"), "Leave those tests out"),
        ("review", CheckRun(1, "", "it uses /etc/x, outside of its folder"), "Leave those tests out"),
        ("test", CheckRun(5, "no tests ran", NO_TESTS), ""),
        ("fix", CheckRun(0, "1 passed"), "nothing to fix"),
        ("fix", CheckRun(1, "1 failed"), ""),
        ("test", CheckRun(0, "1 passed"), ""),
    ],
)
def test_work_begins_where_its_check_serves_and_else_says_what_to_do(verb: Verb, run: CheckRun, words: str) -> None:
    error = refusal(job(verb, SOUND), run)
    assert (words in str(error) and "\n" not in str(error)) if words else error is None, error


@pytest.mark.parametrize(
    "files, check, words",
    [(SOUND, "python sums.py", "nothing to fix"), (SOUND, "tox", "tox")],
)
async def test_a_check_that_does_not_serve_is_refused_before_a_model_is_asked(
    files: Mapping[str, bytes], check: str, words: str, sandbox: Sandbox
) -> None:
    artifacts = MemoryArtifacts()
    with pytest.raises(OperationError, match=words):
        await solve_submission(
            submitted(files, artifacts, check),
            Opened(None),
            sandbox,
            sandbox,
            ToolCache(),
            artifacts,
            None,
            tools(),  # type: ignore[arg-type]
        )
