"""Count what the tree holds at given revisions: files, lines, words, names, circles of imports, short docstrings.

    python -m benchmarks.structure 819c1fb HEAD

Prints a Markdown table with one column a revision. Rooms, retired words and the least length of a docstring are
those of ``tests/test_architecture.py`` and ``tests/test_words.py`` as they are now.
"""

import argparse
import io
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

from tests import test_architecture, test_words
from tests.test_architecture import Source


def files(root: Path, *folders: str, end: str = ".py") -> list[Path]:
    """Return the files below ``folders`` of ``root`` whose names end in ``end``."""
    return sorted(path for folder in folders for path in (root / folder).rglob(f"*{end}"))


def lines(paths: list[Path]) -> int:
    """Return how many lines the files have in all."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def imports(root: Path) -> dict[str, set[str]]:
    """Return module -> modules of the tree that it imports, in functions too."""
    known = {}
    for path in files(root, *test_architecture.ROOMS):
        name = str(path.relative_to(root).with_suffix("")).replace("/", ".").removesuffix(".__init__")
        known[name] = Source(str(path.relative_to(root)), path.read_text(encoding="utf-8"))
    return {
        module: {one for m, n in source.imports() if (one := f"{m}.{n}" if f"{m}.{n}" in known else m) in known}
        - {module}
        for module, source in known.items()
    }


def circles(root: Path) -> int:
    """Return how many groups of modules import one another."""
    graph = imports(root)
    place = {module: at for at, module in enumerate(graph)}
    edges = [(place[module], place[other]) for module, others in graph.items() for other in others]
    matrix = csr_array(([1] * len(edges), tuple(zip(*edges, strict=True))), shape=(len(place), len(place)))
    _, groups = connected_components(matrix, connection="strong")
    return sum(size > 1 for size in Counter(groups.tolist()).values())


def in_words(root: Path, count: Callable[[str], list[str]]) -> int:
    """Return how many findings a check of ``tests/test_words.py`` has in the tree at ``root``."""
    here, test_words.ROOT = test_words.ROOT, root
    try:
        return sum(len(count(room)) for room in test_words.ROOMS)
    finally:
        test_words.ROOT = here


def counts(root: Path) -> Mapping[str, int]:
    """Return name -> number for the tree at ``root``."""
    code, tests = files(root, *test_architecture.ROOMS), files(root, "tests")
    prose = [root / "README.md", root / "CONTRIBUTING.md", *files(root, "docs", end=".md")]
    first = [path.stem for path in (root / "agent0").glob("[!_]*") if path.suffix == ".py" or path.is_dir()]
    rooms = [sum(path.suffix == ".py" for path in folder.iterdir()) for folder in {path.parent for path in code}]
    return {
        "files of code": len(code),
        "lines of code": lines(code),
        "files of tests": len(tests),
        "lines of tests": lines(tests),
        "words of documentation": sum(len(path.read_text(encoding="utf-8").split()) for path in prose),
        "names at the first level of `agent0/`": len(first),
        "modules in the largest room": max(rooms),
        "circles of imports": circles(root),
        "public docstrings missing or under eight words": in_words(root, test_words.short),
        "retired words in public names, help and first lines": in_words(root, test_words.retired),
    }


def at(revision: str) -> Mapping[str, int]:
    """Return the counts of the tree at ``revision`` of the repository."""
    packed = subprocess.run(["git", "archive", revision], check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as tree:
        tree.extractall(folder, filter="data")
        return counts(Path(folder))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("revisions", nargs="+")
    columns = {revision: at(revision) for revision in parser.parse_args().revisions}
    print("| | " + " | ".join(columns) + " |\n|---" + "|---:" * len(columns) + "|")
    for name in next(iter(columns.values())):
        print(f"| {name} | " + " | ".join(f"{column[name]:,}" for column in columns.values()) + " |")


if __name__ == "__main__":
    main()
