"""``agent0 solve fix`` on three published packages, each with a bug that a person put in: what is solved, and how fast.

``python -m benchmarks.solve_packages FOLDER`` reads their source distributions from the package index and lets a
scripted reference repair them; ``--model NAME`` asks a model instead, ``--seeds 3`` often; other options are those of
``agent0 solve``. Only the sandbox runs them.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent0.chat_format import format_call
from agent0.infra.web.package_index import PackageIndex
from agent0.verification.repositories.source_tree import source_tree

PLUGIN = '''"""A provider whose model plays the turns of a file."""

import json
from pathlib import Path

from agent0.assembly.runtime.providers import Provider, provider
from agent0.infra.models.replay import ReplayedTurns


class Played(ReplayedTurns):
    """Each turn by its number, so that killed work goes on."""

    async def generate(self, request):
        """The turn that is asked for."""
        turns = json.loads(Path(self._turns[0]).read_text())
        return await ReplayedTurns([turns[min(request.turn, len(turns) - 1)]]).generate(request)


provider(Provider("played", lambda actor, settings, artifacts: Played([actor.model])))
'''


@dataclass(frozen=True)
class Package:
    """A release of a package, and a bug: in ``path`` the text ``right`` became ``wrong``."""

    name: str
    version: str
    path: str
    right: str
    wrong: str
    check: str


PACKAGES = (
    Package(
        "inflection",
        "0.5.1",
        "inflection/__init__.py",
        "number % 100 in (11, 12, 13)",
        "number % 100 in (11, 12)",
        "pytest -q test_inflection.py",
    ),
    Package(
        "toolz",
        "1.0.0",
        "toolz/itertoolz.py",
        "itertools.islice(seq, 0, None, n)",
        "itertools.islice(seq, 1, None, n)",
        "pytest -q toolz/tests/test_itertoolz.py",
    ),
    Package(
        "more-itertools",
        "10.1.0",
        "more_itertools/recipes.py",
        "return next(g, True) and not next(g, False)",
        "return next(g, True) and not next(g, True)",
        "pytest -q tests/test_recipes.py",
    ),
)


def prepared(package: Package, folder: Path) -> Path:
    """Lay the files of a release with its bug into a new folder below ``folder``; returns it."""
    index, target = PackageIndex(), folder / package.name
    release = next(each for each in index.releases(package.name) if str(each.version) == package.version)
    files = dict(source_tree(index.read(release)).files)
    text = files[package.path].decode()
    if text.count(package.right) != 1:
        raise SystemExit(f"{package.name} {package.version} has {package.right!r} {text.count(package.right)} times")
    files[package.path] = text.replace(package.right, package.wrong).encode()
    for name, data in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
    return target


def reference(package: Package, folder: Path) -> list[str]:
    """The options of a command whose model undoes the bug."""
    edit = {"path": package.path, "old": package.wrong, "new": package.right}
    turns = [f"I undo it.\n{format_call('edit_file', edit)}", "Done. \\boxed{done}"]
    (folder / f"{package.name}.json").write_text(json.dumps(turns))
    (folder / "played.py").write_text(PLUGIN)
    model = ("--provider", "played", "--model", str(folder / f"{package.name}.json"))
    return ["--profile", "scripted", *model, "--plugin", str(folder / "played.py")]


def rows(folder: Path, options: Sequence[str], seeds: int) -> Iterator[str]:
    """A line of the table for each package and seed; ``options`` name a model, none the scripted reference."""
    for package in PACKAGES:
        target = folder / package.name
        target = target if target.is_dir() else prepared(package, folder)
        for seed in range(seeds):
            chosen = options or reference(package, folder)
            command = ["solve", "fix", str(target), "--check", package.check, "--seed", str(seed), "--json", *chosen]
            start = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-m", "agent0", *command], stdout=subprocess.PIPE, text=True, check=False
            )
            work = json.loads(done.stdout) if done.stdout else {"reason": "", "solved": False, "votes": []}
            why = "; ".join(f"{vote['check']}: {vote['reason']}" for vote in work["votes"]) or work["reason"]
            took = time.monotonic() - start
            yield f"| {package.name} {package.version} | {seed} | {done.returncode} | {took:.0f} | {why} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the packages lie, or will")
    parser.add_argument("--model", default="", help="as agent0 solve takes it; without: the scripted reference")
    parser.add_argument("--seeds", type=int, default=1, help="attempts at each")
    chosen, others = parser.parse_known_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    options = (["--model", chosen.model] if chosen.model else []) + others
    print("| package | seed | exit code | s | votes |\n|---|---:|---:|---:|---|")
    for row in rows(chosen.folder.absolute(), options, chosen.seeds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
