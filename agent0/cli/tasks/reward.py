"""Rewards: the registered sets, why a task or an attempt got its reward, and whether exploits earn more than honest
work."""

from typing import Annotated

import typer

from agent0.assembly.validate.rewards import check_rewards, reward_policy
from agent0.cli import console, flags
from agent0.rewards.describe import part_rows, set_rows
from agent0.settings import RewardConfig


def list_(
    set_: Annotated[str, typer.Argument(metavar="SET", help="Parts of this set; empty: the sets themselves.")] = "",
    plugin: console.Plugin = None,
    as_json: console.Json = False,
) -> None:
    """The reward sets and how each puts its parts together; with a set, its parts, weights and formulas."""
    flags.settings(plugins=plugin)
    if not set_:
        console.table(set_rows(), as_json)
        return
    console.table(part_rows(rules_of(set_, "").set), as_json, ("role", "part", "weight", "reads", "formula"))


def rules_of(set_: str, file: str) -> RewardConfig:
    """The rules of a file where one is named, else those of the set ``set_``.

    Raises:
        ConfigError: there is no such set, or the file has no rules.
    """
    if file:
        return reward_policy(file) or RewardConfig()
    rules = RewardConfig(set=set_)
    check_rewards(rules, "--set")
    return rules
