"""What is wrong with scores and verdicts: sets that measure nothing, no proven gain, a verifier that cannot decide."""

from dataclasses import replace

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import (
    NEVER,
    Case,
    Cause,
    HeldOutScore,
    Iteration,
    Observation,
    Setting,
    blamed,
    of,
)
from agent0.run.diagnosis.set_flags import short
from agent0.run.diagnosis.sizes import far_off, size_words, smaller
from agent0.settings.evaluation import EvaluationConfig
from agent0.stats.paired_tests import mcnemar

SOLVED = 0.95
KEYS = ("run.evaluation.levels", "run.evaluation.validation", "run.evaluation.seed", "run.evaluation.long",
        "run.evaluation.checked", "run.curriculum.levels", "run.curriculum.families",
        "run.curriculum.mastered", "run.student.")  # fmt: skip
OVER = ("finished", "failed", "paused")


@cause(80)
def evaluation(case: Case) -> Cause | None:
    """Report an evaluation without items, a base that solves all, or scores that are 0 throughout."""
    scores = list(case.validations())
    if cause := _empty(case):
        return cause
    if not scores or case.status not in OVER:
        return None
    first, last = scores[0], scores[-1]
    if (first.accuracy or 0.0) >= SOLVED:
        tasks = case.iterations[0] if case.iterations else None
        easy = tasks is not None and tasks.right >= SOLVED * max(1, tasks.decided)
        also = f", and {of(tasks.right, tasks.decided)} attempts of the first iteration are right" if tasks else ""
        conclusion = (
            f"the base already solves all: {first.accuracy:.0%} of validation{also}, so nothing is left to learn"
        )
        if not easy and first.n < FEW:
            return None  # that is too few to tell anything
        if not easy:
            conclusion = f"the held-out tasks show nothing: the base already solves {first.accuracy:.0%} of them"
        return _cause(case, conclusion, first, fatal=easy)
    if len(scores) > 1 and first.n >= FEW and not any(score.accuracy for score in scores):
        conclusion = f"the held-out tasks show nothing: every checkpoint solves 0 of {last.n}"
        return replace(
            _cause(case, conclusion, first, fatal=False), iteration=0
        )  # what ruins attempts ruins these, too
    return None


def _empty(case: Case) -> Cause | None:
    for score in case.scores:
        if score.done and not score.n and score.split in ("validation", "test"):
            return _cause(case, f"the evaluation set is empty: {score.evaluation} has no item", score, fatal=True)
    return None


def _cause(case: Case, conclusion: str, score: HeldOutScore, *, fatal: bool) -> Cause:
    settings = case.changed(*KEYS)
    evidence = (Observation(f"{score.evaluation}: {score.n} items", checkpoint=score.checkpoint, event=score.event),)
    conclusion = f"{conclusion} ({blamed(case, settings, 'run.evaluation.levels', 'run.curriculum.levels')})"
    file = "" if settings or case.config.has_teacher else case.config.questions.file
    mend = "" if file else case.again(settings, values=None if settings else _other(case, score))
    advice = "" if settings else "Name other levels and families in run.evaluation and run.curriculum."
    advice = f"Or {advice[0].lower()}{advice[1:]}" if advice and mend else advice
    advice = f"Begin another run with other rows than those of {file}." if file else advice
    return Cause(
        "evaluation", NEVER, conclusion, evidence, mend, advice, fatal, settings, score.checkpoint, score.event
    )


def _other(case: Case, score: HeldOutScore) -> dict[str, object]:
    """Settings to try other values of, where none differs: as many tasks as usual, or harder, or easier ones."""
    if not score.n:
        return {f"run.evaluation.{score.split}": EvaluationConfig.model_fields[score.split].default}
    levels = case.config.curriculum.levels
    level = max(levels) + (len(levels) == 1) if (score.accuracy or 0.0) >= SOLVED else min(levels)
    return {"run.evaluation.levels": [level], "run.curriculum.levels": [level]}


KEY = "run.evaluation.validation"
FEW = 8
"""Items. Where every one of five differs in one direction, a sign test has p 0.06; of eight hardly that many differ."""


@cause(59)
def few_items(case: Case) -> Cause | None:
    """Report a validation of fewer than ``FEW`` items after which no checkpoint is better than the base."""
    scores = list(case.validations())
    trained = [t for t in case.trainings if t.role == "student" and t.samples and t.status != "requested"]
    if len(scores) < 2 or not trained or not 0 < scores[0].n < FEW:
        return None
    refused = all(t.status == "rejected" for t in trained)
    if not refused and not _no_better(scores[0], scores[-1]):
        return None
    settings = tuple(s for s in case.changed(KEY) if (s.other or 0) > max(scores[0].n, s.value))
    items = "1 item" if scores[0].n == 1 else f"{scores[0].n} items"
    conclusion = f"the validation set is too small: {items} cannot tell one checkpoint from another "
    conclusion += f"({blamed(case, settings, KEY)})"
    evidence = tuple(
        Observation(f"{score.accuracy or 0.0:.3f} of {score.n}", checkpoint=score.checkpoint, event=score.event)
        for score in scores[:3]
    )
    usual = EvaluationConfig.model_fields["validation"].default
    larger = case.again(settings, values=None if settings else {KEY: max(usual, case.value(KEY))})
    file = "" if larger and case.config.has_teacher else case.config.questions.file
    advice = f"Of {file} 8 rows in 100 are for validation: begin another run with more rows." if file else ""
    return Cause(
        "few_items",
        trained[0].iteration,
        conclusion,
        evidence,
        "" if file else larger,
        advice or ("" if larger else "There are no more such tasks: name other families or levels."),
        False,
        settings,
        scores[1].checkpoint,
        scores[1].event,
    )


def _no_better(first: HeldOutScore, last: HeldOutScore) -> bool:
    return (last.accuracy or 0.0) <= (first.accuracy or 0.0)


LEVEL = 0.05
"""Of an exact test on the validation tasks that changed (``mcnemar``): from it on a student is not called worse."""
UNLEARNT = "nothing was learned: "
WORSE = "the student is no better than at first: "
"""It lost validation tasks, though too few to say that it got worse."""
FLAT = (UNLEARNT, WORSE)
UNPROVEN = "no loss is proven"
"""In the gate's reason: the checkpoint scores lower by no more than chance explains."""
LR = "run.training.student.lr"
NAMED = 3
"""Settings of a recipe that are named, at most."""
FEWER = 2
"""Times as many iterations, tasks or attempts in the profile: that the run is small is told of."""
GATE = ("run.evaluation.gate", "run.evaluation.margin", "run.evaluation.calibration", "run.evaluation.benchmark_gate",
        LR, "run.training.student.")  # fmt: skip
DECLINE_KEYS = ("run.training.student.lr", "run.training.student.", "run.training.", "run.rewards.",
        "run.student.", "run.curriculum.", "run.teacher.", "run.verification.")  # fmt: skip


@cause(85)
def decline(case: Case) -> Cause | None:
    """Report that the gate refused every checkpoint, or that the last one is below the base, or no better than it."""
    training = [t for t in case.trainings if t.role == "student" and t.status != "requested"]
    refused = [t for t in training if t.status == "rejected"]
    scores = list(case.validations())
    if len(refused) > 1 and len(refused) == len([t for t in training if t.samples]):
        conclusion = f"no checkpoint was promoted: {refused[0].reason.partition(';')[0]}"
        evidence = tuple(
            Observation(training.reason, checkpoint=training.checkpoint, event=training.requested)
            for training in refused[:3]
        )
        return _decline_cause(case, refused[0].iteration, conclusion, evidence, GATE)
    if case.status != "finished" or len(scores) < 2 or scores[0].accuracy is None or scores[-1].accuracy is None:
        return None
    if conclusion := _worse(scores[0], scores[-1]):
        evidence = (Observation(conclusion, checkpoint=scores[-1].checkpoint, event=scores[-1].event),)
        return _decline_cause(case, scores[-1].iteration, conclusion, evidence, DECLINE_KEYS)
    return None


def _worse(first: HeldOutScore, last: HeldOutScore) -> str:
    pairs = list(zip(first.outcomes, last.outcomes, strict=False))
    lost, gained = pairs.count(("1", "0")), pairs.count(("0", "1"))
    scores = f"validation {first.accuracy:.3f} first, {last.accuracy:.3f} last"
    if lost > gained and mcnemar(gained, lost) < LEVEL:
        return f"the student got worse: {scores}, {lost} tasks lost and {gained} gained"
    before, after = first.accuracy or 0.0, last.accuracy or 0.0
    if after > before:
        return ""
    return f"{UNLEARNT if after == before else WORSE}{scores}"


def _decline_cause(
    case: Case, iteration: int, conclusion: str, evidence: tuple[Observation, ...], keys: tuple[str, ...]
) -> Cause:
    settings, few = case.changed(*keys), smaller(case)
    if settings and not any(FEWER * setting.value <= setting.other for setting in few):
        few = ()
    if conclusion.startswith(FLAT) and (far := tuple(setting for setting in settings if _recipe(setting))):
        settings, few = far, ()
        conclusion = f"{_recipe_words(far)}: {conclusion.partition(': ')[2]}"
        conclusion += f" (in {far[0].source} {' and '.join(short(setting.other) for setting in far[:NAMED])})"
    elif settings:
        conclusion = f"{conclusion} ({'; '.join(map(str, settings[:2]))})"
    conclusion += f"; the run is smaller than its profile ({size_words(few)})" if few else ""
    mend = case.again(settings or few, values=None if settings or few else _decline_other(case, conclusion))
    step = (evidence[0].checkpoint, evidence[0].event) if evidence else ("", 0)
    return Cause("decline", iteration, conclusion, evidence, mend, "", False, settings, *step)


def _recipe(setting: Setting) -> bool:
    return setting.key.startswith("run.training.student.") and far_off(setting)


def _recipe_words(far: tuple[Setting, ...]) -> str:
    named = " and ".join(f"{setting.key} of {short(setting.value)}" for setting in far[:NAMED])
    return f"{named} {'trains' if len(far) == 1 else 'train'} nothing"


def _decline_other(case: Case, conclusion: str) -> dict[str, object]:
    """A setting to try another value of, where none differs: smaller steps; more tasks where nothing was learned or no
    loss is proven."""
    if conclusion.startswith(FLAT) or UNPROVEN in conclusion:
        return {"run.tasks": 2 * case.config.tasks}
    return {LR: case.value(LR) / 10}


UNDECIDED = 0.5
MISJUDGED = 0.2
"""Share of answers called wrong that are, to the letter, what was expected."""
ENOUGH = 8
"""Verdicts of a plugin's verifier, none of which is right."""
LEAK, LOSS = 0.03, 0.1
"""Of known answers: wrong ones accepted, right ones refused."""
DECLARED = ("run.rewards.", "run.curriculum.families", "run.student.tools", "run.verification.")
"""Settings that may name what a plugin declares."""
VERIFIER_KEYS = ("run.verification.", "run.curriculum.families")


@cause(55)
def verifier(case: Case) -> Cause | None:
    """Report the first iteration, or the first evaluation, whose verdicts say little."""
    for iteration in case.iterations:
        if fault := _fault(iteration):
            conclusion, example = fault
            conclusion += _whose(case, iteration)
            evidence = iteration.observations_of(example)
            return _verifier_cause(case, iteration.number, conclusion, evidence, plugin=bool(iteration.foreign))
    if (never := _never(case)) is not None:
        return never
    evaluation: HeldOutScore | None = next((h for h in case.scores if h.n and h.undecided >= UNDECIDED * h.n), None)
    if evaluation is None:
        return None
    share = of(evaluation.undecided, evaluation.n)
    conclusion = f"the verifier cannot decide: {share} items of {evaluation.evaluation} are undecided"
    return _verifier_cause(case, evaluation.iteration, conclusion, ())


def _never(case: Case) -> Cause | None:
    """A verifier of a plugin that called nothing right in the whole run."""
    for first in case.iterations:
        for name in first.foreign:
            counts = [iteration.foreign.get(name, (0, 0)) for iteration in case.iterations]
            wrong = sum(no for _, no in counts)
            if wrong >= ENOUGH and not any(yes for yes, _ in counts):
                conclusion = f"the verifier calls every answer wrong, {wrong:,} of {wrong:,}{_whose(case, first)}"
                evidence = first.observations_of("wrong")
                return _verifier_cause(case, first.number, conclusion, evidence, plugin=True)
    return None


def _without(case: Case) -> tuple[str, str]:
    """The command that runs it again without its plugins, where no setting names what they declare; else as they are
    then."""
    files = " and ".join(f"{name}.py" for name in case.config.plugins)
    if not files or case.changed(*DECLARED):
        return case.again(), f"Correct {files or 'the plugin'} first: a fork takes the file as it is then."
    plain = f"agent0 run fork {case.run} --at {case.started} --set 'run.plugins={{}}'"
    return plain, f"That is without {files}. To keep it, correct it, then: {case.again()}"


def _whose(case: Case, iteration: Iteration) -> str:
    """Which verifiers are not of Agent0 itself, and the files that may hold them."""
    if not iteration.foreign:
        return ""
    files = " or ".join(f"{name}.py" for name in case.config.plugins) or "an installed one"
    return f" (verifier {', '.join(sorted(iteration.foreign))} of plugin {files})"


def _fault(iteration: Iteration) -> tuple[str, str] | None:
    judged, measures = iteration.decided + iteration.undecided, iteration.measures
    if iteration.undecided and iteration.undecided >= UNDECIDED * judged:
        return f"the verifier cannot decide: {of(iteration.undecided, judged)} verdicts are undecided", "undecided"
    if iteration.overrated and iteration.overrated >= LEAK * iteration.right:
        share = of(iteration.overrated, iteration.right)
        conclusion = f"the verifier is too lenient: {share} answers that it calls right are wrong"
        return f"{conclusion} by what their tasks' families compute", "overrated"
    if iteration.misjudged and iteration.misjudged >= MISJUDGED * iteration.wrong:
        share = of(iteration.misjudged, iteration.wrong)
        conclusion = f"the verifier is broken: {share} answers that it calls wrong are what it expects"
        conclusion = conclusion.replace("what it expects", "right") if iteration.foreign else conclusion
        return conclusion, "misjudged"
    if faults := measures.get("verifier_faults", 0.0):
        return f"the verifier is broken: it misjudges {faults:.0%} of the answers that are known", "wrong"
    if (leaked := measures.get("gate_wrong", 0.0)) >= LEAK:
        return f"the gate accepts {leaked:.0%} of answers that are known to be wrong for training", "wrong"
    if (kept := measures.get("gate_right", 1.0)) <= 1 - LOSS:
        return f"the gate refuses {1 - kept:.0%} of answers that are known to be right", "wrong"
    return None


def _verifier_cause(
    case: Case, iteration: int, conclusion: str, evidence: tuple[Observation, ...], *, plugin: bool = False
) -> Cause:
    if plugin:
        mend, advice = _without(case)
        return Cause("verifier", iteration, conclusion, evidence, mend, advice, explained=True)
    keys = (*VERIFIER_KEYS, "run.training.student.gate")
    settings = case.changed(*keys)
    if settings:
        conclusion = f"{conclusion} ({'; '.join(map(str, settings[:2]))})"
    mend = case.again(settings) if settings else f"agent0 experiment reverify {case.run}"
    advice = "" if settings else "Judge single answers: agent0 verify; reverify judges the whole run again."
    return Cause("verifier", iteration, conclusion, evidence, mend, advice, settings=settings)
