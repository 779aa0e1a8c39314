"""Budgets of model calls, and kept answers."""

from typing import Annotated, Any

import typer

from agent0.assembly.routing.billing import change_cap, name_of, scope_of
from agent0.assembly.routing.gate import cached_models, clear_cache
from agent0.cli import console, flags, lookup
from agent0.cli.routing.router import in_dollars
from agent0.errors import ConfigError, NotFoundError
from agent0.projections.budgets import list_budgets, list_entries

Scope = Annotated[str, typer.Argument(metavar="SCOPE", help="run, day, provider or user.")]
Name = Annotated[
    str, typer.Argument(metavar="[NAME]", help="A run, a date (empty: today), a provider, a user (empty: yours).")
]
COLUMNS = ("scope", "name", "cap", "spent", "reserved", "free", "level", "updated")


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Drop all answers; they are then asked for again.")] = False,
    as_json: console.Json = False,
) -> None:
    """Answers that are kept, by model: how many, their size, how often they were used again, what that saved."""
    settings = flags.settings()
    if clear:
        console.record({"dropped": clear_cache(settings)}, as_json)
        return
    kept = cached_models(settings)
    rows, shown = [vars(each) for each in kept], [{**vars(each), "saved": in_dollars(each.saved)} for each in kept]
    console.table(rows if as_json else shown, as_json, ("provider", "model", "answers", "bytes", "hits", "saved"))


def list_(
    scope: Annotated[str, typer.Option(help="Only budgets of this scope: run, day, provider or user.")] = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Every budget with its cap, what is spent, and what is reserved for calls under way. JSON: in nano-dollars."""
    known_scope = scope_of(scope) if scope else ""
    with lookup.tables() as db:
        rows = console.limited(lambda n: list_budgets(db, known_scope, limit=n), limit)
    console.table(rows if as_json else rows.like(map(_shown, rows)), as_json, COLUMNS, keep=("free", "spent"))


def show(scope: Scope, name: Name = "", limit: console.Limit = 50, as_json: console.Json = False) -> None:
    """One budget, and its entries, newest first: the invoice. JSON: in nano-dollars."""
    budget_scope, named = _which(scope, name)
    with lookup.tables() as db:
        rows = list_budgets(db, budget_scope, named)
        entries = console.limited(lambda n: list_entries(db, budget_scope, named, n), limit)
    if not rows:
        _missing(budget_scope, named)
    if as_json:
        console.data({**rows[0], "entries": list(entries)})
        return
    console.record(_shown(rows[0]), False)
    shown = [{**row, "amount": in_dollars(row["amount"]), "spent": in_dollars(row["spent"])} for row in entries]
    console.table(entries.like(shown), False, ("seq", "time", "kind", "amount", "spent", "model", "reason", "prices"))


def set_(
    scope: Scope,
    name: Name = "",
    cap: Annotated[float | None, typer.Option("--cap", metavar="USD", min=0, max=1e9, help="US dollars.")] = None,
    no_cap: Annotated[bool, typer.Option("--no-cap", help="Take the cap away.")] = False,
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")] = "set by hand",
    as_json: console.Json = False,
) -> None:
    """Raise, lower or take away a cap. Calls that wait for it go on by themselves."""
    if (cap is None) is not no_cap:
        raise ConfigError("A cap, or none?", fix="Give either --cap USD or --no-cap.")
    budget_scope, named = _which(scope, name)
    settings = flags.settings()
    balance = console.run_async(lambda: change_cap(settings, budget_scope, named, cap, reason))
    row = {
        "scope": budget_scope,
        "name": named,
        "cap": balance.cap,
        "spent": balance.spent,
        "reserved": balance.reserved,
    }
    row["level"] = balance.level
    console.record(row if as_json else _shown(row), as_json)


def _which(scope: str, name: str) -> tuple[Any, str]:
    """The scope and the name that are meant; a run's id where one was named as runs are, and no budget has the name, as
    that of submitted work."""
    budget_scope = scope_of(scope)
    named = name_of(flags.settings(), budget_scope, name)
    if budget_scope != "run":
        return budget_scope, named
    with lookup.tables() as db:
        charged = bool(list_budgets(db, budget_scope, named))
    return budget_scope, named if charged else lookup.run_id(named)


def _missing(scope: str, name: str) -> None:
    fix = f"Existing budgets: agent0 router budget list. New: agent0 router budget set {scope} …"
    raise NotFoundError(f"Nothing was charged to {scope} {name}, and nothing caps it.", fix=fix)


def _shown(row: Any) -> dict[str, Any]:
    """A budget as people read it."""
    cap = row["cap"]
    free = None if cap is None else max(0, cap - row["spent"] - row["reserved"])
    amounts = {"cap": cap, "spent": row["spent"], "reserved": row["reserved"], "free": free}
    rest = {key: value for key, value in row.items() if key not in (*amounts, "open", "token")}
    texts = {key: in_dollars(value) for key, value in amounts.items()}
    return {**rest, **texts, "cap": texts["cap"] or "none", "free": texts["free"] or "any"}
