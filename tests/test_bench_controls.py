"""``agent0 bench controls``: what more attempts reach on a folder of tasks; no choice knows a hidden test."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.evaluation import benchmark_item
from agent0.assembly.evaluation.benchmark_run import Plan, Progress, run_benchmarks, same_run, scored_items
from agent0.assembly.evaluation.control_scores import score_controls
from agent0.assembly.evaluation.prompt_scores import PromptChoice, prompt_choice
from agent0.chat_format import format_call
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.evaluation.benchmark_scores import Control, by_majority, by_visible_tests
from agent0.events.benchmarks import ItemScored
from agent0.events.values import Task
from agent0.ports.storage import Artifacts
from agent0.settings import Settings
from tests import mined
from tests.terminal import agent0

BUG = mined.CODE.replace(mined.RIGHT, mined.WRONG)
STUCK, RIGHT = f"{BUG}\n# Looked at.\n", mined.CODE
BREAKS = BUG.replace("return result + start", "return result")
"""What students leave: the bug, a repair, and the bug with another that a visible test shows."""
OWN, OTHER = "compact", "full"
"""The style of the scripted student's prompt, and another one."""


def play(monkeypatch: pytest.MonkeyPatch, contents: Sequence[str]) -> list[str]:
    """Let the student leave ``contents`` one attempt after the other; returns the attempts it has made so far."""
    made: list[str] = []

    def turns(task: Task, files: Artifacts) -> tuple[str, ...]:
        made.append(contents[len(made) % len(contents)])
        return (format_call("write_file", {"path": "sums/__init__.py", "content": made[-1]}), mined.DONE)

    monkeypatch.setattr(benchmark_item, "reference_turns", turns)
    return made


def plan(folder: Path, samples: int) -> Plan:
    return Plan((str(folder),), Path(), ("tools",), samples=samples, at_once=1)


def settings_at(home: Path) -> Settings:
    return load("scripted", {"home": str(home)}, {})


async def controls(
    home: Path, plan: Plan, report: Callable[[Progress], None] = lambda _: None, *prompts: PromptChoice
) -> dict[str, Control]:
    scores = await score_controls(settings_at(home), plan, prompts, lambda: report, lambda _: None, "again")
    return {f"{score.name} {score.attempts}": score for score in scores}


class Stopped(BaseException):
    """What ends a process that is stopped."""


def stop_behind_refined(progress: Progress) -> None:
    """Stop behind the first attempts."""
    if progress.done:
        raise Stopped


async def test_each_control_is_scored_beside_greedy_and_a_stopped_command_goes_on(
    tmp_path: Path, shared_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = mined.mined_folder(tmp_path / "tasks", ["sums"])
    made = play(monkeypatch, [STUCK, RIGHT, RIGHT, BREAKS, BREAKS, RIGHT, BREAKS])
    with pytest.raises(BaseExceptionGroup):
        await controls(tmp_path, plan(folder, 3), stop_behind_refined)
    assert len(made) == 3
    scores = await controls(tmp_path, plan(folder, 3), lambda _: None, prompt_choice(OTHER))
    assert len(made) == 7, "what was attempted before is not attempted again"
    assert {name: score.items[0].correct for name, score in scores.items()} == {
        "greedy 1": False,
        "best by visible tests 2": False,
        "self-refine 2": True,
        "majority 3": False,
        "best by visible tests 3": True,
        "self-refine 3": True,
        f"prompt {OTHER} 1": False,
    }
    tokens = {name: score.usage.completion_tokens for name, score in scores.items()}
    assert tokens["majority 3"] == tokens["best by visible tests 3"] > tokens["best by visible tests 2"]
    assert tokens["self-refine 3"] > tokens["self-refine 2"] > tokens["greedy 1"]
    await read_again(settings_at(tmp_path), plan(folder, 3))


async def read_again(settings: Settings, plan: Plan) -> None:
    """What a student reads of its own work: its change and the visible tests, and nothing of hidden ones."""
    items, _ = await scored_items(settings, same_run(settings, replace(plan, control="refined")))
    first, second, _ = sorted(items, key=lambda item: item.sample)
    assert first.conversation and second.conversation and first.metrics["visible"] == second.metrics["visible"] == 1
    asked = [
        next(turn.content for turn in reversed(item.conversation.transcript) if turn.role == "user")  # type: ignore[union-attr]
        for item in (first, second)
    ]
    added = asked[1].removeprefix(asked[0])
    assert asked[1].startswith(asked[0]) and "+# Looked at." in added and "1 tests and calls" in added
    assert "hidden" not in added and "shifted([1, 2], 3)" not in added


async def test_no_choice_knows_a_hidden_test(
    tmp_path: Path, shared_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same attempts under hidden tests that hold the opposite: verdicts turn round, scores and choices stay."""
    chosen: list[tuple[float, str | None, bool | None]] = []
    for number, hidden in enumerate((mined.HIDDEN, mined.HIDDEN.replace("[4, 5]", "[-2, -1]"))):
        monkeypatch.setattr(mined, "HIDDEN", hidden)
        play(monkeypatch, [STUCK, RIGHT])
        settings = settings_at(tmp_path / "home")
        sampled = replace(plan(mined.mined_folder(tmp_path / f"{number}" / "tasks", ["sums"]), 2), control="visible")
        await run_benchmarks(settings, sampled, f"bench-{number}")
        items, _ = await scored_items(settings, f"bench-{number}")
        best = by_visible_tests(sorted(items, key=lambda item: item.sample))
        assert {item.correct for item in items} == {True, False}
        chosen.append((best.metrics["visible"], best.answer, best.correct))
    (first, second) = chosen
    assert first[:2] == second[:2] and [first[2], second[2]] == [False, True]


def sample(number: int, answer: str | None, visible: float, correct: bool | None) -> ItemScored:
    return ItemScored(
        benchmark="b",
        item="i",
        mode="tools",
        sample=number,
        answer=answer,
        correct=correct,
        reason=f"{correct}",
        end="answered",
        metrics={"visible": visible, "credit": float(correct is True)},
    )


def test_a_choice_is_the_same_whatever_the_verdicts_are() -> None:
    answers: list[tuple[str | None, float]] = [(None, 0), ("a", 2), ("b", 3), ("c", 3), ("b", 3), ("a", 2), ("a", 2)]
    choices: Counter[tuple[int, int]] = Counter()
    for mask in range(3 ** len(answers)):
        verdicts = [(None, True, False)[mask // 3**at % 3] for at in range(len(answers))]
        samples = [sample(at, *answer, verdicts[at]) for at, answer in enumerate(answers)] if mask % 101 == 0 else []
        if samples:
            choices[by_majority(samples).sample, by_visible_tests(samples).sample] += 1
    assert [*choices] == [(1, 2)]
    assert by_majority([sample(0, None, 0, None), sample(1, None, 0, True)]).sample == 0


def test_the_command_prints_a_table_with_intervals_and_what_each_took(
    tmp_path: Path, shared_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = mined.mined_folder(tmp_path / "tasks", ["sums"])
    words = ("bench", "controls", str(folder), "-n", "2", "--provider", "scripted")
    done = agent0(*words, "--json", home=tmp_path / "home")
    assert done.code == 0, done.err
    assert [(row["control"], row["attempts"], row["accuracy"]) for row in done.json["controls"]] == [
        ("greedy", 1, 1.0),
        ("best by visible tests", 2, 1.0),
        ("self-refine", 2, 1.0),
    ]
    assert all(row["lower95"] < 1 and row["written"] > 0 for row in done.json["controls"])
    assert [row["less"] for row in done.json["at_equal_attempts"]] == ["best by visible tests"]
    shown = agent0(*words, home=tmp_path / "home")
    assert shown.code == 0 and "less greedy" in shown.out and "best by visible tests of 2" in shown.out


async def test_what_has_no_tests_to_choose_by_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "1 + 1", "answer": "2"}\n')
    with pytest.raises(ConfigError, match="has no tasks for controls"):
        await controls(tmp_path, plan(tmp_path / "q.jsonl", 2))
    folder = mined.mined_folder(tmp_path / "tasks", ["sums"])
    with pytest.raises(ConfigError, match="is no other one"):
        await controls(tmp_path, plan(folder, 2), lambda _: None, prompt_choice(OWN))
    settings = load("tiny", {"home": str(tmp_path), "run.student.temperature": "0"}, {})
    with pytest.raises(ConfigError, match="temperature is 0"):
        await score_controls(settings, plan(folder, 2), [], lambda: lambda _: None, lambda _: None, "")
