"""The roles of processes, the handlers of each, and whether the log's user may do their work."""

from collections.abc import Iterable, Sequence

from agent0.errors import AuthError
from agent0.infra.log.connection import connect
from agent0.infra.log.event_log import Log
from agent0.infra.log.streams import EVENTS
from agent0.infra.log.users.rights import BUS_EVENTS, EVENTS_OF

ROLES: dict[str, tuple[str, ...]] = {
    "conductor": (
        "advance_run",
        "raise_alarm",
        "measure_iteration",
        "guard_run",
        "fail_run",
        "watch_budget",
        "watch_training",
    ),
    "teacher": ("propose_task",),
    "student": ("attempt_task", "continue_attempt", "solve_submission", "evaluate_checkpoint", "evaluate_item"),
    "verifier": (
        "screen_task",
        "verify_result",
        "settle_review",
        "assign_reward",
        "judge_checkpoint",
        "judge_teacher",
    ),
    "trainer": ("train_checkpoint", "measure_gain"),
}
"""Role of a process -> its handlers, each of which is in one. A plugin's handlers are in none: they are named.
The chart has them, too: `deploy/helm/agent0/files/handlers.yaml`."""
TAKE = f"$JS.API.CONSUMER.MSG.NEXT.{EVENTS}.rights"
"""Asks for the work of a handler that does not exist."""
_KINDS = {role: {*kinds, *BUS_EVENTS} for role, kinds in EVENTS_OF.items()}


def roles_of(handlers: Sequence[str]) -> list[str]:
    """The roles that ``handlers`` play whole, and the names of those that are left over."""
    whole = [role for role, names in ROLES.items() if set(names) <= set(handlers)]
    covered = {name for role in whole for name in ROLES[role]}
    return [*whole, *(name for name in handlers if name not in covered)]


async def require_rights(log: Log, handlers: Iterable[str]) -> None:
    """Have the server say whether this user may do the work of ``handlers``; nothing is stored by that. The embedded
    server's may.

    Raises:
        AuthError: it may not take work, or not append what a role of theirs makes: it has the key of another.
    """
    if log.server.folder:
        return
    kinds = set[str]().union(*_KINDS.values())
    link = await connect(log.server, "app", "agent0 rights")
    try:
        refused = await link.refused_of([TAKE, *map(_subject, sorted(kinds))], f"$JS.API.STREAM.INFO.{EVENTS}")
    finally:
        await link.close()
    may, chosen = {kind for kind in kinds if _subject(kind) not in refused}, set(handlers)
    asked = [role for role, names in ROLES.items() if chosen & set(names)]
    lacks = {role: sorted(_KINDS[role] - may) for role in asked if TAKE in refused or not _KINDS[role] <= may}
    if not lacks and TAKE not in refused and set(BUS_EVENTS) <= may:
        return
    own = _role_of(may, kinds, takes=TAKE not in refused)
    work = f"the work of {', '.join(lacks or chosen)}"
    what = f"The log's key is that of {own}, which does not do {work}." if own else f"The log's user may not do {work}."
    lacking = next(iter(lacks.values()), [])
    why = f"It may not append {lacking[0]}." if lacking else "It may not take what waits for a handler."
    if own in ROLES and len(asked) > 1:
        fix = f"Start a process a role, each with its key; with this one: agent0 handlers run --role {own}"
    else:
        folder = " or ".join(lacks) or "their role"
        fix = f"Give it the key of {folder}: AGENT0_NATS__CREDENTIALS and the rest of agent0.env in that folder."
    raise AuthError(what, why, fix)


def _subject(kind: str) -> str:
    return f"a0.ev.rights.-.-.{kind}"


def _role_of(may: set[str], kinds: set[str], *, takes: bool) -> str:
    """Whose key it is that ``may`` append these of all ``kinds``; empty where no role has those rights."""
    if not takes:
        return "api" if may == kinds else "" if may else "projector"
    return next((role for role, own in _KINDS.items() if may == own), "")
