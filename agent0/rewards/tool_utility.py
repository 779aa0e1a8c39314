"""Which tool calls were useful. A call that runs nothing, prints what it was given or repeats an earlier
call is not."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agent0.grading.normal_form import normal_form, same
from agent0.state.run_state import ToolCallRecord
from agent0.tools import control_names
from agent0.turns.observations import plain_output

LONGEST = 20_000
"""Characters of an argument that are looked at; what is longer counts as work."""

_SAYING = ("print", "str", "repr", "format", "list", "int", "float")
"""Calls that change nothing of a constant but how it is written."""
_WORK = (ast.BinOp, ast.BoolOp, ast.Compare, ast.comprehension, ast.For, ast.While, ast.Subscript)
_token = re.compile(r"[A-Za-z0-9_.]+")


def useful(calls: Sequence[ToolCallRecord]) -> list[ToolCallRecord]:
    """Filter ``calls``: those that ran, printed and computed something, and repeat no earlier call; in order."""
    previous: set[str] = set()
    control, out = control_names(), []
    for call in calls:
        rendered = f"{call.name} {sorted(call.arguments.items(), key=str)}"
        if (
            call.ok
            and call.name not in control
            and call.output.strip()
            and rendered not in previous
            and _computes(call)
        ):
            out.append(call)
        previous.add(rendered)
    return out


def rests_on(answer: str | None, calls: Sequence[ToolCallRecord], question: str) -> bool:
    """Whether ``answer`` was printed by a useful call that had not been given it.

    An answer that stands in the call but not in the question was known before the call.
    """
    if not answer:
        return False
    printing = [call for call in useful(calls) if same(answer, plain_output(call.output))]
    unheard = (not _contains(answer, " ".join(_texts(call))) for call in printing)
    return bool(printing) and (any(unheard) or _contains(answer, question))


def _contains(answer: str, text: str) -> bool:
    target = normal_form(answer)
    return any(normal_form(token) == target for token in _token.findall(text)) or answer.strip() in text.split("'")


def _texts(call: ToolCallRecord) -> Iterator[str]:
    for value in call.arguments.values():
        yield value if isinstance(value, str) else repr(value)


def _computes(call: ToolCallRecord) -> bool:
    """False where its program or expression only says constants."""
    return any(_worked(text) for text in _texts(call) if text.strip())


@lru_cache(maxsize=4096)
def _worked(text: str) -> bool:
    if len(text) > LONGEST:
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a student's code may hold what Python warns of
            tree = ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(_works(node) for node in ast.walk(tree))


def _works(node: ast.AST) -> bool:
    """Whether something is worked out here, rather than said, named or brought in."""
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Name) and node.func.id in _SAYING)
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.USub | ast.UAdd)
    return isinstance(node, _WORK)
