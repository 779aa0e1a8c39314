"""Tools that the student calls and does not have, or may not use."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, Setting, blamed, of
from agent0.settings import RunConfig

SHARE, LEAST = 0.3, 2
LOW = 0.5
"""Share of right attempts, below which a run without tool calls is told of."""
USUAL = RunConfig().student.tools
NAMED = 4
"""Missing tools that are named, at most."""
WRONG = "the list of tools is wrong"
FORM = "run.student.tool_form"
KEYS = ("run.student.tools", "run.student.tool_form", "run.student.max_calls", "run.policy.")


@cause(51)
def tools(case: Case) -> Cause | None:
    """Report the first iteration in which many calls could not be read, were of tools that are not there, or were
    refused; or in which no call was made, under tools other than elsewhere."""
    settings = case.changed(*KEYS)
    for iteration in case.iterations:
        if iteration.unread >= max(LEAST, SHARE * iteration.attempts):
            return _unread(case, iteration)
        if fault := _fault(iteration, bool(settings)):
            state, share = fault
            settings = (_limits(case) if state == "refused" else ()) or settings
            listed = "; ".join(map(str, settings[:2])) or blamed(case, (), "run.student.tools")
            what = "too few tool calls are allowed" if settings and settings == _limits(case) else WRONG
            conclusion = f"{what}: {share} ({listed})"
            shown = "wrong" if state == "none" else f"call:{state}"
            evidence = iteration.observations_of(shown)
            mend = case.again(settings, values=None if settings else {KEYS[0]: _needed(case, iteration)})
            return Cause(
                "tools", iteration.number, conclusion, evidence, mend, fatal=state != "none", settings=settings
            )
    return None


def _unread(case: Case, iteration: Iteration) -> Cause:
    """Calls in a form that is not read, or with slips that leave nothing to read."""
    settings = case.changed(FORM)
    conclusion = f"the student's calls cannot be read in {of(iteration.unread, iteration.attempts)} attempts"
    conclusion += f" ({blamed(case, settings, FORM, 'run.student.prompts')})"
    evidence = iteration.observations_of("unread")
    other = "template" if case.config.student.form == "fence" else "fence"
    mend = case.again(settings) if settings else case.again(values={FORM: other})
    return Cause(
        "tools",
        iteration.number,
        conclusion,
        evidence,
        mend,
        fatal=not case.recovered(iteration.number),
        settings=settings,
    )


def _fault(iteration: Iteration, differs: bool) -> tuple[str, str] | None:
    calls = sum(iteration.calls.values())
    for state, wording in (("unknown", "are of tools that the student does not have"), ("refused", "were refused")):
        if iteration.calls.get(state, 0) >= max(LEAST, SHARE * calls):
            named = f": {', '.join(iteration.missing[:NAMED])}" if state == "unknown" and iteration.missing else ""
            return state, f"{of(iteration.calls[state], calls)} tool calls {wording}{named}"
    if differs and iteration.attempts and not iteration.calls.get("ok") and iteration.right < LOW * iteration.decided:
        return "none", f"none of {iteration.attempts:,} attempts made a tool call that went well"
    return None


def _needed(case: Case, iteration: Iteration) -> list[str]:
    """The run's own tools and those that were called without being there, as far as there are such tools."""
    from agent0.tools import tools as registered_tools

    missing = [name for name in iteration.missing if name in registered_tools()]
    return [*case.config.student.tools, *missing] if missing else [*USUAL]


def _limits(case: Case) -> tuple[Setting, ...]:
    """The limit of calls an attempt, where it is lower than elsewhere."""
    return tuple(setting for setting in case.changed("run.student.max_calls") if (setting.other or 0) > setting.value)
