"""What is wrong with the teacher's texts: no tasks, the same ones, or ones that screening refuses."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, Training, blamed, of
from agent0.run.diagnosis.set_flags import short

MOST, LEAST = 0.5, 0.25
"""Share of texts without a task: above the first afterwards, below the second before."""
SAME = 0.8
"""Share of tasks refused as known afterwards."""
KEYS = ("run.training.teacher.lr", "run.training.teacher.")


@cause(40)
def broken_teacher(case: Case) -> Cause | None:
    """Report the training after which the teacher's texts hold no task any more, though they did before."""
    for before, current in zip(case.iterations, case.iterations[1:], strict=False):
        training = next(case.trained("teacher", current.number), None)
        if training is None or not before.screened or not current.screened or _share(before) > LEAST:
            continue
        settings = case.changed(*KEYS)
        same = settings and current.repeats >= SAME * current.screened > before.repeats
        if _share(current) >= MOST or same:
            return _broken(case, training, before, current)
    return None


def _share(iteration: Iteration) -> float:
    return iteration.unreadable / max(1, iteration.screened)


def _broken(case: Case, training: Training, before: Iteration, current: Iteration) -> Cause:
    settings = case.changed(*KEYS)
    lr = case.value(KEYS[0])
    if current.unreadable >= MOST * current.screened:
        what = f"{of(current.screened - current.unreadable, current.screened)} texts hold a task, after "
        what += f"{of(before.screened - before.unreadable, before.screened)} of {before.teacher}"
    else:
        what = f"{of(current.repeats, current.screened)} of its tasks are old ones"
    name = "learning rate" if not settings or settings[0].key == KEYS[0] else "training"
    conclusion = f"the teacher's {name} ruined {training.checkpoint}: {what} ({blamed(case, settings, KEYS[0])})"
    evidence = training.observations()
    evidence += current.observations_of("malformed", "duplicate", "similar")
    at = max(case.started, training.requested - 1) if training.requested else 0
    mend = case.again(settings, at) if settings else case.again((), at, {KEYS[0]: lr / 10})
    advice = "" if settings else f"A tenth of its learning rate ({short(lr)}) is the usual remedy."
    return Cause("broken_teacher", training.iteration, conclusion, evidence, mend, advice, settings=settings,
                 checkpoint=training.checkpoint, event=training.requested, explained=bool(settings))  # fmt: skip


BAD = 0.5
UNREADABLE_KEYS = ("run.teacher.", "run.curriculum.domains", "run.curriculum.families")


@cause(53)
def unreadable(case: Case) -> Cause | None:
    """Report the first iteration in which half of the teacher's texts hold no task."""
    for iteration in case.iterations:
        if not iteration.screened or iteration.unreadable < BAD * iteration.screened:
            continue
        settings = case.changed(*UNREADABLE_KEYS)
        actor = case.config.teacher
        conclusion = (
            f"the teacher's tasks are unreadable: {of(iteration.unreadable, iteration.screened)} texts hold no task "
        )
        conclusion += f"({blamed(case, settings, 'run.teacher.provider', 'run.teacher.prompts')})"
        evidence = iteration.observations_of("malformed")
        served = actor.provider in ("ollama", "openai") and not actor.json_schema
        mend = case.again(settings)
        if not settings:
            mend = case.again(values={"run.teacher.json_schema": True}) if served else f"agent0 task list {case.run}"
        return Cause(
            "unreadable",
            iteration.number,
            conclusion,
            evidence,
            mend,
            settings=settings,
            checkpoint=iteration.teacher,
            fatal=not case.recovered(iteration.number),
        )
    return None


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
    "broken_program": ("the programs of {} tasks print no answer, or do not pass their own tests or checker",
                       ("run.teacher.", "run.curriculum.families")),
    "weak_check": ("the tests or checkers of {} tasks accept anything", ("run.teacher.", "run.curriculum.domains")),
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


DOUBTED = 0.5
"""Share of accepted tasks whose own answer is in doubt."""
DOUBTED_KEYS = ("run.teacher.", "run.student.model", "run.student.provider", "run.curriculum.families")


@cause(62)
def doubted(case: Case) -> Cause | None:
    """Report the first iteration in which attempts at half of the accepted tasks, or more, contradict the answer that
    the teacher's program prints, where no validation score is above the untrained student's."""
    scores = [score.accuracy or 0.0 for score in case.validations()]
    if scores and max(scores) > scores[0]:
        return None
    for iteration in case.iterations:
        count = sum(iteration.doubted.values())
        if count and count >= DOUBTED * iteration.accepted:
            settings = case.changed(*DOUBTED_KEYS)
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in sorted(iteration.doubted.items()))
            conclusion = (
                f"attempts contradict the teacher's own answers at {of(count, iteration.accepted)} tasks: {reasons}"
            )
            conclusion += f" ({blamed(case, settings, 'run.teacher.model')})"
            mend = case.again(settings) if settings else f"agent0 task list {case.run} --iteration {iteration.number}"
            advice = "" if settings else "Read a few: programs that do not fit their questions teach nothing."
            return Cause("doubted", iteration.number, conclusion, iteration.observations_of(*iteration.doubted), mend,
                         advice, settings=settings, fatal=not case.recovered(iteration.number))  # fmt: skip
    return None
