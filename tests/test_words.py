"""Public names, help texts and first lines of docstrings use the field's words: docs/glossary.md has them."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.test_architecture import ROOT as REPOSITORY
from tests.test_architecture import Source, source

ROOT = REPOSITORY
ROOMS = ("agent0", "events", "handlers", "infra", "projections")
RETIRED = {
    "deed": "scored trajectory",
    "deeds": "scored trajectories",
    "pay": "assign a reward",
    "pays": "assigns a reward",
    "paid": "rewarded",
    "payout": "reward",
    "payouts": "rewards",
    "due": "reward to assign",
    "dues": "rewards to assign",
    "evidence": "features",
    "tell": "report, format, as_row",
    "tells": "reports",
    "telling": "report",
    "told": "rows, text, report",
    "wanted": "request, options",
    "arm": "variant (arm is the bandit's only)",
    "arms": "variants",
    "cell": "ablation run",
    "cells": "ablation runs",
    "grid": "ablation study",
    "grids": "ablation studies",
    "exam": "evaluation protocol",
    "exams": "evaluation protocols",
    "sat": "sampled",
    "sitting": "evaluation protocol",
    "lesson": "training example",
    "lessons": "training examples",
    "settled": "resolved",
    "making": "training pipeline",
    "world": "app, runtime",
    "renewal": "log rollover",
    "lane": "pool slot",
    "zygote": "fork server",
    "strangers": "untrusted",
    "stranger": "untrusted",
    "edition": "version",
    "surprise": "token entropy",
}
"""Word -> what the field says. Setting keys, verbs, events and their fields that exist keep their names."""

KEPT: dict[str, str] = {
    "agent0/state/run_state.py:Arm": "of the curriculum's bandit",
    "agent0/state/run_state.py:arm_key": "of the curriculum's bandit",
    "agent0/state/run_state.py:RunState.arms": "in the digest of a run's state; of the curriculum's bandit",
    "agent0/state/run_state.py:RunState.just_settled": "in the digest of a run's state",
    "agent0/state/run_state.py:TaskState.paid": "in the digest of a run's state",
    "agent0/experiments/ablation_results.py:RunOutcome.arm": "in the stored outcome of an ablation run",
    "agent0/rollout/attempt.py:Progress.told": "in the stored progress of an attempt",
    "agent0/experiments/ablation_results.py:VariantRow.arm": "a key of --json",
    "agent0/experiments/ablation_results.py:ComparisonRow.arm": "a key of --json",
    "agent0/experiments/compare_runs.py:AgainstRow.deeds_in_common": "a key of --json",
    "agent0/experiments/ladder_rows.py:LadderRow.arm": "a key of --json",
    "agent0/experiments/ladder_rows.py:LeadRow.arm": "a key of --json",
    "agent0/experiments/ladder_rows.py:LevelRow.arm": "a key of --json",
    "agent0/experiments/study_results.py:StudyResults.arms": "a key of --json",
    "agent0/experiments/study_results.py:StudyResults.cells": "a key of --json",
    "agent0/experiments/study_results.py:StudyResults.grid": "a key of --json",
    "agent0/report/alarm_groups.py:AlarmKind.evidence": "a key of --json",
    "agent0/report/diagnosis/findings.py:Conclusion.evidence": "a key of --json",
    "agent0/report/targets.py:TargetRow.wanted": "a key of --json",
}
"""``path:name`` -> why it keeps a retired word: it is on the wire, a setting key, a verb, or the word's other sense."""

HELP = ("help", "description")
"""Arguments that hold a help text: of a command or option, and of a setting."""


def words_of(text: str) -> set[str]:
    """The single words of a name or a sentence, code in backquotes left out."""
    text = re.sub(r"``.*?``|`.*?`", " ", text)
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text).lower()))


@cache
def parsed(path: Path) -> Source:
    """A file of this tree, or of another one that ``ROOT`` names meanwhile."""
    name = str(path.relative_to(ROOT))
    return source(name) if ROOT == REPOSITORY else Source(name, path.read_text(encoding="utf-8"))


def public(path: Path) -> Iterator[tuple[str, str]]:
    """(name, text to check) of every public definition and field, of the first lines of their docstrings, and of help.

    What ``@tool`` registers is read by models, and fields of events and settings are recorded: these keep their words.
    """
    file = parsed(path)
    tree = file.tree
    yield path.stem, path.stem
    yield "module", (ast.get_docstring(tree) or "").split("\n\n")[0]
    recorded = str(path.relative_to(ROOT)).startswith(("events/", "agent0/settings/"))
    yield from members(tree, "", fields=not recorded)
    for node in file.nodes:
        if isinstance(node, ast.keyword) and node.arg in HELP and isinstance(node.value, ast.Constant):
            yield "help", str(node.value.value)


def members(node: ast.AST, prefix: str, *, fields: bool) -> Iterator[tuple[str, str]]:
    """(name, text to check) of what a module or class defines, and of what its classes define."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and child.name[0] != "_":
            name = prefix + child.name
            yield name, child.name
            if not any(ast.unparse(one).startswith("tool(") for one in child.decorator_list):
                yield name, (ast.get_docstring(child) or "").split("\n")[0]
            if isinstance(child, ast.ClassDef):
                yield from members(child, f"{name}.", fields=fields)
        elif prefix and fields and isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            yield prefix + child.target.id, child.target.id


def retired(room: str) -> list[str]:
    """What a room still says otherwise."""
    found = []
    for path in sorted((ROOT / room).rglob("*.py")):
        where = str(path.relative_to(ROOT))
        for name, text in public(path):
            for word in sorted(words_of(text) & RETIRED.keys()):
                if f"{where}:{name}" not in KEPT:
                    found.append(f"{where}:{name}: {word} -> {RETIRED[word]}")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_retired_words_are_gone(room: str) -> None:
    assert retired(room) == []


LEAST = 8
"""Words that a public docstring has at least: what it does to what."""


def short(room: str) -> list[str]:
    """Public functions and classes at the top of a module whose docstring is missing or too short to say anything."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [
        f"{path.relative_to(ROOT)}:{node.name}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in parsed(path).tree.body
        if isinstance(node, kinds) and node.name[0] != "_" and len((ast.get_docstring(node) or "").split()) < LEAST
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_public_docstrings_say_what_they_do_to_what(room: str) -> None:
    assert short(room) == []
