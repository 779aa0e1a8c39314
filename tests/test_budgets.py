"""The rules of a budget: it is never overrun by a reservation, its sums are exact, and nothing is open for ever."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent0.assembly.runtime.stamping import new_token
from agent0.errors import BudgetExhaustedError, ConfigError, ErrorKind, UnknownPriceError
from agent0.events.alarms import AlarmResolved
from agent0.events.base import TOKEN, decode, record
from agent0.events.budgets import PREFIX, BudgetChanged
from agent0.handlers import handlers
from agent0.routing import budgets
from agent0.routing.budgets import Balance, Purpose, balance_of, token_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AMOUNT = st.integers(0, 60)
EMPTY = Balance("run", "r1")


class Calls(RuleBasedStateMachine):
    """Calls come, end, fail, hang and return late, while the cap changes; a model of the bill is kept beside."""

    @initialize(cap=st.none() | st.integers(0, 200))
    def begin(self, cap: int | None) -> None:
        self.balance, self.now, self.number = EMPTY, NOON, 0
        self.bill: dict[str, int] = {}
        self.held: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.take(budgets.set_cap(self.balance, cap))

    def take(self, entry: BudgetChanged) -> None:
        """What is read back is what was appended."""
        stored = decode(record(entry, run="r1", time=self.now).to_json()).event
        assert stored == entry and entry.former == self.balance.level
        self.balance = balance_of(entry)

    @rule(amount=AMOUNT, seconds=st.integers(1, 20))
    def call(self, amount: int, seconds: int) -> None:
        self.number += 1
        name, before = f"c{self.number}", self.balance
        try:
            self.take(budgets.reserve(before, name, amount, self.now + timedelta(seconds=seconds)))
        except BudgetExhaustedError:
            assert before.cap is not None and before.spent + before.reserved + amount > before.cap
            if noted := budgets.refuse(before, name, amount):
                assert before.spent + amount > before.cap
                self.take(noted)
            return
        self.held[name] = amount
        assert before.cap is None or self.balance.spent + self.balance.reserved <= before.cap

    @rule(data=st.data(), cost=AMOUNT, sent=st.booleans())
    def end(self, data: st.DataObject, cost: int, sent: bool) -> None:
        if self.held:
            name = data.draw(st.sampled_from(sorted(self.held)))
            ended = budgets.settle(self.balance, name, cost) if sent else budgets.refund(self.balance, name)
            assert ended.reserved == self.held.pop(name)
            self.bill[name] = cost if sent else 0
            self.take(ended)

    @rule(seconds=st.integers(1, 30))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        for one in self.balance.overdue(self.now):
            self.bill[one.call] = self.lost[one.call] = self.held.pop(one.call)
            self.take(budgets.expire(self.balance, one.call))
        assert not self.balance.overdue(self.now)

    @rule(data=st.data(), cost=AMOUNT)
    def return_late(self, data: st.DataObject, cost: int) -> None:
        if self.lost:
            name = data.draw(st.sampled_from(sorted(self.lost)))
            self.take(budgets.correct(self.balance, name, self.lost.pop(name), cost))
            self.bill[name] = cost

    @rule(cap=st.none() | st.integers(0, 200))
    def change_cap(self, cap: int | None) -> None:
        self.take(budgets.set_cap(self.balance, cap))

    @invariant()
    def sums_are_exact(self) -> None:
        if hasattr(self, "bill"):
            assert self.balance.spent == sum(self.bill.values())
            assert {one.call: one.amount for one in self.balance.open} == self.held

    @invariant()
    def levels_tell(self) -> None:
        if hasattr(self, "bill") and self.balance.cap is not None:
            near = self.balance.spent * 100 >= self.balance.cap * 80
            assert not near or self.balance.level != ""

    def teardown(self) -> None:
        """Whatever is open now is charged one day."""
        if hasattr(self, "bill"):
            self.wait(100)
            assert self.balance.open == ()


TestCalls = Calls.TestCase


def reserved(balance: Balance, call: str, amount: int) -> Balance:
    return balance_of(budgets.reserve(balance, call, amount, NOON))


def test_a_cap_counts_what_is_under_way() -> None:
    held = reserved(balance_of(budgets.set_cap(EMPTY, 100)), "a", 60)
    with pytest.raises(BudgetExhaustedError) as refused:
        budgets.reserve(held, "b", 41, NOON)
    assert refused.value.kind is ErrorKind.DEPENDENCY
    assert "agent0 router budget set run r1" in refused.value.fix and "router.caps.run" in refused.value.fix
    assert budgets.refuse(held, "b", 41) is None  # it fits once the first is settled for less
    assert reserved(balance_of(budgets.settle(held, "a", 10)), "b", 90).free == 0


def test_a_price_that_nobody_knows_is_not_zero_where_there_is_a_cap() -> None:
    capped, called = balance_of(budgets.set_cap(EMPTY, 100)), Purpose("openai", "gpt-99")
    with pytest.raises(UnknownPriceError, match=r"call to openai/gpt-99 costs.*router.prices.\"openai/gpt-99\""):
        budgets.reserve(capped, "a", None, NOON, called)
    free = budgets.reserve(EMPTY, "a", None, NOON, called)
    assert (free.amount, budgets.settle(balance_of(free), "a", 7).spent) == (0, 7)


def test_more_than_was_reserved_is_charged_in_full() -> None:
    held = reserved(balance_of(budgets.set_cap(EMPTY, 100)), "a", 60)
    charged = budgets.settle(held, "a", 170)
    assert (charged.amount, charged.reserved, charged.spent, charged.level) == (170, 60, 170, "exhausted")
    assert balance_of(charged).free == 0


def test_levels_are_taken_back_by_a_cap_only() -> None:
    held = balance_of(budgets.set_cap(EMPTY, 100))
    for call, cost, level in (("a", 79, ""), ("b", 1, "near"), ("c", 20, "exhausted")):
        entry = budgets.settle(reserved(held, call, cost), call, cost)
        held = balance_of(entry)
        assert held.level == level
    assert balance_of(budgets.correct(held, "c", 20, 0)).level == "exhausted"
    assert [budgets.set_cap(held, cap).level for cap in (126, 125, 100, None)] == ["", "near", "exhausted", ""]


def test_a_refusal_is_noted_once_until_the_cap_changes() -> None:
    held = balance_of(budgets.set_cap(EMPTY, 100))
    noted = budgets.refuse(held, "a", 101)
    assert noted and (noted.level, noted.former, noted.spent) == ("exhausted", "", 0)
    assert budgets.refuse(balance_of(noted), "b", 101) is None
    assert budgets.refuse(EMPTY, "b", 10**12) is None


def test_a_setting_is_applied_when_it_changes() -> None:
    first = budgets.configure(EMPTY, 100)
    assert first and (first.cap, first.configured) == (100, 100)
    raised = balance_of(budgets.set_cap(balance_of(first), 300))
    assert budgets.configure(raised, 100) is None
    again = budgets.configure(raised, 200)
    assert again and again.cap == 200
    assert budgets.configure(EMPTY, None) is None and budgets.configure(raised, None) is None


@pytest.mark.parametrize(("by_hand", "setting", "holds"), [(100, 200, 100), (300, 200, 200), (None, 200, 200)])
def test_a_setting_that_comes_first_does_not_raise_what_a_user_set(
    by_hand: int | None, setting: int, holds: int
) -> None:
    begun = budgets.configure(balance_of(budgets.set_cap(EMPTY, by_hand)), setting)
    assert begun and (begun.cap, begun.configured) == (holds, setting)
    assert budgets.configure(balance_of(begun), setting) is None


def test_too_many_calls_at_once_wait() -> None:
    held = EMPTY
    for number in range(budgets.MOST_OPEN):
        held = reserved(held, f"{number:032x}", 10**12)
    with pytest.raises(BudgetExhaustedError, match="under way"):
        budgets.reserve(held, "more", 1, NOON)
    last = budgets.settle(held, f"{0:032x}", 10**12)
    assert len(record(last, run="r1", time=NOON).to_json()) < 64 << 10


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: budgets.reserve(EMPTY, "a", -1, NOON),
        lambda: budgets.reserve(reserved(EMPTY, "a", 1), "a", 1, NOON),
        lambda: budgets.settle(reserved(EMPTY, "a", 1), "a", -1),
        lambda: budgets.settle(EMPTY, "a", 1),
        lambda: budgets.refund(EMPTY, "a"),
        lambda: budgets.set_cap(EMPTY, -1),
    ],
)
def test_what_cannot_be_is_refused(wrong: Any) -> None:
    with pytest.raises((ValueError, KeyError, ConfigError)):
        wrong()


@given(scope=st.sampled_from(["day", "provider", "user"]), name=st.text(min_size=1, max_size=80))
def test_every_name_has_a_token(scope: Any, name: str) -> None:
    assert TOKEN.fullmatch(token_of(scope, name))
    assert token_of("day", "2026-11-23") == "budget-day-2026-11-23" and token_of("run", "r1") == "r1"


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "$0.00"), (1, "$0.000000001"), (-1_500_000_000, "-$1.50"), (1_234_567_000_000_000, "$1,234,567.00")],
)
def test_amounts_are_written_whole(amount: int, text: str) -> None:
    assert budgets.dollars(amount) == text


def test_the_most_that_a_call_may_cost() -> None:
    # 1,000 bytes at 3.75 dollars a million, 100 tokens at 15: 3,750,000 + 1,500,000 nano-dollars
    assert budgets.most_cost(1000, 100, Decimal(3750), Decimal(15000)) == 5_250_000
    assert budgets.most_cost(1, 0, Decimal("37.5"), Decimal(0)) == 38
    assert budgets.in_nano(0.1) == 100_000_000 and budgets.nano(Decimal("0.2")) == 1
    assert Purpose() == budgets.NOTHING


def alarms(*entries: BudgetChanged) -> list[tuple[str, str]]:
    return [
        (type(one).__name__.removeprefix("Alarm"), one.alarm.split("-")[1])
        for e in entries
        for one in budgets.level_alarms(e)
    ]


def test_alarms_come_once_at_80_percent_and_at_the_end_and_go_with_the_cap() -> None:
    held, entries = balance_of(budgets.set_cap(EMPTY, 100)), []
    for number, cost in enumerate((79, 1, 10, 10, 5)):
        holding = balance_of(budgets.reserve(held, f"c{number}", min(cost, 100 - held.spent), NOON))
        entries.append(budgets.settle(holding, f"c{number}", cost))
        held = balance_of(entries[-1])
    assert alarms(*entries) == [("Raised", "near"), ("Raised", "exhausted")]
    raised = budgets.set_cap(held, 120)
    assert alarms(raised) == [("Resolved", "exhausted")]
    assert alarms(budgets.set_cap(balance_of(raised), None)) == [("Resolved", "near")]
    all_at_once = budgets.refuse(balance_of(budgets.set_cap(EMPTY, 100)), "x", 101)
    assert all_at_once and alarms(all_at_once) == [("Raised", "near"), ("Raised", "exhausted")]


async def test_the_alarms_of_a_day_need_no_run() -> None:
    entry = budgets.set_cap(Balance("day", "2026-01-01", level="near"), 100)
    cause = record(entry, run=token_of("day", "2026-01-01"), time=NOON).model_copy(update={"seq": 1})
    (resolved,) = await handlers()["watch_budget"](cause, None, {})
    assert resolved == AlarmResolved(
        alarm="budget-near-budget-day-2026-01-01", message="The budget of day 2026-01-01 has a cap of $0.0000001 now."
    )
    assert await handlers()["advance_run"](cause, None, {}) == []


def test_no_run_has_the_id_of_a_budget() -> None:
    for title in ("budget day 2026-01-01", "Budget", "Ours"):
        assert not new_token(title, "run").startswith(PREFIX)
        assert TOKEN.fullmatch(new_token(title * 9, "run"))
