"""A run that code of a user's ruined: the first line names the declaration and its file, and the mend changes it."""

from pathlib import Path

import pytest

from agent0.assembly.runtime import plugins
from agent0.registry import raised_in
from agent0.report.diagnosis.findings import why_lines
from agent0.rewards import receipt
from agent0.run.diagnosis import diagnose
from agent0.run.diagnosis.case import Case, Held, Setting, Training, Wait
from agent0.settings import RunConfig
from agent0.tasks.families import families
from infra.bus.dispatch import _what
from tests.kept_open import attached
from tests.plugin_files import forgotten
from tests.terminal import agent0 as call
from tests.test_plugin_files import SMALL
from tests.test_run import played
from tests.test_why import why
from tests.world import small

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
        soon = ("-s", "handlers.max_deliver=2")
        call("run", "start", *SMALL, *soon, "--plugin", str(file), "-s", "run.rewards.weights.boom=0.5", home=home)
        line, _, mend, *_ = call("run", "why", home=home).out.splitlines()
        file.unlink()
        gone = call("run", "why", home=home).out.splitlines()[2]
    assert mend.endswith(f" --plugin {file}") and gone.endswith(" --plugin PATH/boom.py")
    assert line.endswith("ZeroDivisionError: division by zero (reward boom of plugin boom.py, line 7)."), line


PAYS_WRONG = "-1.0 if features['correct'] else 1.0"
PAYS_RIGHT = "1.0 if features['correct'] else -1.0"


@pytest.mark.parametrize(
    ("value", "weight", "blamed"), [(PAYS_WRONG, 3, True), (PAYS_RIGHT, 3, False), (PAYS_WRONG, 0.2, False)]
)
def test_a_reward_that_pays_for_wrong_answers_is_named(tmp_path: Path, value: str, weight: float, blamed: bool) -> None:
    """Where the whole reward does, too; whether or not its file is loaded when it is asked."""
    file = written(tmp_path, "odd", REWARD.format(name="const", value=value))
    with forgotten():
        digest = plugins.load_plugin_file(file)
        events = played(small(tasks=12, plugins={"odd": digest}, rewards={"weights": {"const": weight}}))
        loaded = why(events)
    held = why(events)
    assert (held["cause"] == "wrong_reward") == (loaded["cause"] == "wrong_reward") == blamed, held["conclusion"]
    if blamed:
        told = "r1: the reward const of plugin odd.py pays wrong answers more than right ones: 3 on average for"
        assert why_lines(held)[0].startswith(told) and why_lines(loaded)[0].startswith(told)
        assert "--set run.rewards.weights.const=0" in held["mend"] and "const=0" in loaded["mend"]
        assert held["evidence"][0]["attempt"] and held["evidence"][0]["event"] == held["step"]["event"] > 0


FLAT = tuple(Held(f"e{n}", "base", n, "validation", True, 12, 0.25, outcomes="1" * 3 + "0" * 9) for n in (-1, 0))
TRAINED = Training("student-0", "student", 0, "base", "promoted", samples=9)


@pytest.mark.parametrize(("key", "value", "usual", "words"), [
    ("lr", 1e-12, 0.0025, "run.training.student.lr of 1e-12 trains nothing: validation 0.250 first, 0.250 last"),
    ("weight_decay", 500.0, 0.0, "run.training.student.weight_decay of 500 trains nothing: validation 0.250 first"),
    ("lr", 0.002, 0.0025, "nothing was learned: validation 0.250 first, 0.250 last (run.training.student.lr is 0.002"),
])  # fmt: skip
def test_a_recipe_that_trains_nothing_is_the_cause_where_it_is_far_off(
    key: str, value: float, usual: float, words: str
) -> None:
    setting = Setting(f"run.training.student.{key}", value, usual, "profile tiny")
    case = Case("r1", "tiny", "finished", RunConfig(), changes=(setting,), scores=FLAT, trainings=(TRAINED,))
    first = diagnose(case)[0]
    assert first.conclusion.startswith(words) and f"--set run.training.student.{key}={usual:g}" in first.mend


@pytest.mark.parametrize(("waiting", "roles"), [
    (("attempt_task",), "(run.student.base_url)"), (("propose_task",), "(run.teacher.base_url)"),
    (("attempt_task", "propose_task"), "(run.student.base_url and run.teacher.base_url)"),
])  # fmt: skip
def test_a_server_that_is_away_is_told_with_its_role(waiting: tuple[str, ...], roles: str) -> None:
    url = "http://127.0.0.1:8000/v1"
    served = {"provider": "openai", "model": "m", "base_url": url}
    config = RunConfig.model_validate({"student": served, "teacher": served})
    wait = Wait("A server of models", waiting, f"A server of models is not available. Nothing answers at {url}.")
    first = diagnose(Case("r1", "x", "running", config, waits=(wait,)))[0]
    assert first.conclusion.endswith(roles)
