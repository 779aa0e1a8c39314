"""Screening that refuses nearly all tasks: as known, reserved, off target, contaminated or unsolvable."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, blamed, of

FEW = 0.25
"""Share of tasks that is accepted, at most, where a reason has its share of them; and where none has one, none."""
MANY = 0.4
REASONS = {
    "known": ("screening is too strict: everything is refused as known, {} tasks as duplicate or too similar",
              ("run.curriculum.similarity_limit", "run.curriculum.embedder", "run.curriculum.families",
               "run.curriculum.levels", "run.teacher.")),
    "repeated": ("the teacher repeats itself: {} tasks were there before, differing in nothing",
                 ("run.teacher.temperature", "run.curriculum.families", "run.curriculum.levels", "run.teacher.")),
    "reserved": ("{} tasks are kept for held-out sets",
                 ("run.curriculum.levels", "run.curriculum.families")),
    "off_target": ("{} tasks are not what was asked for", ("run.curriculum.domains", "run.curriculum.long",
                                                          "run.teacher.")),
    "contaminated": ("{} tasks overlap with a benchmark",
                     ("run.curriculum.overlap_limit", "run.curriculum.overlap_ngram")),
    "unsolvable": ("{} tasks cannot be solved, or not in run.student.max_tokens",
                   ("run.student.max_tokens", "run.curriculum.levels", "run.curriculum.families")),
    "trivial": ("{} tasks are trivial", ("run.curriculum.levels", "run.curriculum.families")),
}  # fmt: skip
"""Reason -> in words, and the settings that may be to blame, the likeliest first."""
KNOWN = {"known": ("similar", "duplicate"), "repeated": ("duplicate",)}
"""Reasons of tasks that were there before -> the words of screening."""


@cause(60)
def refused(case: Case) -> Cause | None:
    """Report the first iteration in which hardly a task was accepted, for a reason other than that it is no task."""
    for iteration in case.iterations:
        if (
            iteration.screened
            and iteration.accepted <= FEW * iteration.screened
            and iteration.unreadable < MANY * iteration.screened
        ):
            counts = {reason: _count(iteration, reason) for reason in REASONS}
            worst = max(counts, key=lambda reason: counts[reason])
            if counts[worst] >= MANY * iteration.screened or not iteration.accepted:
                return _cause(case, iteration, worst, counts[worst])
    return None


def _count(iteration: Iteration, reason: str) -> int:
    """Tasks refused for ``reason``; those that were there before are the teacher's doing where they are the most."""
    same = iteration.refused.get("duplicate", 0)
    if reason in ("known", "repeated"):
        return iteration.repeats if (reason == "repeated") == (2 * same > iteration.repeats) else 0
    return iteration.refused.get(reason, 0)


def _cause(case: Case, iteration: Iteration, reason: str, count: int) -> Cause:
    wording, keys = REASONS[reason]
    settings = case.changed(*keys)
    plain = "run.curriculum.families" if reason == "repeated" and case.config.teacher.temperature else keys[0]
    conclusion = f"{wording.format(of(count, iteration.screened))} ({blamed(case, settings, plain)})"
    conclusion = conclusion if reason in KNOWN else f"screening refuses nearly all tasks: {conclusion}"
    names = KNOWN.get(reason, (reason,))
    evidence = iteration.observations_of(*names)
    mend = case.again(settings) if settings else f"agent0 task list {case.run} --iteration {iteration.number}"
    advice = "" if settings else "More families or levels (run.curriculum) have more different tasks."
    return Cause("refused", iteration.number, conclusion, evidence, mend, advice, settings=settings,
                 fatal=not case.recovered(iteration.number))  # fmt: skip
