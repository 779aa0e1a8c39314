"""One item of a benchmark, from asking to the event that says what came of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.evaluation.benchmark_item import BenchmarkContext, Plan, score_sample
from agent0.chat_format import format_call
from agent0.errors import OperationError
from agent0.evaluation.benchmarks import Benchmark, Item, benchmarks, make_items
from agent0.ports.models import Likely
from agent0.settings import PolicyConfig, StudentConfig
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
