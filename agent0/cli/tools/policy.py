"""What the sandbox allows and denies."""

from typing import Annotated, Any

import typer

from agent0.assembly.runtime.read_models import NothingError
from agent0.assembly.tooling.tool_policy import change, rows, with_policy
from agent0.cli import console, flags, lookup
from agent0.errors import ConfigError, OperationError
from agent0.infra.sandbox.roots import RootError, packages, programs
from agent0.infra.web import egress_rules
from agent0.ports.sandbox import Root
from agent0.projections.policies import list_policies
from agent0.settings import PolicyConfig
from agent0.tools import tools
from agent0.tools.policy import PolicyVerdict, checked, judge_command, judge_python, judge_sql, verdict, warning

Kind = Annotated[str, typer.Argument(metavar="KIND", help="executable, module, host, method, sql or path.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What to allow or deny, for example git or *.example.org.")]
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]


def allow(
    kind: Kind,
    name: Name,
    reason: Reason = "",
    profile: console.Profile = None,
    as_json: console.Json = False,
) -> None:
    """Allow something to the tools of a profile's runs, those that start from now on. It is recorded as an event."""
    _change(kind, name, reason, profile, as_json, allowed=True)


def deny(
    kind: Kind,
    name: Name,
    reason: Reason = "",
    profile: console.Profile = None,
    as_json: console.Json = False,
) -> None:
    """Take something away from the tools of a profile's runs, those that start from now on. It is recorded."""
    _change(kind, name, reason, profile, as_json, allowed=False)


def list_(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """What a profile's tools may touch, by settings and by what was changed since."""
    settings = flags.settings(profile, pairs)
    policy = console.run_async(lambda: with_policy(settings)).run.policy
    try:
        with lookup.tables() as db:
            recorded_rows = {(row["kind"], row["name"]): row for row in list_policies(db, settings.profile)}
    except NothingError:
        recorded_rows = {}
    out = []
    for row in rows(settings.run.policy, policy):
        recorded: dict[str, Any] = recorded_rows.get((row["kind"], row["name"]), {})
        out.append({**row, "changed": recorded.get("changed"), "reason": recorded.get("reason") or ""})
    if as_json:
        console.data({"profile": settings.profile, "policy": policy, "entries": out})
        return
    _tell_policy(settings.profile, policy, [row for row in out if row["origin"] == "changed"])


def test_(
    command: Annotated[str, typer.Argument(help="A shell command line; nothing is run.")] = "",
    code: Annotated[str | None, typer.Option("--python", help="Python: which packages it imports.")] = None,
    url: Annotated[str | None, typer.Option(help="An address: its host and method.")] = None,
    method: Annotated[str, typer.Option(help="The method for --url.")] = "GET",
    sql: Annotated[str | None, typer.Option(help="SQL: the first word of each statement.")] = None,
    profile: console.Profile = None,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Say word by word whether a profile allows a command, and whether what it names is installed on this machine.
    Nothing is run. Exit 0: all of it is both; 3: something is denied or not installed; 2: it cannot be read."""
    settings = console.run_async(lambda: with_policy(flags.settings(profile, pairs)))
    policy = settings.run.policy
    if sum(option not in (None, "") for option in (command, code, url, sql)) != 1:
        raise ConfigError(
            "Give one of: a command, --python, --url, --sql.", fix='Example: agent0 sandbox test "ls | wc"'
        )
    if command:
        rows = _judged_command(policy, command)
    elif code is not None:
        rows = [_row(verdict, _installed(verdict)) for verdict in judge_python(policy, code)]
    elif url is not None:
        rows = _judged_url(policy, url, method)
    else:
        rows = [_row(verdict, None) for verdict in judge_sql(policy, sql or "")]
    fits = {name: all(row[name] is not False for row in rows) for name in ("allowed", "installed")}
    if as_json:
        console.data({"profile": settings.profile, **fits, "words": rows})
    else:
        marks = {True: "yes", False: "NO", None: "-"}
        shown = [{**row, **{name: marks[row[name]] for name in fits}} for row in rows]
        console.table(shown, False, ("kind", "name", *fits, "why"))
    if not all(fits.values()):
        raise typer.Exit(3)


def _change(kind: str, name: str, reason: str, profile: str | None, as_json: bool, *, allowed: bool) -> None:
    settings = flags.settings(profile)
    what, entry = checked(kind, name)
    before, changed = console.run_async(lambda: change(settings, what, entry, allowed, reason))
    judged = verdict(before, what, entry)
    if not changed and judged.allowed and not allowed:
        why = f"It is allowed by {judged.by}, which is an entry of its own."
        raise OperationError(f"{what} {entry} cannot be denied by itself.", why, f"Deny {judged.by} first.")
    notice = warning(before, what, entry, allowed) if changed else ""
    more = _absent(what, entry) if allowed else _needed(what, entry) if changed else ""
    notes = [note for note in (notice, more) if note]
    shown = {"profile": settings.profile, "kind": what, "name": entry, "allowed": allowed, "changed": changed}
    if not changed:
        console.say(f"{what} {entry} is {f'allowed already, by {judged.by}' if allowed else 'not allowed anyway'}.")
    for note in notes:
        console.say(note, "yellow")
    console.record({**shown, "notes": notes} if as_json else shown, as_json)


def _needed(kind: str, name: str) -> str:
    """Which tools cannot do without it."""
    lost = [tool.name for tool in tools().values() if (kind, name) in tool.needs]
    return f"Every call of {' and '.join(lost)} is then refused." if lost else ""


def _absent(kind: str, name: str) -> str:
    """What happens where an allowed thing is not there; empty where it is."""
    try:
        if kind == "executable":
            programs(Root((name,), ()))
        elif kind == "module":
            packages(Root((), (name,)))
    except RootError as error:
        return f"{error} Until then every call is refused."
    return ""


def _installed(verdict: PolicyVerdict) -> bool | None:
    """Whether it is on this machine, allowed or not; None where that is not looked at."""
    if verdict.by in ("bash itself", "the standard library"):
        return True
    try:
        if verdict.kind == "executable":
            name = verdict.name.rpartition("/")[2]
            return None if verdict.by.startswith("its path") else name in programs(Root((name,), ()))
        return bool(packages(Root((), (verdict.name,)))) if verdict.kind == "module" else None
    except RootError:
        return False


def _row(verdict: PolicyVerdict, installed: bool | None, why: str = "") -> dict[str, Any]:
    by = "it is on the list" if verdict.by == verdict.name else f"by {verdict.by}"
    by = f"{by}, but not installed here" if installed is False else by
    why = why or (by if verdict.allowed else f"agent0 sandbox allow {verdict.kind} {verdict.name.rpartition('/')[2]}")
    return {"kind": verdict.kind, "name": verdict.name, "allowed": verdict.allowed, "installed": installed, "why": why}


def _judged_command(policy: PolicyConfig, command: str) -> list[dict[str, Any]]:
    verdicts = judge_command(policy, command)
    if verdicts is None:
        why = "A quote or a bracket is not closed, or it is nested too deeply. bash alone would know."
        raise ConfigError("The command cannot be read word by word.", why)
    return [_row(verdict, _installed(verdict)) for verdict in verdicts]


def _judged_url(policy: PolicyConfig, url: str, method: str) -> list[dict[str, Any]]:
    """By the very rules that the proxy process holds to."""
    try:
        target = egress_rules.target(url)
    except egress_rules.EgressRefusedError as error:
        raise ConfigError("That is no address that is ever requested.", f"{error}.") from error
    rows = []
    for kind, name, rule in (
        ("host", target.authority, lambda: egress_rules.check_host(target, policy.hosts)),
        ("method", method.upper(), lambda: egress_rules.method(method, policy.methods)),
    ):
        try:
            rule()
            rows.append(_row(PolicyVerdict(kind, name, True), None, "it is on the list"))  # type: ignore[arg-type]
        except egress_rules.EgressRefusedError as error:
            rows.append(_row(PolicyVerdict(kind, name, False), None, str(error)))  # type: ignore[arg-type]
    return rows


def _tell_policy(profile: str, policy: PolicyConfig, changed: list[dict[str, Any]]) -> None:
    console.text(f"Profile {profile}")
    console.record({name: " ".join(entries) or "none" for name, entries in policy.model_dump().items()}, False)
    if changed:
        rows = [{**row, "allowed": "allowed" if row["allowed"] else "denied"} for row in changed]
        console.table(rows, False, ("kind", "name", "allowed", "changed", "reason"), title="\nChanged")
