"""A reward that gives no number from -1 to 1: whoever asks for it is told which reward, of which file, for what."""

from pathlib import Path

import pytest

from agent0.assembly.runtime import plugins
from agent0.errors import RewardError
from agent0.rewards import receipt, reward_set
from tests.kept_open import attached
from tests.plugin_files import REWARD, forgotten
from tests.terminal import agent0 as call
from tests.test_plugin_files import SMALL

WEIGHED = ("--set", "run.rewards.weights.brevity=0.2")
SAID = "The student's reward brevity (plugin my_reward.py) gave nan for t0-00"


def giving(folder: Path, value: str) -> Path:
    file = folder / "my_reward.py"
    file.write_text(REWARD.partition("    if features")[0] + f"    return {value}\n")
    return file


@pytest.mark.parametrize("value", ['float("nan")', 'float("inf")', '-float("inf")', '"0.5"', "[1.0]", "7.5", "-1.01"])
def test_what_is_no_number_from_minus_1_to_1_is_no_reward(value: str, tmp_path: Path) -> None:
    with forgotten():
        plugins.load_plugin_file(giving(tmp_path, value))
        with pytest.raises(
            RewardError, match=r"student's reward brevity \(plugin my_reward\.py\) gave .* for t0-000-a1"
        ):
            receipt("student", {"correct": True}, {"brevity": 0.2}, of="t0-000-a1")
        assert not RewardError.kind.retryable


def test_parts_without_a_value_and_whole_numbers_are_rewards(tmp_path: Path) -> None:
    for value, worth in (("None", None), ("1", 1.0), ("True", 1.0)):
        with forgotten():
            plugins.load_plugin_file(giving(tmp_path, value))
            parts, _ = receipt("student", {"correct": True}, {"brevity": 0.2})
            assert {part.name: part.value for part in parts}["brevity"] == worth


def test_a_set_whose_total_is_no_number_is_named() -> None:
    with forgotten():
        reward_set("odd", like="agent0")(lambda role, worth: float("inf"))
        with pytest.raises(RewardError, match=r"reward set odd \((tests\.)?test_not_finite\) gave inf for t1"):
            receipt("student", {"correct": True}, {}, "odd", "t1")


def test_every_command_names_the_reward_its_file_and_the_task(tmp_path: Path) -> None:
    plugin = ("--plugin", str(giving(tmp_path, 'float("nan")')))
    with forgotten(), attached(tmp_path / "data") as home:
        played = call("reward", "hack-test", *plugin, *WEIGHED, home=home)
        assert played.code == 2 and SAID in played.err
        begun = call("run", "start", *SMALL, *plugin, *WEIGHED, home=home)
        assert begun.code == 6
        assert SAID in call("run", "why", home=home).out.splitlines()[0]
        kept = call("failures", "list", "--status", "", "--json", home=home).json
        assert kept and all((row["error"], row["deliveries"]) == ("RewardError", 1) for row in kept)
        again = call("experiment", "rescore", "LAST", *plugin, home=home)
        assert again.code == 2 and SAID in again.err and "nan" not in again.out
