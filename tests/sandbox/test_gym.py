"""reasoning-gym, where it is installed: its own scorers decide, and nothing of an answer is ever run."""

import asyncio
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks import Item, chosen, gym, make_items
from agent0.infra.sandbox import Bubblewrap
from agent0.ports.sandbox import SandboxCall, SandboxResult

ROOT = Path(__file__).parents[2]
installed = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="needs: make setup EXTRAS=gym")
in_the_sandbox = pytest.mark.asyncio(loop_scope="session")
FAMILIES = ("chain_sum", "countdown", "mini_sudoku", "simple_integration", "n_queens")
HOSTILE = ("__import__('os')._exit(0)", "9**9**9**9", "(" * 4000, "9" * 60_000, "nan", "[]", "\x00", "print(1.0)")


class Silent:
    """A sandbox that must not be needed."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        raise AssertionError("an answer of no allowed form came to the scorer")

    async def close(self) -> None:
        """Nothing to end."""


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gym.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"make setup EXTRAS=gym"):
        gym.make(3, 0)


@pytest.mark.parametrize("family", ["countdown", "simple_integration", "intermediate_integration"])
async def test_what_would_be_evaluated_is_read_first(family: str) -> None:
    item = Item("x", "?", "1", "", data=json.dumps({"family": family, "module": "", "entry": ""}))
    for said in (*HOSTILE[:4], "x.__class__", "lambda: 1", "().__class__", "2**99999", "1e9", "a; b", "[1]", "f'{1}'"):
        verdict = await gym.judge(item, f"\\boxed{{{said}}}", said, Silent())
        assert verdict.correct is False, said
    sound = {"countdown": "(3 + 4)*12/2 - 1", "simple_integration": "3*x**2/2 + C"}
    assert not gym.guarded(family, sound.get(family, "exp(x)*sin(2*x)/3 + C"))


def digests(families: tuple[str, ...]) -> list[str]:
    return [make_items(chosen([f"gym:{family}"])[0], 3, 5)[1] for family in families]


@installed
@pytest.mark.parametrize(
    "families",
    [("acre", "chain_sum", "sudoku"), pytest.param(("all",), marks=pytest.mark.slow)],
)
def test_items_come_from_their_seed_alone_in_any_process(families: tuple[str, ...]) -> None:
    names = tuple(gym.families()) if families == ("all",) else families
    code = f"from tests.sandbox.test_gym import digests; print(*digests({names!r}))"
    environment = {"PYTHONHASHSEED": "77", "PATH": "", "PYTHONPATH": str(ROOT)}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.split() == digests(names)


@installed
def test_families_take_turns_and_the_first_items_stay() -> None:
    items = gym.make(6, 5)
    assert [item.facts["subject"] for item in items] == list(gym.families())[:6]
    assert gym.make(4, 5) == items[:4]
    assert gym.make(5, 5, "acre")[:2] == gym.make(2, 5, "acre")
    assert not gym.EXCLUDED.keys() & gym.families().keys()
    with pytest.raises(ConfigError, match="There is no benchmark gym:nothing"):
        make_items(chosen(["gym:nothing"])[0], 3, 1)


@installed
@in_the_sandbox
async def test_scorers_decide_and_hostile_answers_come_to_nothing(sandbox: Bubblewrap) -> None:
    items = [gym.make(1, 2, family)[0] for family in FAMILIES]

    async def grade(item: Item, said: str) -> bool | None:
        return (await gym.judge(item, said, said, sandbox)).correct

    assert await asyncio.gather(*(grade(item, item.gold) for item in items)) == [True] * len(items)
    found = await asyncio.gather(*(grade(item, said) for item in items for said in HOSTILE))
    assert found == [False] * len(items) * len(HOSTILE)
