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
    for one in case.iterations:
        if one.unread >= max(LEAST, SHARE * one.attempts):
            return _unread(case, one)
        if found := _seen(one, bool(settings)):
            state, share = found
            settings = (_limits(case) if state == "refused" else ()) or settings
            listed = "; ".join(map(str, settings[:2])) or blamed(case, (), "run.student.tools")
            what = "too few tool calls are allowed" if settings and settings == _limits(case) else WRONG
            told = f"{what}: {share} ({listed})"
            shown = "wrong" if state == "none" else f"call:{state}"
            seen = tuple(one.examples[key] for key in (shown,) if key in one.examples)
            mend = case.again(settings, values=None if settings else {KEYS[0]: _needed(case, one)})
            return Cause("tools", one.number, told, seen, mend, fatal=state != "none", settings=settings)
    return None


def _unread(case: Case, one: Iteration) -> Cause:
    """Calls in a form that is not read, or with slips that leave nothing to read."""
    settings = case.changed(FORM)
    told = f"the student's calls cannot be read in {of(one.unread, one.attempts)} attempts"
    told += f" ({blamed(case, settings, FORM, 'run.student.prompts')})"
    seen = (one.examples["unread"],) if "unread" in one.examples else ()
    other = "template" if case.config.student.form == "fence" else "fence"
    mend = case.again(settings) if settings else case.again(values={FORM: other})
    return Cause("tools", one.number, told, seen, mend, fatal=not case.recovered(one.number), settings=settings)


def _seen(one: Iteration, differs: bool) -> tuple[str, str] | None:
    calls = sum(one.calls.values())
    for state, words in (("unknown", "are of tools that the student does not have"), ("refused", "were refused")):
        if one.calls.get(state, 0) >= max(LEAST, SHARE * calls):
            named = f": {', '.join(one.missing[:NAMED])}" if state == "unknown" and one.missing else ""
            return state, f"{of(one.calls[state], calls)} tool calls {words}{named}"
    if differs and one.attempts and not one.calls.get("ok") and one.right < LOW * one.decided:
        return "none", f"none of {one.attempts:,} attempts made a tool call that went well"
    return None


def _needed(case: Case, one: Iteration) -> list[str]:
    """The run's own tools and those that were called without being there, as far as there are such tools."""
    from agent0.tools import tools as registered_tools

    missing = [name for name in one.missing if name in registered_tools()]
    return [*case.config.student.tools, *missing] if missing else [*USUAL]


def _limits(case: Case) -> tuple[Setting, ...]:
    """The limit of calls an attempt, where it is lower than elsewhere."""
    return tuple(one for one in case.changed("run.student.max_calls") if (one.other or 0) > one.value)
