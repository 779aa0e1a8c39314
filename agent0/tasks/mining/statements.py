"""What a task from a package says: signatures, docstrings and failures, and never a line of what solves it."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent0.tasks.mining.docstring_grammar import FORMS
from agent0.tasks.mining.generated import AFTER

MOST_FAILURES, LONGEST = 3, 12_000
"""Failures that a statement names; characters of a statement."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Another in each run."""
_SHOWN = re.compile(
    r"^- (\w+): (\w+\(.*\)): (?:after lists what these methods of a (\w+) return; )?it is to be (.*), and "
    r"(?:is|raises) .*$",
    re.MULTILINE,
)
_RULES = (
    "Change files of the package alone. Your work is judged by its tests, of which not all are in your folder; "
    "changes to tests do not count."
)
_MEASURED = """Branches, loops, `and`, `or`, functions, lambdas and comparisons used as values count 1 each for
complexity. Calls that you cannot see decide, others than those in tests/; changed tests do not count. Code that runs or
reflects on code (eval, getattr, names with __), long literals, and imports from beside the package, bisect,
collections, functools, heapq, itertools, math and operator"""


@dataclass(frozen=True)
class ShownCall:
    """A call over the names of ``module``, after ``prelude`` was run there, and the text of what it is to give."""

    module: str
    prelude: str
    expression: str
    expected: str


def shown_difference(title: str, expected: str, value: str) -> str:
    """Say what a call gives and what it is to give; ``title`` is the class that it makes, empty for none."""
    of_class = f"after lists what these methods of a {title} return; " if title else ""
    return f"{of_class}it is to be {expected}, and {value if value.startswith('raises ') else f'is {value}'}"


def shown_calls(statement: str) -> list[ShownCall]:
    """Read the calls that the statement of a generated bug shows; of other statements none."""
    return [
        ShownCall(module, AFTER.format(title=title) if title else "", expression, expected)
        for module, expression, title, expected in _SHOWN.findall(statement)
    ]


def bug_statement(package: str, version: str, failures: Mapping[str, str], count: int = 0, bugs: int = 1) -> str:
    """State ``bugs`` bugs by what fails: ``failures`` are messages by test, of ``count`` (0: of themselves)."""
    number = "a bug" if bugs == 1 else f"{bugs} bugs"
    head = f"The Python package {package} {version} in your work folder has {number}."
    return "\n\n".join([head, _failed(failures, count), _RULES])


def tests_statement(package: str, versions: int, modules: Sequence[str]) -> str:
    """Ask for tests of a package that reject ``versions`` wrong ones."""
    return f"""The Python package {package} in your work folder is right, and tests/ has some tests of it.

Write more of them into tests/test_more.py: functions named test_* whose lines are `assert call == value`, with literals
as arguments and value. Functions of {", ".join(modules)} may be called, and `after` where tests/ has it.

{versions} wrong versions of the package, which you cannot see, pass the tests in tests/. Each differs in one place. You
are paid for each that your tests reject. A test that rejects none beyond those before it costs; one that fails on the
package itself makes all worth nothing. The tests are read, not run: nothing else in your folder counts."""


def function_tests_statement(package: str, version: str, path: str, function: str, versions: int) -> str:
    """Ask for tests of ``function`` in the file ``path`` of a published package that reject ``versions`` wrong ones."""
    return f"""The Python package {package} {version} in your work folder is right, and has no tests.

Write tests of {function} in {path} into tests/test_more.py: functions named test_* whose lines are
`assert {function}(...) == value`, with literals as arguments, all by position, and as value. A call that gives an
iterator stands in list(). No other function may be called.

{versions} wrong versions of {function}, which you cannot see, differ in one place each. You are paid for each that your
tests reject. A test that rejects none beyond those before it costs; one that fails on the package itself makes all
worth nothing. The tests are read, not run: nothing else in your folder counts."""


def review_statement(package: str, modules: Sequence[str], most: int, title: str) -> str:
    """Ask for a review of a package with ``most`` defects at most; ``title`` is its class, empty for none."""
    after = f"""
`after(STEPS)` makes a {title} and lists what its methods return: after([("add", [1, 2]), ("result",)])."""
    return f"""Review the Python package {package} in your work folder. Its docstrings say what is right.
It has no defect or up to {most}.

Write review.txt: for each defect a line FILE.py:LINE: CALL, with the line that is wrong and a call with literals whose
value is wrong because of it, such as series.py:12: clip([3, 20]).
Functions of {", ".join(modules)} may be called.{after if title else ""}
Where nothing is wrong, write the line no defects, and nothing else.

A defect counts where the line is right and the call gives another value than it should. Every other line costs."""


def function_review_statement(package: str, version: str, path: str, function: str, functions: Sequence[str]) -> str:
    """Ask for a review of ``function`` in the file ``path`` of a published package."""
    return f"""Review the function {function} in {path} of the Python package {package} {version} in your work folder.
It has one defect or none.

Write review.txt: a line FILE.py:LINE: CALL, with the line that is wrong and a call with literals, all by position,
whose value is wrong because of it, such as {path}:12: {function}(...). A call that gives an iterator stands in list().
These functions of the file may be called: {", ".join(functions)}.
Where nothing is wrong, write the line no defects, and nothing else.

The defect counts where the line is right and the call gives another value than it should. Every other line costs."""


def refactor_statement(package: str, complexity: tuple[int, int], size: tuple[int, int]) -> str:
    """Ask for simpler code of a package: what it measures, and what it may measure at most."""
    return f"""The Python package {package} in your work folder is right, but more complicated than it need be. Simplify
it: every function and method must go on giving what it does, and leave its arguments as it does.

Its cyclomatic complexity, summed over all functions of all files, is {complexity[0]}: bring it to {complexity[1]} or
less. Its size in nodes of the syntax tree, without docstrings, is {size[0]}: bring it to {size[1]} or less.

{_MEASURED} are refused."""


def function_refactor_statement(
    package: str, version: str, path: str, function: str, complexity: tuple[int, int], size: tuple[int, int]
) -> str:
    """Ask for a simpler ``function`` in the file ``path`` of a published package: what it measures, and may measure."""
    return f"""The function {function} in {path} of the Python package {package} {version} in your work folder is right,
but more complicated than it need be. Simplify it: it must go on giving what it does. Functions may be added beside it;
all else in the file stays as it is, and other files do not count.

Its cyclomatic complexity, with functions that you add, is {complexity[0]}: bring it to {complexity[1]} or less. Its
size in nodes of the syntax tree, without docstrings, is {size[0]}: bring it to {size[1]} or less.

{_MEASURED} are refused where it has none yet."""


def document_statement(package: str, functions: Sequence[str]) -> str:
    """Ask for docstrings of ``functions``, in statements of the grammar."""
    forms = "\n".join(f"- {form.text.format(a='A', b='B')}" for form in FORMS.values())
    return f"""The Python package {package} in your work folder has no docstrings. Write those of
{", ".join(functions)}, and change nothing else.

A docstring says step by step what is made of the list `values`: statements of these forms, with whole numbers for A and
B, and a last one that begins with Return:

{forms}

Below them stands an example or up to 5, which are run:

    >>> {functions[0]}([1, 2])
    3

Whoever reads signature and docstring alone must be able to write a function that gives the same for every list. So
no statement may be missing, wrong, or there for nothing; examples are not read, and nothing else may stand there."""


def function_document_statement(package: str, version: str, path: str, function: str, versions: int) -> str:
    """Ask for the docstring of ``function`` in the file ``path`` of a published package."""
    return f"""The function {function} in {path} of the Python package {package} {version} in your work folder has no
docstring. Write it, and change nothing else.

It says in words what the function gives, and names every parameter. Below stand examples, which are run:

    >>> {function}(...)
    value

Arguments and values are literals, arguments by position; a call that gives an iterator stands in list(). Together the
examples must reject {versions} wrong versions of {function}, which you cannot see and which differ in one place each.
The words hold no code; a model that has signature and words alone may have to write the function from them."""


def change_statement(
    package: str, before: str, after: str, interfaces: Sequence[str], failures: Mapping[str, str]
) -> str:
    """State a change between two releases: by what documents it (``interfaces``), and by tests that fail before it."""
    head = f"Your work folder holds the Python package {package} {before}. Change it as release {after} did."
    described = "These functions and classes are new, or documented otherwise:\n\n" + "\n\n".join(interfaces)
    if len(described) > LONGEST:
        described = described[:LONGEST] + "\n…"
    return "\n\n".join([head, *([described] if interfaces else []), _failed(failures), _RULES])


def _failed(failures: Mapping[str, str], count: int = 0) -> str:
    named = [f"{test}: {_ADDRESS.sub('', failures[test])}" for test in sorted(failures)[:MOST_FAILURES]]
    lines = [f"- {text}".replace("\n", "\n  ") for text in named]
    more = (count or len(failures)) - len(lines)
    return "\n".join(["These tests fail:", "", *lines, *([f"- and {more} more"] if more > 0 else [])])


def changed_interfaces(path: str, before: bytes, after: bytes) -> list[tuple[range, str]]:
    """(lines, heading with its docstring) of the public functions and classes of a file ``path`` that are new, or whose
    signature or docstring is another one. The lines are those of ``after``, from the first decorator on."""
    old = dict(_interfaces(before))
    module = path.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").replace("/", ".")
    return [
        (lines, f"In `{module}`:\n\n{text}")
        for name, (lines, text) in _interfaces(after)
        if name not in old or old[name][1] != text
    ]


def _interfaces(source: bytes) -> Iterator[tuple[str, tuple[range, str]]]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    yield from _of(tree, "")


def _of(node: ast.AST, prefix: str) -> Iterator[tuple[str, tuple[range, str]]]:
    """(dotted name, (lines, text)) of public functions and classes, outermost first."""
    for child in getattr(node, "body", ()):
        functions = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if not (functions or isinstance(child, ast.ClassDef)):
            continue
        if child.name.startswith("_") and not child.name.endswith("__"):
            continue
        first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
        yield prefix + child.name, (range(first, (child.end_lineno or first) + 1), _heading(child, prefix))
        if isinstance(child, ast.ClassDef):
            yield from _of(child, f"{prefix}{child.name}.")


def _heading(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, prefix: str) -> str:
    """Its first line as Python writes it, and its docstring."""
    text = ast.get_docstring(node) or ""
    body: list[ast.stmt] = [ast.Expr(ast.Constant(...))]
    if isinstance(node, ast.ClassDef):
        bare: ast.stmt = ast.ClassDef(node.name, node.bases, node.keywords, body, [])
    else:
        kind = type(node)
        bare = kind(node.name, node.args, body, [], node.returns)
    head = (
        ast.unparse(ast.fix_missing_locations(bare)).removesuffix("\n    ...").replace(node.name, prefix + node.name, 1)
    )
    return f"{head}\n{text}".strip()
