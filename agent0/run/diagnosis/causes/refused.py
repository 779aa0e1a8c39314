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
    for one in case.iterations:
        if one.screened and one.accepted <= FEW * one.screened and one.unreadable < MANY * one.screened:
            counts = {reason: _count(one, reason) for reason in REASONS}
            worst = max(counts, key=lambda reason: counts[reason])
            if counts[worst] >= MANY * one.screened or not one.accepted:
                return _found(case, one, worst, counts[worst])
    return None


def _count(one: Iteration, reason: str) -> int:
    """Tasks refused for ``reason``; those that were there before are the teacher's doing where they are the most."""
    same = one.refused.get("duplicate", 0)
    if reason in ("known", "repeated"):
        return one.known if (reason == "repeated") == (2 * same > one.known) else 0
    return one.refused.get(reason, 0)


def _found(case: Case, one: Iteration, reason: str, count: int) -> Cause:
    words, keys = REASONS[reason]
    settings = case.changed(*keys)
    plain = "run.curriculum.families" if reason == "repeated" and case.config.teacher.temperature else keys[0]
    told = f"{words.format(of(count, one.screened))} ({blamed(case, settings, plain)})"
    told = told if reason in KNOWN else f"screening refuses nearly all tasks: {told}"
    names = KNOWN.get(reason, (reason,))
    seen = tuple(one.examples[name] for name in names if name in one.examples)
    mend = case.again(settings) if settings else f"agent0 task list {case.run} --iteration {one.number}"
    advice = "" if settings else "More families or levels (run.curriculum) have more different tasks."
    return Cause("refused", one.number, told, seen, mend, advice, settings=settings,
                 fatal=not case.recovered(one.number))  # fmt: skip
