"""A run that code of a user's ruined: the first line names the declaration and its file, and the mend changes it."""

from pathlib import Path

import pytest

from agent0.assembly.runtime import plugins
from agent0.registry import raised_in
from agent0.rewards import receipt
from agent0.tasks.families import families
from infra.bus.dispatch import _what
from tests.kept_open import attached
from tests.plugin_files import forgotten
from tests.terminal import agent0 as call
from tests.test_plugin_files import SMALL

HEAD = "import agent0\n\n\n"
REWARD = '''@agent0.reward("{name}", role="student", reads=("correct",))
def {name}(features: agent0.Features) -> float | None:
    """Of a test."""
    return {value}
'''
FAMILY = """def ask(p: agent0.Params) -> str:
    return p["n"]


agent0.family(agent0.Family(name="twice", domain="math", sample=lambda level, rng: {}, render=lambda p, rng: "",
    parse=lambda q: None, level=lambda p: 1, solve=ask, canonical=lambda p: "", call=lambda p: ("python", {})))
"""


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.py"
    file.write_text(HEAD + text)
    return file


def test_an_error_in_a_users_file_is_told_with_its_declaration(tmp_path: Path) -> None:
    with forgotten():
        plugins.load_plugin_file(written(tmp_path, "boom", REWARD.format(name="boom", value="1 / 0")))
        plugins.load_plugin_file(written(tmp_path, "mine", FAMILY))
        plugins.load_plugin_file(
            written(
                tmp_path, "apart", "def halve(x: int) -> float:\n    return x / 0\n\n\n" + FAMILY.replace("twice", "x")
            )
        )
        with pytest.raises(ZeroDivisionError) as raised:
            receipt("student", {"correct": True}, {"boom": 0.5})
        said = "division by zero (reward boom of plugin boom.py, line 7)"
        assert _what(raised.value) == ("ZeroDivisionError", said)
        with pytest.raises(KeyError) as missing:
            families()["twice"].solve({})
        assert _what(missing.value) == ("KeyError", "'n' (family twice of plugin mine.py, solve, line 5)")
        with pytest.raises(ZeroDivisionError) as apart:
            vars(__import__("sys").modules["agent0_plugin_apart"])["halve"](1)
        assert raised_in(apart.value) == "plugin apart.py, halve, line 5"
    with pytest.raises(KeyError) as ours:
        families()["no such family"]
    assert _what(ours.value) == ("KeyError", "'no such family'")


def test_the_first_line_names_a_reward_that_raises_and_its_file(tmp_path: Path) -> None:
    file = written(tmp_path, "boom", REWARD.format(name="boom", value="1 / 0"))
    with forgotten(), attached(tmp_path / "data") as home:
        call("run", "start", *SMALL, "--plugin", str(file), "-s", "run.rewards.weights.boom=0.5", home=home)
        line = call("run", "why", home=home).out.splitlines()[0]
    assert line.endswith("ZeroDivisionError: division by zero (reward boom of plugin boom.py, line 7)."), line
