"""The suite of an evaluation: its items in set order. The same request names the same items in every process, so an
item is known by its number."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks import Benchmark, Item, chosen, drawn, make_items, read_items
from agent0.evaluation.benchmarks.rows.question_file import heldout_rows, heldout_share
from agent0.events.checkpoints import EvaluationRequested
from agent0.events.values import Split, Task
from agent0.ports.storage import BenchmarkFiles, Dataset, QuestionFile
from agent0.settings import EvaluationConfig, RunConfig
from agent0.state.run_state import suite_key
from agent0.tasks.splits import heldout

HELDOUT = "heldout_"


@dataclass(frozen=True)
class BenchmarkSuite:
    """The items of a benchmark that an evaluation asks. ``rows`` is the digest of the file they were drawn from, or of
    the items where they are made from a seed; ``source`` names the file."""

    entry: Benchmark
    items: tuple[Item, ...]
    rows: str
    source: str


def suite(request: EvaluationRequested, config: RunConfig, file: QuestionFile) -> tuple[Task, ...]:
    """Draw the ``request.n`` held-out tasks that ``request`` asks for: rows of the run's file in their share, then
    tasks of the families of ``config``.

    Raises:
        ValueError: there are not so many.
        DependencyError: the file is not there, or another one.
    """
    plan, levels, split = config.curriculum, config.evaluation.levels, request.split
    assert split != "benchmark"  # noqa: S101 - the callers' other suite
    long, share = config.evaluation.long, heldout_share(config, request.n)
    rows = heldout_rows(file, config.questions, split, share, request.seed)
    others = request.n - len(rows)
    return rows + (_heldout(split, others, request.seed, plan.domains, plan.families, levels, long) if others else ())


@lru_cache(maxsize=16)  # every item asks for it
def _heldout(
    split: Split,
    n: int,
    seed: int,
    domains: tuple[str, ...],
    names: tuple[str, ...],
    levels: tuple[int, ...],
    long: bool,
) -> tuple[Task, ...]:
    return tuple(heldout(split, n, seed, domains, names=names, long=long, levels=levels))


def benchmark_suite(name: str, n: int, seed: int, files: BenchmarkFiles) -> BenchmarkSuite:
    """Draw at most ``n`` items (0: all) of the benchmark ``name`` with ``seed``.

    Raises:
        ConfigError: no such benchmark, or a row that is none.
        RequirementsError, NotFoundError: its rows are not here.
    """
    (entry,) = chosen([name])
    return _drawn(name, n, seed, None if entry.make else files.find(entry.files, name, entry.parts))


@lru_cache(maxsize=16)  # every item asks for it
def _drawn(name: str, n: int, seed: int, rows: Dataset | None) -> BenchmarkSuite:
    (entry,) = chosen([name])
    if rows is None:
        items, digest = make_items(entry, n, seed)
        return BenchmarkSuite(entry, tuple(items), digest, f"items of {name} from seed {seed}")
    items = drawn(entry, read_items(entry, rows.text, rows.name), n, seed)
    return BenchmarkSuite(entry, tuple(items), rows.sha256, rows.name)


def made_suites(plan: EvaluationConfig) -> tuple[tuple[str, int, int], ...]:
    """Name the suites that ``plan`` scores and that are made from a seed: (benchmark, how many items, seed). Held-out
    tasks of our own families are none of them: the split rule keeps these from being trained on."""
    seeded = (entry for entry in chosen(plan.benchmarks) if entry.make and not entry.name.startswith(HELDOUT))
    return tuple((entry.name, plan.benchmark_items, plan.seed) for entry in seeded)


def requested_benchmark(
    request: EvaluationRequested, recorded: Mapping[str, str], files: BenchmarkFiles
) -> BenchmarkSuite:
    """Draw the items of a benchmark's evaluation. ``recorded`` are the digests of rows that the run has scored.

    Raises:
        ConfigError: its rows are others than those.
        RequirementsError, NotFoundError: its rows are not here.
    """
    return same_rows(benchmark_suite(request.benchmark, request.n, request.seed, files), recorded, request)


def same_rows(suite: BenchmarkSuite, recorded: Mapping[str, str], request: EvaluationRequested) -> BenchmarkSuite:
    """Return ``suite`` where its rows are those recorded for the request's suite, or none are.

    Raises:
        ConfigError: they are others.
    """
    rows = recorded.get(suite_key(request.benchmark, request.n, request.seed), suite.rows)
    if rows != suite.rows:
        why = f"{suite.source} has sha256 {suite.rows[:12]}, and the run began with {rows[:12]}."
        fix = "Put the rows back that the run began with, or start another run."
        raise ConfigError(f"The rows of {request.benchmark} have changed.", why, fix)
    return suite
