"""Runs broken on purpose, each in a way of its own, and what is to be said of it: ``WAYS``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent0.events.alarms import DependencyLost, ReactionTried
from agent0.events.base import Event, Recorded, record
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained
from agent0.events.runs import IterationMeasured, RunPaused, RunStarted
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.handlers import Handler, handlers
from agent0.infra.models.sampler import Sampler
from agent0.infra.models.scripted import END, Scripted, ScriptedTrainer, encode
from agent0.ports.models import GenerateRequest, Generation
from agent0.run.lifecycle import RunState
from agent0.settings import RunConfig
from tests.memory import MemoryArtifacts
from tests.play import finished, play
from tests.story import whole_run
from tests.test_climb import ByRole, little
from tests.test_ladder_faults import Reverser
from tests.test_run import failing, played
from tests.world import NOON, KnowingSandbox, Opened, TellingModel, ports, small, started

LONG = {"iterations": 3, "tasks": 8, "max_untrained": 0}


Alter = Callable[[GenerateRequest, Generation], Generation]


class Altered:
    """The scripted model, whose generations are altered."""

    name = "scripted"

    def __init__(self, inner: Any, alter: Alter) -> None:
        self._inner, self._alter = inner, alter

    async def generate(self, request: GenerateRequest) -> Generation:
        return self._alter(request, await self._inner.generate(request))

    async def close(self) -> None:
        pass


def saying(text: str, since_trained: bool = False) -> Alter:
    """Writes nothing but ``text``, where so asked only once it has an adapter."""
    ids = (*encode(text), END)
    spoilt = {"text": text, "token_ids": ids, "logprobs": tuple(-0.5 for _ in ids), "ends": ()}
    return lambda request, said: said if since_trained and request.adapter is None else replace(said, **spoilt)


def altered(role: str, alter: Alter, config: RunConfig | None = None) -> list[Recorded]:
    """A run in which what ``role`` writes is altered."""
    artifacts, sandbox = MemoryArtifacts(), KnowingSandbox()
    model = TellingModel(Scripted(artifacts), sandbox)
    spoilt = Altered(model, alter)
    models = ByRole(spoilt, model) if role == "student" else ByRole(model, spoilt)
    held = {
        "artifacts": artifacts,
        "sandbox": sandbox,
        "models": models,
        "trainers": Opened(ScriptedTrainer(artifacts)),
    }
    return finished(play(started(config or small(max_untrained=0)), {**ports(), **held}))


def trained_badly(role: str) -> list[Recorded]:
    """A run whose ``role`` is ruined by its first training, at a learning rate that its profile does not have."""
    recipes: dict[str, Any] = {"student": {"minibatch": 4, "replay_steps": 2}, "teacher": {}}
    evaluation = {"validation": 12, "test": 0, "gate": "open"}
    config = small(**LONG, evaluation=evaluation, training=recipes | {role: {**recipes[role], "lr": 3.0}})
    return altered(role, saying("7" * 40, since_trained=True), config)


def judged(how: Callable[[ResultVerified], ResultVerified]) -> dict[str, Handler]:
    """All handlers; what the verifier says is changed by ``how``."""
    known = handlers()
    real = known["verify_result"]

    class Judge(Handler):
        async def __call__(self, cause: Recorded, run: RunState, ports: Mapping[str, Any]) -> list[Event]:
            effects = await real(cause, run, ports)
            return [how(effect) if isinstance(effect, ResultVerified) else effect for effect in effects]

    return known | {"verify_result": Judge(**real.__dict__)}


def climbed(longest: int, **changes: Any) -> list[Recorded]:
    """A small climb of a student that reverses up to ``longest`` digits."""
    begin = started(little().model_copy(update=changes))
    begin = begin.model_copy(update={"event": begin.event.model_copy(update={"profile": "climb"})})
    return finished(play(begin, {**ports(), "models": ByRole(Reverser(longest), Sampler())}))


def then(*events: Event) -> list[Recorded]:
    """A sound run's first half, and what happened then."""
    begun = played()[:60]
    more = [record(e, run="r1", time=NOON, id=f"then-{n}", cause=begun[-1].id) for n, e in enumerate(events)]
    return [*begun, *(one.model_copy(update={"seq": 61 + n}) for n, one in enumerate(more))]


def majority() -> list[Recorded]:
    recipe = little().training.student.model_copy(update={"gate": "majority"})
    training = little().training.model_copy(update={"student": recipe})
    return climbed(4, training=training)


def empty(events: Sequence[Recorded]) -> list[Recorded]:
    """The run as if its evaluations had no item."""
    none = {"n": 0, "correct": 0, "accuracy": 0.0, "outcomes": ""}
    return [
        event.model_copy(update={"event": event.event.model_copy(update=none)})
        if isinstance(event.event, CheckpointEvaluated)
        else event
        for event in events
    ]


def scored_on_one(one: Recorded) -> Recorded:
    """Each evaluation as if one item was asked for, which nobody solved."""
    if isinstance(one.event, RunStarted):
        config = {**one.event.config, "evaluation": {"validation": 1}}
        return one.model_copy(update={"event": one.event.model_copy(update={"config": config})})
    if not isinstance(one.event, CheckpointEvaluated):
        return one
    told = {"n": 1, "accuracy": 0.0, "correct": 0, "outcomes": "0"}
    return one.model_copy(update={"event": one.event.model_copy(update=told)})


def measured(one: Recorded, metrics: dict[str, float]) -> Recorded:
    """The training as if it had come to ``metrics``."""
    if not isinstance(one.event, CheckpointTrained):
        return one
    return one.model_copy(update={"event": one.event.model_copy(update={"metrics": metrics})})


def scored(one: Recorded, lost: int = 8) -> Recorded:
    """Each evaluation as if the base had solved ``lost`` tasks more than any other."""
    if not isinstance(one.event, CheckpointEvaluated):
        return one
    right = 20 if one.event.iteration < 0 else 20 - lost
    told = {"accuracy": right / 30, "correct": right, "outcomes": "1" * right + "0" * (30 - right)}
    return one.model_copy(update={"event": one.event.model_copy(update=told)})


def shaped(one: Recorded, **measures: float) -> Recorded:
    """The run as if a language model had written its answers, and each iteration's measures had been these."""
    if isinstance(one.event, IterationMeasured):
        return one.model_copy(update={"event": one.event.model_copy(update={"measures": measures})})
    if not isinstance(one.event, RunStarted):
        return one
    student = {**one.event.config.get("student", {}), "provider": "transformers", "model": "some"}
    config = {**one.event.config, "student": student}
    return one.model_copy(update={"event": one.event.model_copy(update={"config": config, "profile": "other"})})


def doubted(one: Recorded) -> Recorded:
    """The run as if no attempt at any task had agreed with the teacher's program, and nothing had been gained."""
    one = scored(one, 0)
    if not isinstance(one.event, RewardAssigned) or one.event.role != "teacher":
        return one
    facts = {**one.event.facts, "doubt": "unanswerable"}
    return one.model_copy(update={"event": one.event.model_copy(update={"facts": facts})})


def lost(dependency: str, message: str) -> DependencyLost:
    return DependencyLost(dependency=dependency, waiting="attempt_task", message=message)


def retried(*outcomes: str, error: str = "ValueError") -> list[Recorded]:
    """A run in which the first attempt's verification was tried as ``outcomes`` say, and is tried again."""
    begun = played()
    at = next(n for n, one in enumerate(begun) if one.type == "TaskAttempted")
    cause = begun[at]
    made = (
        ReactionTried(cause_id=cause.id, cause_seq=cause.seq, cause_type=cause.type, tried_handler="verify_result",
                      outcome=outcome.split()[0], noted="noted" in outcome,
                      error=error and "ValueError", message=error and "no digits.")
        for outcome in outcomes
    )  # fmt: skip
    more = [record(one, run="r1", time=NOON, id=f"tried-{n}", cause=cause.id) for n, one in enumerate(made)]
    return [*begun[: at + 1], *(one.model_copy(update={"seq": at + 2 + n}) for n, one in enumerate(more))]


ENOSPC = "artifact store is not available. /data/artifacts/ab/cd: No space left on device."
WAYS: dict[str, tuple[Callable[[], list[Recorded]], dict[str, Any], str, str]] = {
    "learning rate of the teacher": (
        lambda: trained_badly("teacher"), {}, "broken_teacher",
        "the teacher's learning rate ruined teacher-0: 0 of 8 texts hold a task",
    ),
    "learning rate of the student": (
        lambda: trained_badly("student"), {}, "broken_student",
        "the student's learning rate ruined student-0: ",
    ),
    "temperature": (
        lambda: played(small(student={"temperature": 0})), {}, "sampling",
        "the student's temperature: at 4 of 4 tasks all attempts give the same answer",
    ),
    "screening": (
        lambda: played(small(curriculum={"embedder": "ngram", "similarity_limit": 1e-6}, max_untrained=0)), {},
        "refused", "screening is too strict: everything is refused as known",
    ),
    "tools": (
        lambda: played(small(student={"tools": ["sqlite_query"]})), {}, "tools",
        "the list of tools is wrong: ",
    ),
    "reward weighs nothing": (
        lambda: played(small(rewards={"weights": {"correctness": 0, "tool_use": 0, "subgoals": 0}})), {}, "untrainable",
        "the student's attempts cannot be trained on: 12 of them since they have no reward"
        " (run.rewards.weights.correctness is 0, in profile scripted 1",
    ),
    "reward pays for wrong answers": (
        lambda: played(small(tasks=12, rewards={"weights": {"correctness": -1}})), {}, "wrong_reward",
        "the reward correctness pays wrong answers more than right ones: 0 on average for",
    ),
    "training switched off": (
        lambda: played(small(training={"student": {"enabled": False}})), {}, "not_trained",
        "the student was not trained, though it made 27 attempts (run.training.student.enabled is false, in profile",
    ),
    "no tool call allowed": (
        lambda: played(small(student={"max_calls": 0})), {}, "tools",
        "too few tool calls are allowed: ",
    ),
    "model away": (
        lambda: then(lost("Ollama", "Ollama is not available. Nothing answers at http://127.0.0.1:11434.")), {},
        "dependency", "Ollama is away, and attempt_task waits for it: Nothing answers at http://127.0.0.1:11434",
    ),
    "budget used up": (
        lambda: then(lost("budget of day 2026-01-01", "… A call may cost $0.20; of $1.50, $1.40 are spent …")), {},
        "budget", "the budget of day 2026-01-01 is used up, and attempt_task waits for a higher cap",
    ),
    "disk": (lambda: then(lost("artifact store", ENOSPC)), {}, "disk", "the disk is full"),
    "disk, seen from here": (
        lambda: then(), {"disk_free": 1 << 20, "disk_least": 512 << 20}, "disk",
        "the disk is full: 1 MiB are free, a run needs 512",
    ),
    "log full": (
        lambda: then(), {"log_left": 8_309}, "disk", "the log is full: 8,309 bytes of nats.max_bytes are left",
    ),
    "NATS gone": (
        lambda: then(), {"log": "nats://x:4222 does not answer"}, "dependency",
        "the log's server (NATS) is away: nats://x:4222 does not answer",
    ),
    "student truncated": (
        lambda: played(small(student={"max_tokens": 2})), {}, "truncated",
        "12 of 12 attempts are truncated at their limit of tokens (run.student.max_tokens is 2, in profile scripted",
    ),
    "teacher truncated": (
        lambda: played(small(teacher={"max_tokens": 2})), {}, "truncated",
        "6 of 6 texts of the teacher are cut off at their limit of tokens (run.teacher.max_tokens is 2",
    ),
    "verifier undecided": (
        lambda: played(chosen=judged(lambda x: x.model_copy(update={"correct": None}))), {}, "verifier",
        "the verifier cannot decide: 12 of 12 verdicts are undecided",
    ),
    "verifier broken": (
        lambda: played(chosen=judged(lambda x: x.model_copy(update={"correct": False, "expected": x.got or "1"}))), {},
        "verifier", "the verifier is broken: ",
    ),
    "unreadable": (
        lambda: altered("teacher", saying("A task is a fine thing.")), {}, "unreadable",
        "the teacher's tasks are unreadable: 6 of 6 texts hold no task",
    ),
    "silent": (
        lambda: altered("student", saying("I had rather not say.")), {}, "silent",
        "the student gives no answer: 0 of 12 attempts end with one",
    ),
    "calls in another form": (
        lambda: altered("student", saying("```python\nprint(6 * 7)\n```")), {}, "replies_unread",
        "the student's tool calls are not read: so end ",
    ),
    "thoughts without an end": (
        lambda: altered("student", saying("<think>\nFirst, 6 * 7")), {}, "replies_unread",
        "the student's thoughts are never closed: so end ",
    ),
    "untrainable": (
        lambda: altered("student", lambda _, said: replace(said, logprobs=())), {}, "untrainable",
        "the student's attempts cannot be trained on: ",
    ),
    "diverged": (
        lambda: [measured(one, {"loss": 456.0}) for one in whole_run(incidents=False)], {}, "diverged",
        "the teacher's learning rate: the training of teacher-0 diverged, its loss is 456",
    ),
    "declined": (
        lambda: [scored(one) for one in whole_run(incidents=False)], {}, "decline",
        "the student got worse: validation 0.667 first, 0.400 last, 8 tasks lost and 0 gained",
    ),
    "given up": (
        lambda: played(small(tasks=4), failing("attempt_task", [2, 5])), {}, "given_up",
        "attempt_task was given up 2 times: Broken: by the test",
    ),
    "training given up": (
        lambda: played(small(), failing("train_checkpoint")), {}, "given_up",
        "train_checkpoint was given up 4 times: Broken: by the test",
    ),
    "handler fails again and again": (
        lambda: retried("failed", "failed", "failed"), {"carried": True}, "failing",
        "verify_result fails again and again, 3 times so far, on t0-000-a0: ValueError: no digits.",
    ),
    "process ends again and again": (
        lambda: retried("begun", "begun", error=""), {"carried": True}, "failing",
        "verify_result fails again and again, 2 times so far, on t0-000-a0: its process ended during it, each time.",
    ),
    "base solves all": (lambda: climbed(99), {}, "evaluation", "the base already solves all: 100% of validation"),
    "too hard": (lambda: climbed(0), {}, "contrast", "no contrast, so nothing to learn from: no attempt solves"),
    "evaluation empty": (lambda: empty(played()), {}, "evaluation", "the evaluation set is empty: base-validation has"),
    "evaluation of one item": (
        lambda: [scored_on_one(one) for one in whole_run(incidents=False)], {}, "few_items",
        "the validation set is too small: 1 item cannot tell one checkpoint from another (run.evaluation.validation is",
    ),
    "majority labels wrong": (majority, {}, "labels", "the majority's answers are labels, and 100% of them are wrong"),
    "band": (
        lambda: played(small(curriculum={"embedder": "ngram", "band": (0.98, 0.99)}, max_untrained=0)), {}, "contrast",
        "no contrast, so nothing to learn from: no task's solve rate is inside the learnable band",
    ),
    "a user's function does not come back": (
        lambda: then(),
        {"carried": True, "user_code": {"place": "reward r of plugin r.py, line 6", "seconds": 25.0, "ended": False}},
        "unreturned", "reward r of plugin r.py, line 6, does not come back: the run stands still there, for 25 s",
    ),
    "paused": (lambda: then(RunPaused(reason="lunch")), {}, "stopped", "the run was paused: lunch"),
    "killed": (lambda: then(), {"carried": False, "idle_s": 1.0}, "stopped", "the run is stopped: no process"),
    "flat": (
        lambda: [scored(one, 0) for one in whole_run(incidents=False)], {}, "decline",
        "nothing was learned: validation 0.667 first, 0.667 last",
    ),
    "a little lower": (
        lambda: [scored(one, 2) for one in whole_run(incidents=False)], {}, "decline",
        "the student is no better than at first: validation 0.667 first, 0.600 last",
    ),
    "programs that answer other questions": (
        lambda: [doubted(one) for one in whole_run(incidents=False)], {}, "doubted",
        "attempts contradict the teacher's own answers at ",
    ),
    "form": (
        lambda: [
            shaped(scored(one, 0), tokens_right=61, tokens_answered=98) for one in whole_run(incidents=False)
        ], {}, "form_learned",
        "choosing by verdict changed the form of what was learned: right attempts have 61 tokens for 98 of all",
    ),
    "nobody carries it": (lambda: then(), {"idle_s": 3600.0}, "stopped", "nobody seems to carry the run"),
}  # fmt: skip
