"""What the run needs is away: a model server, a sandbox, the log's own server."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation
from agent0.run.diagnosis.causes.budget import BUDGET

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
    roots = {role: actor.base_url.rstrip("/").removesuffix("/v1") for role, actor in actors.items()}
    named = [role for role, root in roots.items() if root and root in messages]
    waiting = {name for wait in case.waits for name in wait.waiting}
    roles = [role for role in named if waiting & ASKED_BY[role]]
    return roles or named
