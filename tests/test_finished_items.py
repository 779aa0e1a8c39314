"""Commands that train and evaluate outside a run ask for everything at once, and go on with the items that are left."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent0.assembly.evaluation.finished_items import FOLDER, FinishedItems
from agent0.assembly.models.ab_test import compare_models, repeat
from agent0.assembly.models.protocol import evaluate_protocols
from agent0.assembly.replay.retrain import Retrain, retrain
from agent0.assembly.validate import replay_requirements
from agent0.assembly.validate.replay_requirements import require_replay
from agent0.assembly.validate.room import Check
from agent0.config.loading import load
from agent0.errors import DependencyError, RequirementsError
from agent0.evaluation import item_rollout, protocol_runner
from agent0.evaluation.checkpoint_score import ScoredItem
from agent0.evaluation.protocol import EvaluationProtocol
from agent0.evaluation.protocol_runner import AnsweredTask, FinishedTask
from agent0.events.base import Event
from agent0.events.checkpoints import CheckpointEvaluated, EvaluationRequested
from agent0.events.values import Task
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import Settings
from tests.kept_open import attached
from tests.pasts import events_of, keep, settings_at, tell
from tests.world import small, started

REQUEST = EvaluationRequested(
    evaluation="base-1", checkpoint="base", adapter=None, iteration=0, split="validation", n=9, seed=1, state_sha=""
)


class Items:
    """Stands for the attempt at an item; the model is away after ``lasting`` of them."""

    def __init__(self, lasting: int) -> None:
        self.left, self.asked, self.at_once, self.most = lasting, list[int](), 0, 0

    async def __call__(self, request: EvaluationRequested, number: int, run: RunState, ports: object) -> ScoredItem:
        self.asked.append(number)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        self.left -= 1
        if self.left < 0:
            raise DependencyError("The model", "It is away.")
        return ScoredItem(
            f"task {number}", "math", 1, "?", f"{number}", number % 2 == 0, 0, 3, 0.5, {"p": 0.25}, 0, 1, (None,)
        )


def state(**evaluation: object) -> RunState:
    found = evolve(None, started(small(evaluation={"validation": 9, **evaluation})).model_copy(update={"seq": 1}))
    assert found
    return found


def attempt(kept: FinishedItems, run: RunState) -> list[ScoredItem]:
    return asyncio.run(kept.attempt(REQUEST, run, SimpleNamespace(question_file=None)))  # type: ignore[arg-type]


def test_finished_items_are_not_attempted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, run = FinishedItems(tmp_path / "items"), state(at_once=2)
    first, second, alone = Items(4), Items(99), Items(99)
    monkeypatch.setattr(item_rollout, "attempt_item", first)
    with pytest.raises(DependencyError):
        attempt(kept, run)
    (file,) = kept.folder.iterdir()
    file.write_bytes(file.read_bytes()[:-9])  # as a kill leaves the last line
    monkeypatch.setattr(item_rollout, "attempt_item", second)
    found = attempt(kept, run)
    assert sorted(second.asked) == [3, 4, 5, 6, 7, 8] and max(first.most, second.most) == 2
    monkeypatch.setattr(item_rollout, "attempt_item", alone)
    assert attempt(FinishedItems(tmp_path / "others"), run) == found and len(alone.asked) == 9
    assert attempt(kept, run) == found and len(alone.asked) == 9
    assert attempt(kept, state(at_once=2, margin=0.01)) == found and len(alone.asked) == 18, "other settings"
    kept.forget(REQUEST, run.config)
    assert attempt(kept, run) == found and len(alone.asked) == 27


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Settings]:
    with attached(tmp_path):
        yield keep(tmp_path, *tell())


def score(event: Event) -> object:
    assert isinstance(event, CheckpointEvaluated)
    return event.model_dump(exclude={"wall_s", "latency_p50_s", "latency_p95_s"})


@pytest.mark.slow  # part of make crash
def test_a_retraining_goes_on_with_the_items_that_are_left(
    held: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Retrain("r1", "one")
    monkeypatch.setattr(item_rollout, "attempt_item", Items(5))
    with pytest.raises(DependencyError):
        asyncio.run(retrain(held, one))
    assert len(next((held.home / FOLDER).iterdir()).read_bytes().splitlines()) == 5
    monkeypatch.setattr(item_rollout, "attempt_item", again := Items(999))
    asyncio.run(retrain(held, one))
    scored = [e.event for e in events_of(held, "exp-one") if isinstance(e.event, CheckpointEvaluated)]
    assert scored and len(again.asked) == sum(one.n for one in scored) - 5
    assert not list((held.home / FOLDER).iterdir())
    other = keep(tmp_path / "other", *tell())
    asyncio.run(retrain(other, one))
    alone = [e.event for e in events_of(other, "exp-one") if isinstance(e.event, CheckpointEvaluated)]
    assert list(map(score, scored)) == list(map(score, alone))


@pytest.mark.slow  # part of make crash
def test_comparisons_go_on_with_the_items_that_are_left(held: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_rollout, "attempt_item", Items(30))
    with pytest.raises(DependencyError):
        asyncio.run(repeat(held, "r1/base", 3, 12, 1))
    monkeypatch.setattr(item_rollout, "attempt_item", again := Items(999))
    assert len(asyncio.run(repeat(held, "r1/base", 3, 12, 1)).accuracies) == 3
    assert len(again.asked) == 6
    with_other = Items(999)
    monkeypatch.setattr(item_rollout, "attempt_item", with_other)
    asyncio.run(compare_models(held, "r1/base", "r1/base", 20, 1))
    assert len(with_other.asked) == 50, "both are the same student, so its answers are asked for once"
    assert not list((held.home / FOLDER).iterdir())


class Tasks:
    """Stands for the attempts at a task of a protocol; the model is away after ``lasting`` tasks."""

    def __init__(self, lasting: int) -> None:
        self.left, self.asked = lasting, list[int]()

    async def __call__(self, place: int, task: Task, protocol: EvaluationProtocol, *ports: object) -> FinishedTask:
        self.asked.append(place)
        await asyncio.sleep(0)
        self.left -= 1
        if self.left < 0:
            raise DependencyError("The model", "It is away.")
        said = tuple(None if place % 5 == n else f"{place + n}" for n in range(protocol.attempts))
        right = tuple(None if place % 3 == n else place % 2 == 0 for n in range(protocol.attempts))
        answered = AnsweredTask(task.domain, task.family, task.canonical, task.question, said, right, said[0], right[0])
        return FinishedTask(answered, 7)


@pytest.mark.slow  # part of make crash
def test_protocols_go_on_with_the_tasks_that_are_left(
    held: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exams = {"r1/base": [EvaluationProtocol(9, 5, 4, 1.0), EvaluationProtocol(6, 5)]}
    monkeypatch.setattr(protocol_runner, "answer_task", first := Tasks(12))
    with pytest.raises(DependencyError):
        asyncio.run(evaluate_protocols(held, exams))
    assert len(first.asked) == 15 and len(list((held.home / FOLDER).iterdir())) == 1, "the first one is recorded"
    monkeypatch.setattr(protocol_runner, "answer_task", again := Tasks(99))
    found = asyncio.run(evaluate_protocols(held, exams))
    assert sorted(again.asked) == sorted([*range(9), 3, 4, 5]), "a protocol that was recorded is asked anew"
    assert not list((held.home / FOLDER).iterdir())
    other = keep(tmp_path / "other", *tell())
    alone = asyncio.run(evaluate_protocols(other, exams))
    assert [one.model_dump(exclude={"wall_s"}) for one in found] == [
        one.model_dump(exclude={"wall_s"}) for one in alone
    ]
    assert len(asyncio.run(evaluate_protocols(held, exams))) == 2 and len(again.asked) == 12 + 15 + 15


def test_everything_that_is_missing_is_named_before_anything_is_written(
    held: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = dict.fromkeys(("models", "gpu", "sandbox"), away)
    monkeypatch.setattr(replay_requirements, "REQUIREMENTS", looks)
    before = len(events_of(held, ""))
    for work in (
        retrain(held, Retrain("r1", "one")),
        compare_models(held, "r1/base", "r1/base", 10, 1),
        repeat(held, "r1/base", 2, 4, 1),
        evaluate_protocols(held, {"r1/base": [EvaluationProtocol(4, 5)]}),
    ):
        with pytest.raises(RequirementsError, match=r"(?s)- models: .*- gpu: .*- sandbox: "):
            asyncio.run(work)
    with pytest.raises(RequirementsError) as found:
        asyncio.run(retrain(held, Retrain("r1", "one", evaluate=False)))
    assert "sandbox" not in str(found.value), "nothing is executed where nothing is scored"
    assert len(events_of(held, "")) == before


async def away(settings: Settings) -> list[Check]:
    raise DependencyError("It", "It is not here.", "Mend it.")


def test_training_elsewhere_asks_for_weights_and_scoring_for_the_server(tmp_path: Path) -> None:
    """The student of a vLLM server is trained where its weights are; its server may rest then."""
    url = {"run.student.base_url": "http://127.0.0.1:1/v1", "run.teacher.base_url": "http://127.0.0.1:1/v1"}
    settings = load("vllm", {"home": str(tmp_path), "run.student.tokenizer": str(tmp_path / "weights"), **url}, {})
    said = {}
    for evaluate in (False, True):
        with pytest.raises(RequirementsError) as found:
            asyncio.run(require_replay(settings, [settings.run], evaluate=evaluate))
        said[evaluate] = [line for line in str(found.value).splitlines() if "student model" in line]
    assert "weights" in said[False][0] and "127.0.0.1" not in said[False][0]
    assert said[True] != said[False]


def test_settings_of_a_past_need_nothing(tmp_path: Path) -> None:
    settings = settings_at(tmp_path)
    asyncio.run(require_replay(settings, [small()], ("student", "teacher")))
