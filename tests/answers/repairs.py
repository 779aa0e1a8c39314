"""Answers to tasks that ask for repairs."""

import random

from agent0.tasks.mining.complication import complicated
from tests.answers import RARELY, Answers, DomainTask, Files, commented, functions_in, rarely_wrong, renamed
from tests.test_generated_repositories import cheats


def right(task: DomainTask) -> Answers:
    """Repairs that are not the reference's."""
    code = task.code(task.reference)
    answers: Answers = {"commented": commented(code), "renamed": renamed(code)}
    answers["a helper more"] = {**code, f"{task.package}/extra.py": b"def unused(values):\n    return values\n"}
    answers["tests changed"] = {**task.tree, **code, "tests/test_series.py": b"def test():\n    assert False\n"}
    modules = {path: data.decode() for path, data in code.items() if "__init__" not in path and b"from ." not in data}
    for number in range(4):
        texts = complicated(modules, 2 + number, random.Random(number))
        answers[f"written otherwise {number}"] = {**code, **{path: text.encode() for path, text in texts.items()}}
    return answers


def wrong(task: DomainTask) -> Answers:
    """What is no repair, repairs a part, forges its judge, or breaks something else; none sleeps."""
    answers = cheats(task.task, task.tree, task.reference)
    del answers["sleeping"]
    code: Files = task.code(task.reference)
    for name, path in functions_in(code).items():
        answers |= {f"wrong {why}, {name}": rarely_wrong(code, name, path, test) for why, test in RARELY.items()}
    answers["renamed"], answers["commented"] = renamed(task.code(task.tree)), commented(task.code(task.tree))
    return answers
