"""What is wrong with what a training learns from, or how it does."""

import math

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import (
    NEVER,
    WEIGHTS,
    Case,
    Cause,
    Iteration,
    Observation,
    PartMeans,
    Setting,
    Training,
    blamed,
    of,
)
from agent0.run.diagnosis.sizes import far_off
from agent0.run.monitors.labels import learns_from_majority
from agent0.settings.training import RecipeConfig
from agent0.training.selection import left_out

LARGEST = 20.0
"""Of a loss, in size: guessing a token of 50,000 at random has 10.8 nats."""
NAN = 0.5
"""Share of steps without a finite loss."""


@cause(43)
def diverged(case: Case) -> Cause | None:
    """Report the first training whose loss is no number, or far larger than guessing tokens at random would have."""
    for training in case.trainings:
        if not (what := _what(training)):
            continue
        keys = (f"run.training.{training.role}.lr", f"run.training.{training.role}.")
        settings = tuple(sorted(case.changed(*keys), key=lambda setting: not far_off(setting)))
        other = settings and settings[0].key != keys[0] and far_off(settings[0])
        conclusion = (
            f"the {training.role}'s {'recipe' if other else 'learning rate'}: the training of {training.checkpoint} "
        )
        conclusion += f"diverged, {what} ({blamed(case, settings, keys[0])})"
        evidence = (Observation(what, checkpoint=training.checkpoint, event=training.requested),)
        at, lr = max(case.started, training.requested - 1), case.value(keys[0])
        mend = case.again(settings, at) if settings else case.again((), at, {keys[0]: lr / 10})
        step = training.checkpoint, training.requested
        return Cause("diverged", training.iteration, conclusion, evidence, mend, "", False, settings, *step)
    return None


def _what(training: Training) -> str:
    skipped, steps = training.metrics.get("skipped", 0.0), training.metrics.get("steps", 0.0)
    if skipped and skipped >= NAN * (skipped + steps):
        return f"{skipped:.0f} of {skipped + steps:.0f} steps had no finite loss"
    loss = training.metrics.get("loss", 0.0)
    return f"its loss is {loss:.3g}" if not math.isfinite(loss) or abs(loss) >= LARGEST else ""


KEYS = ("run.training.student.enabled", "run.training.student.every", "run.training.schedule")


@cause(88)
def not_trained(case: Case) -> Cause | None:
    """Report a finished run that trained no student, where its settings forbid it and others do not."""
    settings = tuple(setting for setting in case.changed(*KEYS) if _forbids(case, setting))
    if case.status != "finished" or not settings or any(t.role == "student" for t in case.trainings):
        return None
    attempts = sum(iteration.attempts for iteration in case.iterations)
    conclusion = f"the student was not trained, though it made {attempts:,} attempts ({settings[0]})"
    evidence = (Observation("no training of the student was asked for", event=case.started),)
    advice = "Nothing is to be mended where this run is a control."
    return Cause(
        "not_trained", NEVER, conclusion, evidence, case.again(settings), advice, False, settings, event=case.started
    )


def _forbids(case: Case, setting: Setting) -> bool:
    """Whether the setting by itself leaves the student untrained in every iteration."""
    plan = case.config.training
    forbidden = {
        KEYS[0]: not plan.student.enabled,
        KEYS[1]: plan.student.every > (case.config.planned_iterations or plan.student.every),
        KEYS[2]: plan.schedule == "teacher" or (plan.schedule == "alternate" and case.config.planned_iterations == 1),
    }
    return forbidden.get(setting.key, False)


WHY = {
    "no_trajectory": "their tokens were not recorded",
    "no_logprobs": "their log-probabilities were not recorded",
    "uneven": "their tokens and log-probabilities do not fit",
    "not_finite": "their log-probabilities are not finite",
    "other_author": "another model or checkpoint wrote them",
    "unscored": "they have no reward",
}
UNTRAINABLE_KEYS = ("run.student.provider", "run.student.", "run.verification.", "run.rewards.")
UNSCORED = ("run.rewards.", "run.verification.")
"""Settings that may leave attempts without a reward, before ``UNTRAINABLE_KEYS``."""


@cause(65)
def untrainable(case: Case) -> Cause | None:
    """Report the first training of the student that left out all attempts for what they lack."""
    for training in case.trainings:
        worst = max(training.skipped, key=lambda name: training.skipped[name], default="")
        if training.role == "student" and training.status == "unchanged" and (worst in WHY or worst not in KNOWN):
            settings = case.changed(*(UNSCORED if worst == "unscored" else ()), *UNTRAINABLE_KEYS)
            why = WHY.get(worst, worst)
            conclusion = (
                f"the student's attempts cannot be trained on: {training.skipped[worst]:,} of them since {why} "
            )
            conclusion += f"({blamed(case, settings, UNTRAINABLE_KEYS[0])})"
            evidence = (
                Observation(
                    f"left out: {left_out(training.skipped)}", checkpoint=training.checkpoint, event=training.requested
                ),
            )
            mend = case.again(settings) if settings else "agent0 doctor"
            fatal = not case.recovered(training.iteration)
            step = training.checkpoint, training.requested
            return Cause("untrainable", training.iteration, conclusion, evidence, mend, "", fatal, settings, *step)
    return None


KNOWN = ("", "off_frontier", "no_contrast", "no_spread", "not_verified", "wrong", "no_success", "ambiguous")
"""Reasons that other causes tell of."""


HOT, COLD = 1.5, 0.2
NARROW = 0.1
"""Of top_p: only the likeliest token is left, nearly always."""
BAD = 0.5
"""Share of texts without a task, or of attempts without an answer."""
ALIKE = 0.9
"""Share of tasks all of whose attempts give one answer."""
FEW, ENOUGH = 0.1, 8
"""Share of right attempts, of at least so many."""


@cause(45)
def sampling(case: Case) -> Cause | None:
    """Report a temperature (or top_p) with which the base itself writes nothing that can be read, or repeats itself."""
    for iteration in case.iterations:
        first = iteration is case.iterations[0]
        if first and iteration.screened and iteration.unreadable >= BAD * iteration.screened and _hot(case, "teacher"):
            share = f"{of(iteration.screened - iteration.unreadable, iteration.screened)} texts hold a task"
            return _cause(case, iteration, "teacher", share, "malformed")
        silent = iteration.attempts and iteration.attempts - iteration.answered >= BAD * iteration.attempts
        astray = iteration.decided >= ENOUGH and iteration.right <= FEW * iteration.decided
        if first and (silent or astray) and _hot(case, "student"):
            share = (
                f"{of(iteration.answered, iteration.attempts)} attempts give an answer, {iteration.right:,} a right one"
            )
            return _cause(case, iteration, "student", share, "end:length", "end:no_answer", "wrong")
        if _repeats(case, iteration):
            share = (
                f"at {of(iteration.alike, iteration.repeated)} tasks all attempts give the same answer, so none teaches"
            )
            narrow = case.config.student.temperature > COLD
            return _cause(case, iteration, "student", share, key="top_p" if narrow else "temperature")
    return None


def _repeats(case: Case, iteration: Iteration) -> bool:
    cold = case.config.student.temperature <= COLD or case.config.student.top_p <= NARROW
    return cold and 0 < ALIKE * iteration.repeated <= iteration.alike and iteration.mixed <= FEW * iteration.repeated


def _hot(case: Case, role: str) -> bool:
    actor = case.config.student if role == "student" else case.config.teacher
    longer = case.changed(f"run.{role}.max_tokens")
    sampled = case.changed(f"run.{role}.temperature", f"run.{role}.top_p")
    return actor.temperature > HOT or bool(sampled and actor.temperature > 1 and not longer)


def _cause(case: Case, iteration: Iteration, role: str, share: str, *examples: str, key: str = "temperature") -> Cause:
    option, key = key, f"run.{role}.{key}"
    settings = case.changed(key, f"run.{role}.top_p")
    conclusion = f"the {role}'s {option}: {share} ({blamed(case, settings, key)})"
    evidence = iteration.observations_of(*examples)
    mend = case.again(settings) if settings else case.again(values={key: 1.0})
    return Cause(
        "sampling",
        iteration.number,
        conclusion,
        evidence,
        mend,
        settings=settings,
        checkpoint=getattr(iteration, role),
        fatal=not case.recovered(iteration.number),
        explained=bool(settings),
    )


WRONG_REWARD_ENOUGH = 4
"""Attempts, right and wrong ones each, from which on their averages are compared."""


@cause(44)
def wrong_reward(case: Case) -> Cause | None:
    """Report the part that most rewards wrong attempts, where their whole rewards are no lower than those of right
    ones."""
    parts = [part for part in case.part_means if min(part.attempts) >= WRONG_REWARD_ENOUGH and part.wrong > part.right]
    parts = [part for part in parts if part.total_wrong >= part.total_right]
    if not parts:
        return None
    worst = max(parts, key=lambda part: part.wrong - part.right)
    key = f"{WEIGHTS}{worst.part}"
    settings = tuple(setting for setting in case.changed(key) if setting.key == key)
    whose = f" of plugin {worst.file}" if worst.file else ""
    conclusion = f"the reward {worst.part}{whose} pays wrong answers more than right ones: {_means(worst)}"
    conclusion += f" ({settings[0]})" if settings else ""
    mend = case.again(settings) if settings else case.again(values={key: 0})
    advice = f"That leaves it out. To keep it, correct {worst.file} and fork without that --set." if worst.file else ""
    evidence = (Observation(f"wrong, and rewarded for it by {worst.part}", attempt=worst.attempt, event=worst.event),)
    totals = Observation(f"the whole reward is {worst.total_wrong:.3g} for wrong, {worst.total_right:.3g} for right")
    return Cause(
        "wrong_reward",
        worst.iteration,
        conclusion,
        (*(evidence if worst.attempt else ()), totals),
        mend,
        advice,
        settings=settings,
        event=worst.event,
        explained=True,
    )


def _means(part: PartMeans) -> str:
    right, wrong = part.attempts
    return f"{part.wrong:.3g} on average for {wrong:,} wrong ones, {part.right:.3g} for {right:,} right ones"


LOWEST = 0.5
LABELS_ENOUGH = 5
LABELS_KEYS = ("run.training.student.gate", "run.verification.unchecked", "run.curriculum.families")


@cause(42)
def labels(case: Case) -> Cause | None:
    """Report the first iteration whose answers, as the student is trained on them, are mostly wrong."""
    plan = case.config
    majority = learns_from_majority(plan)
    for iteration in case.iterations:
        if iteration.decided < LABELS_ENOUGH:
            continue
        share = iteration.measures.get("label_accuracy") if plan.attempts > 1 else iteration.right / iteration.decided
        if majority and share is not None and share < LOWEST:
            what = f"the majority's answers are labels, and {1 - share:.0%} of them are wrong"
            return _labels_cause(case, iteration.number, what, iteration.examples.get("wrong"))
    return None


def _labels_cause(case: Case, iteration: int, what: str, example: Observation | None) -> Cause:
    settings = case.changed(*LABELS_KEYS)
    conclusion = f"{what} ({blamed(case, settings, 'run.training.student.gate', 'run.verification.unchecked')})"
    evidence = (example,) if example else ()
    checked = {"run.training.student.gate": "verified", "run.verification.unchecked": "refuse"}
    mend = case.again(settings, values=None if settings else checked)
    return Cause("labels", iteration, conclusion, evidence, mend, settings=settings)


NEARLY = 0.9
CURRICULUM = (
    "run.curriculum.levels",
    "run.curriculum.families",
    "run.curriculum.mastered",
    "run.curriculum.ahead",
    "run.curriculum.kind",
    "run.student.model",
    "run.student.",
)
BAND = ("run.curriculum.band",)
SAMPLED = ("run.student.temperature", "run.student.top_p", "run.student.")
COMPARING = frozenset({"off_frontier", "no_contrast", "no_spread"})
"""Why attempts were left out that compare them with the others at their task."""
WARMER = 0.2
"""Of a temperature, where attempts are the same at 1."""
TRIES = 8
"""Attempts a task that tell solve rates apart."""
REWARDS = ("run.rewards.weights", "run.rewards.", "run.training.student.objective")


@cause(70)
def contrast(case: Case) -> Cause | None:
    """Report the first iteration with verdicts after which there was nothing to train the student on, unless the
    student has learned all the same."""
    for training in case.trainings:
        iteration = next((i for i in case.iterations if i.number == training.iteration), None)
        unlearnt = training.role == "student" and training.status == "unchanged"
        if unlearnt and iteration is not None and iteration.decided and not _harmless(case, iteration):
            return _contrast_cause(case, iteration, training)
    return None


def _harmless(case: Case, iteration: Iteration) -> bool:
    """Whether the student ends above the untrained one in a run that goes well, and was trained again afterwards or
    had nothing left to learn."""
    scores = [score.accuracy or 0.0 for score in case.validations()]
    if case.status not in ("running", "finished") or len(scores) < 2 or scores[-1] <= scores[0]:
        return False
    solved = iteration.all_right >= NEARLY * (iteration.all_right + iteration.all_wrong + iteration.mixed)
    return solved or case.recovered(iteration.number)


def _contrast_cause(case: Case, iteration: Iteration, training: Training) -> Cause:
    what, keys, example = _diagnosis(case, iteration, training)
    settings: tuple[Setting, ...] = case.changed(*keys)
    conclusion = f"no contrast, so nothing to learn from: {what} ({blamed(case, settings, keys[0])})"
    evidence: tuple[Observation, ...] = (
        Observation(
            f"left out of its training: {left_out(training.skipped)}",
            checkpoint=training.checkpoint,
            event=training.requested,
        ),
    )
    if refilled := iteration.measures.get("refilled"):
        asked = f"{refilled:.0f} tasks were asked for in place of others (run.refill)"
        evidence += (Observation(f"{asked}; {iteration.measures.get('no_contrast', 0):.0f} have no contrast"),)
    evidence += iteration.observations_of(example)
    mend = case.again(settings, values=None if settings else _other(case, iteration, keys))
    mend = mend or case.again(values=_more_attempts(case))
    others = "other levels and families (run.curriculum), or more attempts a task"
    if not case.config.has_teacher:
        others = f"begin another run with other rows than those of {case.config.questions.file}"
    advice = "" if settings else f"Or {others}."
    return Cause(
        "contrast",
        iteration.number,
        conclusion,
        evidence,
        mend,
        advice,
        settings=settings,
        checkpoint=training.checkpoint,
        event=training.requested,
        fatal=not case.recovered(iteration.number),
    )


def _diagnosis(case: Case, iteration: Iteration, training: Training) -> tuple[str, tuple[str, ...], str]:
    """What is the same everywhere, the settings that may be to blame, and what shows it."""
    if case.config.attempts == 1 and not COMPARING.isdisjoint(training.skipped):
        return "one attempt a task has nothing to be compared with", ("run.attempts",), ""
    if case.config.training.student.objective == "none":
        return "the student's objective trains nothing", ("run.training.student.objective",), "wrong"
    tasks = iteration.all_right + iteration.all_wrong + iteration.mixed
    hardness = CURRICULUM if case.config.has_teacher else ("run.attempts",)  # no level is asked of a file's rows
    if iteration.all_wrong >= NEARLY * tasks:
        return f"no attempt solves {of(iteration.all_wrong, tasks)} tasks: too hard", hardness, "wrong"
    if iteration.all_right >= NEARLY * tasks:
        return f"all attempts solve {of(iteration.all_right, tasks)} tasks: too easy", hardness, "right"
    if iteration.alike >= NEARLY * iteration.repeated > 0:
        return f"at {of(iteration.alike, iteration.repeated)} tasks all attempts give the same answer", SAMPLED, ""
    if training.skipped.get("off_frontier", 0) >= max(training.skipped.values(), default=0):
        inside = f"{iteration.mixed:,} tasks are solved by some attempts and not by others"
        return f"no task's solve rate is inside the learnable band ({inside})", BAND, "wrong"
    return "the rewards of a task's attempts are all the same", REWARDS, "wrong"


def _other(case: Case, iteration: Iteration, keys: tuple[str, ...]) -> dict[str, object]:
    """A setting to try another value of, where none differs from elsewhere."""
    levels = case.config.curriculum.levels
    if keys is SAMPLED:
        warm = case.config.student.temperature
        return {keys[0]: 1.0 if warm < 1 else round(warm + WARMER, 2), "run.student.top_p": 1.0}
    if keys is CURRICULUM and len(levels) > 1:
        return {keys[0]: [max(levels) if iteration.all_right > iteration.all_wrong else min(levels)]}
    if keys[0] == "run.training.student.objective":
        return {keys[0]: RecipeConfig.model_fields["objective"].default}
    return _more_attempts(case)


def _more_attempts(case: Case) -> dict[str, object]:
    return {"run.attempts": max(TRIES, 2 * case.config.attempts)}
