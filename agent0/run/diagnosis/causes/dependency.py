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
        told = f"the log's server (NATS) is away: {away}"
        return Cause("dependency", case.iteration, told, (), go_on, "Start it, or correct nats.url.", event=case.last)
    waits = [one for one in case.waits if not BUDGET.fullmatch(one.dependency)]
    if not waits or (case.status == "failed" and case.ended != "dependency"):
        return None
    names = ", ".join(sorted({one.dependency for one in waits}))
    who = ", ".join(sorted({name for one in waits for name in one.waiting}))
    said = waits[0].message.removeprefix(f"{waits[0].dependency} is not available. ").rstrip(".")
    told = f"{names} is away, and {who} waits for it: {said}"
    if len(roles := _roles(case)) == 1:
        told = told.replace("<role>", roles[0])
    if named := [key for role in roles if (key := f"run.{role}.base_url") not in told]:
        told += f" ({' and '.join(named)})"
    if case.ended == "dependency":
        told = f"{told}; the run failed after waiting for run.give_up_after"
    seen = tuple(Observation(f"since {one.since[:19]}: {one.message}", event=one.event) for one in waits)
    blamed = case.changed("run.student.provider", "run.student.model", "run.student.base_url", "run.teacher.provider",
                          "run.teacher.model", "run.teacher.base_url")  # fmt: skip
    return Cause("dependency", case.iteration, told, seen, go_on, "It goes on by itself once that is back.",
                 settings=blamed, event=waits[0].event)  # fmt: skip


def _roles(case: Case) -> list[str]:
    """The roles whose model server is waited for: those whose address it says, or whose handlers wait for a server."""
    said = " ".join(one.message for one in case.waits)
    actors = {"student": case.config.student, "teacher": case.config.teacher}
    roots = {role: actor.base_url.rstrip("/").removesuffix("/v1") for role, actor in actors.items()}
    named = [role for role, root in roots.items() if root and root in said]
    waiting = {name for one in case.waits for name in one.waiting}
    asked = [role for role in named if waiting & ASKED_BY[role]]
    return asked or named
