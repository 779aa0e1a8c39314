"""Part of the rim: functions of published packages without their docstrings as tasks that ask for them, where examples
of the published one determine what the function gives."""

import ast
import doctest
import random
from collections.abc import Iterator, Mapping

from agent0.assembly.mining.baseline import TRIALS, UnusableError
from agent0.assembly.mining.functions.called_functions import CalledFunction, MinedRelease
from agent0.assembly.mining.functions.mined_answers import Draw, MinedAnswer, Tried, tried
from agent0.assembly.mining.functions.wrong_versions import LEAST, wrong_versions
from agent0.tasks.mining.mutations import compiles
from agent0.tasks.mining.statements import function_document_statement
from agent0.verification.repositories.determining_examples import DeterminingExamples, HiddenDocstring, parameters
from agent0.verification.repositories.hidden_values import is_readable, is_same
from agent0.verification.repositories.mined_task import DOCSTRING, SLACK_S
from agent0.verification.repositories.wrong_versions import FormError, called


def documents(mined: MinedRelease, source: random.Random, so_far: Tried) -> Iterator[Draw]:
    """Yield a task of every function whose docstring has an example."""
    for function in source.sample(mined.functions, len(mined.functions)):
        node = _node(mined.release.code[function.path], function.name)
        if node is not None and ">>>" in (ast.get_docstring(node) or ""):
            yield _draw(mined, function)


def _draw(mined: MinedRelease, function: CalledFunction) -> Draw:
    async def make() -> MinedAnswer:
        return await _document(mined, function)

    return f"{function.path} {function.name}", make


async def _document(mined: MinedRelease, function: CalledFunction) -> MinedAnswer:
    """The task, whose reference is the published docstring with its examples that are calls with literals.

    Raises:
        UnusableError: there is none.
        SandboxUnavailableError: there is no sandbox.
    """
    release, path, name = mined.release, function.path, function.name
    original = release.code[path]
    text, examples = _published(original, name)
    before, reference = with_docstring(original, name, ""), with_docstring(original, name, text)
    if not examples or not compiles(before):
        raise UnusableError("none of its examples is a call with literals")
    versions = await _rejected(mined, function, before, reference)
    hidden = HiddenDocstring(
        path=path, module=function.module, name=name, calls=function.calls, versions=tuple(versions)
    )
    packages = release.tree.packages
    files = {file: data for file, data in mined.untested.items() if release.tree.package_of(file) in packages}
    files[path] = before
    decider, drawn = DeterminingExamples(hidden, files, SLACK_S), _random_docstrings(function, original)
    trials = await tried(decider, {path: reference}, {path: before}, drawn, mined.sandbox)
    return MinedAnswer(
        release=release,
        kind="document",
        key=f"{path} {name}",
        statement=function_document_statement(*release.title, path, name, len(versions)),
        student=files,
        answer={path: reference},
        files=files,
        hidden=hidden,
        decides=DOCSTRING,
        change=f"{name}, {path}: {len(examples)} examples, {len(versions)} wrong versions",
        trials=trials,
    )


async def _rejected(mined: MinedRelease, function: CalledFunction, before: bytes, reference: bytes) -> list[str]:
    """Wrong versions without a docstring that examples of the ``reference`` reject.

    Raises:
        UnusableError: there are too few, or it is no docstring in the form that is asked for.
    """
    path, name, versions = function.path, function.name, list[str]()
    for _, code, _ in await wrong_versions(mined, function):
        text = with_docstring(code[path], name, "").decode()
        probe = HiddenDocstring(path=path, module=function.module, name=name, calls=(), versions=(text,))
        decider = DeterminingExamples(probe, {**mined.untested, path: before}, SLACK_S)
        accepted, why = await decider.accept({path: reference}, mined.sandbox)
        if accepted:
            versions.append(text)
        elif "wrong versions" not in why:
            raise UnusableError(why)
    if len(versions) < LEAST:
        raise UnusableError("its examples reject too few wrong versions")
    return versions


def _published(source: bytes, name: str) -> tuple[str, list[str]]:
    """The published docstring of ``name`` without examples that are no calls with literals, and calls of the others."""
    node = _node(source, name)
    parts, examples = list[str](), list[str]()
    for part in doctest.DocTestParser().parse(ast.get_docstring(node) or "" if node else ""):
        if isinstance(part, str):
            parts.append(part)
            continue
        try:
            call = called(part.source.strip(), 1, {name})[1]
        except FormError:
            continue
        if is_readable(part.want.strip()):
            parts.append(_example(call, part.want.strip()))
            examples.append(call)
    return "".join(parts), examples


def _example(call: str, value: str) -> str:
    return f">>> {call}\n{value}\n\n"


def _random_docstrings(function: CalledFunction, original: bytes) -> list[Mapping[str, bytes]]:
    """Each names all parameters, with an example that says of a drawn call what another gives."""
    rng, node = random.Random(f"{function.path} {function.name}"), _node(original, function.name)
    prose = "Use " + ", ".join(sorted(parameters(node))) + ".\n\n" if node else ""
    answers = list[Mapping[str, bytes]]()
    for _ in range(TRIALS):
        call, value = rng.choice(function.calls)
        others = [other for _, other in function.calls if not is_same(other, value)]
        if others:
            text = prose + _example(call, rng.choice(others))
            answers.append({function.path: with_docstring(original, function.name, text)})
    return answers


def with_docstring(source: bytes, name: str, text: str) -> bytes:
    """Return a Python file whose function ``name`` has the docstring ``text``, none where that is empty; all else byte
    for byte."""
    node, lines = _node(source, name), source.decode().split("\n")
    if node is None:
        return source
    first, has_text = node.body[0], ast.get_docstring(node) is not None
    start, end = first.lineno - 1, (first.end_lineno or first.lineno) if has_text else first.lineno - 1
    if has_text and len(node.body) == 1 and not text:
        return b""
    indent = " " * first.col_offset
    quoted = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    body = "\n".join(f"{indent}{line}".rstrip() for line in quoted.split("\n"))
    lines[start:end] = [f'{indent}"""{body.strip()}\n{indent}"""'] if text else []
    return "\n".join(lines).encode()


def _node(source: bytes, name: str) -> ast.FunctionDef | None:
    nodes = (each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef) and each.name == name)
    return next(nodes, None)
