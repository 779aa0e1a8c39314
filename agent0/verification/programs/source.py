"""Extracts the program from a reply, and from tests the names and calls that they use. Parsed, never run."""

import ast
import builtins
import re
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

from agent0.verification.programs.inside import values

LONGEST = 200_000
_fence = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_open_fence = re.compile(r"^[ \t]*`{3,}[ \t]*(?:python|py|python3)?[ \t]*\n(.*)", re.DOTALL | re.MULTILINE)
_thoughts = re.compile(r"\A.*^[^\n'\"]*</(?:think|thinking|thought|reasoning)>[ \t]*$", re.DOTALL | re.MULTILINE)
_BUILTINS = set(dir(builtins))


def program_of(reply: str, setup: str, entry: str) -> str:
    """Extract the program from ``reply``, with what the prompt (``setup``) defines before it.

    The last fenced block that defines ``entry`` after those that define what it uses, else all Python blocks, else the
    reply itself; a body without its ``def`` is appended to the prompt that it completes. Thoughts that are closed at
    the end of a line hold none.
    """
    code = _code(_thoughts.sub("", reply[:LONGEST].replace("\r\n", "\n")), entry).lstrip("\n")
    if entry and not defines(code, entry) and defines(f"{setup}\n    pass\n", entry):
        body = setup + code if code[:1] in (" ", "\t") else f"{setup.rstrip()}\n{textwrap.indent(code, '    ')}"
        return body
    return f"{prefix(setup, entry)}\n{code}"


def _code(reply: str, entry: str) -> str:
    blocks = [found[3] for found in _fence.finditer(reply) if found[2].lower() in ("", "python", "py", "python3")]
    if blocks:
        return _chosen([textwrap.dedent(block) for block in blocks], entry)
    opened = _open_fence.search(reply)
    return opened[1] if opened else reply


def _chosen(blocks: list[str], entry: str) -> str:
    """The last of ``blocks`` that defines ``entry``, after those that define names which it uses and does not."""
    place = max((n for n, block in enumerate(blocks) if entry and defines(block, entry)), default=-1)
    if place < 0:
        return "\n".join(blocks)
    main = blocks[place]
    needed = _used(main) - top_level(main) - _BUILTINS
    helpers = [block for n, block in enumerate(blocks) if n != place and needed & top_level(block)]
    return "\n".join([*(block for block in helpers if not defines(block, entry)), main])


def _used(code: str) -> set[str]:
    tree = _tree(code)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else set()


def defines(code: str, name: str) -> bool:
    """Whether ``code`` is a program that binds ``name`` at its top level."""
    return name in top_level(code)


def top_level(code: str) -> set[str]:
    """Names that ``code`` binds at its top level; none where it does not parse."""
    tree = _tree(code)
    found: set[str] = set()
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        else:
            found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found


def prefix(setup: str, entry: str) -> str:
    """The prompt's code before the function it asks for: imports and other functions."""
    tree = _tree(f"{setup}\n    pass\n") or _tree(setup)
    if tree is None:
        return ""
    kept = [node for node in tree.body if getattr(node, "name", "") != entry]
    return ast.unparse(ast.Module(kept, []))


def stands(test: str, setup: str, entry: str) -> list[str]:
    """Names that tests use and only the candidate can define."""
    tree = _tree(test)
    if tree is None:
        return [entry] if entry else []
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    inner = {
        arg.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments)
        for arg in ast.walk(node)
        if isinstance(arg, ast.arg)
    }
    bound |= {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    known = _BUILTINS | bound | inner | top_level(test) | top_level(prefix(setup, entry)) | set(modules(test))
    return sorted({*(used - known), *([entry] if entry else [])})


def modules(test: str) -> list[str]:
    """Modules of the standard library whose names tests use without importing them, as programs usually do."""
    tree = _tree(test)
    owners = {
        node.value.id
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return sorted(owners & sys.stdlib_module_names - top_level(test))


def foreseen(test: str, names: list[str], entry: str) -> list[str]:
    """Calls with literal arguments that ``test`` makes, as ``values.numbered`` writes them; saves a round."""
    tree = _tree(test)
    stood = {name: name for name in names} | ({_parameter(tree): entry} if tree and entry else {})
    times: Counter[str] = Counter()
    found: list[str] = []
    for node in _calls(tree):
        if isinstance(node.func, ast.Name) and node.func.id in stood:
            try:
                positional: list[Any] = [ast.literal_eval(arg) for arg in node.args]
                named = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
                found.append(values.numbered([stood[node.func.id], positional, named], times))
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, values.OpaqueError):
                continue
    return found[:500]


def _calls(tree: ast.Module | None) -> Iterator[ast.Call]:
    yield from (node for node in (ast.walk(tree) if tree else ()) if isinstance(node, ast.Call))


def _parameter(tree: ast.Module) -> str:
    """What ``check`` calls its candidate."""
    checks = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"]
    return checks[-1].args.args[0].arg if checks and checks[-1].args.args else ""


def _tree(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strangers' escapes and comparisons
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
