"""Tests against a solution. Plain asserts and ``test_*`` functions: a runner of some lines that starts in
milliseconds, where pytest would cost a tenth of a second of import in every call.

The solution shares a process with its tests, so it could forge the count: this tool informs a student. It is no judge.
"""

import json

from agent0.tools import tool
from agent0.tools.answer import answer
from agent0.tools.workspace import Workspace
from events.values import ToolResult, ToolState

_PROGRAM = r"""
import ast, json, linecache, os, sys, traceback, types

given = json.loads(GIVEN)
passed, failures = 0, []

def load(name, text):
    module = types.ModuleType(name)
    module.__file__ = name + '.py'
    sys.modules[name] = module
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(True), module.__file__)
    return module

def attempt(title, action):
    global passed
    try:
        action()
    except BaseException as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        failures.append('%s: %s' % (title, ''.join(traceback.format_exception_only(error)).strip()))
        return False
    return True

def finish(code):
    total = passed + len(failures)
    print('%d passed, %d failed' % (passed, total - passed))
    for failure in failures[:10]:
        print('- ' + failure[:300])
    sys.stdout.flush()
    os._exit(code)

solution, tests = load('solution', given['solution']), load('tests', given['tests'])
if not attempt('solution', lambda: exec(compile(given['solution'], 'solution.py', 'exec'), solution.__dict__)):
    finish(1)
tests.__dict__.update({k: v for k, v in solution.__dict__.items() if not k.startswith('__')})
try:
    body = ast.parse(given['tests']).body
except SyntaxError as error:
    failures.append('tests: %s' % error)
    finish(1)
for node in body:
    code = compile(ast.Module([node], []), 'tests.py', 'exec')
    title = 'line %d: %s' % (node.lineno, ast.unparse(node)[:120])
    if attempt(title, lambda: exec(code, tests.__dict__)):
        passed += isinstance(node, ast.Assert)
for name, value in list(tests.__dict__.items()):
    if name.startswith('test') and isinstance(value, types.FunctionType) and value.__module__ == 'tests':
        passed += attempt(name, value)
if not passed and not failures:
    failures.append('there is neither an assert nor a test_ function')
finish(1 if failures else 0)
"""


@tool(pure=True)
async def run_tests(work: Workspace, solution: str, tests: str) -> ToolResult:
    """Run tests against a solution and get back how many pass, and why the others fail. Tests are assert statements
    or functions named test_*; they see everything the solution defines.
    Example: {"solution": "def double(x): return 2 * x", "tests": "assert double(3) == 6"}
    """
    given = json.dumps({"solution": solution, "tests": tests})
    result = await work.aside(f"GIVEN = {given!r}\n{_PROGRAM}")
    read = answer(result)
    if result.state is ToolState.OK and " passed, 0 failed" not in result.stdout:
        return read.model_copy(
            update={"state": ToolState.ERROR, "output": f"{read.output}\n[it ended before its tests]"}
        )
    return read
