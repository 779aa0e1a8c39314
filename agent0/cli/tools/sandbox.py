"""The sandbox: whether it holds, what runs in it, what it may touch, and the work folders that came out of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent0.cli import console
from agent0.errors import ConfigError, OperationError
from agent0.settings import PolicyConfig, Settings

if TYPE_CHECKING:
    from agent0.tools.policy import PolicyVerdict

Kind = Annotated[str, typer.Argument(metavar="KIND", help="executable, module, host, method, sql or path.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What to allow or deny, for example git or *.example.org.")]
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]
Folder = Annotated[
    str,
    typer.Argument(
        help="Digest (8 digits or more), ATTEMPT#CALL, or the word empty. Calls are counted from 1, as rollback "
        "counts them; steps of a plan are 3.1, 3.2; 0 is the start."
    ),
]
Of = Annotated[str, typer.Option("--run", help="The run of ATTEMPT#CALL.")]


def check(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """Put every backend to the whole self-test: each probe with what it saw. Exit 5 where none passes."""
    from agent0.infra.sandbox import survey

    settings = console.settings(profile, pairs)
    candidates = console.run_async(lambda: survey(settings.sandbox))
    if as_json:
        rows = [{**vars(candidate), "probes": [vars(probe) for probe in candidate.probes]} for candidate in candidates]
        console.data(
            {"chosen": next((candidate.name for candidate in candidates if candidate.chosen), None), "candidates": rows}
        )
    for candidate in () if as_json else candidates:
        console.text(
            f"{candidate.name}: {'chosen' if candidate.chosen else candidate.why or 'passes, one before it is chosen'}"
        )
        rows = [{"probe": p.name, "holds": "yes" if p.ok else "NO", "saw": p.detail} for p in candidate.probes]
        console.table(rows, False)
        if candidate.fix:
            console.text(f"fix: {candidate.fix}\n")
    if not any(candidate.chosen for candidate in candidates):
        console.say("No backend passes: every tool call is refused.", "red")
        raise typer.Exit(5)


def snapshots(
    run: console.Run = "LAST",
    attempt: Annotated[str, typer.Option(help="One attempt only.")] = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Work folders after each tool call of a run: manifest, files, bytes. CALL is the student's own number, from 1; the
    steps of a plan that is its third call are 3.1, 3.2."""
    from agent0.projections.runs import resolve
    from agent0.projections.tool_calls import list_snapshots

    with console.tables() as db:
        of = resolve(db, run)
        rows = console.limited(lambda n: list_snapshots(db, of, attempt, n), limit)
    named = [{**row, "call": f"{row['attempt']}#{row['call']}"} for row in rows]
    short = [{**row, "work": (row["work"] or "empty")[:16]} for row in named]
    console.table(
        rows.like(named if as_json else short), as_json, ("call", "tool", "state", "files", "file_bytes", "work")
    )


def diff(
    before: Folder,
    after: Folder,
    run: Of = "LAST",
    text: Annotated[bool, typer.Option("--text", help="Also the lines of small text files.")] = False,
    as_json: console.Json = False,
) -> None:
    """What changed from one work folder to another."""
    from agent0.assembly.tooling.workspaces import compare, find

    settings = _caught_up([before, after])
    rows = compare(settings, find(settings, before, run), find(settings, after, run), text=text)
    console.table(rows, as_json, ("path", "kind", "before", "after"))
    for row in () if as_json else rows:
        if row.get("diff"):
            console.text(f"\n{row['diff']}")


def restore(
    manifest: Folder,
    folder: Annotated[Path, typer.Argument(help="A new folder, or an empty one.")],
    run: Of = "LAST",
    as_json: console.Json = False,
) -> None:
    """Write a work folder into a new or empty folder. Nothing is ever written over."""
    from agent0.assembly.tooling.workspaces import content, find, write

    settings = _caught_up([manifest])
    files = content(settings, find(settings, manifest, run))
    write(files, folder)
    size = sum(map(len, files.values()))
    console.record({"folder": str(folder.absolute()), "files": len(files), "bytes": size}, as_json)


def top(
    run: Annotated[str, typer.Option("--run", help="One run only; LAST for the newest.")] = "",
    every: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="One look, then end.")] = False,
    as_json: console.Json = False,
) -> None:
    """Tools as they are used, live: calls, rate, latency, limits hit, kills, refusals. Ctrl-C ends."""
    from agent0.cli.tools.usage import COLUMNS, look, watch

    settings = console.settings()
    if once or as_json:
        with console.tables() as db:
            view = look(db, run)
        if as_json:
            console.data(view)
        else:
            console.table(view["tools"], False, COLUMNS)
            console.say(f"{view['attempts_under_way']} attempts under way in {view['runs']} running runs.")
        return
    console.run_async(lambda: watch(settings, run, every))


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
    from agent0.assembly.runtime.read_models import NothingError
    from agent0.assembly.tooling.tool_policy import rows, with_policy
    from agent0.projections.policies import list_policies

    settings = console.settings(profile, pairs)
    policy = console.run_async(lambda: with_policy(settings)).run.policy
    try:
        with console.tables() as db:
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
    from agent0.assembly.tooling.tool_policy import with_policy
    from agent0.tools.policy import judge_python, judge_sql

    settings = console.run_async(lambda: with_policy(console.settings(profile, pairs)))
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


def _caught_up(folders: list[str]) -> Settings:
    """Settings, with tables that know the newest calls where they are asked for one."""
    if any("#" in folder for folder in folders):
        with console.tables():
            pass
    return console.settings()


def _change(kind: str, name: str, reason: str, profile: str | None, as_json: bool, *, allowed: bool) -> None:
    from agent0.assembly.tooling.tool_policy import change
    from agent0.tools.policy import checked, verdict, warning

    settings = console.settings(profile)
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
    from agent0.tools import tools

    lost = [tool.name for tool in tools().values() if (kind, name) in tool.needs]
    return f"Every call of {' and '.join(lost)} is then refused." if lost else ""


def _absent(kind: str, name: str) -> str:
    """What happens where an allowed thing is not there; empty where it is."""
    from agent0.infra.sandbox.roots import RootError, packages, programs
    from agent0.ports.sandbox import Root

    try:
        if kind == "executable":
            programs(Root((name,), ()))
        elif kind == "module":
            packages(Root((), (name,)))
    except RootError as error:
        return f"{error} Until then every call is refused."
    return ""


def _installed(verdict: "PolicyVerdict") -> bool | None:
    """Whether it is on this machine, allowed or not; None where that is not looked at."""
    from agent0.infra.sandbox.roots import RootError, packages, programs
    from agent0.ports.sandbox import Root

    if verdict.by in ("bash itself", "the standard library"):
        return True
    try:
        if verdict.kind == "executable":
            name = verdict.name.rpartition("/")[2]
            return None if verdict.by.startswith("its path") else name in programs(Root((name,), ()))
        return bool(packages(Root((), (verdict.name,)))) if verdict.kind == "module" else None
    except RootError:
        return False


def _row(verdict: "PolicyVerdict", installed: bool | None, why: str = "") -> dict[str, Any]:
    by = "it is on the list" if verdict.by == verdict.name else f"by {verdict.by}"
    by = f"{by}, but not installed here" if installed is False else by
    why = why or (by if verdict.allowed else f"agent0 sandbox allow {verdict.kind} {verdict.name.rpartition('/')[2]}")
    return {"kind": verdict.kind, "name": verdict.name, "allowed": verdict.allowed, "installed": installed, "why": why}


def _judged_command(policy: PolicyConfig, command: str) -> list[dict[str, Any]]:
    from agent0.tools.policy import judge_command

    verdicts = judge_command(policy, command)
    if verdicts is None:
        why = "A quote or a bracket is not closed, or it is nested too deeply. bash alone would know."
        raise ConfigError("The command cannot be read word by word.", why)
    return [_row(verdict, _installed(verdict)) for verdict in verdicts]


def _judged_url(policy: PolicyConfig, url: str, method: str) -> list[dict[str, Any]]:
    """By the very rules that the proxy process holds to."""
    from agent0.infra.web import egress_rules
    from agent0.tools.policy import PolicyVerdict

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
