"""Receipts explained: what each part added, by which formula, and how a total was scaled."""

import asyncio
import sqlite3
from contextlib import closing, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent0.assembly.validate.rewards import reward_policy
from agent0.cli import build, lookup
from agent0.errors import ConfigError
from agent0.events.base import Recorded
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.projections import Projector, tables
from agent0.report.markdown.rewards import reference
from agent0.rewards import reward_sets
from agent0.rewards.describe import UNKNOWN_PART, explain_receipt, part_rows
from agent0.settings import RewardConfig
from tests.play import play
from tests.story import bodies
from tests.world import ports, small, started


@cache
def told(name: str) -> tuple[Recorded, ...]:
    rules = RewardConfig.model_validate({"set": name, "normalize": name == "agent0", "clip": 2.0})
    return tuple(asyncio.run(play(started(small(tasks=4, attempts=2, rewards=rules.model_dump())), ports())))


def rows(name: str) -> list[dict[str, Any]]:
    """As the tables have them."""
    receipts = [r.event for r in told(name) if isinstance(r.event, RewardAssigned)]
    return [{**x.model_dump(), "reward_set": x.set, "parts": [part.model_dump() for part in x.parts]} for x in receipts]


@pytest.mark.parametrize("name", ["agent0", "paper", "released"])
def test_a_receipt_is_explained_by_the_set_it_was_paid_under(name: str) -> None:
    held = rows(name)
    assert {row["role"] for row in held} == {"teacher", "student"}
    for row in held:
        one = explain_receipt(row)
        raw = row["facts"]["raw_total"]
        assert one["check"] == pytest.approx(raw) and f"raw {raw:g}" in one["scaled"]
        assert row["total"] == pytest.approx(max(-2.0, min(2.0, row["total"])))
        assert all(part["formula"] and UNKNOWN_PART not in part["formula"] for part in one["parts"])
        if name != "paper":  # a product of parts is more than their sum
            known = [part["contribution"] for part in one["parts"] if part["contribution"] is not None]
            assert sum(known) == pytest.approx(raw, abs=1e-9)


def test_a_student_of_the_paper_is_told_the_majority() -> None:
    """In a whole run; there, too, it is paid by it and not by the verdict, where these differ."""
    held = [row for row in rows("paper") if row["role"] == "student"]
    apart = [row for row in held if row["facts"]["correct"] is not row["facts"]["agrees"]]
    assert apart and len({row["attempt"] for row in held}) == len(held)
    for row in held:
        (part,) = explain_receipt(row)["parts"]
        assert part["inputs"] == {name: row["facts"][name] for name in ("agrees", "majority")}
        assert part["value"] == row["total"] == float(row["facts"]["agrees"])
    verdicts = [r.event for r in told("paper") if isinstance(r.event, ResultVerified)]
    assert {row["attempt"] for row in held} == {verdict.attempt for verdict in verdicts}


def test_receipts_of_the_first_iteration_have_nothing_before_them_and_later_ones_have() -> None:
    held = [(row["iteration"], row["facts"]["earned"]) for row in rows("agent0") if row["role"] == "student"]
    assert {earned for iteration, earned in held if iteration == 0} == {0}
    first = sum(iteration == 0 for iteration, _ in held)
    assert {earned for iteration, earned in held if iteration == 1} == {first}


def test_a_receipt_of_an_unknown_set_or_part_is_still_shown() -> None:
    row = rows("paper")[0]
    assert "no such set" in explain_receipt({**row, "reward_set": "gone"})["formula"]
    other = {**row, "parts": [{**row["parts"][0], "name": "gone"}]}
    assert explain_receipt(other)["parts"][0]["formula"] == UNKNOWN_PART


def test_sets_and_parts_are_listed() -> None:
    run, app = CliRunner(), build()
    listed = run.invoke(app, ["reward", "list", "--json"])
    assert listed.exit_code == 0 and all(f'"{name}"' in listed.stdout for name in reward_sets())
    for name in reward_sets():
        assert run.invoke(app, ["reward", "list", name, "--json"]).stdout.count('"part"') == len(part_rows(name))


def test_the_run_of_a_receipt_is_named_in_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(":memory:")) as held:
        held.row_factory = sqlite3.Row
        Projector(Path("memory"), lambda _: held, tables(), "stream").apply(bodies(told("paper")))
        monkeypatch.setattr(lookup, "tables", lambda: nullcontext(held))
        attempt = next(row["attempt"] for row in rows("paper") if row["role"] == "student")
        ways = [["r1"], ["--run", "r1"], []]
        shown = [CliRunner().invoke(build(), ["reward", "explain", attempt, *way, "--json"]) for way in ways]
    assert [one.exit_code for one in shown] == [0, 0, 0], shown[0].output
    assert shown[0].stdout == shown[1].stdout == shown[2].stdout and '"agrees"' in shown[0].stdout


@pytest.mark.parametrize("name", [*reward_sets()])
def test_rules_are_a_set_by_its_name(name: str) -> None:
    assert reward_policy(name) == RewardConfig(set=name)


def test_a_name_that_is_neither_a_set_nor_a_file_says_what_may_be_named() -> None:
    with pytest.raises(ConfigError) as found:
        reward_policy("papre")
    assert "Name a set, a TOML file, or as-run" in found.value.fix


def test_code_on_the_page_is_in_single_quotes_and_fences_stay() -> None:
    assert '"```output"' in reference() and "`1 - 2" in reference()
