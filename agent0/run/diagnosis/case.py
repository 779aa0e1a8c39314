"""What a diagnosis looks at, and what it comes to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Literal

from agent0.run.diagnosis.local_state import LocalState
from agent0.run.diagnosis.replies import FailedReplies
from agent0.run.diagnosis.set_flags import set_flags, short, with_settings
from agent0.settings import RunConfig

PLUGINS, WEIGHTS = "run.plugins.", "run.rewards.weights."
CALLING = ("timeout_s", "parallel", "price", "key_env", "device")
"""How a model is called, waited for and paid: of an effect only where calls failed."""
LIMITS = {
    "max_tokens": ("length",),
    "max_turns": ("turn_limit",),
    "max_calls": ("budget",),
    "long_factor": ("turn_limit", "budget"),
    "tool_seconds": ("budget",),
}
"""A limit of ``run.student`` -> how attempts ended that ran into it; of ``OF_CALLS`` refused calls tell, too."""
MODELS = ("run.student.provider", "run.student.model", "run.student.base_url")
"""Which model the student is: not to blame where most of its replies fail by what settings mend."""
WHICH = ("provider", "model", "base_url", "key_env", "tokenizer")
"""Settings of a role that name its model together."""
OF_CALLS = ("max_calls", "long_factor", "tool_seconds")
NEVER = -1
"""Iteration of what came before the first."""


@dataclass(frozen=True)
class Setting:
    """A setting of the run that differs: ``other`` is its value in ``source`` (a profile, or a run that went well)."""

    key: str
    value: Any
    other: Any
    source: str

    def __str__(self) -> str:
        if self.key.startswith(PLUGINS):
            name = self.key.removeprefix(PLUGINS)
            return f"plugin {name} ({str(self.value)[:12]}) is loaded, in {self.source} {_plugin(self.other)}"
        return f"{self.key} is {_value_text(self.value)}, in {self.source} {_value_text(self.other)}"


@dataclass(frozen=True)
class Observation:
    """Something that shows the cause: what was seen, and where (task, attempt, checkpoint, event sequence; empty or 0:
    nowhere in particular). ``wrote`` is what a model wrote there."""

    text: str
    task: str = ""
    attempt: str = ""
    checkpoint: str = ""
    event: int = 0
    wrote: str = ""


@dataclass(frozen=True)
class Cause:
    """Why a run went badly.

    ``conclusion`` is one sentence without its point that names the cause. ``fatal``: it ended the run, or nothing was
    learned. ``mend`` is the command that mends it, ``advice`` what to know before it is run. ``settings`` are those to
    blame.
    """

    name: str
    iteration: int
    conclusion: str
    observations: tuple[Observation, ...] = ()
    mend: str = ""
    advice: str = ""
    fatal: bool = True
    settings: tuple[Setting, ...] = ()
    checkpoint: str = ""
    event: int = 0
    """Sequence of the event at which it began; 0: unknown."""
    explained: bool = False
    """Whether ``settings`` bring about what was seen by themselves, so that no other cause is needed."""


@dataclass(frozen=True)
class Iteration:
    """The tasks and attempts of an iteration, counted. ``refused`` is by reason, ``ends`` by how attempts ended,
    ``calls`` by how tool calls ended (``unknown`` where there is no such tool).

    ``all_right``, ``all_wrong`` and ``mixed`` count tasks whose attempts all have a verdict; ``alike`` those of
    ``repeated`` whose answers are all the same.
    """

    number: int
    teacher: str = "base"
    student: str = "base"
    tasks: int = 0
    accepted: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    doubted: Mapping[str, int] = field(default_factory=dict)
    """Accepted tasks whose own answer is in doubt, by reason."""
    cut_off: int = 0
    """Texts of the teacher that ended at its limit of tokens."""
    attempts: int = 0
    ends: Mapping[str, int] = field(default_factory=dict)
    unread: int = 0
    """Attempts in which a call could not be read."""
    answered: int = 0
    right: int = 0
    wrong: int = 0
    undecided: int = 0
    misjudged: int = 0
    """Answers called wrong that are the expected text."""
    overrated: int = 0
    """Answers that a plugin's verifier called right and that are wrong by their task's family."""
    foreign: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Verifier that is not of Agent0 itself, a plugin's -> attempts that it called right, and wrong."""
    given_up: int = 0
    all_right: int = 0
    all_wrong: int = 0
    mixed: int = 0
    repeated: int = 0
    alike: int = 0
    calls: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    """Tools that were called and that the student does not have."""
    measures: Mapping[str, float] = field(default_factory=dict)
    examples: Mapping[str, Observation] = field(default_factory=dict)
    """A task or attempt that shows it, by reason of a refusal, end of an attempt, or end of a tool call."""

    def observations_of(self, *names: str) -> tuple[Observation, ...]:
        """Return the examples of these names, as far as there are any."""
        return tuple(self.examples[name] for name in names if name in self.examples)

    @property
    def screened(self) -> int:
        """Tasks that were accepted or refused."""
        return self.accepted + sum(self.refused.values())

    @property
    def unreadable(self) -> int:
        """Texts of the teacher that hold no task."""
        return self.refused.get("malformed", 0)

    @property
    def repeats(self) -> int:
        """Tasks refused since they, or much the same, were there before."""
        return self.refused.get("duplicate", 0) + self.refused.get("similar", 0)

    def reached(self, limit: str) -> bool:
        """Whether an attempt ran into ``limit``, one of ``LIMITS``."""
        refused = limit in OF_CALLS and bool(self.calls.get("refused"))
        return refused or any(self.ends.get(end) for end in LIMITS[limit])

    @property
    def decided(self) -> int:
        """Attempts with a verdict."""
        return self.right + self.wrong


@dataclass(frozen=True)
class Training:
    """One training: what it was given, what it came to. ``requested`` is the sequence of its request."""

    checkpoint: str
    role: Literal["teacher", "student"]
    iteration: int
    parent: str
    status: str
    samples: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    requested: int = 0

    def observations(self) -> tuple[Observation, ...]:
        """Its loss and what the gate said of its checkpoint, as far as they are recorded."""
        loss = f"loss {self.metrics['loss']:.3g} in its training" if "loss" in self.metrics else ""
        return tuple(Observation(t, "", "", self.checkpoint, self.requested) for t in (loss, self.reason) if t)


@dataclass(frozen=True)
class HeldOutScore:
    """A checkpoint's score on held-out tasks, or the request for one that is not done."""

    evaluation: str
    checkpoint: str
    iteration: int
    split: str
    done: bool
    n: int = 0
    accuracy: float | None = None
    undecided: int = 0
    outcomes: str = ""
    event: int = 0


@dataclass(frozen=True)
class Wait:
    """Something that handlers wait for, or waited for until the run failed."""

    dependency: str
    waiting: tuple[str, ...]
    message: str
    since: str = ""
    event: int = 0


@dataclass(frozen=True)
class PartMeans:
    """What a part of the student's reward is worth (value times weight) on average over right and over wrong attempts,
    and their whole rewards. ``file``: the user's file that declares it; empty for a part of Agent0's own."""

    part: str
    file: str
    right: float
    wrong: float
    total_right: float
    total_wrong: float
    attempts: tuple[int, int]
    """Right ones, and wrong ones."""
    iteration: int = 0
    attempt: str = ""
    """A wrong one that it rewards, told by ``event``."""
    event: int = 0


@dataclass(frozen=True)
class Loss:
    """Reactions that were given up for one reason: how many, and the first of them."""

    handler: str
    error: str
    message: str
    count: int
    task: str = ""
    attempt: str = ""
    event: int = 0
    failure: str = ""
    waits: bool = False
    iteration: int = NEVER
    """The one in which the first of them was requested."""


@dataclass(frozen=True)
class Retry:
    """Reactions of a handler whose last try failed and that are tried again: tries that failed, and what they are on.

    ``most``: tries of the reaction that failed most often. ``cause``: type of the event that the first one reacts to,
    ``event`` the sequence of its last try. ``error`` is empty where the process ended during the reaction.
    """

    handler: str
    error: str
    message: str
    tries: int
    reactions: int
    most: int
    cause: str
    task: str = ""
    attempt: str = ""
    event: int = 0
    events: tuple[int, ...] = ()
    """Sequences of the tries, in order."""


@dataclass(frozen=True)
class Case:
    """What is known of a run, and ``here``: of the machine."""

    run: str
    profile: str
    status: str
    config: RunConfig
    started: int = 1
    """Sequence of its first event."""
    last: int = 1
    reason: str = ""
    """Why it failed, was paused or was cancelled."""
    changes: tuple[Setting, ...] = ()
    iterations: tuple[Iteration, ...] = ()
    trainings: tuple[Training, ...] = ()
    scores: tuple[HeldOutScore, ...] = ()
    part_means: tuple[PartMeans, ...] = ()
    """Parts of the student's reward that are of a user's file, or weigh less than nothing."""
    waits: tuple[Wait, ...] = ()
    losses: tuple[Loss, ...] = ()
    retries: tuple[Retry, ...] = ()
    """Of a run that is not over, by handler, the one that failed most often first."""
    replies: FailedReplies | None = None
    """How the items of its newest validation failed."""
    open_work: tuple[str, ...] = ()
    """What it has asked for and does not have yet, in words with the time; of a running run."""
    ended: str = ""
    """``cause_kind`` of its failure."""
    iteration: int = NEVER
    """The one it is in, or ended in."""
    here: LocalState = field(default_factory=LocalState)

    def changed(self, *beginnings: str) -> tuple[Setting, ...]:
        """Settings that differ, can have caused something, and begin as the first of ``beginnings`` does for which
        there are any."""
        relevant = [setting for setting in self.changes if self._could_matter(setting)]
        matching = (tuple(setting for setting in relevant if setting.key.startswith(begin)) for begin in beginnings)
        return next((settings for settings in matching if settings), ())

    def _could_matter(self, setting: Setting) -> bool:
        """Whether a setting can have caused anything: not a limit that nothing ran into, nor a wait that nobody had."""
        role, _, name = setting.key.removeprefix("run.").rpartition(".")
        if name in CALLING and role in ("student", "teacher", "verification.judge"):
            return bool(self.waits or self.losses or self.retries)
        if setting.key in MODELS and self.replies and self.replies.mended_by_settings:
            return False
        if setting.key == "run.teacher.max_tokens":
            return any(it.cut_off for it in self.iterations)
        if role == "student" and name in LIMITS:
            without_tools = name == "max_calls" and not setting.value  # then it is not shown any
            return without_tools or any(it.reached(name) for it in self.iterations)
        return True

    def value(self, key: str) -> Any:
        """The run's own value of a setting, by dotted key."""
        value: Any = self.config
        for part in key.removeprefix("run.").split("."):
            value = getattr(value, part)
        return value

    def validations(self) -> Iterator[HeldOutScore]:
        """Scores on validation tasks, in order."""
        return (score for score in self.scores if score.split == "validation" and score.done)

    def trained(self, role: str, before: int) -> Iterator[Training]:
        """Trainings of a role that made a checkpoint before an iteration began, the newest first."""
        trained = [t for t in self.trainings if t.role == role and t.iteration < before and t.samples]
        return reversed(trained)

    def recovered(self, iteration: int) -> bool:
        """Whether something was trained on after ``iteration``, and the run did not stop for good."""
        done = (t for t in self.trainings if t.role == "student" and t.status != "requested")
        later = [training for training in done if training.iteration >= iteration]
        return self.status in ("running", "finished") and bool(later) and bool(later[-1].samples)

    def again(self, settings: tuple[Setting, ...] = (), at: int = 0, values: Mapping[str, object] | None = None) -> str:
        """The command that runs it again from event ``at`` (0: its start) with ``settings`` as they are elsewhere, and
        with ``values`` by dotted key; empty where it has all of them, or they are none that a run may have."""
        usual = {s.key: 0 if s.other is None and s.key.startswith(WEIGHTS) else s.other for s in self._whole(settings)}
        usual = {key: other for key, other in usual.items() if not key.startswith(PLUGINS)}
        others = {k: v for k, v in (values or {}).items() if with_settings(self.config, {k: v}) != self.config}
        sets = set_flags(self.config, usual | others)
        if not sets and (settings or values):
            return ""
        return f"agent0 run fork {self.run} --at {at or self.started} {sets}".rstrip() + self._plugins()

    def _whole(self, settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
        """``settings``, and where they say which model plays a role, or that it is trained, all that differs of that:
        a name is one of its server alone."""
        keys = {setting.key for setting in settings}
        for role in ("teacher", "student"):
            model = {f"run.{role}.{name}" for name in WHICH}
            differs = any(setting.key == f"run.{role}.provider" for setting in self.changes)
            if keys & model or (differs and f"run.training.{role}.enabled" in keys):
                keys |= model
        return settings + tuple(s for s in self.changes if s.key in keys and s not in settings)

    def go_on(self) -> str:
        """The command that goes on with it as it is."""
        return f"agent0 run resume {self.run}{self._plugins()}"

    def _plugins(self) -> str:
        """The files that the run was given, which are recorded without their folders; those of ``here`` with them."""
        paths, plugins = self.here.get("plugins") or {}, self.config.plugins
        return "".join(f" --plugin {quote(paths.get(sha, f'PATH/{name}.py'))}" for name, sha in plugins.items())


def _plugin(digest: Any) -> str:
    return f"another version ({str(digest)[:12]})" if digest else "not"


def _value_text(value: Any) -> str:
    return "not set" if value is None else short(value) or "empty"


def blamed(case: Case, settings: tuple[Setting, ...], *keys: str) -> str:
    """Say which settings are to blame: two of those that differ, who is asked first; else what ``keys`` are set to."""
    if settings:
        first = sorted(settings, key=lambda setting: not setting.key.endswith(".provider"))
        return "; ".join(str(setting) for setting in first[:2])
    return "; ".join(f"{key} is {short(case.value(key))}" for key in keys)


def of(part: int, whole: int) -> str:
    """Write a part of a whole as people do: 3 of 16."""
    return f"{part:,} of {whole:,}"
