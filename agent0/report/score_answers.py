"""The first lines about scores outside of runs: benchmarks, two models on new tasks, verdicts and trainings made
again."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agent0.report.answers import FEW, MOST, claim_words, truncation_line
from agent0.report.conclusions import conclusion
from agent0.stats.intervals import wilson
from agent0.stats.sequential_test import ENOUGH, always_valid_interval, e_value, winner

Row = Mapping[str, Any]
NAMES = {"tools": "with tools", "plain": "without tools"}
PUBLISHED = "a comparison with published numbers made under other prompts or item sets"


def benchmark_answer(found: Row) -> list[str]:
    """Sum a benchmark run up: which replies were cut off, its scores, and what tools change; ``found["provider"]`` made
    the replies."""
    cut = cut_off_line(found)
    scored = [one for one in found["scores"] if one["accuracy"] is not None]
    shown = [
        f"{one['benchmark']} {NAMES[one['mode']]} {one['accuracy']:.1%} "
        f"({one['lower95']:.1%} to {one['upper95']:.1%}) of {one['n']}"
        for one in scored[:MOST]
    ]
    more = f"; {len(scored) - MOST} more below" if len(scored) > MOST else ""
    told = [f"Right: {'; '.join(shown) or 'nothing is scored'}{more}."]
    tools = found["tools_against_plain"]
    told += [f"With tools less without: {_differences([(one['benchmark'], one) for one in tools])}."] if tools else []
    limits = [PUBLISHED, *_few([one["n"] for one in scored])]
    if found["provider"] == "scripted":
        limits = ["anything of a model: the scripted student replays references"]
    return [*filter(None, [cut]), *told, f"Not to be claimed: {'; '.join(limits)}."]


def cut_off_line(found: Row) -> str:
    """Say which replies of a benchmark run met its ``max_tokens``, which the share ``max_truncated`` of them may; empty
    where none did."""
    counts = [
        (f"{score['benchmark']} {NAMES[score['mode']]}", score["truncated"] or 0, score["n"] * score["samples"])
        for score in found["scores"]
    ]
    return truncation_line(counts, found["max_tokens"], found["max_truncated"])


def compared_answer(rows: Sequence[Row], before: str, after: str) -> list[str]:
    """Sum up a comparison of two benchmark runs, or of one run with tools and without."""
    what = f"{after} less {before}" if before != after else f"{after}, with tools less without"
    named = [(f"{one['benchmark']} {NAMES[one['mode']]}" if before != after else one["benchmark"], one) for one in rows]
    limits = ["anything of other benchmarks", *_few([one["items"] for one in rows])]
    return [f"{what}: {_differences(named)}.", f"Not to be claimed: {'; '.join(limits)}."]


def _differences(named: Sequence[tuple[str, Row]]) -> str:
    """Up to two differences with interval and p, more of them by what was concluded."""
    if len(named) <= 2:
        return "; ".join(f"{name} {claim_words(row)}" for name, row in named)
    words = Counter(conclusion(row["word"]) for _, row in named)
    said = "; ".join(
        f"{word} on {count}" + ("" if word == "not significant" else f" ({_named(named, word)})")
        for word, count in words.most_common()
    )
    return f"of {len(named)} comparisons, p adjusted: {said}"


def _named(named: Sequence[tuple[str, Row]], word: str) -> str:
    names = [name for name, row in named if conclusion(row["word"]) == word]
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
    found = e_value(gained, lost)
    p = f"p {min(1.0, 1 / found):.2g} at any time; e-value {found:.3g}, {ENOUGH:g} decides"
    return [
        f"{event['second']} less {event['first']}: {100 * (gained - lost) / n:+.1f} points ({100 * low:+.1f} to "
        f"{100 * high:+.1f}): {better} ({p}).",
        f"On the same {n} new {event['split']} tasks: {event['second']} {_share(event['second_correct'], n)}, "
        f"{event['first']} {_share(event['first_correct'], n)}.",
        "Not to be claimed: anything of other seeds or families" + ("" if n >= FEW else f" ({n} tasks are few)") + ".",
    ]


def _share(right: int, n: int) -> str:
    low, high = wilson(right, n)
    return f"{right / n:.1%} ({low:.1%} to {high:.1%})"


def reverify_answer(found: Row) -> list[str]:
    """Sum verdicts made again up: how many differ from the run's own, and how many attempts count as right."""
    flips = "; ".join(f"{word}: {count}" for word, count in found["flips"].items())
    labels = f", {found['flipped']} of them the label ({flips})" if flips else ""
    rules = "its own settings" if found["own_settings"] else "other settings"
    told = [f"{found['changed']} of {found['verdicts']} verdicts of {found['run']} change under {rules}{labels}."]
    before, after = (sum(row[f"right_{when}"] for row in found["by_verifier"]) for when in ("before", "after"))
    failed = f"; {found['failed']} could not be judged" if found["failed"] else ""
    return [*told, f"Right: {before} attempts as the run judged them, {after} now{failed}."]


def retrain_answer(found: Row, purged: Sequence[str] = ()) -> list[str]:
    """Sum a training from what is stored up: what was made, and the last student's score beside the run's own;
    ``found["held_out"]`` is None where no student of both was scored on the same items."""
    made, held = len(found["checkpoints"]), found["held_out"]
    without = f" without {', '.join(purged)}" if purged else ""
    counted = f"{made} checkpoint{'s' * (made != 1)} of {found['run']} trained again{without}"
    told = [f"{counted}, written down as {found['experiment']}. {found['sameness']}"]
    if held is None:
        return [*told, "Not scored on the items of the run's own students, so nothing is concluded."]
    limits = "anything of fresh tasks or other seeds"
    few = "" if held["items"] >= FEW else f" ({held['items']} tasks are few)"
    return [
        *told,
        f"{held['checkpoint']} trained again less the run's own, on validation: {claim_words(held)}.",
        f"Not to be claimed: {limits}{few}.",
    ]
