"""Runs that were recorded before calls had to be useful are paid as they were, to the byte."""

from pathlib import Path

import pytest

from agent0.experiments.rescore import Rescored, rescore
from agent0.rewards import registered_set, reward_sets, rules_of_set
from agent0.settings import RewardConfig, RunConfig
from events.base import Recorded, decode
from events.runs import RunStarted
from events.tasks import RewardAssigned

LOG = Path(__file__).parent / "golden" / "paid.jsonl"
"""A short run and one with long tasks, as an earlier version told and paid them; without vectors and tokens."""


def _told(run: str) -> list[Recorded]:
    lines = LOG.read_text(encoding="utf-8").splitlines()
    return [told for told in (decode(line, seq) for seq, line in enumerate(lines, 1)) if told.run == run]


@pytest.mark.parametrize("run", ["short", "long"])
def test_what_an_earlier_version_paid_is_what_it_would_be_paid(run: str) -> None:
    events = _told(run)
    stored = {told.id: told.event.model_dump_json() for told in events if isinstance(told.event, RewardAssigned)}
    found = [each for each in rescore(events) if isinstance(each, Rescored)]
    assert len(stored) >= 5
    assert {each.id: each.reward.model_dump_json() for each in found} == stored


def test_a_policy_that_names_no_edition_has_the_runs() -> None:
    events = _told("short")
    own, bold = list(rescore(events)), list(rescore(events, RewardConfig(weights={"novelty": 0.4})))
    second = list(rescore(events, RewardConfig(edition=2)))
    names = [{part.name: part.inputs.keys() for part in each.reward.parts} for each in own]  # type: ignore[union-attr]
    assert names == [{part.name: part.inputs.keys() for part in each.reward.parts} for each in bold]  # type: ignore[union-attr]
    assert names != [{part.name: part.inputs.keys() for part in each.reward.parts} for each in second]  # type: ignore[union-attr]


def test_a_log_without_an_edition_is_of_the_first_and_a_new_run_of_the_third() -> None:
    (start,) = [told.event for told in _told("short") if isinstance(told.event, RunStarted)]
    assert "edition" not in start.config["rewards"]
    assert RunConfig.recorded(start.config).rewards.edition == 1
    assert RunConfig().rewards.edition == RunConfig.recorded(RunConfig().model_dump()).rewards.edition == 3


def test_an_edition_stands_for_those_before_it_that_have_none() -> None:
    editions = [(name, edition) for name in ("agent0", "paper") for edition in (1, 2, 3)]
    named = {(name, edition): registered_set(RewardConfig(set=name, edition=edition)) for name, edition in editions}
    assert named == {
        ("agent0", 1): "agent0/1", ("agent0", 2): "agent0", ("agent0", 3): "agent0",
        ("paper", 1): "paper/2", ("paper", 2): "paper/2", ("paper", 3): "paper",
    }  # fmt: skip
    assert all(registered_set(rules_of_set(name)) == name for name in reward_sets())
