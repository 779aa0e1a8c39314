"""The page that says where a student stands before anything is done about it: ``docs/results/baseline.md``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent0.evaluation.benchmark_scores import NAMES
from agent0.report.conclusions import conclusion
from agent0.report.html.rendering import NOTHING, number, p_value, points, share
from agent0.report.markdown.tables import folded
from agent0.report.tables import failure_mode_rows

Row = dict[str, Any]

MENDED_FIRST = 16
"""Failure modes that are listed."""


def baseline_page(found: Mapping[str, Any], verified: Mapping[str, Row], skipped: Mapping[str, str], made: Row) -> str:
    """Markdown from ``bench_findings``. ``verified`` are verifiers' summaries by file of pairs, ``skipped`` says why a
    benchmark was not scored, ``made`` has ``command``, ``date``, ``student`` and ``version``."""
    return folded("\n".join(_lines(found, verified, skipped, made)))


def _lines(
    found: Mapping[str, Any], verified: Mapping[str, Row], skipped: Mapping[str, str], made: Row
) -> Iterator[str]:
    limit = found["settings"]["limit"]
    yield from ("# Baseline\n", f"Where does {made['student']} stand, untrained?\n", *_answer(found))
    yield from _table(_scores(found["domains"], "domain"))
    yield from ("```", f".venv/bin/{made['command']}", "```\n")
    size = f"{limit} items of each suite at most, drawn with seed {found['settings']['seed']}" if limit else "all items"
    yield f"Made on {made['date']} with version {made['version']}: {size}, one sample each, zero-shot.\n"
    yield (
        "Intervals are Wilson's, 95 %, over items; what is undecided counts as not right. Tool use is the share of "
        "items with a call that went well.\n"
    )
    yield from ("## By suite\n", *_table(_scores(found["scores"], "benchmark", "domain")))
    yield from _tools(found["tools_against_plain"])
    yield from _verifiers(verified)
    yield from _to_mend(found["failures"])
    yield from _depends(found["settings"], skipped)


def _answer(found: Mapping[str, Any]) -> Iterator[str]:
    """Three lines: accuracy by domain, what tools add, what there is most to gain from."""
    by_domain = [
        f"{_cell(one['domain'] or 'other')} {share(one['accuracy'])}"
        for one in found["domains"]
        if one["mode"] == "tools"
    ]
    yield f"- Accuracy with tools: {', '.join(by_domain) or 'nothing was scored'}."
    words = [conclusion(one["word"]) for one in found["tools_against_plain"]]
    counts = ", ".join(f"{word} on {words.count(word)}" for word in dict.fromkeys(words))
    yield f"- With tools against without, of {len(words)} suites: {counts or 'none'}."
    modes = next((one["modes"] for one in found["failures"] if one["mode"] == "tools" and one["modes"]), ())
    for row in failure_mode_rows(modes[:1]):
        yield f"- Most to gain: {_cell(row['what'])}, {row['to gain']} points."
    yield ""


def _scores(scores: Sequence[Row], *names: str) -> list[Row]:
    """One row a suite or domain: with tools beside without."""
    rows: dict[str, Row] = {}
    used = ["tool use"] if any("metrics" in score for score in scores) else []
    for score in scores:
        row = rows.setdefault(score[names[0]], {name: score[name] or "other" for name in names} | {"n": score["n"]})
        row[NAMES[score["mode"]]] = (
            f"{share(score['accuracy'])} ({share(score['lower95'])} to {share(score['upper95'])})"
        )
        if used and score["mode"] == "tools":
            row["tool use"] = share(score["metrics"].get("tool_use"))
    order = [*names, "n", *NAMES.values(), *used]
    return [{name: row.get(name) for name in order} for row in rows.values()]


def _tools(compared: Sequence[Row]) -> Iterator[str]:
    yield "## With tools against without\n"
    yield (
        "The same items, paired: exact McNemar test, Holm's correction over the suites. Detectable is the smallest "
        "true difference that would have shown in four of five cases.\n"
    )
    yield from _table(
        [
            {
                "suite": one["benchmark"],
                "points": f"{points(one['mean'])} ({points(one['lower95'])} to {points(one['upper95'])})",
                "p (Holm)": p_value(one["adjusted_p"]).removeprefix("p ").removeprefix("= "),
                "detectable": f"{100 * one['detectable']:.1f}",
                "with tools": conclusion(one["word"]),
            }
            for one in compared
        ]
    )


def _verifiers(verified: Mapping[str, Row]) -> Iterator[str]:
    yield "## Verifiers\n"
    yield (
        "Labelled pairs, decided as attempts are; what is undecided counts as refused. Pairs on which graders may "
        "differ are in a row of their own.\n"
    )
    rows = [_verifier(name, scores) for name, scores in verified.items()]
    policies = {name: scores["policy"] for name, scores in verified.items() if scores["policy"]["n"]}
    rows += [_verifier(f"{name}, policy", scores) for name, scores in policies.items()]
    yield from _table(rows) if rows else ("There were no pairs in the folder.\n",)


def _verifier(name: str, scores: Row) -> Row:
    return {
        "pairs": name,
        "n": scores["n"],
        "accuracy": number(scores["accuracy"]),
        "at least (95 %)": number(scores["lower95"]),
        "right ones accepted": share(scores["tpr"]),
        "wrong ones accepted": share(scores["fpr"]),
        "undecided": scores["undecided"],
        "slowest, s": number(scores["slowest_s"]),
    }


def _to_mend(failures: Sequence[Row]) -> Iterator[str]:
    """The prioritised list; with tools, which is how a student works."""
    yield "## What to mend first\n"
    yield (
        "Failure modes of the student with its tools, the most to gain first: by how many points accuracy over all "
        "items above would rise if every one of the kind were right. Kinds of one sort add up, those of different "
        "sorts overlap.\n"
    )
    for one in failures:
        if one["mode"] == "tools" and one["modes"]:
            rows = failure_mode_rows(one["modes"][:MENDED_FIRST])
            yield from _table([{"": place, **row} for place, row in enumerate(rows, 1)])


def _depends(settings: Mapping[str, Any], skipped: Mapping[str, str]) -> Iterator[str]:
    yield "## What the numbers depend on\n"
    yield from _table([{"file": name, "sha256": digest} for name, digest in sorted(settings["files"].items())])
    if skipped:
        yield "Not scored:\n"
        yield from _table([{"suite": name, "why": why} for name, why in skipped.items()])


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """Nothing for no row; an empty line behind."""
    if rows:
        yield f"| {' | '.join(rows[0])} |"
        yield f"|{'---|' * len(rows[0])}"
        yield from (f"| {' | '.join(_cell(value) for value in row.values())} |" for row in rows)
        yield ""


def _cell(value: Any) -> str:
    """Rows of a benchmark may hold what Markdown would obey."""
    text = " ".join(str(NOTHING if value is None else value).split())
    return "".join(f"\\{c}" if c in "|<>`*[]\\" else c for c in text)
