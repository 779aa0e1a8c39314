"""A folder of mined tasks without any mining: a bug in each of some small packages, and who repairs them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from agent0.assembly.mining.mined_folder import LedgerLine, MinedFolder, stored
from agent0.chat_format import format_call
from agent0.tasks.mining.mutations import mutated, mutations_of
from agent0.tasks.mining.statements import bug_statement
from agent0.verification.repositories.mined_task import MinedSolution, MinedTask, TrialRecord

RIGHT, WRONG = "values[at] + start", "values[at] - start"
CODE = '''"""Sums."""


def total(values, start=0):
    """Add start to the sum of values."""
    result = 0
    for at in range(len(values)):
        result += values[at]
    return result + start


def shifted(values, start):
    """Return each of values, raised by start."""
    return [values[at] + start for at in range(len(values))]
'''
VISIBLE = "import {name}\n\ndef test_total():\n    assert {name}.total([1, 2], 3) == 6\n"
HIDDEN = "from {name} import shifted\n\ndef test_two():\n    assert shifted([1, 2], 3) == [4, 5]\n"
DONE = "Done. \\boxed{done}"


def mined_folder(path: Path, packages: Sequence[str], tasks: int = 1, levels: int = 0) -> Path:
    """Make a folder with ``tasks`` tasks of each package, of ``levels`` in turns."""
    with MinedFolder.opened(path) as folder:
        for name in packages:
            for number in range(tasks):
                folder.add(
                    LedgerLine(package=name, candidate=f"{number}", task=f"{name}-{number}"),
                    *_task(name, number, folder, number % levels + 1 if levels else 0),
                )
    return path


def _task(name: str, number: int, folder: MinedFolder, level: int = 0) -> tuple[MinedTask, MinedSolution]:
    code = CODE + f"\n\nNUMBER = {number}\n"
    tests = {"tests/test_hidden.py": HIDDEN.format(name=name).encode()}
    frame = {"tests/test_total.py": VISIBLE.format(name=name).encode(), "README": b"Sums."}
    module = f"{name}/__init__.py"
    hidden = "tests/test_hidden.py::test_two"
    task = MinedTask(
        id=f"{name}-{number}",
        kind="bug",
        package=name,
        version="1",
        licence="MIT",
        statement=bug_statement(name, "1", {hidden: "assert [-2, -1] == [4, 5]"}),
        tree=stored({**frame, module: code.replace(RIGHT, WRONG).encode()}, folder.artifacts),
        level=level,
    )
    solution = MinedSolution(
        id=task.id,
        code=stored({module: code.encode()}, folder.artifacts),
        frame=stored({**frame, **tests}, folder.artifacts),
        packages=(name,),
        modules=("tests/test_hidden.py", "tests/test_total.py"),
        fail_to_pass=(hidden,),
        pass_to_pass=("tests/test_total.py::test_total",),
        seconds=0.1,
        change="operator changed",
        sources=(),
        trials=TrialRecord(reference=3, empty=0, random=0),
    )
    return task, solution


def package_of(statement: str) -> str:
    """The package that a statement names."""
    return statement.split("The Python package ")[1].split()[0]


def right_edit(package: str) -> str:
    """The call that repairs a task of ``package``."""
    return format_call("edit_file", {"path": f"{package}/__init__.py", "old": WRONG, "new": RIGHT})


def random_edit(package: str) -> str:
    """A call that changes something else."""
    code = CODE.replace(RIGHT, WRONG).encode()
    mutation = next(each for each in mutations_of("a.py", code) if each.function == "shifted" and "range" in each.text)
    line = mutated(code, [mutation]).decode().splitlines()[-1]
    return format_call(
        "edit_file", {"path": f"{package}/__init__.py", "old": code.decode().splitlines()[-1], "new": line}
    )


def writer(edit: Callable[[str], str]) -> Callable[..., str]:
    """What a student writes that makes ``edit`` in its first turn, looks at the tests in its second, and is done."""

    def say(request, skill, rng):  # type: ignore[no-untyped-def]
        places = [at for at, turn in enumerate(request.turns) if turn.role == "user"]
        written = sum(turn.role == "assistant" for turn in request.turns[places[-1] :])
        turns = [edit(package_of(request.turns[places[-1]].content)), format_call("run_tests", {}), DONE]
        return turns[min(written, 2)] if turns[0] else DONE

    return say
