"""The baseline: one command makes the page, the page names its command, and what rows say stays text."""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from agent0.cli import build
from agent0.cli.evaluation.baseline import PAGE
from agent0.events.base import Event
from agent0.report.benchmark_findings import bench_findings
from agent0.report.markdown.baseline import baseline_page
from agent0.verification.labelled_pairs import Decided, summary
from tests.terminal import agent0
from tests.test_bench_report import recorded, scored, started
from tests.test_report import NASTY, NOWHERE, told

ROOT = Path(__file__).parents[1]
MADE = {"command": "agent0 bench baseline --data FOLDER", "date": "2026-01-01", "student": "`tiny`", "version": "1"}
HEADINGS = ["By suite", "Verifiers", "What to mend first", "What the numbers depend on"]


def findings(*events: Event) -> dict[str, Any]:
    with closing(told(recorded([started(), *events]))) as db:
        return bench_findings(db, NOWHERE, "b1", {})


@pytest.fixture(scope="module")
def page() -> str:
    tools = [scored("tools", n, n < 15, facts={"subject": f"hard | {NASTY}" if n < 20 else "easy"}) for n in range(40)]
    plain = [scored("plain", n, n < 12) for n in range(40)]
    pairs = [Decided(str(n), n % 2 == 0, n % 2 == 0 if n else None, "", 0.1, n > 90) for n in range(100)]
    return baseline_page(findings(*tools, *plain), {"p.jsonl": summary(pairs)}, {"mbpp|x": "no\nrows"}, MADE)


def tables(text: str) -> list[list[str]]:
    """Rows of each table, as lines."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [block.splitlines() for block in blocks]


def test_every_row_has_the_columns_of_its_head(page: str) -> None:
    found = tables(page)
    assert len(found) == 6
    for lines in found:
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(re.findall(r"\|", lines[0]))}
    assert re.findall("<summary>(.*)</summary>", page) == HEADINGS
    assert "<script>" not in page
    assert not re.search(r"(?<!\\)<img", page)


def test_numbers_are_those_of_the_findings(page: str) -> None:
    suite = "| gsm8k | math | 40 | 37.5% (24.2% to 53.0%) | 30.0% (18.1% to 45.4%) | 0.0% | +7.5 ("
    assert suite in page
    assert "| p.jsonl | 91 | 0.989 |" in page
    assert "| p.jsonl, policy | 9 | 1.000 |" in page
    mended = next(lines for lines in tables(page) if "to gain" in lines[0])
    gains = [float(line.rpartition("+")[0].rpartition("| +")[2].partition(" ")[0]) for line in mended[2:]]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] == 62.5
    assert "| tool | no call | 40 | 25 |" in page


def test_nothing_scored_is_a_page_too() -> None:
    text = baseline_page(findings(), {}, {}, MADE)
    assert "There were no pairs in the folder." in text
    assert re.findall("<summary>(.*)</summary>", text) == HEADINGS


def test_the_page_in_the_documents_is_one_of_ours() -> None:
    text = (ROOT / PAGE).read_text()
    command = text.partition("```\n")[2].partition("\n```")[0]
    assert command.startswith(".venv/bin/agent0 bench baseline --data FOLDER ")
    flags = {opt for p in get_command(build()).commands["bench"].commands["baseline"].params for opt in p.opts}
    assert set(re.findall(r"--[a-z]+", command)) <= flags
    assert re.findall("<summary>(.*)</summary>", text) == HEADINGS
    suites = next(lines for lines in tables(text) if lines[0].startswith("| benchmark |"))
    assert {"arc_challenge", "heldout_math"} <= {line.split(" | ")[0].strip("| ") for line in suites}
    unsolved = re.search("No item is right, with tools or without, of (.*)", text)
    assert unsolved and {"gsm8k", "mbpp"} <= set(unsolved[1].rstrip(".").split(", "))


def test_a_benchmark_of_which_nothing_is_solved_takes_no_row() -> None:
    text = baseline_page(
        findings(*(scored(mode, n, False) for mode in ("tools", "plain") for n in range(3))), {}, {}, MADE
    )
    assert "| benchmark |" not in text
    assert "No item is right, with tools or without, of gsm8k." in text


def test_one_command_makes_the_page(tmp_path: Path) -> None:
    row = '{"pair_id": "a", "gold": "1/2", "candidate": "0.5", "form": "answer", "label": "accept"}'
    (tmp_path / "verifier_pairs.jsonl").write_text(row)
    words = ("bench", "baseline", "--provider", "scripted", "--data", str(tmp_path), "--limit", "2")
    out = tmp_path / "b.md"
    said = agent0(*words, "--suites", "heldout_math, heldout_code", "--out", str(out), "--json", home=tmp_path / "home")
    assert said.code == 0, said.err
    assert [score["accuracy"] for score in said.json["scores"]] == [1.0] * 4
    assert said.json["verifiers"]["verifier_pairs.jsonl"]["accuracy"] == 1.0
    text = out.read_text()
    assert ".venv/bin/agent0 bench baseline --data FOLDER --provider scripted --limit 2 --seed 0 --suites" in text
    assert str(tmp_path) not in text
    missing = agent0(*words, "--suites", "gsm8k", home=tmp_path / "home")
    assert (missing.code, "agent0 bench fetch gsm8k" in missing.err) == (1, True)
