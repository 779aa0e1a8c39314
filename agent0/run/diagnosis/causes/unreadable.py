"""A teacher whose texts hold no task from the first iteration on."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, blamed, of

BAD = 0.5
KEYS = ("run.teacher.", "run.curriculum.domains", "run.curriculum.families")


@cause(53)
def unreadable(case: Case) -> Cause | None:
    """Report the first iteration in which half of the teacher's texts hold no task."""
    for iteration in case.iterations:
        if not iteration.screened or iteration.unreadable < BAD * iteration.screened:
            continue
        settings = case.changed(*KEYS)
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
