"""Part of the rim: drawn repositories without docstrings as tasks that ask for them."""

import ast
from collections.abc import Mapping, Sequence

from agent0.assembly.mining.drawn import LICENCE, Drawn, repository_of, values_by_call
from agent0.assembly.mining.mined_folder import MinedFolder, stored
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.docstring_grammar import argument, value_of
from agent0.tasks.mining.drawn_calls import DrawnCall
from agent0.tasks.mining.statements import document_statement
from agent0.verification.repositories.hidden_values import is_same
from agent0.verification.repositories.mined_task import DOCSTRINGS, MinedSolution, MinedTask, TrialRecord
from agent0.verification.repositories.round_trip import DocumentedFunction, HiddenDocumentation


async def decide_documents(batch: Sequence[Drawn], sandbox: Sandbox) -> None:
    """Run each repository: it must give what its statements say. Errors as for ``values_by_call``."""
    both = [[*repository_of(drawn).hidden, *repository_of(drawn).visible] for drawn in batch]
    values = await values_by_call(batch, both, [repository_of(drawn).code() for drawn in batch], sandbox)
    for drawn, expected in zip(batch, values, strict=True):
        drawn.expected = expected
        for call, text in expected.items():
            if not is_same(repr(value_of(drawn.docstrings[call.function], argument(call.expression))), text):
                drawn.why = "its code gives something else than its statements"


def written_document(drawn: Drawn, folder: MinedFolder) -> tuple[MinedTask, MinedSolution]:
    """What is written of a task; its files are stored first."""
    repository, expected = repository_of(drawn), drawn.expected
    code = repository.code()
    task = MinedTask(
        id=drawn.id,
        kind="document",
        package=repository.package,
        version="1",
        licence=LICENCE,
        statement=document_statement(repository.package, list(drawn.docstrings)),
        tree=stored({**code, **repository.examples(repository.visible, expected)}, folder.artifacts),
        level=repository.level,
    )
    hidden = HiddenDocumentation(
        package=repository.package,
        functions=tuple(
            DocumentedFunction(
                module=calls[0].module, name=name, calls=tuple((c.expression, expected[c]) for c in calls)
            )
            for name, calls in _by_function(repository.hidden).items()
        ),
    )
    solution = MinedSolution(
        id=task.id,
        code=stored({**code, **_with_docstrings(code, drawn, expected)}, folder.artifacts),
        frame=stored({**code, DOCSTRINGS: hidden.model_dump_json().encode()}, folder.artifacts),
        packages=(repository.package,),
        modules=(),
        fail_to_pass=(),
        pass_to_pass=(),
        seconds=0.0,
        values=DOCSTRINGS,
        change=f"{sum(map(len, drawn.docstrings.values()))} statements about {len(drawn.docstrings)} functions",
        sources=(),
        trials=TrialRecord(reference=1, empty=0, random=0),
    )
    return task, solution


def _by_function(calls: Sequence[DrawnCall]) -> dict[str, list[DrawnCall]]:
    functions: dict[str, list[DrawnCall]] = {}
    for call in calls:
        functions.setdefault(call.function, []).append(call)
    return functions


def _with_docstrings(code: Mapping[str, bytes], drawn: Drawn, expected: Mapping[DrawnCall, str]) -> dict[str, bytes]:
    """The files of documented functions with what a perfect student writes: all statements, and a call that he has."""
    repository = repository_of(drawn)
    shown = {call.function: call for call in repository.visible}
    files = {}
    for module in {call.module for call in repository.hidden}:
        path = f"{repository.package}/{module}.py"
        tree = ast.parse(code[path])
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in shown:
                call = shown[node.name]
                text = " ".join(statement.text for statement in drawn.docstrings[node.name])
                example = f"\n\n    >>> {call.expression}\n    {expected[call]}\n    "
                node.body.insert(0, ast.Expr(ast.Constant(text + example)))
        files[path] = (ast.unparse(ast.fix_missing_locations(tree)) + "\n").encode()
    return files
