"""From scored items to benchmark results: one score per benchmark and mode, a results file as lm-eval writes it,
comparisons."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from agent0.errors import OperationError
from agent0.events.benchmarks import BenchmarkScored, BenchmarkStarted, ItemScored, Mode
from agent0.events.values import Usage
from agent0.ports.models import Likely
from agent0.stats.intervals import quantile, wilson
from agent0.stats.paired_tests import FELL, IMPROVED, UNSHOWN, Difference, agreeing, compare, holm, pass_at_k
from agent0.stats.regression_rule import Regression, RegressionRule

Key = tuple[str, Mode]
LIKELY = ("acc", "acc_norm")
"""By the likelihood of given choices: never to be compared with the accuracy of replies."""
VISIBLE = "visible"
"""The metric of a sample that has how many visible tests pass."""
Choice = Callable[[Sequence[ItemScored]], ItemScored]
NAMES: Mapping[str, str] = {"tools": "with tools", "plain": "without tools"}


@dataclass(frozen=True)
class Compared:
    """One benchmark in one mode, before and after. ``adjusted`` is Holm's p over all comparisons made together."""

    benchmark: str
    mode: Mode
    before: float
    after: float
    difference: Difference
    adjusted: float

    @property
    def verdict(self) -> str:
        """The verdict on the difference; none where items gained and the mean disagree."""
        return _VERDICTS[self.difference.claimed(self.adjusted)]


_VERDICTS = {IMPROVED: "better", FELL: "worse", UNSHOWN: UNSHOWN}


def grouped(items: Iterable[ItemScored]) -> dict[Key, list[ItemScored]]:
    """Group scored items by benchmark and mode, in the order of items and samples."""
    out: dict[Key, list[ItemScored]] = {}
    for item in items:
        out.setdefault((item.benchmark, item.mode), []).append(item)
    return {key: sorted(out[key], key=lambda item: (item.item, item.sample)) for key in sorted(out)}


def by_item(items: Iterable[ItemScored]) -> dict[str, float]:
    """Map each item to the share of its samples that is right; undecided ones are not."""
    shares: dict[str, list[bool]] = {}
    for item in items:
        shares.setdefault(item.item, []).append(item.correct is True)
    return {name: fmean(verdicts) for name, verdicts in shares.items()}


def level_scores(items: Iterable[ItemScored]) -> list[tuple[str, BenchmarkScored]]:
    """Score the items of each level of a benchmark apart, where their rows have levels; returns level and score."""
    by_level: dict[str, list[ItemScored]] = {}
    for item in items:
        if level := item.facts.get("level"):
            by_level.setdefault(level, []).append(item)
    return [(level, tally(part)) for level in sorted(by_level) for part in grouped(by_level[level]).values()]


def cost(items: Iterable[ItemScored], price: tuple[float, float]) -> float:
    """The cost of the tokens of ``items``, at ``price`` for a million tokens read and written."""
    read, written = price
    used = [item.usage for item in items]
    dollars = read * sum(usage.prompt_tokens for usage in used) + written * sum(
        usage.completion_tokens for usage in used
    )
    return dollars / 1_000_000


def tally(items: Sequence[ItemScored], price: tuple[float, float] = (0.0, 0.0)) -> BenchmarkScored:
    """Score the items of one benchmark and mode.

    The interval is Wilson's over items: several samples of one item are one observation, their mean rounded to the
    nearest count.
    """
    shares = by_item(items)
    n, accuracy = len(shares), fmean(shares.values()) if shares else 0.0
    low, high = wilson(round(accuracy * n), n)
    samples = max((item.sample for item in items), default=-1) + 1
    seconds = [item.wall_s for item in items]
    return BenchmarkScored(
        benchmark=items[0].benchmark,
        mode=items[0].mode,
        n=n,
        samples=samples,
        correct=sum(item.correct is True for item in items),
        undecided=sum(item.correct is None for item in items),
        truncated=sum(item.end == "length" for item in items),
        accuracy=accuracy,
        lower95=low,
        upper95=high,
        pass_at=_pass_at(items, samples),
        metrics={
            "latency_p50_s": quantile(seconds, 0.5),
            "latency_p95_s": quantile(seconds, 0.95),
            "prompt_tokens": float(sum(item.usage.prompt_tokens for item in items)),
            "completion_tokens": float(sum(item.usage.completion_tokens for item in items)),
            "tool_use": fmean(item.tool_ok > 0 for item in items),
            "cost": cost(items, price),
            **_measured(items),
        },
        wall_s=sum(seconds),
    )


def _measured(items: Sequence[ItemScored]) -> dict[str, float]:
    """Means of the items' own metrics, each over those that have it."""
    names = sorted({name for item in items for name in item.metrics})
    return {name: fmean(item.metrics[name] for item in items if name in item.metrics) for name in names}


def _pass_at(items: Sequence[ItemScored], samples: int) -> dict[str, float]:
    counts: dict[str, tuple[int, int]] = {}
    for item in items:
        n, right = counts.get(item.item, (0, 0))
        counts[item.item] = n + 1, right + (item.correct is True)
    ks = [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= samples and all(n >= k for n, _ in counts.values())]
    return {str(k): fmean(pass_at_k(n, right, k) for n, right in counts.values()) for k in ks}


def results(started: BenchmarkStarted, scores: Sequence[BenchmarkScored], run: str, date: str) -> dict[str, object]:
    """A results file as lm-eval writes it: ``results[task]["metric,filter"]`` with its standard error beside it."""
    by_benchmark: dict[str, dict[str, str | float]] = {}
    for score in scores:
        error = (score.accuracy * (1 - score.accuracy) / max(score.n - 1, 1)) ** 0.5
        entry = by_benchmark.setdefault(score.benchmark, {"alias": score.benchmark})
        entry |= {f"acc,{score.mode}": score.accuracy, f"acc_stderr,{score.mode}": error}
        entry |= {f"truncated,{score.mode}": score.truncated}
        entry |= {f"acc_lower95,{score.mode}": score.lower95, f"acc_upper95,{score.mode}": score.upper95}
        entry |= {f"pass@{k},{score.mode}": value for k, value in score.pass_at.items()}
        spent = ("cost", "items_per_s", "latency_p50_s", "latency_p95_s")
        entry |= {f"{name},{score.mode}": score.metrics[name] for name in spent if name in score.metrics}
        entry |= {f"{name},likelihood": score.metrics[name] for name in LIKELY if name in score.metrics}
    sizes = {score.benchmark: {"original": score.n, "effective": score.n} for score in scores}
    return {
        "results": by_benchmark,
        "configs": {
            name: {"task": name, "num_fewshot": 0, "version": started.versions.get(name, "")} for name in by_benchmark
        },
        "versions": started.versions,
        "n-shot": dict.fromkeys(by_benchmark, 0),
        "n-samples": sizes,
        "config": {"model": started.actor.get("provider"), "model_args": started.actor, "limit": started.limit},
        "files": started.files,
        "run": run,
        "date": date,
    }


def compared(before: Iterable[ItemScored], after: Iterable[ItemScored]) -> list[Compared]:
    """Compare what both have scored, item by item, with Holm's correction over all comparisons."""
    old, new = grouped(before), grouped(after)
    return _compared([(key, by_item(old[key]), by_item(new[key])) for key in old if key in new])


def compared_with_first(scored: Sequence[Iterable[ItemScored]]) -> list[Compared]:
    """Compare each of the others with the first, all of one benchmark in one mode, with Holm's correction."""
    ((key, first),) = grouped(scored[0]).items()
    return _compared([(key, by_item(first), by_item(other)) for other in scored[1:]])


def modes_compared(items: Iterable[ItemScored]) -> list[Compared]:
    """Compare the same student without tools (before) and with them (after)."""
    by_key = grouped(items)
    names = sorted(
        {name for name, mode in by_key if mode == "tools"} & {name for name, mode in by_key if mode == "plain"}
    )
    return _compared(
        [((name, "tools"), by_item(by_key[name, "plain"]), by_item(by_key[name, "tools"])) for name in names]
    )


def _compared(pairs: Sequence[tuple[Key, dict[str, float], dict[str, float]]]) -> list[Compared]:
    comparisons = []
    for key, left, right in pairs:
        shared = sorted(left.keys() & right.keys())
        if shared:
            comparisons.append(
                (key, compare([left[i] for i in shared], [right[i] for i in shared]), left, right, shared)
            )
    adjusted = holm([difference.p for _, difference, *_ in comparisons])
    return [
        Compared(*key, fmean(left[i] for i in shared), fmean(right[i] for i in shared), agreeing(difference, p), p)
        for (key, difference, left, right, shared), p in zip(comparisons, adjusted, strict=True)
    ]


def scored_regression(base: Sequence[ItemScored], change: Sequence[ItemScored], rule: RegressionRule) -> Regression:
    """Pair scored items of two benchmark runs: one pair an item, of all benchmarks together, so that one test decides.

    Raises:
        OperationError: both have scored no item in the same mode.
    """
    before, after = grouped(base), grouped(change)
    pairs = [
        (f"{key[0]}/{item.removeprefix(f'{key[0]}/')}", score, others[item])
        for key in _keys(before, after)
        for others in (by_item(after[key]),)
        for item, score in by_item(before[key]).items()
        if item in others
    ]
    if not pairs:
        fix = "Score the same benchmarks with one --items and --seed."
        raise OperationError("Base and change share no scored item.", "Nothing can be paired.", fix)
    names, left, right = zip(*pairs, strict=True)
    lost = tuple(name for name, old, new in pairs if new < old)
    return Regression(rule, fmean(left), fmean(right), compare(left, right, clusters=names), lost)


def _keys(before: Mapping[Key, list[ItemScored]], after: Mapping[Key, list[ItemScored]]) -> list[Key]:
    """Each benchmark that both have, in one mode: with tools where both have that."""
    shared = before.keys() & after.keys()
    chosen = {name: mode for mode in ("plain", "tools") for name, each in shared if each == mode}
    return sorted(key for key in shared if chosen[key[0]] == key[1])


def chosen_by(likely: Sequence[Likely], gold: int) -> dict[str, float]:
    """Score likelihoods of choices: ``acc`` is 1 where the gold choice has the highest log-probability, ``acc_norm``
    where the highest divided by its number of characters.

    Ties go to the first, as in numpy's argmax.
    """
    plain = [choice.logprob for choice in likely]
    normed = [choice.logprob / max(choice.characters, 1) for choice in likely]
    return {"acc": float(plain.index(max(plain)) == gold), "acc_norm": float(normed.index(max(normed)) == gold)}


@dataclass(frozen=True)
class Control:
    """A control with the sample that it ends with at each item, and the tokens of the ``attempts`` that it makes at
    each. Who chooses among samples sees what a student sees, and no verdict."""

    name: str
    attempts: int
    items: tuple[ItemScored, ...]
    usage: Usage


def by_majority(samples: Sequence[ItemScored]) -> ItemScored:
    """The first sample with the most frequent answer: equal work folders are equal answers; none is no answer."""
    counts = Counter(sample.answer for sample in samples if sample.answer is not None)
    most = counts.most_common(1)[0][0] if counts else None
    return next(sample for sample in samples if sample.answer == most)


def by_visible_tests(samples: Sequence[ItemScored]) -> ItemScored:
    """The majority of those samples that pass the most visible tests."""
    best = max(sample.metrics[VISIBLE] for sample in samples)
    return by_majority([sample for sample in samples if sample.metrics[VISIBLE] == best])


def last_of(samples: Sequence[ItemScored]) -> ItemScored:
    """Return the last one of ``samples``, with which refining ended."""
    return samples[-1]


def controls_of(sampled: Sequence[ItemScored], refined: Sequence[ItemScored], attempts: int) -> list[Control]:
    """Single greedy, then each control at 2 and at ``attempts`` attempts: of ``sampled`` ones, which are drawn apart,
    and ``refined`` ones, each of which goes on from the one before it, the first being greedy."""
    return [
        _control("greedy", 1, refined, last_of),
        *(
            control
            for count in sorted({2, attempts})
            for control in (
                *([_control("majority", count, sampled, by_majority)] if count > 2 else []),
                _control("best by visible tests", count, sampled, by_visible_tests),
                _control("self-refine", count, refined, last_of),
            )
        ),
    ]


def prompted(name: str, items: Sequence[ItemScored]) -> Control:
    """Make the control of single greedy attempts under the prompt ``name``."""
    return _control(f"prompt {name}", 1, items, last_of)


def _control(name: str, attempts: int, samples: Sequence[ItemScored], choose: Choice) -> Control:
    by_item = _first(samples, attempts)
    used = [sample.usage for part in by_item.values() for sample in part]
    usage = Usage(
        prompt_tokens=sum(each.prompt_tokens for each in used),
        completion_tokens=sum(each.completion_tokens for each in used),
    )
    return Control(name, attempts, tuple(choose(part) for part in by_item.values()), usage)


def _first(samples: Sequence[ItemScored], count: int) -> Mapping[str, list[ItemScored]]:
    """The first ``count`` samples of each item, in order."""
    by_item: dict[str, list[ItemScored]] = {}
    for sample in sorted(samples, key=lambda each: (each.item, each.sample)):
        if sample.sample < count:
            by_item.setdefault(sample.item, []).append(sample)
    return by_item
