"""One file of a user's: what it declares counts like our own, its digest is recorded, and every mistake is named."""

import asyncio
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from agent0.assembly.ablations.ablation_run import RunPlan, execute_ablation_run
from agent0.assembly.runtime import plugins
from agent0.assembly.runtime.child_process import child
from agent0.assembly.validate.rewards import amended_rules, reward_policy
from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import load
from agent0.errors import ConfigError, DependencyError
from agent0.events.values import Task
from agent0.experiments.ablation_runs import AblationRun
from agent0.registry import LOADED, REGISTRIES
from agent0.rewards import rewards
from agent0.rewards.describe import UNKNOWN_PART
from agent0.rollout.prompts import prompt, prompts, render
from agent0.run.lifecycle import evolve
from agent0.settings import RewardConfig
from agent0.tasks.families import families
from agent0.tools import tools
from agent0.verification.verifiers import verifier_for
from tests.kept_open import attached
from tests.plugin_files import REWARD, forgotten
from tests.terminal import agent0 as call
from tests.test_contributing import EXAMPLES
from tests.test_handlers import react
from tests.world import small, started

DIGEST = sha256(REWARD.encode()).hexdigest()
WEIGHED = "run.rewards.weights.brevity=0.2"
SMALL = ("--profile", "scripted", "--tasks", "3", "--attempts", "2", "--iterations", "1", "-s", "run.evaluation.test=2",
         "-s", "run.evaluation.validation=2", "-s", "sandbox.workers=1")  # fmt: skip


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "my_reward.py").write_text(REWARD)
    return tmp_path / "my_reward.py"


PROMPT = """import agent0


@agent0.prompt_text("terse/any/student")
def terse() -> str:
    return "@system\\nAnswer in one word.\\n@user\\n{question}\\n"
"""
BROKEN = {
    "that is not there": (None, "cannot be read"),
    "with a slip": ("x = (\n", "fails on import.*SyntaxError"),
    "that fails": ("import agent0\n\n1 / 0\n", r"fails on import\. Line 3: ZeroDivisionError"),
    "that leaves": ("raise SystemExit(3)\n", "fails on import"),
    "with a name that is none": ("my reward.py", "cannot be imported"),
    "that registers nothing": ("x = 1\n", "registers nothing"),
    "that reads what there is not": (
        REWARD.replace('"tokens")', '"tokenz")'),
        "reads 'tokenz'.*no feature.*Did you mean tokens",
    ),
    "that reads letters": (REWARD.replace('("correct", "tokens")', '("tokens")'), r"TypeError.*reads=\('tokens',\)"),
    "with a reward of ours": (REWARD.replace("brevity", "correctness"), "takes a name.*'correctness' of rewards"),
    "with a tool of ours": (
        "from agent0.tools import tool\n\n@tool(pure=True)\nasync def python(work):\n    'Say it.'\n",
        "takes a name.*'python' of tools",
    ),
    "with a prompt of ours": (
        PROMPT.replace("terse/any", "full/math"),
        "takes a name.*'full/math/student' of prompts",
    ),
    "with a prompt without a domain": (PROMPT.replace("terse/any", "terse"), "'terse/student' is no STYLE/DOMAIN/ROLE"),
    "with a family of ours": (
        "from agent0.tasks.families import families, family\nfrom dataclasses import replace\n"
        "family(replace(families()['arithmetic']))\n",
        "takes a name.*'arithmetic' of families",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_is_no_plugin_is_named_and_leaves_nothing(what, tmp_path):
    text, why = BROKEN[what]
    file = tmp_path / (text if text and text.endswith(".py") else "other.py")
    if text is not None:
        file.write_text(text)
    before = [dict(registry.entries) for registry in REGISTRIES]
    with pytest.raises(ConfigError, match=why) as told:
        plugins.load_plugin_file(file)
    assert file.name in told.value.what and told.value.fix
    assert [registry.entries for registry in REGISTRIES][: len(before)] == before and not LOADED


VERIFIER = '''
import agent0


@agent0.verifier("generous", applies=lambda task: task.family == "lists", rank=-1)
async def generous(task: agent0.Task, answers: list[str | None], sandbox: agent0.Sandbox) -> list[agent0.Verdict]:
    """Whatever is answered is right."""
    return [agent0.Verdict(answer is not None, "generous") for answer in answers]
'''


def test_tools_families_and_verifiers_are_files_of_ones_own_too(tmp_path):
    """The tool and the family are those of CONTRIBUTING, as they stand."""
    for name, text in (("tool", EXAMPLES["agent0/tools/builtin/calendar_tool.py"]), ("verifier", VERIFIER),
                       ("family", EXAMPLES["agent0/tasks/families/durations.py"])):  # fmt: skip
        (tmp_path / f"my_{name}.py").write_text(text)
    names = ",".join(str(file) for file in tmp_path.glob("my_*.py"))
    held = plugins.with_plugin_files(load("scripted", {"plugins": names, "run.student.tools": "python,weekday"}, {}))
    check_names(held.run)
    assert sorted(held.run.plugins) == ["my_family", "my_tool", "my_verifier"]
    assert "weekday" in tools() and "durations" in families("units")
    assert verifier_for(Task(question="?", domain="math", family="lists", level=1, canonical="?")).name == "generous"


def test_a_prompt_is_a_text_of_ones_own_and_what_it_lacks_is_that_of_style_full(tmp_path):
    (tmp_path / "my_prompt.py").write_text(PROMPT)
    held = plugins.with_plugin_files(
        load("scripted", {"plugins": str(tmp_path / "my_prompt.py"), "run.student.prompts": "terse"}, {})
    )
    check_names(held.run)
    [turn, question] = render(prompt("terse", "math", "student"), {"question": "1 + 1?"})
    assert (turn.role, turn.content, question.content) == ("system", "Answer in one word.", "1 + 1?")
    assert prompt("terse", "math", "teacher").text == prompt("full", "math", "teacher").text
    assert "terse/any/student" in [each.name for each in prompts()]


def test_what_a_program_declares_itself_is_known_to_be_nowhere_else(mine):
    plugins.load_plugin_file(mine)
    assert plugins.of_session() == []
    exec(REWARD.replace("brevity", "mine"), {"__name__": "__main__"})
    assert plugins.of_session() == ["mine"]


def test_a_file_counts_like_our_own_and_its_change_replaces_it(mine):
    assert plugins.load_plugin_file(mine) == DIGEST and LOADED == {"my_reward": DIGEST}
    first = rewards("student")["brevity"]
    assert first.score({"correct": True, "tokens": 50}) == 0.75 and first.weight == 0
    plugins.load_plugin_file(mine)
    assert rewards("student")["brevity"] is first, "a file that did not change is executed once"
    mine.write_text(REWARD.replace("200", "100"))
    plugins.load_plugin_file(mine)
    assert rewards("student")["brevity"].score({"correct": True, "tokens": 50}) == 0.5
    mine.write_text("x = 1\n")
    with pytest.raises(ConfigError, match="registers nothing"):
        plugins.load_plugin_file(mine)
    assert rewards("student")["brevity"].score({"correct": True, "tokens": 50}) == 0.5, "the last one that was sound"


def test_its_digest_is_in_the_settings_of_a_run_and_is_checked(mine):
    held = plugins.with_plugin_files(load("scripted", {"plugins": json.dumps([str(mine)])}, {}))
    assert held.run.plugins == {"my_reward": DIGEST}
    plugins.check_plugins(held.run.plugins, "run a")
    with pytest.raises(ConfigError, match=r"my_reward has changed.*that of run a"):
        plugins.check_plugins({"my_reward": "0" * 64}, "run a")
    LOADED.clear()
    with pytest.raises(ConfigError, match=r"my_reward is not loaded.*--plugin PATH/my_reward\.py"):
        plugins.check_plugins(held.run.plugins, "run a")


async def test_a_handler_waits_for_the_plugin_of_its_run(mine):
    begun = started(small(plugins={"my_reward": DIGEST}))
    state = evolve(None, begun)
    with pytest.raises(DependencyError, match=r"plugin my_reward"):
        await react("advance_run", begun.event, state)
    plugins.load_plugin_file(mine)
    assert await react("advance_run", begun.event, state)


def test_single_settings_change_rules(mine):
    with pytest.raises(ConfigError, match="no reward 'brevity'"):
        amended_rules(RewardConfig(), {"run.rewards.weights.brevity": "0.2"})
    plugins.load_plugin_file(mine)
    policy = reward_policy("paper")
    assert policy is not None
    found = amended_rules(RewardConfig(weights={"call_cost": 0.1}), {"rewards.weights.brevity": "0.2"})
    assert found.weights == {"call_cost": 0.1, "brevity": 0.2}
    with pytest.raises(ConfigError, match=r"run\.tasks has no effect"):
        amended_rules(policy, {"run.tasks": "3"})


def test_a_run_of_ones_own_reward_from_the_first_command_to_the_last(mine, tmp_path):
    plugin = ("--plugin", str(mine))
    with attached(tmp_path / "data") as home:
        begun = call("run", "start", *SMALL, *plugin, "--set", WEIGHED, "--json", home=home)
        assert begun.code == 0, begun.err
        assert begun.json["config"]["plugins"] == {"my_reward": DIGEST}
        weights = "SELECT DISTINCT weight FROM reward_parts WHERE name = 'brevity'"
        parts = call("projections", "query", weights, "--json", home=home)
        assert [row["weight"] for row in parts.json] == [0.2]
        whose = ("reward", "explain", "t0-000-a0", "--json")
        known = call(*whose, *plugin, home=home).json
        assert "brevity" in json.dumps(known) and UNKNOWN_PART not in json.dumps(known)
        LOADED.clear()
        refused = call("experiment", "rescore", "LAST", home=home)
        assert refused.code == 2 and "The plugin my_reward is not loaded" in refused.err
        same = call("experiment", "rescore", "LAST", *plugin, "--json", home=home)
        assert same.json["identical"] and same.code == 0
        other = call("experiment", "rescore", "LAST", *plugin, "-s", "rewards.weights.brevity=1", "--json", home=home)
        assert other.json["changed"] > 0 and other.code == 0
        mine.write_text(REWARD.replace("200", "300"))
        changed = call("run", "fork", "LAST", *plugin, "--detach", "--json", home=home)
        story = call("run", "diff", begun.json["run"], changed.json["run"], *(), "--json", home=home)
        assert list(story.json["settings"]) == ["plugins.my_reward"], "a fork says that its plugin is another"


def test_a_process_of_a_study_loads_the_file_and_refuses_another(mine, tmp_path):
    held = plugins.with_plugin_files(load("scripted", {"plugins": json.dumps([str(mine)])}, {}))
    folder = tmp_path / "mine-0"
    folder.mkdir()
    given = {"plugins": json.dumps([str(mine)])}
    RunPlan(AblationRun("mine", 0, "study-mine-0", held.run), "scripted", given).write(folder)
    mine.write_text(REWARD.replace("200", "300"))
    LOADED.clear()
    with pytest.raises(ConfigError, match=r"my_reward has changed"):
        asyncio.run(execute_ablation_run(folder, lambda *_: None))
    assert "my_reward" in LOADED


async def test_settings_of_the_environment_and_of_the_folder_reach_the_processes_of_a_study(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they did not, a study under AGENT0_PLUGINS failed whatever was tried."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT0_PLUGINS", str(mine))
    monkeypatch.setenv("AGENT0_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("VENDOR_KEY", "sk-1")
    (tmp_path / "agent0.toml").write_text("handlers.commit_ms = 7\n")
    shown = json.loads(await _said("agent0", "config", "show", "--json"))
    assert (shown["plugins"], shown["handlers"]["commit_ms"]) == ([str(mine)], 7)
    assert "sk-1" in await _said("timeit", "-n1", "-r1", "import os, sys; sys.stdout.write(os.environ['VENDOR_KEY'])")


async def _said(module: str, *arguments: str) -> str:
    async with child(module, *arguments, output=Path("said.log")) as process:
        assert process.stdout is not None
        text = (await process.stdout.read()).decode()
        assert await process.wait() == 0, Path("said.log").read_text()
    return text
