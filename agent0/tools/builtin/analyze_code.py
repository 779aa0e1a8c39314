"""What is in a Python file, without running it. The file is text of a model: it is parsed inside the sandbox."""

import json
from typing import Annotated

from agent0.events.values import ToolResult
from agent0.tools import tool
from agent0.tools.definition import Example
from agent0.tools.paths import missing, mistaken, plain
from agent0.tools.results import answer
from agent0.tools.workspace import Workspace

LARGEST = 256 << 10
"""Bytes of a file that is analysed."""

_PROGRAM = r"""
import ast, json, sys

BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.ExceptHandler, ast.Assert, ast.comprehension,
            ast.match_case)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)

def stop(message):
    print(message)
    sys.exit(1)

def inside(scope):
    left = list(ast.iter_child_nodes(scope))
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            left.extend(ast.iter_child_nodes(node))

def scopes(tree):
    left = [(node, '') for node in reversed(tree.body)]
    while left:
        node, above = left.pop()
        name = above
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            name = above + node.name
            yield node, name
            name += '.'
        left.extend((child, name) for child in reversed(list(ast.iter_child_nodes(node))))

def complexity(scope):
    found = 1
    for node in inside(scope):
        found += isinstance(node, BRANCHES)
        found += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        found += len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return found

def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else '')
    return '.'.join(reversed(parts))

def calls(scope):
    found = [node for node in inside(scope) if isinstance(node, ast.Call)]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    names = list(dict.fromkeys(name for name in (dotted(node.func) for node in found) if name))
    return names[:20] + (['...'] if len(names) > 20 else [])

def arguments(function):
    given = function.args
    places = [*given.posonlyargs, *given.args]
    plain = len(places) - len(given.defaults)
    out = [one.arg + ('=' if n >= plain else '') for n, one in enumerate(places)]
    out[len(given.posonlyargs):len(given.posonlyargs)] = ['/'] if given.posonlyargs else []
    out += ['*' + given.vararg.arg] if given.vararg else ['*'] if given.kwonlyargs else []
    out += [one.arg + ('=' if default else '') for one, default in zip(given.kwonlyargs, given.kw_defaults)]
    return ', '.join(out + (['**' + given.kwarg.arg] if given.kwarg else []))

def imports(tree):
    out = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = '.' * node.level + (node.module + '.' if node.module else '')
            out += [source + alias.name for alias in node.names]
    return list(dict.fromkeys(out))

def where(node):
    return 'line %d' % node.lineno if node.lineno == node.end_lineno else 'lines %d-%d' % (node.lineno, node.end_lineno)

def told(scope):
    names = calls(scope)
    return 'complexity %d' % complexity(scope) + (', calls ' + ', '.join(names) if names else '')

name = json.loads(GIVEN)
try:
    text = open(name, 'rb').read()
    tree = ast.parse(text)
except SyntaxError as error:
    stop('not Python: %s, line %s' % (error.msg, error.lineno))
except (ValueError, MemoryError, RecursionError) as error:
    stop('cannot be parsed: %s' % (str(error) or 'nested too deeply'))
found = list(scopes(tree))
functions = sum(isinstance(node, FUNCTIONS) for node, _ in found)
print('lines: %d, functions: %d, classes: %d' % (len(text.splitlines()), functions, len(found) - functions))
print('imports: ' + (', '.join(imports(tree)) or 'nothing'))
print('module: ' + told(tree))
for node, title in found:
    if isinstance(node, ast.ClassDef):
        print('class %s, %s' % (title, where(node)))
    else:
        print('def %s(%s), %s, %s' % (title, arguments(node), where(node), told(node)))
"""

_CODE = (
    "import math\n\ndef area(r, unit='m'):\n    if r < 0:\n        raise ValueError(unit)\n    return math.pi * r**2\n"
)


@tool(
    pure=True,
    examples=[
        Example(
            {"path": "area.py"},
            "lines: 6, functions: 1, classes: 0\nimports: math\nmodule: complexity 1\n"
            "def area(r, unit=), lines 3-6, complexity 2, calls ValueError",
            after=(("write_file", {"path": "area.py", "content": _CODE}),),
        )
    ],
)
async def analyze_code(work: Workspace, path: Annotated[str, "a Python file of the work folder"]) -> ToolResult:
    """Tell what a Python file of your work folder holds: its imports, and each function with its arguments, lines,
    cyclomatic complexity and the names it calls. Nothing is run. Example: {"path": "area.py"}
    """
    path = plain(path)
    if problem := missing(path, work.files):
        return mistaken(problem)
    data = work.files[path]
    if len(data) > LARGEST:
        return mistaken(f"{path} has {len(data)} bytes; at most {LARGEST} are analysed.")
    return answer(await work.aside(f"GIVEN = {json.dumps(path)!r}\n{_PROGRAM}", {path: data}))
