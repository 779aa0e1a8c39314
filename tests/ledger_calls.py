"""Processes that reserve from one budget, to be killed: ``python -m tests.ledger_calls HOME PROCESSES CALLS CAP``.

One process imports, its children call. Their ids are printed first, then a line for each call that may be made, and how
they ended.
"""

import asyncio
import itertools
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from agent0.assembly.runtime.stamping import recorded
from agent0.errors import BudgetExhaustedError
from agent0.infra.gateway.ledger import Account, Ledger
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import open_server
from agent0.settings import NatsSettings

AMOUNT = 10
EXPIRY_S = 1000.0


def accounts(cap: int) -> tuple[Account, ...]:
    """The budgets of every call."""
    return Account("day", "2026-01-01", cap), Account("user", "someone", 2 * cap)


async def calls(home: Path, number: int, cap: int) -> None:
    """``number`` calls at once: each reserves, then settles for less, refunds, or never says how it ended."""
    counted = itertools.count()
    server = await open_server(home, NatsSettings())
    async with await Log.connect(server) as log:
        ledger = Ledger(log, recorded, lambda: datetime.now(UTC), EXPIRY_S)

        async def one() -> None:
            try:
                held = await ledger.reserve(accounts(cap), AMOUNT)
            except BudgetExhaustedError:
                return
            os.write(1, f"{held.call}\n".encode())
            match next(counted) % 10:
                case 1 | 4 | 7:
                    await ledger.refund(held)
                case 2:
                    pass
                case other:
                    await ledger.settle(held, other)

        await asyncio.gather(*(one() for _ in range(number)))


def main() -> None:
    """Fork the processes, and wait until each has ended in its way."""
    home, processes, number, cap = Path(sys.argv[1]), *map(int, sys.argv[2:])
    children = []
    for _ in range(processes):
        child = os.fork()
        if not child:
            try:
                asyncio.run(calls(home, number, cap))
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        children.append(child)
    sys.stdout.write(" ".join(map(str, children)) + "\n")
    sys.stdout.flush()
    ended = [os.waitpid(child, 0)[1] for child in children]
    sys.stdout.write(" ".join(map(str, ended)) + "\n")


if __name__ == "__main__":
    main()
