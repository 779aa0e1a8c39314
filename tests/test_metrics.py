"""Metrics say what the tables say, at any moment, and every picture and alert names metrics that there are."""

import asyncio
import json
import math
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from bisect import bisect_left
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from agent0.assembly.runtime.prometheus import exposition, serving
from agent0.assembly.runtime.read_models import live_path
from agent0.config.loading import load
from agent0.errors import OperationError
from agent0.events.alarms import AlarmRaised, ReactionFailed
from agent0.events.base import Recorded, record
from agent0.events.tasks import ToolCalled
from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.infra.storage.sqlite import connect
from agent0.projections import Projector, Views, tables
from agent0.projections.tool_usage import BOUNDS_MS, BUCKETS, OTHER, quantile, summary, usage
from agent0.settings import Settings
from tests.story import bodies, renumbered, whole_run
from tests.terminal import agent0

IMAGES = Path(__file__).parents[1] / "infra" / "images"
HOSTILE = ['a"} 1\nagent0_fake 1', "x" * 5000, "", "\x1b[2J", "söng", "nice_name", "python; drop"]

results = st.builds(
    ToolResult,
    state=st.sampled_from(ToolState),
    rc=st.sampled_from((None, 0, 1, -9, -11)),
    wall_s=st.sampled_from((0.0, 0.001, 0.0010001, 0.03, 4.999, 29.0, 31.0, math.inf, math.nan, -1.0)),
    cpu_s=st.floats(0, 10),
    peak_mem_mib=st.floats(0, 600),
    cached=st.booleans(),
    output_bytes=st.integers(0, 10**6),
)
made = st.lists(st.tuples(st.sampled_from(("python", "shell", *HOSTILE)), results), max_size=25)


def told(calls: list[tuple[str, ToolResult]]) -> list[Recorded]:
    """A run's start, and these calls."""
    run = whole_run(iterations=1, tasks=4, attempts=4)
    start, like = run[0], next(one for one in run if isinstance(one.event, ToolCalled))
    events = [
        like.model_copy(update={"id": f"call-{n}", "event": _call(n, tool, result)})
        for n, (tool, result) in enumerate(calls)
    ]
    return renumbered([start, *events])


def _call(n: int, tool: str, result: ToolResult) -> ToolCalled:
    return ToolCalled(task="t0", attempt="t0-a0", turn=0, number=n, call=ToolCall(name=tool), result=result)


def filled(events: list[Recorded], cut: int = 0) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    projector = Projector(Path("memory"), lambda _: db, tables(), "stream")
    projector.apply(bodies(events)[:cut])
    projector.apply(bodies(events))
    return db


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return load("scripted", {"home": str(tmp_path / "home")}, {})


def keep(held: Settings, events: list[Recorded]) -> None:
    projector = Views(live_path(held).parent, connect, tables(), "stream").projector()
    projector.apply(bodies(events))
    projector.close()


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


# --- the table -------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(made, st.integers(0, 25))
def test_usage_is_what_happened_in_whichever_batches_it_came(calls: list[tuple[str, ToolResult]], cut: int) -> None:
    with closing(filled(told(calls), cut)) as db, closing(filled(told(calls))) as other:
        assert usage(db) == usage(other)
        used = usage(db, "r1")
    assert usage_names(calls) == set(used)
    for tool, rows in used.items():
        own = [result for name, result in calls if _shown(name) == tool]
        line = summary(tool, rows)
        ended = Counter(result.state for result in own)
        assert line["calls"] == len(own)
        assert line["cached"] == sum(result.cached for result in own)
        assert line["limits"] == ended["timeout"] + ended["memory"] + ended["output_flood"]
        assert (line["refused"], line["busy"]) == (ended["refused"], ended["busy"])
        parts = ("ok", "errors", "limits", "refused", "busy", "failed")
        assert sum(line[part] for part in parts) == len(own)
        assert sum(row[name] for row in rows for name in BUCKETS) == len(own) - line["cached"]
        carried = [result for result in own if not result.cached]
        assert line["kills"] == sum(_killed(result) for result in carried)
        assert line["peak_mem_mib"] == max((result.peak_mem_mib for result in carried), default=0.0)
        assert math.isfinite(line["wall_s"])


def _shown(name: str) -> str:
    return name if name in ("python", "shell", "nice_name") else OTHER


def usage_names(calls: list[tuple[str, ToolResult]]) -> set[str]:
    return {_shown(name) for name, _ in calls}


def _killed(result: ToolResult) -> bool:
    ended = result.state in ("timeout", "memory", "output_flood", "cancelled")
    return (result.rc is None and ended) or (result.rc is not None and result.rc < 0)


@given(st.lists(st.floats(0, 40_000), min_size=1, max_size=200), st.sampled_from((0.5, 0.95, 0.99)))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(seconds_ms: list[float], share: float) -> None:
    buckets = [0] * len(BUCKETS)
    for value in seconds_ms:
        buckets[bisect_left(BOUNDS_MS, value)] += 1
    true = sorted(seconds_ms)[math.ceil(share * len(seconds_ms)) - 1]
    number = bisect_left(BOUNDS_MS, true)
    found = quantile(buckets, share)
    assert found is not None
    if number == len(BOUNDS_MS):
        assert found == BOUNDS_MS[-1]
    else:
        low = BOUNDS_MS[number - 1] if number else 0
        assert low - 1e-6 <= found <= BOUNDS_MS[number] + 1e-6


def test_nothing_has_no_quantile() -> None:
    assert quantile([0] * len(BUCKETS), 0.5) is None


# --- the exposition --------------------------------------------------------------------------------------------------


def test_the_exposition_is_the_tables(held: Settings) -> None:
    calls = [("python", ToolResult(state=ToolState.OK, wall_s=0.015, cpu_s=0.01, peak_mem_mib=2.0))] * 3
    calls += [("shell", ToolResult(state=ToolState.TIMEOUT, wall_s=5.0)), ("shell", ToolResult(state=ToolState.BUSY))]
    calls += [(name, ToolResult(state=ToolState.ERROR)) for name in HOSTILE]
    keep(held, told(calls))
    got = samples(exposition(held))
    label = lambda **named: tuple(sorted(named.items()))  # noqa: E731
    assert got["agent0_tables_readable", ()] == 1
    assert got["agent0_tables_position", ()] == 1 + len(calls)
    assert got["agent0_tool_calls_total", label(tool="python", state="ok")] == 3
    assert got["agent0_tool_limit_hits_total", label(tool="shell", state="timeout")] == 1
    assert got["agent0_tool_refusals_total", label(tool="shell", state="busy")] == 1
    assert got["agent0_tool_kills_total", label(tool="shell")] == 1
    assert got["agent0_tool_peak_memory_bytes", label(tool="python")] == 2 << 20
    assert got["agent0_tool_seconds_bucket", label(tool="python", le="0.01")] == 0
    assert got["agent0_tool_seconds_bucket", label(tool="python", le="0.02")] == 3
    assert got["agent0_tool_seconds_count", label(tool="shell")] == 2
    assert got["agent0_tool_seconds_sum", label(tool="python")] == pytest.approx(0.045)
    assert got["agent0_runs", label(status="running")] == 1
    assert got["agent0_events_total", label(type="ToolCalled")] == len(calls)
    # what models call tools is no label of ours
    assert {dict(labels)["tool"] for _, labels in got if "tool" in dict(labels)} == {"python", "shell", OTHER}
    assert not any(name.startswith("agent0_fake") for name, _ in got)


def test_counters_only_grow_and_failures_and_alarms_are_there(held: Settings) -> None:
    run = whole_run(iterations=1, tasks=4, attempts=2)
    keep(held, run[: len(run) // 2])
    before = samples(exposition(held))
    keep(held, run)
    after = samples(exposition(held))
    counters = {key for key in before if re.search("_total$|_bucket$|_count$|_sum$", key[0])}
    assert counters
    assert all(after[key] >= before[key] for key in counters)
    assert after["agent0_failures", (("status", "retried"),)] == 1
    assert after["agent0_failures", (("status", "dropped"),)] == 1
    assert after["agent0_runs", (("status", "finished"),)] == 1


def test_what_cannot_be_read_is_said_and_breaks_nothing(held: Settings) -> None:
    assert samples(exposition(held)) == {("agent0_tables_readable", ()): 0.0}
    live_path(held).parent.mkdir(parents=True)
    live_path(held).write_bytes(b"no database" * 1000)
    assert samples(exposition(held)) == {("agent0_tables_readable", ()): 0.0}
    assert not any(held.home.glob("nats"))


def names(text: str) -> set[str]:
    return set(re.findall(r"\bagent0_\w+", text))


def test_pictures_and_alerts_name_what_there_is(held: Settings) -> None:
    story = whole_run(iterations=1, tasks=3, attempts=2)
    failed = next(e for e in story if isinstance(e.event, ReactionFailed))
    again = failed.model_copy(update={"id": "again", "event": failed.event.model_copy(update={"failure": "f-open"})})
    alarm = record(AlarmRaised(alarm="a", severity="critical", message="m"), run=story[0].run, time=story[-1].time)
    keep(held, renumbered([*story, again, alarm]))
    found = samples(exposition(held))
    there = {name for name, _ in found} | names(exposition(held))
    boards = [json.loads(path.read_text()) for path in IMAGES.glob("grafana-*.json")]
    rules = yaml.safe_load((IMAGES / "alerts.yml").read_text())["groups"][0]["rules"]
    asked = [target["expr"] for board in boards for panel in board["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for rule in rules]
    assert len(names(" ".join(asked))) > 18
    assert names(" ".join(asked)) <= there
    labels = {name: {label for other, pairs in found for label, _ in pairs if other == name} for name in there}
    for expr in asked:
        grouped = {label for listed in re.findall(r"by \(([^)]*)\)", expr) for label in listed.split(", ")}
        for name in names(expr):
            assert grouped <= labels[name], expr
        for name, selectors in re.findall(r"(agent0_\w+)\{([^}]*)\}", expr):
            assert set(re.findall(r"(\w+)=", selectors)) <= labels[name], expr
    assert found["agent0_failures", (("status", "open"),)] == 1  # the words that alerts select by
    assert found["agent0_alarms", (("severity", "critical"),)] == 1
    assert len({board["uid"] for board in boards}) == len(boards) == 2
    provider = yaml.safe_load((IMAGES / "grafana-boards.yml").read_text())["providers"][0]
    compose = (IMAGES.parents[1] / "docker-compose.yml").read_text()
    assert all(f"grafana-{name}.json:{provider['options']['path']}/" in compose for name in ("tools", "runs"))
    jobs = yaml.safe_load((IMAGES / "prometheus.yml").read_text())["scrape_configs"]
    services = yaml.safe_load(compose)["services"]
    hosts = [target.rpartition(":")[0] for job in jobs for part in job["static_configs"] for target in part["targets"]]
    assert set(hosts) <= set(services)


# --- the server ------------------------------------------------------------------------------------------------------


async def test_it_is_served_while_the_tables_move_and_ends_cleanly(held: Settings) -> None:
    keep(held, told([("python", ToolResult(state=ToolState.OK))]))

    def scrape(address: str) -> Any:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
            return samples(answer.read().decode())

    wanted = ("agent0_tool_calls_total", (("state", "ok"), ("tool", "python")))
    with serving(held, "127.0.0.1", 0) as address:
        assert (await asyncio.to_thread(scrape, address))[wanted] == 1
        keep(held, told([("python", ToolResult(state=ToolState.OK))] * 5))
        scraped = await asyncio.gather(*(asyncio.to_thread(scrape, address) for _ in range(4)))
        assert [one[wanted] for one in scraped] == [5] * 4
        with pytest.raises(OperationError, match="Choose another --port"), serving(held, *_parts(address)):
            pass
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(scrape, address)


def _parts(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def test_the_command_serves_while_others_write(held: Settings) -> None:
    def allow(name: str) -> None:
        assert agent0("sandbox", "allow", "host", name, "--profile", "tiny", home=held.home).code == 0

    allow("one.example.org")
    command = [sys.executable, "-m", "agent0", "metrics", "serve", "--port", "0"]
    environment = {**os.environ, "AGENT0_HOME": str(held.home)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, cwd=IMAGES.parents[1]
    ) as process:
        assert process.stderr
        found = re.search(r"http://\S+/metrics", process.stderr.readline())
        assert found
        allow("two.example.org")
        deadline = time.monotonic() + 60
        seen = 0.0
        while seen != 2 and time.monotonic() < deadline:
            with urllib.request.urlopen(found[0], timeout=20) as answer:
                scraped = samples(answer.read().decode())
            seen = scraped.get(("agent0_policy_changes", (("profile", "tiny"),)), 0.0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    assert seen == 2
    assert scraped["agent0_work", (("handler", "attempt_task"), ("state", "wait"))] == 0


def test_the_command_prints_them(held: Settings) -> None:
    assert agent0("sandbox", "allow", "host", "example.org", "--profile", "tiny", home=held.home).code == 0
    alone, shown = (agent0("metrics", *words, home=held.home) for words in ((), ("show",)))
    assert alone.code == shown.code == 0
    assert alone.out == shown.out
    got = samples(alone.out)
    assert got["agent0_policy_changes", (("profile", "tiny"),)] == 1
    assert got["agent0_events_total", (("type", "PolicyChanged"),)] == 1
    assert not any(name == "agent0_runs" for name, _ in got)
    assert agent0("metrics", "serve", "--host", "no-such-host.invalid", home=held.home).code == 1
