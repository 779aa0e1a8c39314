"""A verifier that cannot decide, calls right answers wrong, or wrong ones right."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Held, Iteration, Observation, of

UNDECIDED = 0.5
MISJUDGED = 0.2
"""Share of answers called wrong that are, to the letter, what was expected."""
ENOUGH = 8
"""Verdicts of a plugin's verifier, none of which is right."""
LEAK, LOSS = 0.03, 0.1
"""Of known answers: wrong ones accepted, right ones refused."""
DECLARED = ("run.rewards.", "run.curriculum.families", "run.student.tools", "run.verification.")
"""Settings that may name what a plugin declares."""
KEYS = ("run.verification.", "run.curriculum.families")


@cause(55)
def verifier(case: Case) -> Cause | None:
    """Report the first iteration, or the first evaluation, whose verdicts say little."""
    for iteration in case.iterations:
        if fault := _fault(iteration):
            conclusion, example = fault
            conclusion += _whose(case, iteration)
            evidence = iteration.observations_of(example)
            return _cause(case, iteration.number, conclusion, evidence, plugin=bool(iteration.foreign))
    if (never := _never(case)) is not None:
        return never
    evaluation: Held | None = next((h for h in case.scores if h.n and h.undecided >= UNDECIDED * h.n), None)
    if evaluation is None:
        return None
    share = of(evaluation.undecided, evaluation.n)
    conclusion = f"the verifier cannot decide: {share} items of {evaluation.evaluation} are undecided"
    return _cause(case, evaluation.iteration, conclusion, ())


def _never(case: Case) -> Cause | None:
    """A verifier of a plugin that called nothing right in the whole run."""
    for first in case.iterations:
        for name in first.foreign:
            counts = [iteration.foreign.get(name, (0, 0)) for iteration in case.iterations]
            wrong = sum(no for _, no in counts)
            if wrong >= ENOUGH and not any(yes for yes, _ in counts):
                conclusion = f"the verifier calls every answer wrong, {wrong:,} of {wrong:,}{_whose(case, first)}"
                evidence = first.observations_of("wrong")
                return _cause(case, first.number, conclusion, evidence, plugin=True)
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


def _cause(
    case: Case, iteration: int, conclusion: str, evidence: tuple[Observation, ...], *, plugin: bool = False
) -> Cause:
    if plugin:
        mend, advice = _without(case)
        return Cause("verifier", iteration, conclusion, evidence, mend, advice, explained=True)
    keys = (*KEYS, "run.training.student.gate")
    settings = case.changed(*keys)
    if settings:
        conclusion = f"{conclusion} ({'; '.join(map(str, settings[:2]))})"
    mend = case.again(settings) if settings else f"agent0 experiment reverify {case.run}"
    advice = "" if settings else "Judge single answers: agent0 verify; reverify judges the whole run again."
    return Cause("verifier", iteration, conclusion, evidence, mend, advice, settings=settings)
