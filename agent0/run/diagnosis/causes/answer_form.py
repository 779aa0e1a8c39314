"""A student that learned the form of right answers, and nothing else."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, Observation, Training
from agent0.run.monitors.form import chooses_by_verdict, form_change

OBJECTIVE = "run.training.student.objective"


@cause(84)
def form_learned(case: Case) -> Cause | None:
    """Report the first training on right answers of another form than all answered ones, where no validation score is
    above the untrained student's."""
    scores = [score.accuracy or 0.0 for score in case.validations()]
    if not chooses_by_verdict(case.config) or len(scores) < 2 or max(scores[1:]) > scores[0]:
        return None
    for training in case.trainings:
        iteration = next((each for each in case.iterations if each.number == training.iteration), None)
        if training.role == "student" and training.samples and iteration and form_change(iteration.measures):
            return _cause(case, training, iteration)
    return None


def _cause(case: Case, training: Training, iteration: Iteration) -> Cause:
    change = form_change(iteration.measures)
    objective = case.config.training.student.objective
    conclusion = f"choosing by verdict changed the form of what was learned: right attempts have {change} of all"
    conclusion += f" answered ones ({OBJECTIVE} is {objective})"
    step = Observation("trained on them", checkpoint=training.checkpoint, event=training.requested)
    at = max(case.started, training.requested - 1)
    values = {OBJECTIVE: "grpo"} if objective == "sft" else {"run.attempts": 2 * case.config.attempts}
    advice = "Compare with run.training.student.gate = permuted: what both teach is form."
    return Cause(
        "form_learned",
        training.iteration,
        conclusion,
        (step, *iteration.observations_of("right")),
        case.again((), at, values),
        advice,
        checkpoint=training.checkpoint,
        event=training.requested,
    )
