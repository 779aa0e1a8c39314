"""Functions to write, graded by the benchmark's own tests in a process that the candidate does not share."""

import ast
import re

from agent0.evaluation.benchmarks import Benchmark, Item, benchmark
from agent0.evaluation.benchmarks.rows import Row, published
from agent0.grading import Grade
from agent0.ports.sandbox import Sandbox
from agent0.verification.programs import Problem, check
from agent0.verification.programs.source import top_level


def _humaneval(row: Row) -> Item:
    r"""``{"task_id": "HumanEval/0", "prompt": "from typing import List\n\n\ndef has_close_elements(…", "entry_point":
    "has_close_elements", "canonical_solution": "    for idx, elem in …", "test": "def check(candidate): …"}``"""
    prompt = str(row["prompt"])
    question = f"Complete this Python function. Reply with the whole function.\n```python\n{prompt.rstrip()}\n```"
    reference, restatements = str(row["canonical_solution"]), prompt_texts(prompt)
    problem = Problem(str(row["test"]), prompt, str(row["entry_point"]), wall_s=15.0, reference=reference)
    return Item(str(row["task_id"]), question, problem.entry, reference, problem=problem, restatements=restatements)


_shown = re.compile(r">>>|\b(?:for )?examples?\b|\[input/output\]", re.IGNORECASE)


def prompt_texts(prompt: str) -> tuple[str, ...]:
    """The texts by which a task could repeat a prompt that is a program: all of it, its docstrings, and what they say
    before their examples."""
    try:
        tree = ast.parse(f"{prompt.rstrip()}\n    pass\n")
    except SyntaxError:
        return (prompt,)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    texts = [text for text in docstrings if text.strip()]
    bare = [part for mark in (re.compile(">>>"), _shown) for text in texts if (part := mark.split(text)[0]).strip()]
    return tuple(dict.fromkeys((prompt, *texts, *bare)))


def _mbpp(row: Row) -> Item:
    """``{"id": "mbpp/2", "prompt": "Write a function to find the shared elements …", "code": "def similar_elements(…",
    "test_imports": [], "test_list": ["assert set(similar_elements((3, 4, 5, 6), …"]}``

    The prompt does not name its function, so the first test is shown, as is usual.
    """
    tests = [str(test) for test in row["test_list"]]
    if not tests:
        raise ValueError("it has no tests")
    code = str(row["code"])
    entry = next((name for name in sorted(top_level(code)) if f"{name}(" in "\n".join(tests)), "")
    question = f"{row['prompt']} Reply with the whole Python function. It must pass this test:\n{tests[0]}"
    imports = [str(line) for line in row.get("test_imports") or ()]
    reference = f"```python\n{code}\n```"
    problem = Problem("\n".join([*imports, *tests]), "", entry, wall_s=30.0, reference=reference)
    restatements = "\n".join([str(row["prompt"]), *tests]), f"{row['prompt']}\n{tests[0]}", str(row["prompt"])
    return Item(str(row["id"]), question, entry or "tests", reference, problem=problem, restatements=restatements)


async def judge(item: Item, reply: str, answer: str | None, sandbox: Sandbox) -> Grade:
    """Run the benchmark's tests on the program in the reply."""
    if item.problem is None or not reply.strip():
        return Grade(False, "no program", item.gold)
    outcome = await check(item.problem, reply, sandbox)
    return Grade(outcome.passed, outcome.reason, item.gold, f"{outcome.calls} calls")


HUMANEVAL = benchmark(
    Benchmark(
        name="humaneval",
        title="HumanEval, functions from docstrings",
        domain="code",
        files=("humaneval.jsonl",),
        fields=("task_id", "prompt", "entry_point", "canonical_solution", "test"),
        read=_humaneval,
        judge=judge,
        licence="MIT (OpenAI)",
        source="openai/human-eval, data/HumanEval.jsonl.gz",
    )
)
MBPP = benchmark(
    Benchmark(
        name="mbpp",
        title="MBPP sanitized, basic Python functions",
        domain="code",
        files=("mbpp_sanitized.jsonl",),
        fields=("id", "prompt", "code", "test_list"),
        lists=("test_list",),
        convert=published.mbpp,
        read=_mbpp,
        judge=judge,
        licence="CC BY 4.0 (Google)",
        source="google-research, mbpp/sanitized-mbpp.json",
    )
)
