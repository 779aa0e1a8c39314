"""What is wrong with the student's attempts: broken, silent, cut off, unread, without the right tools or sandbox."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import (
    Case,
    Cause,
    HeldOutScore,
    Iteration,
    Observation,
    Setting,
    Training,
    blamed,
    of,
)
from agent0.run.diagnosis.replies import UNCLOSED, UNREAD, FailedReplies
from agent0.run.diagnosis.set_flags import short
from agent0.settings import RunConfig
from agent0.stats.paired_tests import mcnemar
from agent0.tools import tools as registered_tools

SILENT = 0.5
"""Of the share of attempts with an answer before: below it afterwards."""
FALLEN = 0.34
"""Of the share of right attempts, or of validation, before: below it afterwards."""
ENOUGH = 8
"""Attempts that a share is of."""
LOST = 4
"""Validation items lost, and four times as many as gained."""
LEVEL = 0.05
"""Of an exact test on the items that changed (``mcnemar``)."""
KEYS = ("run.training.student.lr", "run.training.student.")
ACTING = (
    "run.student.max_turns",
    "run.student.max_calls",
    "run.student.max_tokens",
    "run.student.temperature",
    "run.student.top_p",
    "run.student.tools",
    "run.student.",
)
"""Settings under which the attempts are made that it is trained on, and scored by."""


@cause(41)
def broken_student(case: Case) -> Cause | None:
    """Report the training after which the student answers no more, or has lost most of what it solved."""
    faults = [*_by_attempts(case), *_by_scores(case)]
    if not faults:
        return None
    training, what, more = min(faults, key=lambda fault: fault[0].iteration)
    settings = case.changed(*KEYS) or case.changed(*ACTING)
    conclusion = f"{_blames(settings)} ruined {training.checkpoint}: {what} ({blamed(case, settings, KEYS[0])})"
    evidence = training.observations()
    lr = case.value(KEYS[0])
    trained = not settings or settings[0].key.startswith(KEYS[1])
    at = max(case.started, training.requested - 1) if training.requested and trained else 0
    mend = case.again(settings, at) if settings else case.again((), at, {KEYS[0]: lr / 10})
    advice = "" if settings else f"A tenth of its learning rate ({short(lr)}) is the usual remedy."
    return Cause(
        "broken_student",
        training.iteration,
        conclusion,
        (*evidence, *more),
        mend,
        advice,
        settings=settings,
        checkpoint=training.checkpoint,
        event=training.requested,
        explained=bool(settings) and trained,
    )


def _blames(settings: tuple[Setting, ...]) -> str:
    if not settings or settings[0].key == KEYS[0]:
        return "the student's learning rate"
    return "the student's training" if settings[0].key.startswith(KEYS[1]) else "how the student attempts tasks"


TrainingFault = tuple[Training, str, tuple[Observation, ...]]


def _by_attempts(case: Case) -> list[TrainingFault]:
    faults: list[TrainingFault] = []
    for before, current in zip(case.iterations, case.iterations[1:], strict=False):
        training = next((t for t in case.trained("student", current.number) if t.checkpoint == current.student), None)
        if training is None or min(before.attempts, current.attempts) < ENOUGH:
            continue
        examples = tuple(observation for key, observation in current.examples.items() if key.startswith("end:"))
        if current.answered / current.attempts < SILENT * before.answered / before.attempts:
            what = f"{of(current.answered, current.attempts)} attempts give an answer, after "
            faults.append((training, f"{what}{of(before.answered, before.attempts)} of {before.student}", examples))
        elif _rate(current) < FALLEN * _rate(before) and before.right >= LOST:
            what = f"{of(current.right, current.decided)} attempts are right, after "
            faults.append((training, f"{what}{of(before.right, before.decided)} of {before.student}", ()))
    return faults


def _rate(iteration: Iteration) -> float:
    return iteration.right / max(1, iteration.decided)


def _by_scores(case: Case) -> list[TrainingFault]:
    faults: list[TrainingFault] = []
    scores = list(case.validations())
    checkpoints = {training.checkpoint: training for training in case.trainings if training.role == "student"}
    for index, current in enumerate(scores):
        best = max(scores[:index], key=lambda score: score.accuracy or 0.0, default=None)
        if best is not None and current.checkpoint in checkpoints and _fell(best, current):
            conclusion = (
                f"it scores {current.accuracy:.3f} on validation, after {best.accuracy:.3f} of {best.checkpoint}"
            )
            faults.append(
                (
                    checkpoints[current.checkpoint],
                    conclusion,
                    (Observation(conclusion, checkpoint=current.checkpoint, event=current.event),),
                )
            )
    return faults


def _fell(best: HeldOutScore, current: HeldOutScore) -> bool:
    if current.accuracy is None or not best.accuracy or current.accuracy > FALLEN * best.accuracy:
        return False
    pairs = list(zip(best.outcomes, current.outcomes, strict=False))
    lost, gained = pairs.count(("1", "0")), pairs.count(("0", "1"))
    return lost >= max(LOST, 4 * gained) and mcnemar(gained, lost) < LEVEL


BAD, SOME, FEW = 0.5, 0.25, 0.02
"""Share of texts or attempts that is told of; the second of turns and calls whose limit is another than elsewhere,
the last of a single turn."""
ENDS = {"length": "max_tokens", "turn_limit": "max_turns", "budget": "max_calls"}
"""How an attempt ended -> the limit of ``run.student`` that ended it."""


@cause(52)
def truncated(case: Case) -> Cause | None:
    """Report the first iteration in which half of the teacher's texts or of the student's attempts were cut off."""
    for iteration in case.iterations:
        if iteration.screened and iteration.cut_off >= BAD * iteration.screened:
            share = (
                f"{of(iteration.cut_off, iteration.screened)} texts of the teacher are cut off at their limit of tokens"
            )
            return _cause(case, iteration, "teacher", "max_tokens", share, "malformed")
        for end, limit in ENDS.items():
            if iteration.attempts and iteration.ends.get(end, 0) >= _least(case, end, limit) * iteration.attempts:
                limit_name = limit.removeprefix("max_")
                cut = of(iteration.ends[end], iteration.attempts)
                share = f"{cut} attempts are truncated at their limit of {limit_name}"
                share += ", since nobody calls a tool and answers in one turn" if _single(case, limit) else ""
                return _cause(case, iteration, "student", limit, share, f"end:{end}")
    return None


def _least(case: Case, end: str, limit: str) -> float:
    """The share of attempts that tells of a limit: each that calls a tool is one where a single turn is allowed."""
    if end == "length" or not case.changed(f"run.student.{limit}"):
        return BAD
    return FEW if _single(case, limit) else SOME


def _single(case: Case, limit: str) -> bool:
    return limit == "max_turns" and case.config.student.max_turns == 1 and bool(case.config.student.tools)


def _cause(case: Case, iteration: Iteration, role: str, limit: str, share: str, example: str) -> Cause:
    key = f"run.{role}.{limit}"
    settings = case.changed(key)
    conclusion = f"{share} ({blamed(case, settings, key)})"
    evidence = iteration.observations_of(example)
    mend = case.again(settings) if settings else case.again(values={key: 4 * max(1, case.value(key))})
    return Cause(
        "truncated",
        iteration.number,
        conclusion,
        evidence,
        mend,
        settings=settings,
        checkpoint=getattr(iteration, role),
        fatal=not case.recovered(iteration.number),
        explained=bool(settings),
    )


SILENT_KEYS = ("run.student.",)


@cause(54)
def silent(case: Case) -> Cause | None:
    """Report the first iteration in which half of the attempts gave no answer."""
    for iteration in case.iterations:
        attempts = iteration.attempts
        if not attempts or attempts - iteration.answered < BAD * attempts:
            continue
        settings = case.changed(*SILENT_KEYS)
        ends = ", ".join(f"{n:,} {end}" for end, n in sorted(iteration.ends.items(), key=lambda item: -item[1]))
        conclusion = f"the student gives no answer: {of(iteration.answered, attempts)} attempts end with one ({ends}; "
        conclusion += f"{blamed(case, settings, 'run.student.provider', 'run.student.prompts')})"
        evidence = tuple(example for key, example in iteration.examples.items() if key.startswith("end:"))
        listed = case.replies.reading(case.run) if case.replies else f"agent0 trajectory list {case.run}"
        mend = case.again(settings) if settings else listed
        return Cause(
            "silent",
            iteration.number,
            conclusion,
            evidence,
            mend,
            settings=settings,
            checkpoint=iteration.student,
            fatal=not case.recovered(iteration.number),
        )
    return None


FORM, ROOM = "run.student.tool_form", "run.student.max_tokens"


@cause(49)
def replies_unread(case: Case) -> Cause | None:
    """Report the first iteration in which half of the attempts gave no answer, where most failed items of evaluations
    hold a call that was not read, or a thought that was not closed."""
    replies, iteration = case.replies, next((it for it in case.iterations if it.attempts), None)
    if replies is None or iteration is None or iteration.attempts - iteration.answered < BAD * iteration.attempts:
        return None
    kind, count = next(iter(replies.kinds.items()))
    if kind not in (UNREAD, UNCLOSED) or 2 * count < sum(replies.kinds.values()):
        return None
    key = FORM if kind == UNREAD else ROOM
    settings = case.changed(key)
    what = "tool calls are not read" if kind == UNREAD else "thoughts are never closed"
    message = f"the student's {what}: so end {of(count, replies.failed)} failed items of {replies.evaluation} "
    message += f"({blamed(case, settings, key)})"
    values = None if settings else _values(case, kind, replies)
    mend = case.again(settings, values=values) if settings or values else replies.reading(case.run)
    advice = "" if kind == UNREAD else "Or let it not think: run.student.thinking=off."
    examples = tuple(example for name, example in iteration.examples.items() if name.startswith("end:"))
    fatal = not case.recovered(iteration.number)
    return Cause("replies_unread", iteration.number, message, examples, mend, advice, fatal=fatal, settings=settings,
                 checkpoint=iteration.student)  # fmt: skip


def _values(case: Case, kind: str, replies: FailedReplies) -> dict[str, object] | None:
    """The form that its replies have where that is known, or more room; None: somebody has to read them."""
    student = case.config.student
    if kind == UNCLOSED:
        return {ROOM: 4 * student.max_tokens}
    fenced = all("```" in example.wrote for example in replies.examples)
    return {FORM: "fence"} if fenced and student.form != "fence" else None


SHARE, LEAST = 0.3, 2
LOW = 0.5
"""Share of right attempts, below which a run without tool calls is told of."""
USUAL = RunConfig().student.tools
NAMED = 4
"""Missing tools that are named, at most."""
WRONG = "the list of tools is wrong"
TOOLS_FORM = "run.student.tool_form"
TOOLS_KEYS = ("run.student.tools", "run.student.tool_form", "run.student.max_calls", "run.policy.")


@cause(51)
def tools(case: Case) -> Cause | None:
    """Report the first iteration in which many calls could not be read, were of tools that are not there, or were
    refused; or in which no call was made, under tools other than elsewhere."""
    settings = case.changed(*TOOLS_KEYS)
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
            mend = case.again(settings, values=None if settings else {TOOLS_KEYS[0]: _needed(case, iteration)})
            mend = mend or f"agent0 trajectory list {case.run}"
            return Cause(
                "tools", iteration.number, conclusion, evidence, mend, fatal=state != "none", settings=settings
            )
    return None


def _unread(case: Case, iteration: Iteration) -> Cause:
    """Calls in a form that is not read, or with slips that leave nothing to read."""
    settings = case.changed(TOOLS_FORM)
    conclusion = f"the student's calls cannot be read in {of(iteration.unread, iteration.attempts)} attempts"
    conclusion += f" ({blamed(case, settings, TOOLS_FORM, 'run.student.prompts')})"
    evidence = iteration.observations_of("unread")
    other = "template" if case.config.student.form == "fence" else "fence"
    mend = case.again(settings) if settings else case.again(values={TOOLS_FORM: other})
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
    missing = [name for name in iteration.missing if name in registered_tools()]
    return [*case.config.student.tools, *missing] if missing else [*USUAL]


def _limits(case: Case) -> tuple[Setting, ...]:
    """The limit of calls an attempt, where it is lower than elsewhere."""
    return tuple(setting for setting in case.changed("run.student.max_calls") if (setting.other or 0) > setting.value)


LIMITS = {
    "timeout": ("wall_s", "took longer than its time limit"),
    "memory": ("mem_mib", "needed more memory than its limit"),
    "busy": ("workers", "found no free place"),
    "output_flood": ("", "printed too much"),
    "sandbox_error": ("", "were lost with the sandbox"),
}
"""How a call ended -> the limit that ended it, and in words."""
DEFAULTS = {"wall_s": 5, "mem_mib": 512, "workers": 2}


@cause(50)
def sandbox(case: Case) -> Cause | None:
    """Report the first iteration in which many tool calls ended at a limit of the sandbox."""
    for iteration in case.iterations:
        calls = sum(iteration.calls.values())
        ended = {state: iteration.calls[state] for state in LIMITS if iteration.calls.get(state)}
        if not ended or sum(ended.values()) < max(LEAST, SHARE * calls):
            continue
        worst = max(ended, key=lambda state: ended[state])
        name, wording = LIMITS[worst]
        conclusion = f"the sandbox is too small: {of(ended[worst], calls)} tool calls {wording}"
        conclusion += f" (sandbox.{name})" if name else ""
        evidence = iteration.observations_of(f"call:{worst}")
        limit = max(DEFAULTS[name], (case.here.get("sandbox") or {}).get(name, 0)) if name else 0
        mend = (f"AGENT0_SANDBOX__{name.upper()}={limit:g} " if name else "") + case.again()
        advice = "Limits of the sandbox are no part of a run: give them to each process that executes it."
        return Cause("sandbox", iteration.number, conclusion, evidence, mend, advice)
    return None
