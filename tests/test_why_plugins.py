"""A run that code of a user's ruined: the first line names the declaration and its file, and the mend changes it."""

import asyncio
import shlex
from pathlib import Path

import pytest

from agent0.assembly.runtime import plugins
from agent0.events.values import Task
from agent0.infra.bus.dispatch import _what
from agent0.registry import is_defect, raised_in
from agent0.report.diagnosis.findings import why_lines
from agent0.rewards import receipt
from agent0.run.diagnosis import diagnose
from agent0.run.diagnosis.case import Case, HeldOutScore, Retry, Setting, Training, Wait
from agent0.run.diagnosis.causes.environment import faulty_file
from agent0.settings import RunConfig
from agent0.tasks.families import families
from agent0.verification.verifiers import verifiers
from tests.kept_open import attached
from tests.plugin_files import forgotten
from tests.terminal import agent0 as call
from tests.test_plugin_files import SMALL
from tests.test_run import played
from tests.test_why import why
from tests.world import KnowingSandbox, small

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


def test_a_reward_that_raises_is_tried_once_and_its_run_goes_on_once_its_file_is_corrected(tmp_path: Path) -> None:
    file = written(tmp_path, "boom", REWARD.format(name="boom", value="1 / (features['correct'] or 0)"))
    with forgotten(), attached(tmp_path / "data") as home:
        call("run", "start", *SMALL, "--plugin", str(file), "-s", "run.rewards.weights.boom=0.5", home=home)
        tries = call("failures", "list", "--status", "", "--json", home=home).json
        line, _, mend, advice, *_ = call("run", "why", home=home).out.splitlines()
        written(tmp_path, "boom", REWARD.format(name="boom", value="0.5"))
        refused = call("run", "resume", "LAST", "--plugin", str(file), home=home)
        words = shlex.split(mend.partition("agent0 ")[2])
        mended = call(*words, home=home)
        file.unlink()
        gone = call("run", "why", words[2], home=home).out.splitlines()[2]
    assert tries and {one["deliveries"] for one in tries} == {1}
    assert mend.endswith(f" --plugin {file}") and gone.endswith(" --plugin PATH/boom.py")
    assert line.endswith("ZeroDivisionError: division by zero (reward boom of plugin boom.py, line 7)."), line
    assert advice.startswith("Correct boom.py first") and refused.code == 2 and "agent0 run fork " in refused.err
    assert mended.code == 0, mended.err


RAISES = """@agent0.verifier("{name}", applies=lambda task: True, rank=-1)
async def judge(task: agent0.Task, answers: list[str | None], sandbox: agent0.Sandbox) -> list[agent0.Verdict]:
    raise {error}
"""


ASKED = Task(question="?", domain="math", family="x", level=1, canonical="?")


@pytest.mark.parametrize(("error", "hopeless"), [
    ("KeyError('n')", True), ("type('Mine', (Exception,), {})()", True),
    ("ConnectionResetError('gone')", False), ("TimeoutError()", False),
])  # fmt: skip
def test_what_a_users_verifier_raises_is_a_defect_unless_it_may_pass(
    tmp_path: Path, error: str, hopeless: bool
) -> None:
    with forgotten():
        plugins.load_plugin_file(written(tmp_path, "odd", RAISES.format(name="odd", error=error)))
        with pytest.raises(Exception) as raised:
            asyncio.run(verifiers()["odd"].judge(ASKED, ["1"], KnowingSandbox()))
        name, message = _what(raised.value)
        assert is_defect(raised.value) == hopeless
        assert message.endswith("(verifier odd of plugin odd.py, judge, line 6)")
    assert faulty_file(name, message) == ("odd.py" if name == "KeyError" else "")


@pytest.mark.parametrize(("error", "again"), [("KeyError", True), ("ConnectionError", False)])
def test_a_run_that_retries_an_error_of_a_users_file_is_mended_by_a_fork(error: str, again: bool) -> None:
    config = RunConfig.model_validate({"plugins": {"odd": "0" * 64}})
    said = "'n' (verifier odd of plugin odd.py, judge, line 6)"
    tries = Retry("verify_result", error, said, 3, 1, 3, "TaskAttempted, event 9", event=30, events=(10, 20, 30))
    first = diagnose(Case("r1", "x", "running", config, retries=(tries,)))[0]
    went = "agent0 run fork r1 --at 9" if again else "agent0 run resume r1"
    assert first.name == "failing" and first.mend == f"{went} --plugin PATH/odd.py"


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


FLAT = tuple(
    HeldOutScore(f"e{n}", "base", n, "validation", True, 12, 0.25, outcomes="1" * 3 + "0" * 9) for n in (-1, 0)
)
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
