"""The tool policy: what a profile's tools may access, by its settings and by what users allowed or denied since.

The boundary is what exists in the sandbox and what the proxy connects to; this decides what those are configured with.
"""

import ast
import keyword
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from ipaddress import ip_address

from agent0.errors import ConfigError
from agent0.events.policies import PolicyChanged, PolicyKind
from agent0.settings import PolicyConfig
from agent0.tools.shell_commands import BUILTINS, command_words

FIELDS: dict[PolicyKind, str] = {
    "executable": "executables",
    "module": "modules",
    "host": "hosts",
    "method": "methods",
    "sql": "sql",
    "path": "paths",
}
"""Kind of a change -> the list of PolicyConfig that it changes."""

_STARTERS = (
    "ash awk bash busybox cpio csh dash docker ed emacs env ex expect find flock gawk gcc gdb git ksh ld.so less "
    "lua m4 make man mawk more nawk nice node nohup parallel perl php podman python python3 rsync ruby screen "
    "script sed setsid sh socat sqlite3 ssh stdbuf strace sudo tar tclsh time timeout tmux unshare vi view vim "
    "watch xargs zip zsh"
)
STARTERS = frozenset(_STARTERS.split())
"""Programs that start others when asked to: each hands on whatever else exists in the sandbox."""

BROUGHT = ("pytest",)
"""Packages that a tool brings with it: on no list, and there for that tool unless they are withheld."""

_SHELL_NEEDS = ("bash", "sh")
_executable = re.compile(r"(?![.-])[A-Za-z0-9_.+@\[-]{1,64}")
_label = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_host = re.compile(rf"(?:\*\.)?{_label}(?:\.{_label})*\.?(?::\d{{1,5}})?|\[[0-9a-f:.]+\](?::\d{{1,5}})?")
_method = re.compile(r"[A-Z][A-Z-]{0,31}")
_verb = re.compile(r"[A-Z]{2,32}")
_aside = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)


@dataclass(frozen=True)
class PolicyVerdict:
    """A policy's verdict on one name. ``by`` is the list entry that allows it, empty where none does."""

    kind: PolicyKind
    name: str
    allowed: bool
    by: str = ""


def resolve(policy: PolicyConfig, changes: Iterable[PolicyChanged], profile: str) -> PolicyConfig:
    """Apply to ``policy``, the settings of ``profile``, every change of that profile in the order they were made.

    An entry that stays keeps its place; a new one comes last.
    """
    lists = {kind: list(getattr(policy, field)) for kind, field in FIELDS.items()}
    withheld = list(policy.withheld)
    for change in changes:
        if change.profile != profile:
            continue
        if change.kind == "module" and change.name in BROUGHT:
            given_back = change.allowed and change.name in withheld
            withheld = [name for name in withheld if name != change.name] + [change.name] * (not change.allowed)
            if given_back:
                continue
        lists[change.kind] = _changed(lists[change.kind], change)
    changed = {FIELDS[kind]: tuple(entries) for kind, entries in lists.items()}
    return policy.model_copy(update={**changed, "withheld": tuple(withheld)})


def _changed(entries: list[str], change: PolicyChanged) -> list[str]:
    others = [entry for entry in entries if not _same(change.kind, entry, change.name)]
    if not change.allowed:
        return others
    return entries if len(others) < len(entries) else [*entries, change.name]


def _same(kind: PolicyKind, entry: str, name: str) -> bool:
    return _canonical(kind, entry) == _canonical(kind, name)


def _canonical(kind: PolicyKind, name: str) -> str:
    if kind == "host":
        return name.lower()
    return name.upper() if kind in ("method", "sql") else name


def verdict(policy: PolicyConfig, kind: PolicyKind, name: str) -> PolicyVerdict:
    """Whether ``policy`` allows ``name``: by itself, or by a pattern that it fits (hosts, paths)."""
    entries: Sequence[str] = getattr(policy, FIELDS[kind])
    exact = [entry for entry in entries if _same(kind, entry, name)]
    wider = [entry for entry in entries if entry not in exact and _covers(kind, entry, name)]
    by = next(iter([*exact, *wider]), "")
    if kind == "module" and name in sys.stdlib_module_names:
        by = "the standard library"
    return PolicyVerdict(kind, name, bool(by), by)


def denial(policy: PolicyConfig, needs: Iterable[tuple[PolicyKind, str]]) -> str:
    """Why a call that requires all of ``needs`` is refused, naming the setting and how to change it; empty where it is
    allowed.

    The name ``*`` stands for any of its kind.
    """
    for kind, name in needs:
        if not _has(policy, kind, name):
            field = "withheld" if name in BROUGHT else FIELDS[kind]
            what, argument = (f"any {kind}", "NAME") if name == "*" else (f"the {kind} {name}", name)
            fix = f"a person allows it with: agent0 sandbox allow {kind} {argument}"
            return f"the policy (run.policy.{field}) does not allow {what}, which this tool needs; {fix}"
    return ""


def _has(policy: PolicyConfig, kind: PolicyKind, name: str) -> bool:
    if name == "*":
        return bool(getattr(policy, FIELDS[kind]))
    return name not in policy.withheld if name in BROUGHT else verdict(policy, kind, name).allowed


def _covers(kind: PolicyKind, entry: str, name: str) -> bool:
    if kind == "path":
        return fnmatchcase(name, entry)
    return kind == "host" and host_covers(entry, name)


def host_covers(entry: str, name: str) -> bool:
    """Whether ``entry`` of a list of hosts allows the host ``name``: ``*.`` covers everything below it, ports must be
    equal."""
    (pattern, port), (host, at) = _host_and_port(entry.lower()), _host_and_port(name.lower())
    if port != at or _address(host):
        return False
    return host.endswith(pattern[1:]) and host != pattern if pattern.startswith("*.") else host == pattern


def _host_and_port(text: str) -> tuple[str, str]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or (":" in host and not host.endswith("]")):
        return text.rstrip("."), ""
    return host.rstrip("."), port


def checked(kind: str, name: str) -> tuple[PolicyKind, str]:
    """Validate a policy change; returns ``kind`` and the canonical form of ``name``.

    Raises:
        ConfigError: no such kind, or no such name could ever be looked for.
    """
    kinds = [policy_kind for policy_kind in FIELDS if policy_kind == kind]
    if not kinds:
        raise ConfigError(f"There is no kind {kind[:80]!r}.", f"Known: {', '.join(FIELDS)}.")
    canonical = _canonical(kinds[0], name.strip())
    if problem := _problem(kinds[0], canonical):
        raise ConfigError(f"{name[:80]!r} is no {kind}.", problem)
    return kinds[0], canonical


def _problem(kind: PolicyKind, name: str) -> str:
    """Why ``name`` cannot be of ``kind``; empty where it can."""
    match kind:
        case "executable":
            return "" if _executable.fullmatch(name) else "Give the plain name of a program, without a folder."
        case "module":
            return _module_problem(name)
        case "host":
            return _host_problem(name)
        case "method":
            return "" if _method.fullmatch(name) else "Give a method of HTTP, for example POST."
        case "sql":
            return "" if _verb.fullmatch(name) else "Give the first word of a statement, for example ATTACH."
    inside = name and all(part not in ("", ".", "..") for part in name.split("/")) and len(name) <= 1000
    return "" if inside and name.isprintable() else "Give a relative pattern inside the work folder, for example src/*."


def _module_problem(name: str) -> str:
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
        return "Give the name of a top-level package, for example pandas."
    if name in sys.stdlib_module_names:
        return "It is part of the standard library, which is always there."
    return ""


def _host_problem(name: str) -> str:
    host, port = _host_and_port(name)
    if not _host.fullmatch(name) or len(host) > 253 or (port and not 0 < int(port) < 65536):
        return "Give a host like example.org, *.example.org or example.org:8443."
    if host.startswith("[") and _address(host) is None:
        return "That is no address."
    return ""


def _address(host: str) -> object | None:
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def warning(policy: PolicyConfig, kind: PolicyKind, name: str, allowed: bool) -> str:
    """A warning for the user who makes this change; empty where there is none."""
    if kind == "executable":
        return _program_warning(policy, name, allowed)
    if not allowed:
        left = verdict(resolve(policy, [_change(kind, name)], ""), kind, name)
        return f"It stays allowed by {left.by}." if left.allowed else ""
    if kind == "host" and (_address(_host_and_port(name)[0]) or _host_and_port(name)[0] in ("localhost", "*.local")):
        return "Only public addresses are ever connected to, whatever is allowed here."
    if kind == "method" and name not in ("GET", "HEAD", "OPTIONS"):
        return f"{name} may change things elsewhere, and code nobody has read would be asking for it."
    return ""


def _change(kind: PolicyKind, name: str) -> PolicyChanged:
    return PolicyChanged(profile="", kind=kind, name=name, allowed=False)


def _program_warning(policy: PolicyConfig, name: str, allowed: bool) -> str:
    starts = _starts(name)
    if allowed:
        warning = f"{name} can start anything that exists in the sandbox, also what a list of words does not show."
        return warning if starts else ""
    if name in _SHELL_NEEDS:
        return f"The shell tool runs in bash, and scripts name sh: without {name} little of it works."
    others = sorted(executable for executable in policy.executables if executable != name and _starts(executable))
    return f"What {name} does can still be done with: {', '.join(others)}." if starts and others else ""


def _starts(name: str) -> bool:
    return re.sub(r"[\d.]+$", "", name) in STARTERS or name in STARTERS


def judge_command(policy: PolicyConfig, command: str) -> list[PolicyVerdict] | None:
    """A verdict on each program that a shell command names; None where it cannot be parsed. Builtins are allowed."""
    programs = command_words(command)
    if programs is None:
        return None
    return [_program(policy, program) for program in programs]


def _program(policy: PolicyConfig, program: str) -> PolicyVerdict:
    if program in BUILTINS:
        return PolicyVerdict("executable", program, True, "bash itself")
    folder, slash, name = program.rpartition("/")
    if slash and folder not in ("/bin", "/usr/bin"):
        return PolicyVerdict("executable", program, True, "its path: what is there can be run")
    return replace(verdict(policy, "executable", name), name=program)


def judge_python(policy: PolicyConfig, code: str) -> list[PolicyVerdict]:
    """A verdict on each top-level package that ``code`` imports by statement.

    Raises:
        ConfigError: it is no Python.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError("That is no Python.", f"{type(error).__name__}: {str(error)[:200]}.") from error
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    tops = sorted({name.partition(".")[0] for name in names})
    return [verdict(policy, "module", top) for top in tops]


def judge_sql(policy: PolicyConfig, sql: str) -> list[PolicyVerdict]:
    """A verdict on the first word of each SQL statement."""
    first_tokens = [re.findall(r"[A-Za-z]+|\S", statement)[:1] for statement in _aside.sub(" ", sql).split(";")]
    return [verdict(policy, "sql", token.upper()) for tokens in first_tokens for token in tokens]
