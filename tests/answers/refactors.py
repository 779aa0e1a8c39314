"""Answers to tasks that ask for simpler code."""

import ast
import base64
import random

from agent0.tasks.mining.complication import complicated
from agent0.verification.repositories.code_measures import UnmeasurableError, measured
from agent0.verification.repositories.simpler_code import SimplerCode
from tests.answers import RARELY, Answers, DomainTask, Files, commented, functions_in, rarely_wrong, renamed


def right(task: DomainTask) -> Answers:
    """Simple code that is not the reference's."""
    code = task.code(task.reference)
    answers: Answers = {"commented": commented(code), "renamed": renamed(code), "comprehensions": _shorter(code)}
    answers["one helper more"] = {**code, f"{task.package}/extra.py": b"def unused(values):\n    return values\n"}
    modules = {path: data.decode() for path, data in code.items() if "__init__" not in path and b"from ." not in data}
    for number in range(20):
        texts = complicated(modules, 1 + number % 3, random.Random(number))
        changed = {**code, **{path: text.encode() for path, text in texts.items()}}
        if _is_allowed(task, changed):
            answers[f"with complications left {number}"] = changed
    return {name: files for name, files in answers.items() if _is_allowed(task, files)}


def _is_allowed(task: DomainTask, files: Files) -> bool:
    """Whether the measures are within what the statement says: else it is no right answer."""
    assert isinstance(task.hidden, SimplerCode)
    measures = measured(task.code(files), task.package)
    return measures.complexity <= task.hidden.hidden.complexity and measures.size <= task.hidden.hidden.size


class _Comprehensions(ast.NodeTransformer):
    """Loops that only append become comprehensions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        for at in range(len(node.body) - 1):
            match node.body[at : at + 2]:
                case [
                    ast.Assign(targets=[ast.Name(id="result")], value=ast.List(elts=[])),
                    ast.For(
                        target=target, iter=iterated, body=[ast.Expr(ast.Call(ast.Attribute(attr="append"), [added]))]
                    ),
                ]:
                    made = ast.ListComp(added, [ast.comprehension(target, iterated, [], 0)])
                    node.body[at : at + 2] = [ast.Assign([ast.Name("result", ast.Store())], made)]
        return node


def _shorter(files: Files) -> Files:
    trees = {path: _Comprehensions().visit(ast.parse(data)) for path, data in files.items()}
    return {path: (ast.unparse(ast.fix_missing_locations(tree)) + "\n").encode() for path, tree in trees.items()}


def wrong(task: DomainTask) -> Answers:
    """What is no simpler, gives something else, or only hides what it does."""
    before, code = task.code(task.tree), task.code(task.reference)
    functions = functions_in(code)
    name, path = sorted(functions.items())[0]
    answers: Answers = {"as it is": before, "nothing": {}, "commented": commented(before), "renamed": renamed(before)}
    answers["without tests"] = before
    answers["without functions"] = dict.fromkeys(code, b"")
    answers["without one function"] = {**code, path: code[path].replace(f"def {name}(".encode(), b"def other(")}
    answers["tests deleted, functions too"] = {f"{task.package}/__init__.py": b"", "tests/test_series.py": b""}
    answers["the checker edited"] = {**before, "measures.json": b'{"complexity": 999}', "ast.py": b"", "json.py": b""}
    answers["an expression for all"] = {**code, path: f"def {name}(values):\n    return []\n".encode()}
    answers |= {f"wrong {why}": rarely_wrong(code, name, path, test) for why, test in RARELY.items()}
    answers["its argument changed"] = {
        **code,
        path: code[path].replace(f"def {name}(".encode(), f"def _{name}(".encode())
        + f"\n\ndef {name}(values):\n    result = _{name}(values)\n    values.append(0)\n    return result\n".encode(),
    }
    return answers | hiding(task)


def hiding(task: DomainTask) -> Answers:
    """The code as it was, where no measure would see it, and values of tests that are looked up."""
    before, code = task.code(task.tree), task.code(task.reference)
    answers: Answers = {}
    for key, load in {
        "source in a string": "exec({text!r})",
        "source in bytes": "exec(bytes({octets!r}))",
        "source in base64": "import base64\nexec(base64.b64decode({packed!r}))",
        "source compiled": "exec(compile({text!r}, 'x', 'exec'))",
        "source by getattr": "getattr(__builtins__, 'ex' + 'ec')({text!r})",
        "source in pieces": "eval('exec')(''.join({pieces!r}))",
        "source in a docstring": '"""{quoted}"""\nexec(__doc__)',
        "source in names": "f = lambda: 0\nexec(f.__code__.co_name or {text!r})",
        "source in another folder": "from old.{module} import *",
        "source in a file": "exec(open('old.txt').read())",
        "source by runpy": "import runpy\nglobals().update(runpy.run_path('old.txt'))",
        "source by importlib": "import importlib\nglobals().update(vars(importlib.import_module('old.{module}')))",
    }.items():
        files = dict(code)
        for path, data in before.items():
            text = data.decode()
            values = {
                "text": text,
                "octets": list(data),
                "packed": base64.b64encode(data),
                "module": path[:-3].split("/")[1],
            }
            pieces = [text[at : at + 30] for at in range(0, len(text), 30)]
            files[path] = load.format(**values, pieces=pieces, quoted=text.replace('"""', "'''")).encode()
            files |= {f"old/{path.partition('/')[2]}": data, "old.txt": data}
        answers[key] = files
    answers["values of tests"] = {**code, **_looked_up(task)}
    answers["branches as lambdas"] = {path: _lambdas(data) for path, data in before.items()}
    answers["branches as lookups"] = {path: _lookups(data) for path, data in before.items()}
    package = task.package
    answers["moved to another file"] = {
        f"{package}/_moved_{path.partition('/')[2]}": data for path, data in before.items()
    }
    for path, data in before.items():
        module = path.partition("/")[2][:-3]
        names = [node.name for node in ast.parse(data).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        line = f"from ._moved_{module} import {', '.join(names)}\n" if names else ""
        answers["moved to another file"] = {**answers["moved to another file"], path: line.encode()}
    return answers


def _looked_up(task: DomainTask) -> Files:
    """Functions that know the values of the tests in the work folder, and nothing else."""
    values: dict[str, dict[str, object]] = {}
    for path, data in task.tree.items():
        for node in ast.walk(ast.parse(data)) if path.startswith("tests/") else ():
            if (
                isinstance(node, ast.Assert)
                and isinstance(node.test, ast.Compare)
                and isinstance(node.test.left, ast.Call)
            ):
                call, expected = node.test.left, node.test.comparators[0]
                if isinstance(call.func, ast.Name) and call.func.id != "after":
                    values.setdefault(call.func.id, {})[ast.unparse(call.args[0])] = ast.literal_eval(expected)
    files: dict[str, bytes] = {}
    for name, path in functions_in(task.code(task.reference)).items():
        line = f"def {name}(values):\n    return {values.get(name, {})!r}.get(str(values))\n\n\n"
        files[path] = files.get(path, b"") + line.encode()
    return files


class _Lambdas(ast.NodeTransformer):
    """Conditions of one assignment become calls of lambdas by a dictionary."""

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        match node:
            case ast.If(body=[ast.Expr(ast.Call() as first)], orelse=[ast.Expr(ast.Call() as second)]):
                table = f"{{True: lambda: {ast.unparse(first)}, False: lambda: {ast.unparse(second)}}}"
                return ast.parse(f"{table}[{ast.unparse(node.test)}]()").body[0]
        return node


def _lambdas(data: bytes) -> bytes:
    return ast.unparse(ast.fix_missing_locations(_Lambdas().visit(ast.parse(data)))).encode() + b"\n"


class _Lookups(ast.NodeTransformer):
    """Conditions become multiplications by what they give."""

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        match node:
            case ast.If(body=[ast.AugAssign(ast.Name(name), ast.Add(), added)], orelse=[]):
                return ast.parse(f"{name} += ({ast.unparse(added)}) * bool({ast.unparse(node.test)})").body[0]
        return node


def _lookups(data: bytes) -> bytes:
    return ast.unparse(ast.fix_missing_locations(_Lookups().visit(ast.parse(data)))).encode() + b"\n"


def is_measured(task: DomainTask, files: Files) -> bool:
    """Whether all that counts of an answer can be measured."""
    try:
        measured({path: data for path, data in task.code(files).items() if path.endswith(".py")}, task.package)
    except UnmeasurableError:
        return False
    return True
