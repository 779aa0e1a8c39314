"""What a run lacks or meets outside of its training: room, money, servers, sound plugins, a process."""

import builtins
import re

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Loss, Observation, Retry, Wait

FULL = (
    "the disk is full",
    "no space left",
    "errno 28",
    "disk quota",
    "refuses to store",
    "insufficient",
    "maximum bytes",
    "device is full",
)
"""What a server, a file system and a database say where they are full."""
OVER = ("running", "paused", "failed")
LEFT = 256 << 10
"""Bytes: a log with less room refuses batches of events."""


@cause(10)
def disk(case: Case) -> Cause | None:
    """Report a full disk or a full log: of a run that is not finished, by what handlers met or by a look at it now."""
    if case.status not in OVER:
        return None
    met = _met(case)
    free, least = case.here.get("disk_free"), case.here.get("disk_least", 0)
    room = case.here.get("log_left", LEFT)
    if room < LEFT:
        conclusion = f"the log is full: {room:,} bytes of nats.max_bytes are left, so it stores no more events"
        advice = "Raise nats.max_bytes (agent0 log init applies it), or archive the log: agent0 events archive PATH"
    elif met or (free is not None and free < least):
        left = "" if free is None else f": {free / (1 << 20):,.0f} MiB are free, a run needs {least / (1 << 20):,.0f}"
        conclusion = f"the disk is full{left}"
        advice = "Free disk space first; nothing is lost."
    else:
        return None
    return Cause("disk", case.iteration, conclusion, met, case.go_on(), advice, event=case.last)


def _met(case: Case) -> tuple[Observation, ...]:
    """What handlers met: waits that stand, and reactions given up."""
    reports: list[Wait | Loss] = [*case.waits, *case.losses]
    return tuple(
        Observation(report.message, event=report.event)
        for report in reports
        if any(sign in report.message.lower() for sign in FULL)
    )


BUDGET = re.compile(r"budget of (run|day|provider|user) (.+)")
CAP = re.compile(r"of \$([\d,.]*\d)")


@cause(19)
def budget(case: Case) -> Cause | None:
    """Report the first budget that handlers of an unfinished run wait for, or for which it failed."""
    waits = [wait for wait in case.waits if BUDGET.fullmatch(wait.dependency)]
    if not waits or case.status not in ("running", "paused", "failed"):
        return None
    first, failed = waits[0], case.status == "failed"
    if failed and case.ended != "dependency":
        return None
    scope, name = BUDGET.fullmatch(first.dependency).groups()  # type: ignore[union-attr]
    cap = float(match[1].replace(",", "")) if (match := CAP.search(first.message)) else 0.0
    raised = f"agent0 router budget set {scope} {name} --cap {2 * cap or 1:g}"
    conclusion = f"the {first.dependency} is used up, and {', '.join(first.waiting)} waits for a higher cap"
    evidence = tuple(Observation(f"since {wait.since[:19]}: {wait.message}", event=wait.event) for wait in waits)
    if failed:
        conclusion = f"{conclusion}; the run failed after waiting for run.give_up_after"
        return Cause(
            "budget", case.iteration, conclusion, evidence, case.go_on(), f"First: {raised}", event=first.event
        )
    advice = "Twice the cap that it has; name what you want to spend. The run goes on by itself."
    return Cause("budget", case.iteration, conclusion, evidence, raised, advice, event=first.event)


ASKED_BY = {
    "student": {"attempt_task", "continue_attempt", "evaluate_item"},
    "teacher": {"propose_task"},
}
"""Handlers that ask the model of a role."""


@cause(20)
def dependency(case: Case) -> Cause | None:
    """Report what handlers of an unfinished run wait for, or for which it failed."""
    if case.status not in ("running", "paused", "failed"):
        return None
    go_on = case.go_on()
    if away := case.here.get("log"):
        conclusion = f"the log's server (NATS) is away: {away}"
        return Cause(
            "dependency", case.iteration, conclusion, (), go_on, "Start it, or correct nats.url.", event=case.last
        )
    waits = [wait for wait in case.waits if not BUDGET.fullmatch(wait.dependency)]
    if not waits or (case.status == "failed" and case.ended != "dependency"):
        return None
    names = ", ".join(sorted({wait.dependency for wait in waits}))
    who = ", ".join(sorted({name for wait in waits for name in wait.waiting}))
    message = waits[0].message.removeprefix(f"{waits[0].dependency} is not available. ").rstrip(".")
    conclusion = f"{names} is away, and {who} waits for it: {message}"
    if len(roles := _roles(case)) == 1:
        conclusion = conclusion.replace("<role>", roles[0])
    if named := [key for role in roles if (key := f"run.{role}.base_url") not in conclusion]:
        conclusion += f" ({' and '.join(named)})"
    if case.ended == "dependency":
        conclusion = f"{conclusion}; the run failed after waiting for run.give_up_after"
    evidence = tuple(Observation(f"since {wait.since[:19]}: {wait.message}", event=wait.event) for wait in waits)
    blamed = case.changed("run.student.provider", "run.student.model", "run.student.base_url", "run.teacher.provider",
                          "run.teacher.model", "run.teacher.base_url")  # fmt: skip
    return Cause("dependency", case.iteration, conclusion, evidence, go_on, "It goes on by itself once that is back.",
                 settings=blamed, event=waits[0].event)  # fmt: skip


def _roles(case: Case) -> list[str]:
    """The roles whose model server is waited for: those whose address it says, or whose handlers wait for a server."""
    messages = " ".join(wait.message for wait in case.waits)
    actors = {"student": case.config.student, "teacher": case.config.teacher}
    roots = {role: [url.rstrip("/").removesuffix("/v1") for url in actor.addresses] for role, actor in actors.items()}
    named = [role for role, urls in roots.items() if any(url in messages for url in urls)]
    waiting = {name for wait in case.waits for name in wait.waiting}
    roles = [role for role in named if waiting & ASKED_BY[role]]
    return roles or named


SEVERAL = 2
"""Tries that failed from which on it is told: one failure mostly passes."""
SHOWN = 3
CORRECT = "Correct {} first: the fork takes the file as it is then, while the run itself keeps the one it began with."
_FILE = re.compile(r"\b(?:of )?plugin (\w+\.py), ")


@cause(25)
def failing(case: Case) -> Cause | None:
    """Report the handler that failed most often and tries again. Where one reaction failed ``SEVERAL`` times, the run
    stands still for it."""
    if not case.retries or case.retries[0].tries < SEVERAL:
        return None
    worst = case.retries[0]
    why = ": ".join(part for part in (worst.error, worst.message.rstrip(".")) if part)
    conclusion = f"{worst.handler} fails again and again, {worst.tries:,} times so far, on {_what(worst)}: "
    conclusion += why or "its process ended during it, each time"
    evidence = tuple(
        Observation(f"a try of {worst.handler} failed", worst.task, worst.attempt, event=seq)
        for seq in worst.events[-SHOWN:]
    )
    advice = "Mend what the error names first; it is tried again by itself where a process executes the run."
    mend = case.go_on()
    if file := faulty_file(worst.error, worst.message):
        mend, advice = case.again(at=max(case.started, min(worst.events, default=1) - 1)), CORRECT.format(file)
    return Cause(
        "failing", case.iteration, conclusion, evidence, mend, advice, worst.most >= SEVERAL, event=worst.event
    )


def faulty_file(error: str, message: str) -> str:
    """The file of a user's whose own code raised an error, by the error's name and message: another try gives the
    same. Empty where there is none, or where the error may pass, as those of a network do."""
    kind = getattr(builtins, error, OSError)
    return "" if issubclass(kind, OSError | MemoryError) else named_file(message)


def named_file(text: str) -> str:
    """The file of a user's that ``text`` names with a line of it; empty where it names none."""
    match = _FILE.search(text)
    return match[1] if match else ""


def _what(worst: Retry) -> str:
    """The task or attempt that it fails on, else the event; and on how many more."""
    named = worst.attempt or worst.task or worst.cause
    return f"{named} and {worst.reactions - 1:,} more" if worst.reactions > 1 else named


@cause(24)
def unreturned(case: Case) -> Cause | None:
    """Report in which declaration of a user's file the process of a running run stands, or stood when it ended."""
    stand = case.here.get("user_code")
    if case.status != "running" or not stand or stand["ended"] is case.here.get("carried"):
        return None
    conclusion = f"{stand['place']}, {'did' if stand['ended'] else 'does'} not come back: "
    conclusion += f"the run stands still there, for {stand['seconds']:.0f} s so far"
    if stand["ended"]:
        conclusion = conclusion.partition(": ")[0] + f", so its process ended after {stand['seconds']:.0f} s"
    evidence = (Observation("the last event before it", event=case.last),)
    advice = (
        CORRECT.format(named_file(stand["place"]) or "the file") + " Stop a run that still stands there with Ctrl-C."
    )
    return Cause("unreturned", case.iteration, conclusion, evidence, case.again(at=case.last), advice, event=case.last)


COSTLY = ("propose_task", "screen_task", "attempt_task", "continue_attempt", "verify_result", "assign_reward")
"""Handlers without which an attempt is lost."""
ROLES = {handler: role for role, handlers in ASKED_BY.items() for handler in handlers}
"""Handler -> the role whose model it asks."""
OWN_KEYS = {"ollama": "OLLAMA_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Provider -> the variable that it reads where run.<role>.key_env names none."""
KEY = "First: export {}=... to a key that the server takes ({} names the variable)."
TRACED = "Mend what the error names first; agent0 failures show has its traceback."
MUCH = 0.05
"""Share of all attempts whose loss is told though the run went on."""


@cause(30)
def given_up(case: Case) -> Cause | None:
    """Report the reaction that was given up most often, where the run failed of it, waits for a person, or lost more
    than a few attempts."""
    lost = sum(loss.count for loss in case.losses if loss.handler in COSTLY)
    attempts = max(1, sum(iteration.attempts for iteration in case.iterations))
    stops = case.ended == "given_up" or any(loss.waits for loss in case.losses)
    untrained = [loss for loss in case.losses if loss.handler in ("train_checkpoint", "evaluate_checkpoint")]
    if not case.losses or not (stops or untrained or lost > MUCH * attempts):
        return None
    worst = max(untrained or case.losses, key=lambda loss: (loss.count, -loss.event))
    conclusion = f"{worst.handler} was given up {worst.count} times: {worst.error}: {worst.message.rstrip('.')}"
    evidence = tuple(
        Observation(_description(loss), loss.task, loss.attempt, event=loss.event) for loss in case.losses[:3]
    )
    mend, advice = _mended(case, worst)
    return Cause(
        "given_up", worst.iteration, conclusion, evidence, mend, advice, stops or bool(untrained), event=worst.event
    )


def _mended(case: Case, worst: Loss) -> tuple[str, str]:
    """The command, and what to do before it: correct a file of the user's, set a key, or mend what the error names."""
    at = _before(case, worst)
    if file := faulty_file(worst.error, worst.message):
        return case.again(at=at), CORRECT.format(file)
    advice, values = TRACED, dict[str, str]()
    if worst.error == "AuthError" and (role := ROLES.get(worst.handler)):
        setting = f"run.{role}.key_env"
        name = case.value(setting) or OWN_KEYS.get(case.value(f"run.{role}.provider"), "")
        values = {} if name else {setting: "PROVIDER_KEY"}
        advice = KEY.format(name or "PROVIDER_KEY", setting)
    if worst.waits and not values:
        return f"agent0 failures retry {worst.failure}", advice
    return case.again(at=at, values=values), advice


def _description(loss: Loss) -> str:
    return f"{loss.handler} was given up {loss.count} times, at last after: {loss.error}: {loss.message}"


def _before(case: Case, loss: Loss) -> int:
    """The event before the first loss; the run's start where that is unknown."""
    return max(case.started, loss.event - 1) if loss.event else case.started


IDLE_S = 300
"""Seconds without an event after which nobody seems to carry a running run."""


@cause(90)
def stopped(case: Case) -> Cause | None:
    """Report that the run was paused or cancelled, failed, or has had no event for minutes and nobody is
    known to execute it: what is executed may be slow."""
    why = f": {case.reason.rstrip('.')}" if case.reason else " by hand"
    idle = case.here.get("idle_s", 0.0)
    go_on = case.go_on()
    evidence = (Observation("its last event", event=case.last),)
    match case.status:
        case "paused":
            return Cause("stopped", case.iteration, f"the run was paused{why}", evidence, go_on, event=case.last)
        case "cancelled":
            return Cause("stopped", case.iteration, f"the run was cancelled{why}", evidence, event=case.last)
        case "failed":
            return Cause("stopped", case.iteration, f"the run failed{why}", evidence, go_on, event=case.last)
        case "running" if case.here.get("carried") is False:
            conclusion = "the run is stopped: no process executes it"
            return Cause("stopped", case.iteration, conclusion, evidence, go_on, event=case.last)
        case "running" if idle >= IDLE_S and not case.here.get("carried"):
            conclusion = f"nobody seems to carry the run: its last event is {idle / 60:,.0f} minutes old"
            return Cause("stopped", case.iteration, conclusion, evidence, go_on, event=case.last)
    return None
