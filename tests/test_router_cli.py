"""``agent0 router budget``: what is spent, the invoice, and a cap that is raised while calls wait for it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.routing.billing import caps, open_ledger
from agent0.assembly.routing.gate import open_cache
from agent0.config.loading import load
from agent0.errors import BudgetExhaustedError
from agent0.events.budgets import DOLLAR
from agent0.events.values import Turn
from agent0.infra.gateway.ledger import Account, accounts_of
from agent0.ports.models import GenerateRequest, Generation
from agent0.routing.budgets import Purpose
from agent0.settings import Settings
from tests.kept_open import attached
from tests.terminal import agent0 as call
from tests.world import NOON


def held_in(home: Path) -> Settings:
    return load("scripted", {"home": str(home), "router.caps.day": "1", "router.caps.user": "0.5"}, {})


async def spend(held: Settings) -> None:
    """A call for a fifth of a dollar, one under way, and one that no longer fits."""
    async with open_log(held, make=True) as log:
        accounts = accounts_of("r1", NOON, "openai", "someone", caps(held.router))
        ledger, purpose = open_ledger(held, log), Purpose("openai", "gpt-4o", "genai-prices 0.2.3, 2026-01-01")
        done = await ledger.reserve(accounts, DOLLAR * 3 // 10, purpose)
        await ledger.settle(done, DOLLAR // 5, purpose)
        await ledger.reserve(accounts, DOLLAR // 10, purpose)
        with pytest.raises(BudgetExhaustedError, match=r"user someone is used up.*of \$0.50, \$0.20 are spent"):
            await ledger.reserve(accounts, DOLLAR * 4 // 10, purpose)


async def fits(held: Settings, account: Account, amount: int) -> bool:
    async with open_log(held) as log:
        try:
            await open_ledger(held, log).reserve((account,), amount)
        except BudgetExhaustedError:
            return False
    return True


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with attached(tmp_path):
        yield tmp_path


def test_budgets_are_shown_and_caps_changed(home: Path) -> None:
    held = held_in(home)
    asyncio.run(spend(held))
    rows = {row["scope"]: row for row in call("router", "budget", "list", "--json", home=home).json}
    assert {scope: (row["cap"], row["spent"], row["reserved"]) for scope, row in rows.items()} == {
        "run": (None, DOLLAR // 5, DOLLAR // 10),
        "day": (DOLLAR, DOLLAR // 5, DOLLAR // 10),
        "provider": (None, DOLLAR // 5, DOLLAR // 10),
        "user": (DOLLAR // 2, DOLLAR // 5, DOLLAR // 10),
    }
    assert rows["user"]["level"] == "exhausted"
    shown = call("router", "budget", "show", "user", "someone", "--json", home=home).json
    assert [entry["kind"] for entry in shown["entries"]] == ["refuse", "reserve", "settle", "reserve", "cap"]
    assert shown["entries"][2]["prices"] == "genai-prices 0.2.3, 2026-01-01"
    assert [entry["spent"] for entry in shown["entries"]] == [DOLLAR // 5] * 3 + [0, 0]
    last = call("router", "budget", "show", "user", "someone", "--json", "--limit", "2", home=home).json
    assert [entry["kind"] for entry in last["entries"]] == ["refuse", "reserve"]
    words = call("router", "budget", "show", "day", "2026-01-01", home=home).out
    assert "$0.20" in words and "$0.70" in words
    account = Account("user", "someone", DOLLAR // 2)
    assert not asyncio.run(fits(held, account, DOLLAR))
    raised = call("router", "budget", "set", "user", "someone", "--cap", "1.5", home=home)
    assert raised.code == 0 and "$1.50" in raised.out
    assert asyncio.run(fits(held, account, DOLLAR))
    freed = call("router", "budget", "set", "user", "someone", "--no-cap", "--json", home=home).json
    assert (freed["cap"], freed["level"]) == (None, "")
    assert call("projections", "query", "SELECT run FROM runs", "--json", home=home).json == [{"run": "r1"}]


WRONG = (
    (("show", "week"), 2, "There is no budget of a 'week'"),
    (("show", "provider"), 2, "Which provider?"),
    (("show", "user", "nobody"), 1, "Nothing was charged to user nobody"),
    (("set", "day"), 2, "either --cap USD or --no-cap"),
    (("set", "day", "--cap", "1", "--no-cap"), 2, "either --cap USD or --no-cap"),
    (("set", "day", "--cap", "-1"), 2, "cap"),
    (("list", "--scope", "dya"), 2, "day"),
)


def test_what_is_wrong_is_said(home: Path) -> None:
    asyncio.run(fits_nothing(home))
    for words, code, message in WRONG:
        said = call("router", "budget", *words, home=home)
        assert said.code == code and message in said.err, words


def test_a_stage_that_there_is_not_is_named(tmp_path: Path) -> None:
    said = call("router", "compress", "--stage", "sumary", home=tmp_path)
    assert said.code == 2 and "'structural', 'extractive' or 'summary'" in said.err


def test_a_role_without_a_model_is_named_with_its_setting(tmp_path: Path) -> None:
    asked = call("router", "ask", "Is 7 a prime?", home=tmp_path)
    assert (
        asked.code == 2 and "The judge has no model. The setting run.verification.judge.provider is empty." in asked.err
    )


async def fits_nothing(home: Path) -> None:
    async with open_log(load("scripted", {"home": str(home)}, {}), make=True) as log:
        await open_ledger(held_in(home), log).set_cap(Account("day", "2026-01-01"), 1)


def test_kept_answers_are_listed_and_dropped(tmp_path: Path) -> None:
    held = held_in(tmp_path)
    kept = open_cache(held)
    asked = GenerateRequest((Turn(role="user", content="2+2?"),))
    kept.put("anthropic", "claude", asked, Generation("4"), DOLLAR // 4, NOON.timestamp())
    assert kept.get("anthropic", "claude", asked, NOON.timestamp())
    kept.close()
    said = call("router", "cache", "--json", home=tmp_path)
    [row] = json.loads(said.out)
    assert (row["model"], row["answers"], row["hits"], row["saved"]) == ("claude", 1, 1, DOLLAR // 4)
    assert "$0.25" in call("router", "cache", home=tmp_path).out
    assert "1" in call("router", "cache", "--clear", home=tmp_path).out
    assert json.loads(call("router", "cache", "--json", home=tmp_path).out) == []
