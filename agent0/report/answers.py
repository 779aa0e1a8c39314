"""The first lines of everything that concludes: at most three, such as one person forwards to another, and one more
where replies were cut off. What came of it, against which control, and what may not be claimed."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent0.errors import sentence
from agent0.experiments.compare_runs import ClaimRow, RunComparison, claim_row
from agent0.experiments.study_results import StudyResults
from agent0.projections.base import Row
from agent0.report.climb_summary import run_lines, study_lines
from agent0.report.columns import shown_iteration
from agent0.report.conclusions import conclusion, scored
from agent0.report.markdown.ablation import short_answer
from agent0.settings import EvaluationConfig, RunConfig
from agent0.state.run_state import first_student, iteration_of
from agent0.stats.claims import Claim, Scored, claims
from agent0.stats.paired_tests import IMPROVED
from agent0.tasks.curriculum.ladder_height import on_ladder

FEW = 200
"""Tasks below which a score says so itself."""
NONE_RAN = "none ran beside it"
MOST = 4
"""Scores that are named one by one."""
MAX_TRUNCATED = EvaluationConfig().max_truncated
"""Where no settings are at hand."""
Counted = tuple[str, int, int]
"""What was scored, its replies that met the limit, and all of its replies."""


def run_answer(summary: Row) -> list[str]:
    """Sum a run up, from its overview; ``summary["gain"]`` is what ``held_out_gain`` made of its test scores."""
    if summary["status"] == "finished" and climbs(summary) and (lines := run_lines(summary)):
        return lines
    return [_state(summary), *filter(None, [_truncation(summary), _opinions(summary)]), *_scores(summary)]


def _opinions(summary: Row) -> str:
    """What of the verdicts is a judge model's opinion."""
    if not (judged := summary.get("judged")):
        return ""
    judge = summary["config"]["verification"]["judge"]
    model = f"{judge['provider']}/{judge['model']}".rstrip("/")
    return f"{judged:,} verdicts are the opinion of a judge model, {model}: no proof, nor is a score that holds such."


def _truncation(summary: Row) -> str:
    counts = [
        (evaluation["evaluation"], evaluation["truncated"], evaluation["n"])
        for evaluation in summary.get("truncated", ())
    ]
    most = summary["config"].get("evaluation", {}).get("max_truncated", MAX_TRUNCATED)
    return truncation_line(counts, summary["config"].get("student", {}).get("max_tokens"), most)


def climbs(summary: Row) -> bool:
    """Whether a run's tasks are those of a ladder, from its overview."""
    if not summary["config"].get("curriculum", {}).get("families"):  # then all of a domain, which are no ladder
        return False
    try:
        return on_ladder(RunConfig.recorded(summary["config"]))
    except ValueError:  # settings that this version does not know
        return False


def held_out_gain(tests: Sequence[Row]) -> list[Row]:
    """Compare the last test score of a run with each one before it (the untrained student, the control whose tool was
    forced) on the same items, with Holm's correction; empty where the last student was not scored."""
    last = tests[-1] if tests and tests[-1]["iteration"] >= 0 and not tests[-1]["forced_tool"] else None
    if last is None:
        return []
    tested = claims([(scored(score), scored(last)) for score in tests[:-1]])
    return [
        {
            "control": bool(score["forced_tool"]),
            "before": score["accuracy"],
            "after": last["accuracy"],
            "student": last["checkpoint"],
            "n": last["n"],
            **(claim_row(claim) if claim else {"word": None, "adjusted_p": None}),
        }
        for score, claim in zip(tests[:-1], tested, strict=True)
    ]


def truncation_line(counts: Sequence[Counted], max_tokens: int | None, most: float) -> str:
    """Say which replies met ``max_tokens`` (None: not known); empty where none did. Where they are a larger share than
    ``most``, say that this is no score of the model, and how to give it more."""
    cut = [count for count in counts if count[1]]
    many = [count for count in cut if count[1] > most * count[2]]
    few = [count for count in cut if count not in many]
    limit = f" ({max_tokens})" if max_tokens else ""
    if not many:
        return f"{_replies(few)} met max_tokens{limit}: {_listed(few)}." if few else ""
    setting = "run.student.max_tokens"
    mend = f"--set {setting}={4 * max_tokens}" if max_tokens else setting
    others = f" So did {_replies(few)} of {_listed(few)}." if few else ""
    what = f"{_replies(many)} met max_tokens{limit}: not a score of the model ({_listed(many)})."
    return f"{what}{others} Ask again with more: {mend}"


def _replies(cut: Sequence[Counted]) -> str:
    n = sum(count[2] for count in cut)
    return f"{sum(count[1] for count in cut)} of {n} repl{'ies' if n != 1 else 'y'}"


def _listed(cut: Sequence[Counted]) -> str:
    """Names of what was scored, with a count each where they are several."""
    if len(cut) == 1:
        return cut[0][0]
    named = [f"{name} {truncated} of {n}" for name, truncated, n in cut[:MOST]]
    return ", ".join(named) + (f" and {len(cut) - MOST} others" if len(cut) > MOST else "")


def claim_words(row: ClaimRow | Row) -> str:
    """A difference in words: ``+41.7 points (12.3 to 60.0): improved (adjusted p 0.013)``. Interval and p are of one
    test."""
    if row.get("word") is None:
        return "not scored on the same items"
    verdict = conclusion(row["word"], row["adjusted_p"], row["detectable"])
    verdict = verdict if "(" in verdict else f"{verdict} (adjusted p {row['adjusted_p']:.2g})"
    return f"{100 * row['mean']:+.1f} points ({100 * row['lower95']:+.1f} to {100 * row['upper95']:+.1f}): {verdict}"


def _state(summary: Row) -> str:
    of = f"{summary['tasks'] or 0:,} tasks, {summary['attempts'] or 0:,} attempts"
    if summary.get("refilled"):
        of += f" ({summary['refilled']:,} tasks in place of others; {summary['no_contrast']:,} had no contrast)"
    rounds = f"{summary['iterations']} iteration{'s' if summary['iterations'] != 1 else ''}"
    head = f"Run {summary['run']} (profile {summary['profile']}, seed {summary['seed']})"
    if summary["status"] == "finished":
        return f"{head} finished: {rounds}, {of}, {summary['wall_s'] or 0:.0f} s."
    if summary["status"] == "failed":
        return f"{head} failed: {sentence(str(summary['failed']))} So far {of}."
    planned = None if summary["config"].get("time_limit") else summary["iterations"]
    at = f"iteration {iteration_of(summary['iteration'], planned)}" if summary["tasks"] else "not begun"
    if summary["waits_for"]:
        return f"{head} waits: {sentence(str(summary['waits_for']))} It is at {at}."
    if summary.get("carried") is False:
        return f"{head} is stopped, no process executes it: {at}, {of}. Go on: agent0 run resume {summary['run']}"
    return f"{head} is {summary['status']}: {at}, {of}."


def _scores(summary: Row) -> list[str]:
    first = next((gain for gain in summary["gain"] if not gain["control"]), None)
    if first is None:
        return [line for line in (_validation(summary),) if line]
    control = next((gain for gain in summary["gain"] if gain["control"]), None)
    found_out = "Learned" if first["word"] == "improved" else "Measured"
    learned = (
        f"{found_out}: {first['student']} solves {first['after']:.1%} of {first['n']} fresh test tasks, "
        f"{first_student(summary.get('student_adapter'))} {first['before']:.1%}: {claim_words(first)}."
    )
    return [learned, _limits(summary, first, control)]


def _limits(summary: Row, first: Row, control: Row | None) -> str:
    beside = NONE_RAN
    limits = ["anything of other seeds, from one run"]
    if control is not None:
        start = first_student(summary.get("student_adapter"))
        forced = f"{start} with its tool forced solves {control['before']:.1%}"
        beside = f"{forced}; trained less control {claim_words(control)}"
        if control["word"] != "improved":
            limits = ["a new skill beyond tool use", *limits]
    if first["word"] != "improved":
        limits = ["that it learned", *limits]
    few = f" ({first['n']} tasks are few)" if first["n"] < FEW else ""
    return f"Control: {beside}. Not to be claimed: {', '.join(limits)}{few}."


def _validation(summary: Row) -> str:
    scores = [score for score in summary["validation"] if score["validation"] is not None]
    if not scores:
        shared = f"; what {summary['parent']} scored up to event {summary['parent_seq']} is its past"
        return f"Nothing is scored yet{shared if summary.get('parent') else ''}."
    last, start = scores[-1], first_student(summary.get("student_adapter"))
    if last["iteration"] < 0:
        return f"Validation so far: {start} {last['validation']:.1%}."
    untrained = f"{start} {scores[0]['validation']:.1%}, " if scores[0]["iteration"] < 0 else ""
    after = f"{last['validation']:.1%} after iteration {shown_iteration(last['iteration'])}"
    return f"Validation so far: {untrained}{after}. Not to be claimed: anything, before the last test."


def rescore_answer(results: Row) -> list[str]:
    """Sum other rules for a run's rewards up: how many receipts change, and by how much."""
    parts = [
        f"{role} {results[role]['mean_before']:.3f} -> {results[role]['mean_after']:.3f}"
        for role in ("student", "teacher")
        if role in results and results[role]["mean_before"] is not None and results[role]["mean_after"] is not None
    ]
    sides = results["changed_sides"]
    crossed = f"; {len(sides)} tasks change sides" if sides else ""
    means = f" Mean reward: {', '.join(parts)}." if parts else ""
    return [f"{results['changed']} of {results['receipts']} receipts change{crossed}.{means}"]


def compare_answer(results: RunComparison) -> list[str]:
    """Sum a comparison of runs up: each against the first, two lines at most."""
    first, rows = results["names"][0], results["against"]
    lines = [
        f"{row['name']} less {first} on validation: "
        f"{claim_words(row['held_out']) if row['held_out'] else 'not scored on the same items'}."
        for row in rows[:2]
    ]
    more = [f"{len(rows) - 2} more below."] if len(rows) > 2 else ["Not to be claimed: anything of other seeds."]
    return [*lines, *more]


def study_answer(results: StudyResults) -> list[str]:
    """Sum a study up: one on a ladder by what was learned beside its controls, another by a line for each variant but
    the first and one for each control, and what may not be claimed; and what could not be finished."""
    if "ladder" in results and (lines := study_lines(results, "below")):
        return list(lines)
    failures = [f"{line['cell']} failed: {line['why']}" for line in results["failed"]]
    return [line.replace("**", "") for line in short_answer(results)] + _study_limits(results) + failures


def _study_limits(results: StudyResults) -> list[str]:
    """What a study's first variant may not claim, in a line; none where nothing was measured."""
    lead, first = results["measures"][:1], next(iter(results["about"]))
    words = {
        row["against"]: row["word"] for row in results["against"] if [row["measure"], row["arm"]] == [*lead, first]
    }
    if not words:
        return []
    limits = ["anything of other seeds"] if len(results["seeds"]) == 1 else ["anything of other models and tasks"]
    if words.get("forced_tool", IMPROVED) != IMPROVED:
        limits.insert(0, "a new skill beyond tool use")
    if words.get("untrained", IMPROVED) != IMPROVED:
        limits.insert(0, f"that {first} learned")
    return [f"Not to be claimed: {', '.join(limits)}."]


@dataclass(frozen=True)
class BenchmarkOutcome:
    """A student's answers to the items of a benchmark: ``outcomes`` has one character per item in set order, "1" where
    it is right; ``programs`` is the share of items with a tool call that ran, None where it has no tools."""

    student: str
    outcomes: str
    programs: float | None = None

    @property
    def accuracy(self) -> float:
        """Share of right items."""
        return self.outcomes.count("1") / max(1, len(self.outcomes))


def training_lines(
    title: str,
    untrained: Sequence[BenchmarkOutcome],
    trained: BenchmarkOutcome | None,
    learned: str,
    form: BenchmarkOutcome | None = None,
) -> list[str]:
    """Compare a trained student with the same one ``untrained`` under each prompt, the first of which is the trained
    one's, and with one that learned ``form`` alone from the same attempts. ``learned`` says what it was trained on, or
    why there was nothing; then ``trained`` is None."""
    first, best = untrained[0], max(untrained, key=lambda outcome: outcome.accuracy)
    n = len(first.outcomes)
    prompts = ", ".join(f"{outcome.student} {outcome.accuracy:.0%}" for outcome in untrained)
    if trained is None:
        return [
            f"Nothing was learned: {learned}",
            f"{title}, {n} rows, untrained: {prompts}.",
            _training_limits([], None, n, first),
        ]
    rivals = [first, *([] if best is first else [best]), *([form] if form else [])]
    results = claims([(_scored_outcome(rival), _scored_outcome(trained)) for rival in rivals])
    against_form = results.pop() if form else None
    alone = f"; form alone {form.accuracy:.0%}, trained less it: {_claim_text(against_form)}" if form else ""
    return [
        f"{title}: {trained.student} solves {trained.accuracy:.0%} of {n} rows, {first.accuracy:.0%} before: "
        f"{_claim_text(results[0])}. {learned}",
        f"Best prompt of the untrained model, chosen on these rows: {best.accuracy:.0%} ({prompts}); trained less best "
        f"prompt: {_claim_text(results[-1])}{alone}.",
        _training_limits(results, against_form, n, first, trained),
    ]


def _scored_outcome(outcome: BenchmarkOutcome) -> Scored:
    return Scored(outcome.student, outcome.outcomes)


def _claim_text(claim: Claim | None) -> str:
    if claim is None:
        return "not scored on the same items"
    return claim_words(claim_row(claim))


def _training_limits(
    results: Sequence[Claim | None],
    against_form: Claim | None,
    n: int,
    first: BenchmarkOutcome,
    trained: BenchmarkOutcome | None = None,
) -> str:
    """What may not be claimed: that verdicts taught it, unless it is ahead of what form alone teaches."""
    gained = bool(results) and all(claim is not None and claim.verdict == "improved" for claim in results)
    limits = [] if gained else ["that training gains what a prompt does not"]
    if trained and trained.programs is not None and first.programs is not None:
        share = f" (items with a program that ran: {first.programs:.0%} before, {trained.programs:.0%} after)"
    else:
        share = ""
    if against_form is None or against_form.verdict != "improved":
        limits.append(f"that verdicts taught more than form{share}")
    limits.append("anything of other seeds or rows, from one run")
    few = f" ({n} rows are few)" if n < FEW else ""
    return f"Not to be claimed: {'; '.join(limits)}{few}."
