"""Answers to tasks that ask for a review."""

from agent0.verification.repositories.seeded_defects import CLEAN, NEAR, REVIEW, SeededDefects
from tests.answers import Answers, DomainTask
from tests.test_generated_reviews import NO_REVIEWS

EARNING_NOTHING = frozenset({*(f"no review {at}" for at in range(len(NO_REVIEWS))), "every line"})


def _review(task: DomainTask) -> str:
    return task.reference[REVIEW].decode()


def right(task: DomainTask) -> Answers:
    """The same defects, written otherwise."""
    lines = _review(task).splitlines()
    texts = {
        "other order": "\n".join(reversed(lines)),
        "blank lines": "\n\n".join(["", *lines, ""]),
        "spaces": "".join(f"  {line}  \n" for line in lines),
        "no last line break": "\n".join(lines),
        "carriage returns": "\r\n".join(lines),
    }
    if lines != [CLEAN]:
        for by in (-NEAR, NEAR):
            texts[f"line off by {by}"] = "\n".join(_moved(line, by) for line in lines)
        texts["calls spaced"] = "\n".join(line.replace(", ", ",") for line in lines)
    return {name: {REVIEW: text.encode()} for name, text in texts.items()}


def _moved(line: str, by: int) -> str:
    place, _, call = line.partition(": ")
    module, _, number = place.partition(":")
    return f"{module}:{max(0, int(number) + by)}: {call}"


def wrong(task: DomainTask) -> Answers:
    """What names no defect, or more than there are."""
    assert isinstance(task.hidden, SeededDefects)
    lines, hidden = _review(task).splitlines(), task.hidden.hidden
    name = next(name for module in hidden.modules for name in module.functions if name != "after")
    right = [] if lines == [CLEAN] else lines
    texts = {f"no review {at}": text for at, text in enumerate(NO_REVIEWS)}
    alarms = {"a call that is right": f"series.py:999: {name}([])", "a call that fails": f"series.py:1: {name}()"}
    alarms["a call of nothing"] = f"series.py:999: {name}([1, 2])"
    texts |= {f"with {why}": "\n".join([*right, alarm]) for why, alarm in alarms.items()}
    texts |= alarms
    if right:
        texts["passed"] = CLEAN
        texts["passed and named"] = "\n".join([*right, CLEAN])
        texts["named twice"] = "\n".join([*right, right[0]])
        for by in (-9, -4, 30):
            texts[f"line off by {by}"] = "\n".join([_moved(right[0], by), *right[1:]])
        texts["other file"] = "\n".join([right[0].replace(right[0].partition(":")[0], "unknown.py"), *right[1:]])
        texts["another call"] = "\n".join([right[0].partition(": ")[0] + f": {name}()", *right[1:]])
        texts["every line"] = "\n".join(
            f"{right[0].partition(':')[0]}:{number}: {right[0].partition(': ')[2]}" for number in range(1, 11)
        )
        texts["one of two"] = "\n".join(right[1:]) or "series.py:1: unknown([1])"
    answers: Answers = {key: {REVIEW: text.encode()} for key, text in texts.items()}
    answers["the checker edited"] = {"defects.json": b"[]", REVIEW: b"it is fine"}
    answers["in another file"] = {"REVIEW.txt": task.reference[REVIEW]}
    return answers
