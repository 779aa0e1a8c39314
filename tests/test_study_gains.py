"""A checkpoint under a protocol and at one item: every field by hand."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agent0.evaluation import item_rollout
from agent0.evaluation.checkpoint_score import ScoredItem
from agent0.evaluation.item_events import checkpoint_evaluated, item_scored, items_of
from agent0.evaluation.item_rollout import RolloutPorts, attempt_all, attempt_item
from agent0.evaluation.protocol import EvaluationProtocol
from agent0.evaluation.protocol_runner import AnsweredTask, ProtocolResult, as_json_lines, run_protocol
from agent0.evaluation.suite import suite
from agent0.events.checkpoints import EvaluationRequested
from agent0.events.tasks import ResultVerified
from agent0.events.values import Artifact, Conversation, Task, Turn, Vote
from agent0.experiments.verdict_diff import recorded_opinion
from agent0.infra.storage.datasets import LocalQuestions
from agent0.rollout.claim_check import INLINE
from agent0.rollout.student import Conditions, solve
from agent0.rollout.workspace_store import Scratch
from agent0.settings import RunConfig
from agent0.state.run_state import AttemptState, RunState, TaskState
from agent0.tasks.families import families
from agent0.tasks.splits import heldout
from agent0.tools import tools
from agent0.tools.cache import ToolCache
from agent0.verification.verifiers import Verdict
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.test_evaluation_items import attempt
from tests.test_student import CONFIG, Playback
from tests.world import Opened


async def test_a_recorded_opinion_is_that_of_the_log() -> None:
    said = Vote(check="opinion", correct=False, reason="no")
    told = {
        "a": ResultVerified(task="t", attempt="a", iteration=0, correct=None, verifier="panel", reason="",
                            votes=(Vote(check="wording", correct=True), said)),
        "b": ResultVerified(task="t", attempt="b", iteration=0, correct=None, verifier="panel", reason=""),
    }  # fmt: skip
    attempts = {"a": AttemptState(0, "1"), "b": AttemptState(1, "2"), "c": AttemptState(2, "3")}
    ask = recorded_opinion(TaskState(0, "math", "open", 1, attempts=attempts), told)
    task = Task(question="q", domain="math", family="open", level=1, canonical="c")
    unheard = (None, "the log has no opinion of the judge")
    assert [await ask(task, answer) for answer in "123"] == [(False, "no"), unheard, unheard]


# --- under a protocol, and at an item


def drawn() -> tuple[Task, str]:
    (task,) = heldout("test", 1, 3, ["math"], names=["arithmetic"])
    return task, families()[task.family].solve(task.params)


async def test_a_protocol_records_every_answer_and_the_most_frequent() -> None:
    task, right = drawn()
    model = Playback([f"\\boxed{{{right}}}"])
    given = Conditions(model, CONFIG, TrustingSandbox(), Scratch(), seed=1)
    found = await run_protocol([task], EvaluationProtocol(1, 3, 2, 0.5), given, TrustingSandbox())
    answer = AnsweredTask(
        "math", "arithmetic", task.canonical, task.question, (right, right), (True, True), right, True
    )
    assert found == ProtocolResult((answer,), 2 * len(f"\\boxed{{{right}}}"))
    assert (found.right, found.majority) == ((2,), "1")
    assert {one.sampling.temperature for one in model.asked} == {0.5}
    assert len({one.sampling.seed for one in model.asked}) == 2, "each attempt draws for itself"
    odd = [replace(answer, correct=(True, None), most_correct=None), replace(answer, correct=(), most_correct=False)]
    assert (ProtocolResult(tuple(odd), 0).right, ProtocolResult(tuple(odd), 0).majority) == ((1, 0), "?0")
    lines = as_json_lines([answer, answer]).decode().splitlines()
    assert len(lines) == 2 and json.loads(lines[0]) == {
        "domain": "math", "family": "arithmetic", "task": task.canonical, "question": task.question,
        "answers": [right, right], "correct": [True, True], "most": right, "most_correct": True,
    }  # fmt: skip


REQUEST = EvaluationRequested(
    evaluation="e", checkpoint="student-1", iteration=1, split="test", n=2, seed=3, state_sha="", forced_tool=True,
    adapter=Artifact(sha256="b" * 64, size=2),
)  # fmt: skip


async def test_an_item_is_attempted_greedily_under_the_runs_settings() -> None:
    config = RunConfig.model_validate(
        {"curriculum": {"families": ["arithmetic"], "domains": ["math"]}, "student": {"max_tokens": 99}}
    )
    run = RunState("run-7", 1, config, "")
    first, second = suite(REQUEST, config, LocalQuestions())
    right = families()["arithmetic"].solve(first.params)
    model = Playback([f"\\boxed{{{right}}}"])
    sandbox = TrustingSandbox()
    ports = RolloutPorts(Opened(model), sandbox, sandbox, ToolCache(), None, tools(), LocalQuestions())  # type: ignore[arg-type]
    plain = REQUEST.model_copy(update={"forced_tool": False})
    item = await attempt_item(plain, 0, run, ports)
    assert item == ScoredItem(
        task=first.canonical, domain="math", level=first.level, question=first.question, answer=right, correct=True,
        tool_ok=0, tokens=len(f"\\boxed{{{right}}}"), seconds=0.25, signals=item.signals,
    )  # fmt: skip
    (asked,) = model.asked
    assert (asked.prefill, asked.adapter, asked.group, asked.joint) == ("", REQUEST.adapter, "run-7", 1)
    assert (asked.sampling.temperature, asked.sampling.max_tokens) == (0.0, 99)
    heard: list[int] = []
    known = {0: replace(item, answer="known")}
    both = await attempt_all(plain, run, ports, known, lambda number, _: heard.append(number))
    assert both[0].answer == "known" and both[1].question == second.question and heard == [1]
    forced = await attempt_item(REQUEST, 0, run, replace(ports, models=Opened(model := Playback(["", "\\boxed{1}"]))))  # type: ignore[arg-type]
    assert [one.prefill for one in model.asked] == ["<tool_call>", ""] and forced.answer == "1"
    assert both[1].correct is (families()["arithmetic"].solve(second.params) == right)


def test_an_item_comes_back_from_its_event_whatever_its_length() -> None:
    store = MemoryArtifacts()
    short = ScoredItem("t", "math", 2, "q", "1", True, 1, 2, 0.5, {"answer": 0.5}, 1, 2, ("0", None))
    long = replace(short, question="q" * INLINE)
    said = Conversation(transcript=(Turn(role="assistant", content="1"),))
    events = [item_scored("e", number, attempt(item, said), store) for number, item in enumerate((short, long))]
    assert (events[0].evaluation, events[0].number, events[0].item, events[0].row) == ("e", 0, "t", None)
    assert events[1].row is not None and events[1].row.media == "application/json"
    assert (events[1].question, events[1].answer, events[1].tried) == ("", None, ())
    assert items_of(events[::-1], store) == [short, long]
    scored = checkpoint_evaluated(REQUEST, [short, long], store, RunConfig())
    assert scored.items is not None and scored.items.media == "application/jsonl"
    rows: list[Any] = [json.loads(line) for line in store.get(scored.items).decode().split("\n")]
    assert [row["question"] for row in rows] == [short.question, long.question] and rows[0]["tried"] == ["0", None]
    assert (scored.n, scored.correct) == (2, 2)


async def test_an_attempt_at_an_item_has_the_runs_ports_and_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    config = RunConfig.model_validate({"curriculum": {"families": ["arithmetic"], "domains": ["math"]}})
    run, model, cache = RunState("run-7", 1, config, ""), Playback(["\\boxed{1}"]), ToolCache()
    student, verifier = TrustingSandbox(), TrustingSandbox()
    seen: list[Any] = []

    async def solved(task: Task, words: Any, given: Conditions) -> Any:
        seen.append((words.name, given))
        return await solve(task, words, given)

    class Judge:
        async def judge(self, *asked: Any) -> list[Any]:
            seen.append(asked)
            return [Verdict(None, "by nobody")]

    monkeypatch.setattr(item_rollout, "solve", solved)
    monkeypatch.setattr(item_rollout, "verifier_for", lambda task: Judge())
    ports = RolloutPorts(Opened(model), student, verifier, cache, None, tools(), LocalQuestions())  # type: ignore[arg-type]
    item = await attempt_item(REQUEST.model_copy(update={"forced_tool": False}), 1, run, ports)
    (name, given), (task, answers, where, context) = seen
    assert isinstance(given.artifacts, Scratch) and item.correct is None
    assert {key: value for key, value in vars(given).items() if key != "artifacts"} == {
        "model": model, "config": config.student, "sandbox": student, "seed": 1, "adapter": REQUEST.adapter,
        "group": "run-7", "prefill": "", "temperature": 0.0, "cache": cache, "policy": config.policy, "web": None,
        "tools": ports.tools, "start": None, "joint": False, "task": "", "attempt": "",
        "by_files": False, "by_steps": False, "messages": "", "user": None,
    }  # fmt: skip
    assert name.endswith("/math/student") and (answers, where) == (["1"], verifier)
    assert task == suite(REQUEST, config, LocalQuestions())[1] and context.rules == config.verification
