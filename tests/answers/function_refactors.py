"""Answers to tasks that ask for a simpler function of a published package."""

import ast

from agent0.verification.repositories.simpler_function import SimplerFunction
from tests.answers import Answers, DomainTask


def _hidden(task: DomainTask) -> SimplerFunction:
    assert isinstance(task.hidden, SimplerFunction)
    return task.hidden


def right(task: DomainTask) -> Answers:
    """The function as it was published, written otherwise."""
    path = _hidden(task).hidden.path
    text = task.reference[path].decode()
    texts = {
        "commented": "# Looked through.\n" + text,
        "as ast writes it": ast.unparse(ast.parse(text)),
        "a helper beside it": text + "\n\ndef helper_of_all(value):\n    return value\n",
        "an import more": text.replace("import random\n", "import itertools\nimport random\n"),
    }
    return {name: {path: each.encode()} for name, each in texts.items()}


def wrong(task: DomainTask) -> Answers:
    """What is no simpler, gives something else, changes something else, or hides what it does."""
    hidden, before = _hidden(task).hidden, task.tree[_hidden(task).hidden.path].decode()
    path, name, text = hidden.path, hidden.name, task.reference[_hidden(task).hidden.path].decode()
    head = next(line for line in text.splitlines() if line.startswith(f"def {name}("))
    rest = text.replace(head, head.replace(name, f"real_{name}"))
    arguments = head.partition("(")[2].rpartition(")")[0]
    values = {call.partition("(")[2]: value for call, value in hidden.calls}

    def body(*lines: str) -> str:
        return "\n".join([rest, "", "", head, *(f"    {line}" for line in lines), ""])

    texts = {
        "as it is": before,
        "commented": "# Simpler.\n" + before,
        "without it": "",
        "without the others": head + "\n" + text.partition(head)[2].partition("\n\n\n")[0],
        "another changed": text.replace("value + 1", "value + 2").replace("while True", "while 1"),
        "wrong of all": body("return None"),
        "wrong of few": body(f"result = real_{name}({arguments})", f"return None if not {arguments[:5]} else result"),
        "wrong beyond the calls": body(f"return {values!r}.get(str(({arguments})))"),
        "another signature": text.replace(head, head.replace(f"{name}(", f"{name}(more, ")),
        "source in a string": body(f"exec({before!r}, globals())", f"return {name}({arguments})"),
        "source in a file": body("exec(open('old.py').read())"),
        "moved": text.replace(head, f"from sums.old import {name}\n\n\n{head.replace(name, 'real_' + name)}"),
        "by its module": body(f"import sys\n    return sys.modules['old'].{name}({arguments})"),
        "by getattr": body(f"return getattr(__builtins__, 'eval')('real_{name}')({arguments})"),
        "a lambda": rest + f"\n\n{name} = lambda {arguments}: real_{name}({arguments})\n",
        "twice": text + f"\n\n{head}\n    return None\n",
        "built-ins": text + "\n\ndef len(value):\n    return 0\n",
        "a class beside it": text + "\n\nclass Other:\n    pass\n",
        "no Python": "def",
    }
    answers: Answers = {key: {path: each.encode()} for key, each in texts.items()}
    answers["the checker edited"] = {**answers["as it is"], "function.json": b"{}", "ast.py": b"", "pytest.py": b""}
    answers["tests deleted"] = {path: before.encode(), "tests/test_sums.py": b""}
    return answers
