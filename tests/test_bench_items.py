"""One item of a benchmark, from asking to the event that says what came of it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.evaluation.benchmark_item import BenchmarkContext, Plan, score_sample
from agent0.chat_format import format_call
from agent0.errors import OperationError
from agent0.evaluation.benchmarks import Benchmark, Item, benchmarks, make_items, read_items
from agent0.grading import Grade
from agent0.infra.engine.formats.packed_need import SLOTS
from agent0.ports.models import GenerateRequest, Generation, Likely
from agent0.settings import PolicyConfig, StudentConfig
from agent0.settings.evaluation import EvaluationConfig
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.test_student import Playback

CHOICE = Item(
    "arc/1", "Which?\nA. one\nB. two", "B", "", ("A", "B"), ("one", "two"), stem="Which?", facts={"choices": "2"}
)


class Knowing(Playback):
    """Tells likelihoods, too: the longer text is likelier as a whole, not by its characters."""

    async def likelihood(self, turns: Sequence[Any], continuations: Sequence[str], adapter: Any = None) -> list[Likely]:
        self.told = turns
        if not all(continuations):
            raise OperationError("An empty text has no likelihood.")
        return [Likely(-5.0 + place, 3, 1 + 9 * place) for place, _ in enumerate(continuations)]


def bench(model: Any, **changes: Any) -> BenchmarkContext:
    plan = Plan(("arc_challenge",), Path(), seed=1)
    config = StudentConfig(max_tokens=200, max_turns=3, max_calls=2, **changes)
    box = TrustingSandbox()
    return BenchmarkContext(
        "bench-1", plan, config, None, None, MemoryArtifacts(), box, box, None, PolicyConfig(), model
    )


def entry(name: str) -> Benchmark:
    return benchmarks()[name]


async def test_likelihoods_are_told_once_beside_the_reply_and_of_the_question_alone() -> None:
    model = Knowing(["\\boxed{A}"])
    held = bench(model)
    found = await score_sample(held, entry("arc_challenge"), CHOICE, "plain", 0)
    assert (found.correct, found.error, found.facts) == (False, "wrong_value", {"choices": "2"})
    assert found.metrics == {"acc": 1.0, "acc_norm": 1.0}
    assert model.told[-1].content.endswith("Which?")
    for mode, sample in (("plain", 1), ("tools", 0)):
        assert (await score_sample(held, entry("arc_challenge"), CHOICE, mode, sample)).metrics == {}


@pytest.mark.parametrize("model", [Playback(["\\boxed{B}"]), Knowing(["\\boxed{B}"])])
async def test_where_there_are_no_likelihoods_there_are_none(model: Any) -> None:
    item = Item("arc/2", "Which?", "B", "", ("A", "B"), ("", "two"), stem="Which?")
    found = await score_sample(bench(model), entry("arc_challenge"), item, "plain", 0)
    assert (found.correct, found.error, found.metrics) == (True, "", {})


def test_as_many_items_are_under_way_as_the_engine_writes_at_once() -> None:
    assert Plan(("arc_challenge",), Path()).at_once == EvaluationConfig().at_once == SLOTS


async def test_files_lie_in_the_work_folder_where_there_are_tools() -> None:
    (item, *_) = make_items(entry("tool_scenarios"), 1, 0)[0]
    (name,) = item.files
    model = Playback([format_call("read_file", {"path": name, "lines": 2}), f"\\boxed{{{item.gold}}}"])
    found = await score_sample(bench(model, tools=("read_file",)), entry("tool_scenarios"), item, "tools", 0)
    assert (found.correct, found.tool_ok, found.facts["subject"]) == (True, 1, "table")
    assert "id,date,region" in model.asked[1].turns[-1].content
    model.texts = ["nothing"]
    lost = await score_sample(bench(model, tools=("read_file",)), entry("tool_scenarios"), item, "plain", 0)
    assert (lost.correct, lost.error, lost.tool_calls) == (False, "no_answer", 0)


class BehindExamples(Playback):
    """Says its texts in turn behind the examples of the prompt that a language model gets."""

    async def generate(self, request: GenerateRequest) -> Generation:
        if not self.asked:
            self.texts = [""] * sum(turn.role == "assistant" for turn in request.turns) + list(self.texts)
        return await super().generate(request)


PROGRAM = "def add_one(x):\n    return x + 1"
MBPP_ROW = {"task_id": 9, "text": "Write add_one.", "code": PROGRAM, "test_list": ["assert add_one(1) == 2"]}


BLOCK = f"```python\n{PROGRAM}\n```"
WRONG = "```python\ndef add_one(x):\n    return x\nprint(add_one(1))\n```"
CHECK = "```python\nprint(1 + 1)\n```"


@pytest.mark.parametrize(
    ("replies", "mode", "judged"),
    [
        ([BLOCK, "It works. \\boxed{add_one}"], "tools", BLOCK),
        ([BLOCK, "It returns the next number."], "tools", BLOCK),
        ([BLOCK, "Done."], "tools", BLOCK),
        ([BLOCK, CHECK, "Done."], "tools", BLOCK),
        ([CHECK, BLOCK, "```\n2\n```"], "tools", BLOCK),
        ([WRONG, BLOCK, "Done."], "tools", BLOCK),
        ([WRONG, PROGRAM], "tools", PROGRAM),
        ([BLOCK, "It holds.</think>Done."], "tools", BLOCK),
        (
            [f"<think>{WRONG}\n</think>\n{BLOCK}", f"<think>Or\n{WRONG}\n</think>Done."],
            "tools",
            f"<think>{WRONG}\n</think>\n{BLOCK}",
        ),
        ([BLOCK, "The end is ```python\ndef add_one("], "tools", BLOCK),
        ([CHECK, "Done."], "tools", f"{CHECK}\n\nDone."),
        (["```python\n    return x + 1\n```", "Done."], "tools", "```python\n    return x + 1\n```\n\nDone."),
        ([BLOCK], "plain", BLOCK),
        (["I do not know."], "plain", "I do not know."),
    ],
)
@pytest.mark.parametrize("form", ["fence", "actions"])
async def test_a_program_that_was_run_is_judged_although_the_last_turn_only_speaks_of_it(
    replies: list[str], mode: Any, judged: str, form: str
) -> None:
    seen: list[str] = []

    async def judge(item: Item, reply: str, answer: str | None, sandbox: Any) -> Grade:
        seen.append(reply)
        return Grade(True, "seen", "")

    (item,) = read_items(entry("mbpp"), json.dumps(MBPP_ROW), "rows")
    own = replace(entry("mbpp"), judge=judge)
    held = bench(BehindExamples(replies), provider="openai", tools=("python",), tool_form=form)
    await score_sample(held, own, item, mode, 0)
    assert seen == [judged]


async def test_where_no_program_is_asked_for_the_last_turn_alone_is_judged() -> None:
    model = BehindExamples(["```python\nprint('B')\n```", "It is \\boxed{A}"])
    held = bench(model, provider="openai", tools=("python",))
    found = await score_sample(held, entry("arc_challenge"), CHOICE, "tools", 0)
    assert (found.answer, found.correct, found.tool_calls) == ("A", False, 1)
