"""The one way to a model that costs money: reserve, call, charge, and say so in the log."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from agent0.errors import AuthError, ConfigError, NotSentError, OperationError, UsageError
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.routing.budgets import Purpose, most_cost
from events.budgets import BudgetScope
from events.models import ModelCalled
from events.values import TokenCounts, Usage
from infra.gateway.ledger import Clock, Ledger, Reservation, Stamp, accounts_of
from infra.gateway.prices import Price, Prices, read_usage
from infra.log.event_log import Log

FREE = (NotSentError, AuthError, ConfigError, OperationError)
"""What ends a call for which nobody sends a bill: nothing was sent, or it was refused before a word was written."""

TEMPLATE_BYTES = 4096
"""Bytes that a vendor may add to a prompt: a chat template's marks and instructions on tools."""


@dataclass(frozen=True)
class Remote:
    """A model that costs money, and whose budgets are charged. ``vendor`` and ``model``: as in the price table."""

    vendor: str
    model: str
    role: str
    user: str
    caps: Mapping[BudgetScope, int | None]
    outside: str = "outside"
    """Whose budget a call is charged to that belongs to no run."""


class Gateway:
    """The ``Model`` port in front of a model that costs money."""

    def __init__(
        self, inner: Model, remote: Remote, ledger: Ledger, prices: Prices, log: Log, stamp: Stamp, clock: Clock
    ) -> None:
        self.name = inner.name
        self._inner, self._remote, self._ledger, self._prices = inner, remote, ledger, prices
        self._log, self._stamp, self._clock = log, stamp, clock

    async def close(self) -> None:
        """Close the model behind it."""
        await self._inner.close()

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn and charge what it cost: by the vendor's count, or else all that was reserved.

        Raises:
            BudgetExhaustedError: a budget has not enough left; nothing was sent.
            UnknownPriceError: nobody knows the price, and a budget is capped. What the model raises.
        """
        remote, at = self._remote, self._clock()
        accounts = accounts_of(request.group or remote.outside, at, remote.vendor, remote.user, remote.caps)
        paid = Purpose(remote.vendor, remote.model)
        held = await self._ledger.reserve(accounts, self._most(request, at), paid)
        try:
            written = await self._inner.generate(replace(request, joint=1))  # turns drawn together share one count
        except FREE as error:
            await self._ledger.refund(held, replace(paid, reason=type(error).__name__))
            await self._note(request, held, None, None, Price(0, ""), type(error).__name__)
            raise
        except BaseException as error:
            await self._ledger.charge_in_full(held, replace(paid, reason=type(error).__name__))
            await self._note(request, held, None, None, _full(held), type(error).__name__)
            raise
        self.name = self._inner.name  # some servers say at the first call what they have
        await self._charge(request, held, written, paid)
        return written

    async def _charge(self, request: GenerateRequest, held: Reservation, written: Generation, paid: Purpose) -> None:
        tokens: TokenCounts | None = None
        try:
            tokens = read_usage("openai", {"usage": written.counted}, "chat")
            price = self._prices.of(self._remote.vendor, self._remote.model, tokens, self._clock())
            await self._settle(held, price, paid)
            error = ""
        except UsageError as wrong:
            tokens, price, error = None, _full(held), type(wrong).__name__
            await self._ledger.charge_in_full(held, replace(paid, reason=f"{error}: {wrong.why}"))
        await self._note(request, held, written, tokens, price, error)

    async def _settle(self, held: Reservation, price: Price | None, paid: Purpose) -> None:
        if price is None:
            await self._ledger.charge_in_full(held, replace(paid, reason="nobody knows the price"))
        else:
            await self._ledger.settle(held, price.amount, replace(paid, prices=price.table))

    def _most(self, request: GenerateRequest, at: datetime) -> int | None:
        """The most that it may cost, None where nobody knows."""
        rates = self._prices.rates(self._remote.vendor, self._remote.model, at)
        if rates is None:
            return None
        return most_cost(prompt_bytes(request), request.sampling.max_tokens, rates.read, rates.written)

    async def _note(
        self,
        request: GenerateRequest,
        held: Reservation,
        written: Generation | None,
        tokens: TokenCounts | None,
        price: Price | None,
        error: str,
    ) -> None:
        remote = self._remote
        called = ModelCalled(
            provider=remote.vendor,
            model=written.model if written else remote.model,
            role=remote.role,
            finish=written.finish if written else "error",
            usage=written.usage if written else Usage(),
            asked=remote.model,
            capture=written.capture if written else "",
            tokens=tokens,
            cost=None if price is None else price.amount,
            prices="" if price is None else price.table,
            call=held.call,
            error=error,
        )
        await self._log.append([self._stamp(request.group or remote.outside, called)])


def prompt_bytes(request: GenerateRequest) -> int:
    """Bytes of everything that a vendor may be sent for ``request``, and of what it may add."""
    parts = [turn.model_dump_json() for turn in request.turns]
    parts += [json.dumps(asdict(tool), ensure_ascii=False) for tool in request.tools]
    parts += [json.dumps(request.schema or {}, ensure_ascii=False), request.prefill]
    return sum(len(part.encode()) for part in parts) + TEMPLATE_BYTES


def _full(held: Reservation) -> Price | None:
    """All that was reserved; None where nobody knew what to reserve."""
    return None if held.amount is None else Price(held.amount, "")
