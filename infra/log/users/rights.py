"""What each user of the log's server may do, as subjects: of the embedded server's three, and of one user for each role
of a process where hosts share a server.

A role appends the kinds of events that its handlers make and no other: who has taken a student's host cannot reward
its attempts. Nobody but the administrator changes or empties a stream.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

READER_NAMES = tuple(f"reader-{n:02}" for n in range(32))
"""Names that consumers of the role reader have, on each stream."""

_READ = (
    *(f"$JS.API.{what}" for what in ("INFO", "STREAM.INFO.*", "STREAM.NAMES", "STREAM.LIST", "STREAM.MSG.GET.*")),
    *(f"$JS.API.{what}" for what in ("DIRECT.GET.>", "CONSUMER.INFO.>", "CONSUMER.NAMES.*", "CONSUMER.LIST.*")),
)
_NAMED = tuple(f"$JS.API.CONSUMER.{verb}.*.{name}" for name in READER_NAMES for verb in ("CREATE", "DELETE"))
# Who may make a consumer under any name may change or end a handler's durable, so readers have names of their own. Who
# may ask for the next message of one consumer may ask for that of any, and takes it from a handler: readers are sent
# theirs.
_WORK = ("$JS.ACK.>", "$JS.API.CONSUMER.MSG.NEXT.>", "$JS.API.CONSUMER.CREATE.*", "$JS.API.CONSUMER.CREATE.A0_EV.*")
_INBOXES = ("_INBOX.>", "a0.live.>")
_ASK = ("a0.live.processes",)
_ARTIFACTS = ("a0.art.*.*",)
_ANY_EVENT = ("a0.ev.>",)

BUS_EVENTS = ("DependencyLost", "DependencyRestored", "LogSealed", "ReactionFailed", "ReactionTried")
"""What the bus itself appends in a process of any role."""
_MODELS = ("BatchEnded", "BatchSubmitted", "BudgetChanged", "CallRouted", "ModelCalled")
EVENTS_OF: Mapping[str, tuple[str, ...]] = {
    "conductor": (
        *("AlarmRaised", "AlarmResolved", "AttemptRequested", "CheckpointRolledBack", "EvaluationRequested"),
        *("GainRequested", "IterationMeasured", "ReactionDropped", "RunFailed", "RunFinished", "RunPaused"),
        *("TaskRequested", "TrainingRequested"),
    ),
    "teacher": ("TaskProposed", *_MODELS),
    "student": (
        *("CheckpointEvaluated", "EvaluationItemRequested", "EvaluationItemScored", "TaskAttempted", "ToolCalled"),
        *("TurnCompleted", *_MODELS),
    ),
    "verifier": (
        *("BenchmarksIndexed", "CheckpointPromoted", "CheckpointRejected", "ResultVerified", "RewardAssigned"),
        *("TaskAccepted", "TaskRejected", "TeacherJudged", *_MODELS),
    ),
    "trainer": (
        "CheckpointTrained",
        "DatasetSelected",
        "ProbeSelected",
        "SubsetMeasured",
        "TrainingMeasured",
        *_MODELS,
    ),
}
"""Role of a worker -> events that its handlers make. What the bus itself appends comes to that."""
_SUBMITTED = ("a0.ev.*.t0.t0-a0.ResultVerified", "a0.ev.*.t0.t0-a0.TaskSubmitted")
"""The verdict of a task that a person submitted, and its next turn: the handler that attempts it makes both."""


@dataclass(frozen=True)
class Rights:
    """Subjects that a user may publish to and subscribe to. ``answers``: it may answer those who ask it."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = _INBOXES
    answers: bool = False

    def config(self) -> str:
        """The server's words for these rights."""
        lists = (", ".join(f'"{subject}"' for subject in subjects) for subjects in (self.publish, self.subscribe))
        publish, subscribe = lists
        answers = ', allow_responses: { max: 1, expires: "1m" }' if self.answers else ""
        return f"{{ publish: {{ allow: [{publish}] }}, subscribe: {{ allow: [{subscribe}] }}{answers} }}"


APP = Rights(("a0.>", "_INBOX.>", *_WORK, *_NAMED, *_READ))
READER = Rights(("$JS.FC.>", *_NAMED, *_READ))


def _worker(role: str, kinds: Iterable[str]) -> Rights:
    events = tuple(f"a0.ev.*.*.*.{kind}" for kind in sorted({*kinds, *BUS_EVENTS}))
    more = (*(_ARTIFACTS if role != "conductor" else ()), *(_SUBMITTED if role == "student" else ()))
    return Rights((*events, *more, *_ASK, *_WORK, *_NAMED, *_READ), answers=True)


ROLES: Mapping[str, Rights | None] = {
    "admin": None,
    **{role: _worker(role, kinds) for role, kinds in EVENTS_OF.items()},
    "projector": Rights((*READER.publish, *_ASK)),
    "api": Rights((*_ANY_EVENT, *_ARTIFACTS, *_ASK, "$JS.FC.>", *_NAMED, *_READ)),
}
"""User of a shared server -> what it may do; None: everything. ``api`` is the server of pages and HTTP, and every
person at a command line: it appends what people decide, takes no work from a handler, and deletes nothing."""


def users(keys: Mapping[str, Iterable[str]]) -> str:
    """The account of the log in the server's words: each role with its public keys."""
    lines = []
    for role, public in keys.items():
        rights = ROLES[role]
        permissions = f", permissions: {rights.config()}" if rights else ""
        lines += [f"  # {role}", *(f"  {{ nkey: {key}{permissions} }}" for key in public)]
    return "\n".join(["accounts { A0 { jetstream: enabled, users: [", *lines, "] } }", ""])


def keys_of(accounts: str) -> Mapping[str, Sequence[str]]:
    """Role -> its public keys, of what ``users`` made."""
    roles = re.findall(r"^  # (\w+)\n((?:  \{ nkey: .*\n)*)", accounts, re.MULTILINE)
    return {role: re.findall(r"nkey: (\w+)", lines) for role, lines in roles}
