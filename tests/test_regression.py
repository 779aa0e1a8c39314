"""``agent0 bench regression``: error rates of its rule, pairing, the comment, and the command on two folders."""

import asyncio
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import recorded
from agent0.config.loading import load
from agent0.errors import OperationError
from agent0.evaluation.benchmark_scores import scored_regression
from agent0.events.benchmarks import BenchmarkStarted, ItemScored
from agent0.report.markdown.regression import MARK, SideCost, comment, inert
from agent0.rewards.verdict_agreement import RewardedAttempt, reward_regression
from agent0.settings import StudentConfig
from agent0.stats.paired_tests import Difference, compare
from agent0.stats.regression_rule import RegressionRule, blocking_chance
from tests.openai_server import serving
from tests.terminal import agent0
from tests.test_prompt_compare import CAREFUL, ROWS, Adder

RULE = RegressionRule()
PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")


def difference(items: int, gained: int, lost: int) -> Difference:
    before = [0.0] * gained + [1.0] * lost + [0.0] * (items - gained - lost)
    after = [1.0] * gained + [0.0] * lost + [0.0] * (items - gained - lost)
    return compare(before, after, rounds=0)


@given(st.integers(1, 400), st.floats(0.02, 1.0))
@settings(max_examples=30, deadline=None)
def test_no_change_is_blocked_in_at_most_a_twentieth_whatever_changes(items: int, discordance: float) -> None:
    assert blocking_chance(items, discordance, 0.0, 0.05) <= 0.05


@given(st.integers(1, 300), st.data())
@settings(max_examples=50, deadline=None)
def test_blocked_is_what_the_interval_and_the_exact_test_say(items: int, data: st.DataObject) -> None:
    lost = data.draw(st.integers(0, items))
    gained = data.draw(st.integers(0, items - lost))
    changed = lost + gained
    exact = sum(math.comb(changed, k) for k in range(lost, changed + 1)) / 2**changed
    outcome = difference(items, gained, lost)
    assert RULE.blocks(outcome) == (exact < 0.05) == (RULE.interval(outcome).upper95 < 0)
    assert not (RULE.blocks(outcome) and RULE.blocks(difference(items, lost, gained)))
    assert RULE.one_sided(outcome) == pytest.approx(exact) if lost > gained else RULE.one_sided(outcome) >= 0.5
    if lost < items - gained and RULE.blocks(outcome):
        assert RULE.blocks(difference(items, gained, lost + 1)), "one more lost item never lets it pass"


@given(st.floats(0.05, 0.3), st.floats(0.0, 0.3), st.sampled_from((0.7, 0.8, 0.9)))
@settings(max_examples=15, deadline=None)
def test_the_items_asked_for_give_the_power(loss: float, more: float, power: float) -> None:
    rule = RegressionRule(loss, power, discordance=loss + more)
    assert rule.catches(rule.items()) >= power > rule.catches(max(1, round(0.93 * rule.items()) - 8))
    assert rule.items() <= rule.items(min(1.0, loss + more + 0.1)), "the more changes, the more items"


def test_five_points_need_about_seven_hundred_pairs() -> None:
    assert 700 <= RULE.items() <= 730


@pytest.mark.parametrize("shares", [(0.0, 0.8), (1.0, 0.8), (0.3, 0.8), (0.05, 1.0), (float("nan"), 0.8)])
def test_what_is_no_rule_is_refused(shares: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1|a loss of"):
        RegressionRule(*shares)


def scored(benchmark: str, item: str, correct: bool | None, mode: str = "tools", sample: int = 0) -> ItemScored:
    fields = {"benchmark": benchmark, "item": item, "mode": mode, "sample": sample, "correct": correct}
    return ItemScored.model_validate({**fields, "answer": "", "reason": "", "end": "answered"})


def test_each_item_is_one_pair_whatever_the_order_modes_and_samples() -> None:
    base = [scored("a", f"{n}", True, mode, s) for n in range(9) for mode in ("tools", "plain") for s in range(2)]
    change = [scored("a", f"{n}", n > 5, sample=s) for n in range(12) for s in range(2)]
    random.Random(1).shuffle(change)
    outcome = scored_regression(base, change, RULE)
    assert (outcome.difference.items, outcome.difference.lost, outcome.difference.gained) == (9, 6, 0)
    assert outcome.blocked and set(outcome.lost) == {f"a/{n}" for n in range(6)}
    plain = [scored("a", f"{n}", False, "plain") for n in range(9)]
    assert scored_regression(base, [*change, *plain], RULE).difference == outcome.difference, "one mode, with tools"
    undecided = scored_regression([scored("a", "1", True)], [scored("a", "1", None)], RULE)
    assert undecided.difference.lost == 1, "what cannot be decided is not right"
    with pytest.raises(OperationError, match="share no scored item"):
        scored_regression([scored("a", "1", True)], [scored("b", "1", True)], RULE)


def test_rewards_are_compared_by_tasks_with_right_and_wrong_attempts() -> None:
    def attempts(good: float, bad: float) -> dict[str, RewardedAttempt]:
        mixed = {
            f"t{n}-a{k}": RewardedAttempt(f"t{n}", k == 0, good if k == 0 else bad) for n in range(8) for k in range(3)
        }
        return {**mixed, **{f"easy-a{k}": RewardedAttempt("easy", True, 1.0) for k in range(3)}}

    outcome = reward_regression(attempts(1, 0), attempts(0, 1), RULE)
    assert (outcome.difference.items, outcome.base, outcome.change, outcome.blocked) == (8, 1.0, 0.0, True)
    assert not reward_regression(attempts(1, 0), attempts(0.3, 0.2), RULE).blocked, "only the order counts"
    assert reward_regression(attempts(1, 0), attempts(0.5, 0.5), RULE).change == 0, "equal rewards teach nothing"
    with pytest.raises(OperationError, match="no task to compare"):
        reward_regression({}, {}, RULE)


HOSTILE = (
    "`</code>` $(touch /tmp/x) `id` ![x](http://evil.example/a.png) @someone [a](javascript:alert(1)) | a | b |\n"
    "# heading\n::set-output name=code::0\n<script>alert(1)</script> <!-- \u202e --> ``` http://evil.example"
)


@given(st.text(max_size=200) | st.sampled_from([HOSTILE, "`" * 99, "|" * 70, "\r\n\r\n# x", "\\`x"]))
@settings(max_examples=60, deadline=None)
def test_other_peoples_text_is_code_and_nothing_else(text: str) -> None:
    (block,) = [token for token in PARSER.parse(inert(text)) if token.children]
    assert [child.type for child in block.children or ()] in (["code_inline"], ["text"])
    assert "|" not in inert(text) and "\n" not in inert(text)


def test_a_comment_with_hostile_names_has_no_link_picture_or_markup_of_theirs() -> None:
    names = [f"{n} {HOSTILE}" for n in range(20)]
    outcome = scored_regression([scored("a", n, True) for n in names], [scored("a", n, False) for n in names], RULE)
    text = comment(outcome, (SideCost("x"), SideCost("y", 9, 1, 1, None)), {HOSTILE: (HOSTILE, HOSTILE)}, HOSTILE)
    html = PARSER.render(text)
    assert text.startswith(f"{MARK}\n### Agent0: blocked") and len(text) < 8000
    assert not any(mark in html for mark in ("<a ", "<img", "<script", "<h1", "</code></code>"))
    assert html.count("<tr>") == 3 and "-100.0 points" in html and "price not known" in html


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Adder]:
    monkeypatch.setattr("tests.openai_server.OpenAIStandIn", Adder)
    with serving() as there:
        there.streams = False
        yield there


def folder(at: Path, server: Adder, prompts: str) -> Path:
    at.mkdir()
    student = {
        "provider": "openai",
        "model": "student",
        "base_url": f"{server.url}/v1",
        "prompts": prompts,
        "tools": [],
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in {**student, "price": [1, 2]}.items()]
    (at / "agent0.toml").write_text('profile = "scripted"\n[run.student]\n' + "\n".join(lines) + "\n")
    (at / "json.py").write_text("raise SystemExit('a file of the folder was imported')\n")
    return at


BEGUN = {"name": "", "benchmarks": ["a"], "modes": ["tools"], "samples": 1, "limit": 0, "seed": 0, "files": {}}


@pytest.mark.slow  # part of make integrations
def test_two_folders_are_compared_and_what_is_scored_is_not_asked_again(server: Adder, tmp_path: Path) -> None:
    rows = [{"id": f"r{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(1, ROWS + 1)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    base, change = folder(tmp_path / "base", server, CAREFUL), folder(tmp_path / "change", server, "full")
    said = tmp_path / "comment.md"
    words = ("--on", str(tmp_path / "q.jsonl"), "--write", str(said), "--title", HOSTILE, "--json")
    blocked = agent0("bench", "regression", str(base), str(change), *words, home=tmp_path / "home")
    assert blocked.code == 3, blocked
    result = blocked.json
    assert (result["lost"], result["gained"], result["items"], result["blocked"]) == (ROWS, 0, ROWS, True)
    assert result["p"] == pytest.approx(2**-ROWS) and result["upper"] < 0
    assert (
        list(result["changed"]) == ["run.student.prompts"] and [each["usd"] for each in result["costs"]] == [168e-6] * 2
    )
    assert "714 items are needed" in blocked.err and f"There are {ROWS}" in blocked.err and "$" in blocked.err
    assert said.read_text().startswith(MARK) and "Blocked: a loss is proven." in said.read_text()
    assert len(server.questions) == 2 * ROWS and set(server.questions.values()) == {1}

    again = agent0("bench", "regression", str(change), str(base), *words, home=tmp_path / "home")
    assert again.code == 0 and (again.json["gained"], again.json["blocked"]) == (ROWS, False), again
    assert len(server.questions) == 2 * ROWS and "replayed, nothing asked" in said.read_text()


def test_two_stored_benchmark_runs_are_compared_and_exit_with_the_decision(tmp_path: Path) -> None:
    chosen = load("scripted", {"home": str(tmp_path)}, {})

    async def store() -> None:
        async with open_log(chosen, make=True) as log:
            for run, right in (("bench-aaaaaa", 20), ("bench-bbbbbb", 12)):
                actor = StudentConfig(max_tokens=right).model_dump(mode="json")
                await log.append([recorded(run, BenchmarkStarted.model_validate({**BEGUN, "actor": actor}))])
                await log.append([recorded(run, scored("a", f"{n}", n < right)) for n in range(20)])

    asyncio.run(store())
    said = tmp_path / "comment.md"
    words = ("bench", "regression", "bench-aaaaaa", "bench-bbbbbb", "--title", HOSTILE, "--write", str(said))
    blocked = agent0(*words, "--json", home=tmp_path)
    assert blocked.code == 3 and (blocked.json["lost"], blocked.json["blocked"]) == (8, True), blocked
    assert blocked.json["changed"] == {"run.student.max_tokens": ["20", "12"]}
    assert blocked.json["p"] == pytest.approx(2**-8) and said.read_text().startswith(MARK)
    passes = agent0("bench", "regression", "bench-bbbbbb", "bench-aaaaaa", home=tmp_path)
    assert passes.code == 0 and "Passes: no loss is proven. +40.0 points" in passes.out, passes
    assert "20 items are few for this rule: 1403 would catch" in passes.out
    missing = agent0("bench", "regression", "bench-bbbbbb", "bench-cccccc", home=tmp_path)
    assert missing.code == 1 and "bench-cccccc" in missing.err


@pytest.mark.slow  # part of make integrations: it starts four processes
def test_a_side_that_cannot_be_read_ends_it_before_anything_is_asked(server: Adder, tmp_path: Path) -> None:
    base, change = folder(tmp_path / "base", server, CAREFUL), folder(tmp_path / "change", server, "full")
    words = ("bench", "regression", str(base), str(change), "--on", "heldout_math", "--items", "5")
    plan = agent0(*words, "--plan", home=tmp_path / "home")
    assert plan.code == 0 and "To ask: 10 items" in plan.out and not server.questions
    assert "$0.04096 for these, $1 for each million read" in plan.out
    (change / "agent0.toml").write_text("[run.student]\nmax_tokns = 3\n")
    broken = agent0(*words, home=tmp_path / "home")
    assert broken.code == 2 and "That is of" in broken.err and not server.questions


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("bench-000000", "bench-000001"), "There is no log yet"),
        (("no/such", "bench-000001"), "There is no folder"),
        ((".", "."), "has no agent0.toml"),
        (("a", "b", "--loss", "30"), "Raise --changing"),
        (("a", "b", "--on", ""), "No benchmark is named"),
        (("a", "b", "--write", "no/such/c.md"), "cannot be written"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(words: tuple[str, ...], fault: str, tmp_path: Path) -> None:
    refused = agent0("bench", "regression", *words, home=tmp_path / "home")
    assert refused.code in (1, 2) and fault in refused.err and "Traceback" not in refused.err
