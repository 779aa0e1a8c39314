"""Runs broken on purpose: the first line says why, whatever it was, and a sound run is not accused."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.config.loading import fields
from agent0.ports.models import GenerateRequest, Generation
from agent0.report.diagnosis.findings import diagnosis, observation_lines, why_lines
from agent0.run.diagnosis import diagnose, registered_causes
from agent0.run.diagnosis.case import Case, Held, Iteration, Setting, Training
from agent0.run.lifecycle import RunState
from agent0.settings import RunConfig
from events.alarms import DependencyLost, DependencyRestored
from events.base import Event, Recorded, record
from events.checkpoints import CheckpointEvaluated, CheckpointTrained
from events.runs import RunPaused
from events.tasks import ResultVerified
from handlers import Handler, handlers
from infra.models.sampler import Sampler
from infra.models.scripted import END, Scripted, ScriptedTrainer, encode
from tests.memory import MemoryArtifacts
from tests.play import finished, play
from tests.story import whole_run
from tests.test_climb import ByRole, little
from tests.test_ladder_faults import Reverser
from tests.test_report import told
from tests.test_run import failing, played
from tests.world import NOON, KnowingSandbox, Opened, TellingModel, ports, small, started

LONG = {"iterations": 3, "tasks": 8, "max_untrained": 0}


def why(events: Sequence[Recorded], here: Mapping[str, Any] | None = None) -> dict[str, Any]:
    with closing(told([*events])) as db:
        return diagnosis(db, "r1", here)


# --- what breaks a run


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
            return [how(one) if isinstance(one, ResultVerified) else one for one in effects]

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
    recipe = little().training.student.model_copy(update={"verdicts": "majority"})
    training = little().training.model_copy(update={"student": recipe})
    return climbed(4, training=training)


def empty(events: Sequence[Recorded]) -> list[Recorded]:
    """The run as if its evaluations had no item."""
    none = {"n": 0, "correct": 0, "accuracy": 0.0, "outcomes": ""}
    return [
        one.model_copy(update={"event": one.event.model_copy(update=none)})
        if isinstance(one.event, CheckpointEvaluated)
        else one
        for one in events
    ]


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


def lost(dependency: str, message: str) -> DependencyLost:
    return DependencyLost(dependency=dependency, waiting="attempt_task", message=message)


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
    "model away": (
        lambda: then(lost("Ollama", "Ollama is not available. Nothing answers at http://127.0.0.1:11434.")), {},
        "dependency", "Ollama is away, and attempt_task waits for it: Nothing answers at http://127.0.0.1:11434",
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
    "base solves all": (lambda: climbed(99), {}, "evaluation", "the base already solves all: 100% of validation"),
    "too hard": (lambda: climbed(0), {}, "contrast", "no contrast, so nothing to learn from: no attempt solves"),
    "evaluation empty": (lambda: empty(played()), {}, "evaluation", "the evaluation set is empty: base-validation has"),
    "majority labels wrong": (majority, {}, "labels", "the majority's answers are labels, and 100% of them are wrong"),
    "band": (
        lambda: played(small(curriculum={"embedder": "ngram", "band": (0.98, 0.99)}, max_untrained=0)), {}, "contrast",
        "no contrast, so nothing to learn from: no task's solve rate is inside the learnable band",
    ),
    "paused": (lambda: then(RunPaused(reason="lunch")), {}, "stopped", "the run was paused: lunch"),
    "killed": (lambda: then(), {"carried": False, "idle_s": 1.0}, "stopped", "the run is stopped: no process"),
    "flat": (
        lambda: [scored(one, 0) for one in whole_run(incidents=False)], {}, "decline",
        "nothing was learned: validation 0.667 first, 0.667 last",
    ),
    "nobody carries it": (lambda: then(), {"idle_s": 3600.0}, "stopped", "nobody seems to carry the run"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_the_first_line_names_the_cause(way: str) -> None:
    broken, here, name, line = WAYS[way]
    found = why(broken(), here)
    assert why_lines(found)[0].startswith(f"r1: {line}"), why_lines(found)
    assert found["cause"] == name and not found["well"]
    assert len(why_lines(found)) <= 3
    assert found["mend"].startswith(("agent0 ", "AGENT0_"))


SOUND: dict[str, Callable[[], list[Recorded]]] = {
    "scripted": played,
    "told": lambda: whole_run(incidents=False),
    "told, with incidents that passed": whole_run,
    "after a wait": lambda: then(
        lost("Ollama", "away"), DependencyRestored(dependency="Ollama", waiting="attempt_task")
    ),
}


@pytest.mark.parametrize("run", SOUND)
def test_a_sound_run_is_not_accused(run: str) -> None:
    found = why(SOUND[run](), {"disk_free": 1 << 40, "disk_least": 1 << 29, "log_left": 1 << 33, "idle_s": 9.0})
    assert found["well"], found["conclusion"]
    assert why_lines(found) == [found["conclusion"]]
    assert found["evidence"] == [] and found["mend"] == ""


def test_every_cause_has_a_run_that_is_broken_by_it() -> None:
    tried = {name for _, _, name, _ in WAYS.values()}
    assert set(registered_causes()) - tried == {"sandbox"}  # it needs a real one: tests/test_why_cli.py
    ranks = [rank for rank, _ in registered_causes().values()]
    assert ranks == sorted(ranks) and len(set(ranks)) == len(ranks)


RUN = RunConfig()
FEW = st.integers(0, 9)
COUNTS = dict.fromkeys(("accepted", "cut_off", "attempts", "answered", "right", "wrong", "undecided"), FEW)
MORE = dict.fromkeys(("misjudged", "all_right", "all_wrong", "mixed", "repeated", "alike", "given_up"), FEW)
KINDS = st.dictionaries(st.sampled_from(["malformed", "similar", "ok", "unknown", "timeout", "length"]), FEW)
PARTS = st.fixed_dictionaries({**COUNTS, **MORE, "refused": KINDS, "calls": KINDS, "ends": KINDS})
SCORES = st.builds(Held, st.just("e"), st.just("student-0"), FEW, st.just("validation"), st.booleans(), FEW,
                   st.none() | st.floats(0, 1))  # fmt: skip
TRAININGS = st.builds(
    Training,
    checkpoint=st.sampled_from(["student-0", "teacher-0"]),
    role=st.sampled_from(["student", "teacher"]),
    iteration=FEW,
    parent=st.just("base"),
    status=st.sampled_from(["requested", "unchanged", "promoted", "rejected"]),
    samples=FEW,
    skipped=st.dictionaries(st.text(max_size=3) | st.just("off_frontier"), FEW),
    metrics=st.dictionaries(st.sampled_from(["loss", "skipped", "steps"]), st.floats()),
)


@given(
    st.lists(PARTS, max_size=4),
    st.lists(TRAININGS, max_size=4),
    st.lists(SCORES, max_size=3),
    st.sampled_from(["running", "paused", "failed", "finished", "cancelled"]),
)
def test_a_diagnosis_is_total(
    parts: list[dict[str, Any]], trainings: list[Training], scores: list[Held], status: str
) -> None:
    """Whatever a run came to: nothing is raised, and every cause has a sentence and fits the order."""
    counted = tuple(Iteration(number=n, **one) for n, one in enumerate(parts))
    case = Case("r1", "tiny", status, RUN, iterations=counted, trainings=tuple(trainings), scores=tuple(scores))
    found = diagnose(case)
    assert all(one.conclusion and not one.conclusion.endswith(".") for one in found)
    first = [one.fatal or one.explained for one in found]
    assert first == sorted(first, reverse=True)
    assert bool(found) or status in ("running", "finished")


def test_evidence_names_task_and_event_and_says_what_was_written() -> None:
    found = why(trained_badly("teacher"))
    loss, refused = found["evidence"][0], found["evidence"][-1]
    assert loss["checkpoint"] == "teacher-0" and loss["event"] == found["step"]["event"]
    assert refused["task"] == "t1-000" and refused["wrote"].startswith("7777")
    assert observation_lines([refused])[0].startswith("t1-000: refused as malformed: ")
    assert found["step"] == {"iteration": 0, "checkpoint": "teacher-0", "event": loss["event"]}


def test_the_setting_that_is_to_blame_is_set_back_from_just_before_the_bad_step() -> None:
    found = why(trained_badly("student"))
    words = shlex.split(found["mend"])
    assert words[:5] == ["agent0", "run", "fork", "r1", "--at"]
    assert int(words[5]) == found["step"]["event"] - 1
    assert words[6:] == ["--set", "run.training.student.lr=0.0025"]
    assert {one["key"] for one in found["settings"]} > {"run.training.student.lr", "run.tasks"}


@pytest.mark.parametrize(
    ("profile", "score", "keys"),
    [
        ("scripted", 0.1, {"run.student.temperature"}),
        ("scripted", 0.9, {"run.student.temperature", "run.training.student.minibatch", "run.tasks"}),
        ("my own", 0.1, {"run.student.temperature"}),
        ("my own", 0.9, set()),
    ],
)
def test_settings_that_a_run_that_went_well_had_too_are_not_blamed(profile: str, score: float, keys: set[str]) -> None:
    """``score``: of the base. Where it is above the last one, that run is no measure."""
    good = [one.model_copy(update={"run": "r0", "id": f"good {one.id}"}) for one in played()]
    bad = played(small(student={"temperature": 0}))
    bad = [one.model_copy(update={"seq": len(good) + one.seq}) for one in bad]
    with closing(told([*good, *bad])) as db:
        db.execute("UPDATE runs SET started = '2025' WHERE run = 'r0'")
        db.execute("UPDATE runs SET profile = ?", (profile,))
        db.execute("UPDATE evaluations SET accuracy = ? WHERE run = 'r0' AND checkpoint = 'base'", (score,))
        db.execute("UPDATE evaluations SET accuracy = 0.5 WHERE run = 'r0' AND checkpoint != 'base'")
        found = diagnosis(db, "r1")["settings"]
    assert {one["key"] for one in found} >= keys
    assert score > 0.5 or {one["key"] for one in found} == keys
    source = "profile scripted" if profile == "scripted" else "run r0, which went well,"
    assert all(one["source"] == source for one in found)


def test_every_setting_that_a_cause_blames_is_one() -> None:
    known = {key for key, _ in fields()}
    changes = tuple(Setting(key, 1, 2, "profile x") for key in known)
    assert Case("r", "x", "finished", RUN, changes=changes).changed("run.student.temperature")
    for name in registered_causes():
        module = __import__(f"agent0.run.diagnosis.causes.{name}", fromlist=["x"])
        for key in _keys(vars(module)):
            assert key in known or any(one.startswith(key) for one in known), f"{name} blames {key}"


def _keys(names: Mapping[str, Any]) -> list[str]:
    held = [value for key, value in names.items() if key.isupper()]
    flat = [part for value in held for part in (value.values() if isinstance(value, dict) else [value])]
    found = [one for part in flat if isinstance(part, tuple) for one in part]
    found = [one for part in found for one in (part if isinstance(part, tuple) else [part])]
    return [one for one in found if isinstance(one, str) and one.startswith("run.")]


def test_settings_of_another_version_are_no_obstacle() -> None:
    first, *rest = played()
    strange = first.event.model_copy(update={"config": {"of": "another age", "iterations": 1, "tasks": 1}})
    assert why([first.model_copy(update={"event": strange}), *rest])["settings"] == []
