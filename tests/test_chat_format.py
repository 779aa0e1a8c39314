"""Boxed answers: one reader, and runs, benchmarks, signals, evidence and search go by it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent0.chat_format import boxed, boxes
from agent0.grading import answer_in
from agent0.rewards.features import RewardContext, compute_features
from agent0.rollout.confidence.token_spans import answer_span, own_spans
from agent0.rollout.parsing import parse_turn
from agent0.settings import RunConfig
from agent0.state.run_state import RunState, TaskState
from tests.test_architecture import FILES, Source, source

ROOT = Path(__file__).parents[1]
PIECES = ["\\boxed{", "\\boxed {", "\\fbox{", "{", "}", "\\{", "\\}", "\\\\", "3", " ", "x+1", "\n"]


def teacher_answer(text: str) -> str | None:
    config = RunConfig()
    run = RunState("r", 1, config, "")
    scored = RewardContext(run, config.rewards, TaskState(0, "math", "open", 1, text=text))
    found: str | None = compute_features("teacher", frozenset({"teacher_answer"}), scored)["teacher_answer"]
    return found


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (r"so \boxed{3}.", "3"),
        (r"so \fbox{3}.", "3"),
        (r"so \boxed {3}.", "3"),
        (r"\boxed{\frac12}", r"\frac12"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{1} or rather \boxed{2}", "2"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\boxed{7}}", "7"),
        (r"\boxed{5} \boxed{6", None),
        (r"\boxed3 or 3", None),
        (r"\boxedsomething{3}", None),
    ],
)
def test_runs_benchmarks_signals_and_rewards_read_the_same_box(text: str, inside: str | None) -> None:
    assert boxed(text) == parse_turn(text).answer == teacher_answer(text) == inside
    if inside is not None:
        assert answer_in(text) == inside
        start, end = answer_span(text, inside) or (0, 0)
        assert text[start:end] == inside
        assert (
            "boxed" not in (kept := "".join(text[start:end] for start, end in own_spans(text))) and "fbox" not in kept
        )


@example(r"\\\boxed{\{}")
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_any_text_is_read_alike_everywhere(text: str) -> None:
    inside = boxed(text)
    answer = (inside or "").strip() or None
    assert parse_turn(text).answer == answer and (not answer or len(boxes(text)) > 1 or answer_in(text) == answer)
    for box in boxes(text):
        assert text[box.start : box.inside].rstrip("{").strip() in ("\\boxed", "\\fbox")
        assert not box.closed or text[box.end] == "}"


def test_time_is_linear_in_the_text() -> None:
    """A thousand times what would take minutes if each box were looked for anew."""
    bomb = "\\boxed{ " * 200_000
    assert boxed(bomb) is None and len(boxes(bomb)) == 200_000
    assert answer_span(bomb + "3", "3") is not None


def matchers(file: Source) -> Iterator[str]:
    """Patterns that match a box, and texts of one that are looked for."""
    looking = {"find", "rfind", "index", "split", "rsplit", "partition", "rpartition", "startswith", "removeprefix"}
    for node in file.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            pattern = node.value
            if r"\\boxed" in pattern or r"\\fbox" in pattern or "|fbox" in pattern or "|boxed" in pattern:
                yield pattern
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in looking:
            yield from (
                one.value
                for one in node.args
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and "boxed" in one.value
            )


def test_no_other_module_looks_for_boxes() -> None:
    files = [*FILES, *(str(path.relative_to(ROOT)) for path in (ROOT / "benchmarks").rglob("*.py"))]
    found = {path: wrong for path in files if (wrong := list(matchers(source(path))))}
    assert len(files) > 300 and list(found) == ["agent0/chat_format.py"]
