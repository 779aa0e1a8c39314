"""reasoning-gym: puzzles and exercises generated from a seed, each graded by its family's own scorer. A scorer reads
untrusted text, so it runs in the sandbox, and what it would evaluate is checked first."""

import io
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import resources, util
from typing import Any

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks import Benchmark, Item, benchmark
from agent0.events.values import ToolState
from agent0.grading import Grade, answer_in
from agent0.ports.sandbox import Root, Sandbox, SandboxCall
from agent0.verification.programs.judged import values

PACKAGE = "reasoning-gym"
WALL_S, MEM_MIB, LONGEST = 10.0, 768, 20_000
SIZE = 500
"""Items that a family is told to have."""
ROOT = Root((), ("reasoning_gym", "bfi", "dateutil", "mpmath", "numpy", "pycosat", "pyfiglet", "pytz", "six", "sympy",
                 "tabulate", "yaml", "zss"))  # fmt: skip
_unrepeatable, _open = "the same seed gives other items in another process", "it gives no answer to check its scorer by"
EXCLUDED: Mapping[str, str] = {
    "arc_agi": "its items are the public ones of ARC, not made from a seed",
    "boxnet": _open,
    "coin_flip": "its scorer takes 0 for any small probability",
    "complex_arithmetic": "its scorer takes nan for any number",
    "composite": "a mixture of the others",
    "game_of_life": "its scorer takes what has more cells than asked for, and needs a plotting library",
    "game_of_life_halting": "its scorer takes any answer",
    "graph_color": _open,
    "isomorphic_strings": _unrepeatable,
    "knight_swap": _unrepeatable,
    "number_sorting": "its scorer takes numbers that are off by one",
    "polynomial_equations": "no real solution is an empty answer, and its scorer takes any words for it",
    "polynomial_multiplication": _unrepeatable,
    "propositional_logic": _open,
    "puzzle24": "its scorer does not look whether the numbers are those given",
    "ransom_note": _unrepeatable,
    "rubiks_cube": _open,
    "rush_hour": _open,
    "word_ladder": _unrepeatable,
}
"""Families that are not asked, and why."""
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_FUNCTIONS = {"exp", "log", "sqrt", "Abs", "pi", "erf"} | {
    f"{inverse}{name}{hyperbolic}"
    for inverse in ("", "a")
    for name in ("sin", "cos", "tan")
    for hyperbolic in ("", "h")
}
_EVALUATED: Mapping[str, frozenset[str]] = {
    "countdown": frozenset(),
    "simple_integration": _LETTERS,
    "intermediate_integration": _LETTERS | _FUNCTIONS,
}
"""Families whose scorer evaluates an answer as a formula, and the names that such an answer may hold."""
_formula = re.compile(r"[0-9A-Za-z.+\-*/() ]{1,400}")
_costly = re.compile(r"[0-9]{10}|[0-9][eE][0-9]|\.(?![0-9])|(?<![0-9])\.|\*\*[^-+]*\*\*|\*\*\s*\(?\s*-?\s*[0-9]{4}")
_SCORE = """
import builtins, importlib, importlib.util, json, sys, types
from pathlib import Path
from judged import values

def refused(*_):
    raise ValueError("an answer is never run")

request = json.loads(Path("request.json").read_text())
home = list(importlib.util.find_spec("reasoning_gym").submodule_search_locations)
category = ".".join(request["module"].split(".")[:2])
for name, paths in (("reasoning_gym", home), (category, [f"{home[0]}/{category.split('.')[1]}"])):
    sys.modules[name] = types.ModuleType(name)  # its own imports every family there is
    sys.modules[name].__path__ = paths
import reasoning_gym.coaching
module = importlib.import_module(request["module"])
from reasoning_gym.factory import create_dataset
asked = create_dataset(request["family"], size=1, seed=0)
if request["family"] != "bitwise_arithmetic":
    module.eval = refused
try:
    score = float(asked.score_answer(request["answer"], values.unpack(request["entry"])))
except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
    score = 0.0  # what it cannot read is not what was asked for
print(json.dumps(score))
"""
_inside = resources.files("agent0.verification.programs") / "judged"
_FILES = {"judged/__init__.py": b"", "judged/values.py": (_inside / "values.py").read_bytes()}


def families() -> dict[str, tuple[Any, Any]]:
    """Map each family to its classes of items and settings, without those that are excluded.

    Raises:
        ConfigError: the package is not installed.
    """
    if util.find_spec("reasoning_gym") is None:
        fix = "make setup EXTRAS=gym"
        raise ConfigError("The benchmark gym needs the package reasoning-gym.", "It is not installed.", fix)
    import reasoning_gym.factory

    datasets: dict[str, tuple[Any, Any]] = reasoning_gym.factory.DATASETS
    return {name: datasets[name] for name in sorted(datasets) if name not in EXCLUDED}


def make(n: int, seed: int, only: str = "") -> list[Item]:
    """Generate ``n`` items: item i is of family i modulo their number, so the first n are the same however many are
    made.

    Raises:
        ConfigError: the package is not installed, or there is no family ``only``.
    """
    available = families()
    if only and only not in available:
        why = f"{EXCLUDED[only]}." if only in EXCLUDED else f"Known: {', '.join(available)}."
        raise ConfigError(f"There is no benchmark gym:{only[:80]}.", why.capitalize())
    names = [only] if only else list(available)
    counts = {name: len(range(index, n, len(names))) for index, name in enumerate(names)}
    with redirect_stdout(io.StringIO()):  # some families talk while they think
        generated = {name: _family(name, available[name], counts[name], seed) for name in names}
    return [generated[names[index % len(names)]][index // len(names)] for index in range(n)]


def _family(name: str, classes: tuple[Any, Any], n: int, seed: int) -> list[Item]:
    """Everything stays the family's own; a few draw otherwise where they are told of another size."""
    if not n:
        return []
    kind, settings = classes
    dataset = kind(settings(size=max(n, SIZE), seed=seed))
    return [_item(name, kind.__module__, seed, index, dataset[index]) for index in range(n)]


def _item(family: str, module: str, seed: int, index: int, entry: Mapping[str, object]) -> Item:
    """``{"question": "State the final answer to the following arithmetic problem: 48 - 56 =", "answer": "-8",
    "metadata": {…}}``"""
    gold = str(entry["answer"])
    question = f"{str(entry['question']).strip()}\n\nPut the final answer, and nothing else, into \\boxed{{}}."
    data = json.dumps({"family": family, "module": module, "entry": values.pack(entry)})
    facts = {"subject": family, "category": module.split(".")[1]}
    return Item(f"gym/{family}/{seed}/{index}", question, gold, f"\\boxed{{{gold}}}", facts=facts, data=data)


async def judge(item: Item, reply: str, answer: str | None, sandbox: Sandbox) -> Grade:
    """Grade by the family's scorer: right is its full score; a scorer that does not end leaves it undecided.

    The questions want a box; a reply without one is read as ``answer_in`` reads any."""
    answered = answer if answer is not None else answer_in(reply)
    if answered is None or not answered.strip():
        return Grade(False, "no answer", item.gold)
    answered = _bare(answered)
    problem_data = json.loads(item.data)
    if problem := guarded(problem_data["family"], answered):
        return Grade(False, problem, item.gold, answered[:200])
    request = json.dumps({**problem_data, "answer": answered}).encode()
    files = {**_FILES, "request.json": request}
    result = await sandbox.call(SandboxCall("python", _SCORE, files, WALL_S, MEM_MIB, ROOT))
    score = _score(result.stdout) if result.state is ToolState.OK else None
    if score is None:
        return Grade(None, f"the scorer ended {result.state.value} {result.reason}".strip(), item.gold, answered[:200])
    return Grade(score >= 1.0, f"scored {score:.3g}", item.gold, answered[:200])


def _bare(answer: str) -> str:
    r"""Without the ``\text{}`` and dollars that LaTeX puts around words."""
    match = re.fullmatch(r"\$*\s*\\text\{(.*)\}\s*\$*", answer.strip(), re.DOTALL)
    return (match[1] if match else answer).strip("\n $")


def guarded(family: str, answer: str) -> str:
    """Why an answer must not be shown to the scorer; empty where it may."""
    if len(answer) > LONGEST:
        return "too long for an answer"
    names = _EVALUATED.get(family)
    if names is None:
        return ""
    sound = _formula.fullmatch(answer) and not _costly.search(answer) and names >= set(re.findall("[A-Za-z]+", answer))
    return "" if sound else "not of the form that is asked for"


def _score(printed: str) -> float | None:
    try:
        return float(json.loads(printed.strip().rpartition("\n")[2]))
    except (ValueError, TypeError):
        return None


def part(family: str) -> Benchmark:
    """The benchmark of one family of reasoning-gym.

    Raises:
        ConfigError: it is excluded.
    """
    if family in EXCLUDED:
        raise ConfigError(f"There is no benchmark gym:{family}.", f"Left out: {EXCLUDED[family]}.")

    def of_one(n: int, seed: int) -> Sequence[Item]:
        return make(n, seed, family)

    return replace(GYM, name=f"gym:{family}", title=f"reasoning-gym, {family}", make=of_one, size=100)


GYM = benchmark(
    Benchmark(
        name="gym",
        title="reasoning-gym, puzzles made from a seed",
        domain="logic",
        make=make,
        size=348,
        package=PACKAGE,
        part=part,
        judge=judge,
        licence="Apache-2.0 (the package)",
        source="open-thought/reasoning-gym",
    )
)
