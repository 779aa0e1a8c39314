"""Measure how many mutants of the pure rooms the fast tests of their room kill.

    python -m benchmarks.mutants [--number 200] [--seed 0] [--write docs/results/mutants.md] [--again] [--report]

mutmut makes the mutants. Each room gets a share of the sample by its lines; a seed draws that share from the room's
mutants. The mutants are compiled into a copy of the tree, build/mutants; verdicts are kept there, so a run that was
stopped goes on. ``--again`` tries what survived once more, with the tests as they are now, and what was not tried yet;
``--report`` tries nothing. Uses one core. Exit 1 where fewer than 85 % are killed.

Left out, because mutmut makes no mutants there: functions under a decorator (but static and class methods), default
values that are expressions, and code outside functions.
"""

import argparse
import functools
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import combine_mutations_to_source, create_mutations
from mutmut.utils.format_utils import get_mutant_name, orig_function_and_class_names_from_key

ROOMS = (
    *("stats", "state", "grading", "tasks", "rollout", "provenance"),
    *("verification", "training", "rewards", "run", "evaluation", "experiments"),
)
NOT_MUTATED = (
    "agent0/verification/programs/judged",  # read as text into the sandbox, never called here
    *("agent0/tasks/families/gym.py", "agent0/evaluation/benchmarks/gym.py"),  # need a package the tests do without
)
COPIED = (
    "agent0",
    "events",
    "handlers",
    "infra",
    "projections",
    "benchmarks",
    "docs",
    "studies",
    "tests",
    "pyproject.toml",
)
FOLDER = Path("build/mutants")
BAR = 0.85
KILLED = ("killed", "loops")
EQUIVALENT: Mapping[str, str] = json.loads(Path(__file__).with_name("equivalent_mutants.json").read_text("utf-8"))
"""By ``Mutant.key``: why the mutant changes nothing."""


@dataclass(frozen=True)
class Mutant:
    """One mutant: its ``name`` as mutmut writes it, its ``room``, and the ``diff`` of the lines it changes."""

    name: str
    room: str
    diff: str

    @property
    def key(self) -> str:
        """The mutant's function and changed lines: the same while that code stays, unlike mutmut's number."""
        function, in_class = orig_function_and_class_names_from_key(self.name)
        module = self.name.rpartition(".")[0]
        return f"{module}.{in_class + '.' if in_class else ''}{function}: {self.diff}"


def sources(room: str) -> list[Path]:
    """The files of ``room`` that are mutated, by path."""
    return [path for path in sorted(Path("agent0", room).rglob("*.py")) if not path.as_posix().startswith(NOT_MUTATED)]


def shares(number: int, lines: Mapping[str, int]) -> dict[str, int]:
    """Divide ``number`` among rooms in proportion to their ``lines``, by largest remainder."""
    exact = {room: number * count / sum(lines.values()) for room, count in lines.items()}
    given = {room: int(share) for room, share in exact.items()}
    by_remainder = sorted(exact, key=lambda room: given[room] - exact[room])
    return {room: given[room] + (room in by_remainder[: number - sum(given.values())]) for room in exact}


def sample(number: int, seed: int, tree: Path) -> list[Mutant]:
    """Draw ``number`` mutants by ``seed`` and write their files into ``tree``, every mutant beside its original.

    They come in random order, so that those tried so far are a sample too.
    """
    lines = {room: sum(len(path.read_text().splitlines()) for path in sources(room)) for room in ROOMS}
    drawn = []
    for room, share in shares(number, lines).items():
        made = {path: create_mutations(str(path), path.read_text()) for path in sources(room)}
        places = [
            (path, n)
            for path, (module, mutations, _, _) in made.items()
            for n, mutation in enumerate(mutations)
            if mutation.contained_by_top_level_function in _functions(module)
        ]
        chosen = defaultdict(list)
        for path, n in sorted(random.Random(f"{seed}:{room}").sample(places, share)):
            chosen[path].append(made[path][1][n])
        for path, mutations in chosen.items():
            module, _, classes, functions = made[path]
            drawn += _write(path, room, combine_mutations_to_source(module, mutations, classes, functions), tree)
    return random.Random(seed).sample(drawn, len(drawn))


@functools.cache
def _functions(module: cst.Module) -> frozenset[cst.CSTNode]:
    """What mutmut can put a mutant beside: statements of the module and of its classes."""
    classes = [one.body for one in module.body if isinstance(one, cst.ClassDef)]
    return frozenset([*module.body, *(one for body in classes for one in body.body)])


def _write(path: Path, room: str, mutated: object, tree: Path) -> list[Mutant]:
    (tree / path).write_text(code := mutated.code)  # type: ignore[attr-defined]
    names = [get_mutant_name(path, name) for name in mutated.mutant_names]  # type: ignore[attr-defined]
    return [Mutant(name, room, _changed(get_diff_for_mutant(name, code, path))) for name in names]


def _changed(diff: str) -> str:
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("---", "+++")]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines)


def prepare(number: int, seed: int) -> None:
    """Make the tree with its mutants, or take the one that is there where sample, code and tests are the same."""
    state = _digest(number, seed)
    known = FOLDER / "sample.json"
    if known.is_file() and json.loads(known.read_text())["digest"] == state:
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    tree = FOLDER / "tree"
    _copy(COPIED, tree)
    mutants = [vars(one) for one in sample(number, seed, tree)]
    known.write_text(json.dumps({"digest": state, "seed": seed, "mutants": mutants}, indent=1))


def _copy(names: Iterable[str], tree: Path) -> None:
    for name in names:
        source, target = Path(name), tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target, symlinks=True, ignore=ignore, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)


def _digest(number: int, seed: int) -> str:
    whole = hashlib.sha256(f"{number}:{seed}".encode())
    for path in sorted(path for name in COPIED for path in [Path(name), *Path(name).rglob("*")] if path.is_file()):
        if "__pycache__" not in path.parts:
            whole.update(f"{path}:".encode() + path.read_bytes())
    return whole.hexdigest()


def verdicts(first: bool = False) -> dict[str, str]:
    """What became of each mutant that was tried, by its name: the last word, or the ``first``."""
    file = FOLDER / "verdicts.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    return dict(rows[::-1] if first else rows)


def try_mutants(names: Sequence[str]) -> None:
    """Run the fast tests against each mutant of ``names``, in one process of the copied tree."""
    (FOLDER / "wanted.json").write_text(json.dumps(names))
    environment = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-m", "benchmarks.mutant_runs"], cwd=FOLDER / "tree", env=environment, check=True)


def page(mutants: Sequence[Mutant], seed: int) -> tuple[str, str]:
    """The result as Markdown, the answer and a table by room; and what is left, as differences."""
    found, first = verdicts(), verdicts(first=True)
    tried = [mutant for mutant in mutants if mutant.name in found]
    counted = [one for one in tried if one.key not in EQUIVALENT]
    killed = [one for one in counted if found[one.name] in KILLED]
    by_room = Counter(one.room for one in counted), Counter(one.room for one in killed)
    left = [(one, found[one.name]) for one in counted if one not in killed]
    equivalent = [(one, EQUIVALENT[one.key]) for one in tried if one.key in EQUIVALENT]
    later = [(one, first[one.name]) for one in killed if first[one.name] not in KILLED]
    loops = [(one, "loops") for one in killed if found[one.name] == "loops"]
    rows = [f"| `{room}` | {(n := by_room[0][room])} | {(k := by_room[1][room])} | {n - k} |" for room in ROOMS]
    text = "\n".join(
        [
            "# Mutants killed by the fast tests",
            "",
            f"{len(killed)} of {len(counted)} mutants of the pure rooms are killed by the fast tests of their room: "
            f"**{len(killed) / len(counted):.0%}** (at least {BAR:.0%} is required).",
            *_first_try([first[one.name] for one in counted], len(left) + len(later) if later else 0),
            f"Sample: {len(mutants)} drawn by seed {seed}, {len(tried)} tried, in random order; {len(equivalent)} of "
            "them change nothing and do not count.",
            "",
            "| room | tried | killed | left |",
            "|---|---:|---:|---:|",
            *rows,
            "",
            "`make mutants` measures it, with [mutmut](https://mutmut.readthedocs.io)'s mutants.",
            "Not mutated: functions under a decorator, default values that are expressions, code outside functions.",
            "Those that are left, one by one: [mutants.diff](mutants.diff).",
            "",
        ]
    )
    differences = [
        *_listed(f"The {len(left)} that are left", left),
        *_listed(f"The {len(later)} that are killed by tests added after they were seen", later),
        *_listed(f"The {len(equivalent)} that change nothing", equivalent),
        *_listed(f"The {len(loops)} that were stopped because they ran for ever (they count as killed)", loops),
    ]
    return text, "\n".join(differences)


def _first_try(verdicts: Sequence[str], again: int) -> list[str]:
    """What the tests did before any was added; ``again`` were tried once more since."""
    killed, counts = sum(verdict in KILLED for verdict in verdicts), Counter(verdicts)
    said = (
        f"At first try {killed} were killed (**{killed / len(verdicts):.0%}**), {counts['survived']} survived and "
        f"{counts['no test']} had no fast test."
    )
    if not again:
        return [said]
    return [
        said,
        f"Tests were then added for the kinds of these, and the {again} were tried again; so the first try is the "
        "figure for mutants that nobody has seen.",
    ]


def _listed(title: str, rows: Sequence[tuple[Mutant, str]]) -> list[str]:
    body = [f"{one.key.partition(': ')[0]} ({why})\n{one.diff}\n" for one, why in rows]
    return [f"{title}:", "", *body] if rows else []


def main() -> int:
    """Try a sample, print and write what became of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    if not asked.again and not asked.report:
        prepare(asked.number, asked.seed)
    known = json.loads((FOLDER / "sample.json").read_text())
    mutants = [Mutant(**mutant) for mutant in known["mutants"]]
    if asked.again:
        _copy(COPIED[1:], FOLDER / "tree")
    done = {name: verdict for name, verdict in verdicts().items() if verdict in KILLED or not asked.again}
    if not asked.report:
        try_mutants([mutant.name for mutant in mutants if mutant.name not in done])
    text, differences = page(mutants, known["seed"])
    print(text)
    if asked.write:
        asked.write.parent.mkdir(parents=True, exist_ok=True)
        asked.write.write_text(text)
        asked.write.with_suffix(".diff").write_text(differences)
    found = verdicts()
    counted = [
        found[mutant.name] in KILLED for mutant in mutants if mutant.name in found and mutant.key not in EQUIVALENT
    ]
    return int(sum(counted) < BAR * len(counted))


if __name__ == "__main__":
    raise SystemExit(main())
