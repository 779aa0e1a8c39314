"""What persons allow and deny is a fold: the last word on each thing holds, for its profile and for nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.app import started
from agent0.assembly.runtime.read_models import catch_up, reading
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.tooling.tool_policy import change, changes, rows, with_policy
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.events.policies import RUN, PolicyChanged
from agent0.events.runs import RunStarted
from agent0.projections.policies import list_policies
from agent0.projections.runs import list_runs
from agent0.settings import PolicyConfig, Settings
from agent0.tools.policy import FIELDS, checked, judge_command, judge_python, judge_sql, resolve, verdict, warning

NAMES = {
    "executable": ("git", "awk", "cat", "bash"),
    "module": ("sympy", "pandas"),
    "host": ("example.org", "*.example.org", "a.example.org", "example.org:8443"),
    "method": ("GET", "POST"),
    "sql": ("SELECT", "ATTACH"),
    "path": ("*", "src/*", "src/a.py"),
}
KINDS = list(FIELDS)
POLICY = PolicyConfig(hosts=("*.example.org",))

named = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), st.sampled_from(NAMES[kind])))
changed = st.builds(
    lambda kind_name, allowed, profile: PolicyChanged(
        profile=profile, kind=kind_name[0], name=kind_name[1], allowed=allowed
    ),
    named,
    st.booleans(),
    st.sampled_from(("tiny", "other")),
)


def says(policy: PolicyConfig, event: PolicyChanged) -> bool:
    return event.name in getattr(policy, FIELDS[event.kind])


@given(st.lists(changed, max_size=12))
def test_the_last_word_on_each_thing_holds_and_nothing_else_moves(told: list[PolicyChanged]) -> None:
    after = resolve(POLICY, told, "tiny")
    last = {(one.kind, one.name): one for one in told if one.profile == "tiny"}
    assert all(says(after, one) == one.allowed for one in last.values())
    for kind, field in FIELDS.items():
        untouched = [name for name in getattr(POLICY, field) if (kind, name) not in last]
        assert [name for name in getattr(after, field) if (kind, name) not in last] == untouched
        assert len(set(getattr(after, field))) == len(getattr(after, field))
    assert resolve(POLICY, [*told, *last.values()], "tiny") == after


@given(st.lists(changed, max_size=6))
def test_another_profile_is_not_touched(told: list[PolicyChanged]) -> None:
    assert resolve(POLICY, told, "third") == POLICY


def test_what_a_tool_brings_is_withheld_and_given_back() -> None:
    deny, allow = (PolicyChanged(profile="tiny", kind="module", name="pytest", allowed=said) for said in (False, True))
    denied = resolve(POLICY, [deny, deny], "tiny")
    assert (denied.withheld, denied.modules) == (("pytest",), POLICY.modules)
    assert resolve(denied, [allow], "tiny") == POLICY, "it is there for its tool again, and for no other"
    assert resolve(POLICY, [deny], "other") == POLICY
    listed = [row for row in rows(POLICY, denied) if row["name"] == "pytest"]
    assert listed == [{"kind": "module", "name": "pytest", "allowed": False, "origin": "changed"}]


@given(changed)
def test_a_change_is_what_a_verdict_says_afterwards(event: PolicyChanged) -> None:
    after = resolve(POLICY, [event], event.profile)
    found = verdict(after, event.kind, event.name)
    if event.allowed:
        assert found.allowed
    else:
        assert found.by != event.name
        assert bool(warning(POLICY, event.kind, event.name, False)) or not found.allowed


@pytest.mark.parametrize(
    ("kind", "name", "held"),
    [
        ("executable", " git ", "git"),
        ("executable", "[", "["),
        ("executable", "g++-12", "g++-12"),
        ("module", "pandas", "pandas"),
        ("host", "Example.ORG:8443", "example.org:8443"),
        ("host", "*.example.org", "*.example.org"),
        ("host", "[2606:4700::1]:443", "[2606:4700::1]:443"),
        ("method", "post", "POST"),
        ("sql", "attach", "ATTACH"),
        ("path", "src/**/*.py", "src/**/*.py"),
    ],
)
def test_names_are_kept_in_one_form(kind: str, name: str, held: str) -> None:
    assert checked(kind, name) == (kind, held)
    assert checked(kind, held) == (kind, held)


HOSTILE = {
    "executable": ["", ".", "..", "-rf", "/bin/sh", "a/b", "a b", "a\0b", "a\nb", "\x1b[2J", "a" * 65, "$(id)", "é"],
    "module": ["", "a.b", "a-b", "1a", "class", "../x", "os", "é", "a b", "num\npy"],
    "host": [
        "",
        "*",
        "*.",
        "a b",
        "http://a",
        "a/b",
        "a:0",
        "a:65536",
        "a:x",
        "-a",
        "a..b",
        "[x]",
        "[:::1]",
        "a@b",
        "é",
    ],
    "method": ["", "GE T", "G\nX", "1", "A" * 33],
    "sql": ["", "A", "DROP TABLE", "--", "SELECT;"],
    "path": ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\0", "a\nb", "x" * 1001, "\x1b[2J"],
    "nonsense": ["x"],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in HOSTILE.items() for name in names])
def test_what_is_no_name_is_refused(kind: str, name: str) -> None:
    with pytest.raises(ConfigError):
        checked(kind, name)


@given(st.sampled_from(KINDS), st.text(max_size=40))
def test_any_text_is_a_name_or_a_settings_error(kind: str, name: str) -> None:
    try:
        found, held = checked(kind, name)
    except ConfigError:
        return
    assume(found == kind)
    assert held.isprintable()
    assert held
    assert held == held.strip()


@pytest.mark.parametrize("name", ["python", "python3.11", "perl", "git", "tar", "find", "awk", "vim", "env", "xargs"])
def test_what_starts_others_is_allowed_with_a_warning(name: str) -> None:
    assert "anything that exists" in warning(POLICY, "executable", name, True)


def test_harmless_changes_need_no_words() -> None:
    for kind, name in (("executable", "jq"), ("module", "pandas"), ("host", "example.com"), ("method", "GET")):
        assert warning(POLICY, kind, name, True) == ""
    assert warning(POLICY, "executable", "wc", False) == ""


def test_denials_that_do_not_help_are_said() -> None:
    assert "awk" in warning(POLICY, "executable", "find", False)
    assert "shell tool" in warning(POLICY, "executable", "bash", False)
    assert "*.example.org" in warning(POLICY, "host", "a.example.org", False)
    assert "stays allowed by *" in warning(POLICY, "path", "src/a.py", False)
    assert "public" in warning(POLICY, "host", "localhost:8080", True)
    assert "public" in warning(POLICY, "host", "127.0.0.1", True)
    assert "change things" in warning(POLICY, "method", "DELETE", True)


@pytest.mark.parametrize(
    ("entry", "name", "allowed"),
    [
        ("example.org", "example.org", True),
        ("example.org", "EXAMPLE.org", True),
        ("example.org", "a.example.org", False),
        ("example.org", "example.org:8080", False),
        ("example.org:8080", "example.org", False),
        ("*.example.org", "a.b.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
        ("*.example.org", "example.org.evil.com", False),
        ("*.0.0.1", "127.0.0.1", False),
    ],
)
def test_hosts(entry: str, name: str, allowed: bool) -> None:
    assert verdict(PolicyConfig(hosts=(entry,)), "host", name).allowed is allowed


def test_commands_word_by_word() -> None:
    found = judge_command(PolicyConfig(), "cd src && cat a | git apply; /usr/bin/perl -e1; ./mine `curl x`")
    assert found is not None
    assert {one.name: one.allowed for one in found} == {
        "cd": True,
        "cat": True,
        "git": False,
        "/usr/bin/perl": False,
        "./mine": True,
        "curl": False,
    }
    assert judge_command(PolicyConfig(), "echo 'never closed") is None


def test_imports_at_any_depth() -> None:
    code = "import os, numpy.linalg\nfrom . import x\ndef f():\n    from pandas.core import y\n    import sympy as s"
    found = {one.name: one.allowed for one in judge_python(PolicyConfig(), code)}
    assert found == {"os": True, "numpy": True, "pandas": False, "sympy": True}
    for broken in ("import (", "\0", "(" * 5000):
        with pytest.raises(ConfigError, match="no Python"):
            judge_python(PolicyConfig(), broken)


def test_sql_statement_by_statement() -> None:
    sql = "-- drop\nselect ';attach'; /* vacuum; */ ATTACH 'x' AS y;; ;vacuum"
    assert [(one.name, one.allowed) for one in judge_sql(PolicyConfig(), sql)] == [
        ("SELECT", True),
        ("ATTACH", False),
        ("VACUUM", False),
    ]


# --- in the log ------------------------------------------------------------------------------------------------------


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return lambda profile="scripted": load(profile, {"home": str(tmp_path / "home")}, {})


async def test_what_changed_is_part_of_the_next_run_and_of_no_other(held: Callable[..., Settings]) -> None:
    settings = held()
    assert await changes(settings) == []
    assert not (settings.home / "nats").exists()  # looking makes no log
    assert await with_policy(settings) == settings
    assert (await change(settings, "host", "example.org", True, "for a look"))[1]
    assert not (await change(settings, "host", "example.org", True, "again"))[1]
    assert (await change(settings, "executable", "awk", False, ""))[1]
    assert not (await change(settings, "executable", "no-such-program", False, ""))[1]
    resolved = await with_policy(settings)
    assert resolved.run.policy.hosts == ("example.org",)
    assert "awk" not in resolved.run.policy.executables
    assert (await with_policy(held("tiny"))).run.policy == held("tiny").run.policy
    begin = started(resolved).event
    assert isinstance(begin, RunStarted)
    assert begin.config["policy"]["hosts"] == ["example.org"]
    assert begin.config_sha != getattr(started(settings).event, "config_sha", "")
    assert [(one.name, one.allowed) for one in await changes(settings)] == [("example.org", True), ("awk", False)]


async def test_a_change_belongs_to_no_run(held: Callable[..., Settings]) -> None:
    settings = held()
    await change(settings, "host", "example.org", True, "why not")
    async with open_log(settings) as log:
        await log.append([started(settings, "one")])
        await log.append([recorded(RUN, PolicyChanged(profile="tiny", kind="sql", name="ATTACH", allowed=True))])
        await catch_up(settings, log)
    with reading(settings) as db:
        assert [row["name"] for row in list_runs(db)] == ["one"]
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (1,)
        assert [(row["profile"], row["name"], row["reason"]) for row in list_policies(db)] == [
            ("scripted", "example.org", "why not"),
            ("tiny", "ATTACH", ""),
        ]
        assert len(list_policies(db, "tiny")) == 1
