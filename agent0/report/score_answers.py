"""The first lines about scores outside of runs: benchmarks, two models on new tasks, verdicts and trainings made
again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from agent0.projections.base import Row
from agent0.report.answers import FEW, MOST, claim_words, truncation_line
from agent0.report.conclusions import conclusion
from agent0.rollout.confidence.ensembles import EnsembleScores, Labels, Solver
from agent0.stats.calibrators import Worth
from agent0.stats.intervals import wilson
from agent0.stats.sequential_test import ENOUGH, always_valid_interval, e_value, winner

NAMES = {"tools": "with tools", "plain": "without tools"}
PUBLISHED = "a comparison with published numbers made under other prompts or item sets"


def benchmark_answer(results: Row) -> list[str]:
    """Sum a benchmark run up: which replies were cut off, its scores, and what tools change; ``results["provider"]``
    made the replies."""
    cut = cut_off_line(results)
    scored = [score for score in results["scores"] if score["accuracy"] is not None]
    shown = [
        f"{score['benchmark']} {NAMES[score['mode']]} {score['accuracy']:.1%} "
        f"({score['lower95']:.1%} to {score['upper95']:.1%}) of {score['n']}"
        for score in scored[:MOST]
    ]
    more = f"; {len(scored) - MOST} more below" if len(scored) > MOST else ""
    lines = [f"Right: {'; '.join(shown) or 'nothing is scored'}{more}."]
    tools = results["tools_against_plain"]
    lines += (
        [f"With tools less without: {_differences([(difference['benchmark'], difference) for difference in tools])}."]
        if tools
        else []
    )
    limits = [PUBLISHED, *_few([score["n"] for score in scored])]
    if results["provider"] == "scripted":
        limits = ["anything of a model: the scripted student replays references"]
    lines += filter(None, [undecided_line(results)])
    return [*filter(None, [cut]), *lines, f"Not to be claimed: {'; '.join(limits)}."]


def cut_off_line(results: Row) -> str:
    """Say which replies of a benchmark run met its ``max_tokens``, which the share ``max_truncated`` of them may; empty
    where none did."""
    counts = [
        (f"{score['benchmark']} {NAMES[score['mode']]}", score["truncated"] or 0, score["n"] * score["samples"])
        for score in results["scores"]
    ]
    return truncation_line(counts, results["max_tokens"], results["max_truncated"])


def undecided_line(results: Row) -> str:
    """Say which answers of a benchmark run nothing could decide about, which are counted as not right; empty where
    there is none."""
    counts = [
        f"{score['benchmark']} {NAMES[score['mode']]} {score['undecided']} of {score['n'] * score['samples']}"
        for score in results["scores"]
        if score["undecided"]
    ]
    return f"Undecided, and counted as not right: {', '.join(counts)}." if counts else ""


def compared_answer(rows: Sequence[Row], before: str, after: str) -> list[str]:
    """Sum up a comparison of two benchmark runs, or of one run with tools and without."""
    what = f"{after} less {before}" if before != after else f"{after}, with tools less without"
    named = [
        (
            f"{comparison['benchmark']} {NAMES[comparison['mode']]}" if before != after else comparison["benchmark"],
            comparison,
        )
        for comparison in rows
    ]
    limits = ["anything of other benchmarks", *_few([comparison["items"] for comparison in rows])]
    return [f"{what}: {_differences(named)}.", f"Not to be claimed: {'; '.join(limits)}."]


def prompts_answer(
    prompts: Sequence[Row], differences: Sequence[Row], max_tokens: int, max_truncated: float
) -> list[str]:
    """Sum up prompts that were scored on the same items, each compared with the first, and what each took."""
    first, *others = prompts
    cut = truncation_line([(row["prompt"], row["truncated"], row["n"]) for row in prompts], max_tokens, max_truncated)
    shown = (f"{row['prompt']} {row['accuracy']:.1%} ({row['lower95']:.1%} to {row['upper95']:.1%})" for row in prompts)
    compared = (
        f"{row['prompt']} less {first['prompt']} {claim_words(difference)}"
        for row, difference in zip(others, differences, strict=True)
    )
    limits = ["anything of other rows: the better one was chosen on these", *_few([first["n"]])]
    return [
        *filter(None, [cut]),
        f"{first['benchmark']} {NAMES[first['mode']]}, {first['n']} rows: {'; '.join(shown)}.",
        f"{'; '.join(compared)}.",
        f"What it took: {'; '.join(map(_prompt_cost, prompts))}.",
        f"Not to be claimed: {'; '.join(limits)}.",
    ]


def controls_answer(controls: Sequence[Row], equal: Sequence[Row], provider: str) -> list[str]:
    """Sum up controls that were scored on the same tasks, each beside single greedy attempts, which come first, and
    those with as many attempts as each other (``equal``); ``provider`` made the attempts."""
    first, *others = controls
    shown = (
        f"{_attempts(row)} {row['accuracy']:.1%} ({row['lower95']:.1%} to {row['upper95']:.1%})" for row in controls
    )
    compared = (f"{_attempts(row)} less greedy {claim_words(row['difference'])}" for row in others)
    limits = ["anything of other tasks, samples or rounds", *_few([first["n"]])]
    if provider == "scripted":
        limits = ["anything of a model: the scripted student replays references"]
    return [
        f"{first['benchmark']}, {first['n']} tasks: {'; '.join(shown)}.",
        f"{'; '.join(compared)}.",
        *(f"{_attempts(row)} less {row['less']} {claim_words(row)}." for row in equal),
        f"Not to be claimed: {'; '.join(limits)}.",
    ]


def _attempts(row: Row) -> str:
    return row["control"] if row["attempts"] == 1 else f"{row['control']} of {row['attempts']}"


def _prompt_cost(row: Row) -> str:
    tokens = f"{row['read']:,} tokens read, {row['written']:,} written"
    time = "" if row["seconds"] is None else f", {row['seconds']:.0f} s"
    money = ", its price is not known" if row["usd"] is None else f", ${row['usd']:.4g}" if row["usd"] else ""
    return f"{row['prompt']} {row['calls']:,} calls, {tokens}{time}{money}"


def _differences(named: Sequence[tuple[str, Row]]) -> str:
    """Up to two differences with interval and p, more of them by what was concluded."""
    if len(named) <= 2:
        return "; ".join(f"{name} {claim_words(row)}" for name, row in named)
    conclusions = Counter(conclusion(row["word"]) for _, row in named)
    text = "; ".join(
        f"{verdict} on {count}" + ("" if verdict == "not significant" else f" ({_named(named, verdict)})")
        for verdict, count in conclusions.most_common()
    )
    return f"of {len(named)} comparisons, p adjusted: {text}"


def _named(named: Sequence[tuple[str, Row]], verdict: str) -> str:
    names = [name for name, row in named if conclusion(row["word"]) == verdict]
    return ", ".join(names[:MOST]) + (" …" if len(names) > MOST else "")


def _few(counts: Sequence[int]) -> list[str]:
    least = min(counts, default=FEW)
    return [f"small differences, from {least} item{'s' * (least != 1)}"] if least < FEW else []


def models_answer(event: Row) -> list[str]:
    """Sum up two models that answered the same new tasks until a sequential test decided, from the event's fields."""
    n, gained, lost = event["n"], event["gained"], event["lost"]
    if not n:
        return ["No task was answered by both, so nothing is concluded."]
    low, high = always_valid_interval(gained, lost, n)
    better = {"": "not significant", "second": "improved", "first": "decreased"}[winner(gained, lost)]
    evidence = e_value(gained, lost)
    p = f"p {min(1.0, 1 / evidence):.2g} at any time; e-value {evidence:.3g}, {ENOUGH:g} decides"
    return [
        f"{event['second']} less {event['first']}: {100 * (gained - lost) / n:+.1f} points ({100 * low:+.1f} to "
        f"{100 * high:+.1f}): {better} ({p}).",
        f"On the same {n} new {event['split']} tasks: {event['second']} {_share(event['second_correct'], n)}, "
        f"{event['first']} {_share(event['first_correct'], n)}.",
        "Not to be claimed: anything of other seeds or families" + ("" if n >= FEW else f" ({n} tasks are few)") + ".",
    ]


def ensemble_answer(scores: EnsembleScores, split: str) -> list[str]:
    """Sum up what a vote of checkpoints adds over the best of them, and over as many of its own attempts."""
    alone = next(member for member in scores.members if member.name == scores.best)
    again = next(each for each in scores.majorities if each.name.endswith(f" by {scores.best}"))
    differences = [{**asdict(d), "adjusted_p": p, "word": d.claimed(p)} for d, p in scores.gains]
    labels = [f"{each.name} on {each.coverage:.1%} of tasks{_right(each)}" for each in scores.labels]
    worths = [_area(each) for each in scores.doubts]
    n, solvers = len(scores.vote.scores), (scores.vote, alone, again)
    return [
        f"On {n} {split} tasks: {'; '.join(f'{each.name} {_solved(each)}' for each in solvers)}.",
        f"The vote less {again.name} {claim_words(differences[1])}; less {alone.name} {claim_words(differences[0])}.",
        f"Answers that two attempts share, taken for right: {'; '.join(labels)}.",
        f"Whether an answer of {scores.best} is right: agreement with the others tells with an AUROC of {worths[0]}, "
        f"with as many of its own further attempts of {worths[1]}.",
        f"Not to be claimed: anything of other members or tasks; the best was chosen on these{_small(n)}.",
    ]


def _solved(solver: Solver) -> str:
    return f"{solver.accuracy:.1%} ({solver.lower95:.1%} to {solver.upper95:.1%})"


def _right(labels: Labels) -> str:
    if labels.right is None or labels.right95 is None:
        return ""
    return f", right {labels.right:.1%} ({labels.right95[0]:.1%} to {labels.right95[1]:.1%})"


def _area(doubt: Worth | None) -> str:
    if doubt is None or doubt.auroc is None or doubt.auroc95 is None:
        return "not estimable"
    return f"{doubt.auroc:.3f} ({doubt.auroc95[0]:.3f} to {doubt.auroc95[1]:.3f})"


def _small(n: int) -> str:
    return f" ({n} tasks are few)" if n < FEW else ""


def _share(right: int, n: int) -> str:
    low, high = wilson(right, n)
    return f"{right / n:.1%} ({low:.1%} to {high:.1%})"


def reverify_answer(results: Row) -> list[str]:
    """Sum verdicts made again up: how many differ from the run's own, and how many attempts count as right."""
    flips = "; ".join(f"{kind}: {count}" for kind, count in results["flips"].items())
    labels = f", {results['flipped']} of them the label ({flips})" if flips else ""
    labels = labels or (", none of them from right to wrong or back" if results["changed"] else "")
    rules = "its own settings" if results["own_settings"] else "other settings"
    lines = [
        f"{results['changed']} of {results['verdicts']} verdicts of {results['run']} change under {rules}{labels}."
    ]
    before, after = (sum(row[f"right_{when}"] for row in results["by_verifier"]) for when in ("before", "after"))
    failed = f"; {results['failed']} could not be judged" if results["failed"] else ""
    return [*lines, f"Right: {before} attempts as the run judged them, {after} now{failed}."]


def retrain_answer(results: Row, purged: Sequence[str] = ()) -> list[str]:
    """Sum a training from what is stored up: what was made, and the last student's score beside the run's own;
    ``results["held_out"]`` is None where no student of both was scored on the same items."""
    trained, held_out = len(results["checkpoints"]), results["held_out"]
    without = f" without {', '.join(purged)}" if purged else ""
    counted = f"{trained} checkpoint{'s' * (trained != 1)} of {results['run']} trained again{without}"
    lines = [f"{counted}, written down as {results['experiment']}. {results['sameness']}"]
    warnings = [f"Warning: {alarm}" for alarm in results["alarms"]]
    if held_out is None:
        return [*lines, *warnings, "Not scored on the items of the run's own students, so nothing is concluded."]
    limits = "anything of fresh tasks or other seeds"
    few = "" if held_out["items"] >= FEW else f" ({held_out['items']} tasks are few)"
    return [
        *lines,
        f"{held_out['checkpoint']} trained again less the run's own, on validation: {claim_words(held_out)}.",
        f"Not to be claimed: {limits}{few}.",
        *warnings,
    ]
