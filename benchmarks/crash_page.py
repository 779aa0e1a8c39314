"""What the kills came to, as tables and as docs/results/reliability.md."""

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.crashing import BROKER, ROLES
from tests.processes import KINDS

PAGE = Path(__file__).parents[1] / "docs" / "results" / "reliability.md"
Line = dict[str, Any]

WORDS = {"missing": "missing", "twice": "there twice", "finished": "not finished", "rebuilt": "tables differ"}
WORDS |= {"same": "says something else", "failed": "did not come to an end"}


def wrong(line: Line) -> list[str]:
    """What of a round is not as it must be, in words."""
    bad = [name for name in ("finished", "rebuilt", "same") if not line.get(name, True)]
    bad += [name for name in ("missing", "twice", "failed") if line.get(name)]
    kills = line.get("kills", ())
    bad += [name for name, each in (("missing", "lost"), ("twice", "twice")) if any(kill[each] for kill in kills)]
    return sorted({WORDS[name] for name in bad})


def made(lines: Sequence[Line]) -> int:
    """How many processes were killed."""
    return sum(len(line.get("kills", ())) for line in lines)


def table(lines: Sequence[Line], what: str = "round") -> str:
    """A row a role, in Markdown; ``what``: under which settings (round, shipped)."""
    rounds = [line for line in lines if line["what"] == what]
    out = [
        "| role | kills | in the middle of work | attempts lost | twice | rebuild equal | at work again: p50, p95 |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*out, *(_row(role, rounds) for role in ROLES)])


def _row(role: str, rounds: Sequence[Line]) -> str:
    kills = [kill for line in rounds for kill in line.get("kills", ()) if kill["role"] == role]
    there = [line for line in rounds if any(kill["role"] == role for kill in line.get("kills", ()))]
    middle = sum(kill["middle"] for kill in kills)
    lost, twice = (sum(kill[name] for kill in kills) for name in ("lost", "twice"))
    equal = f"{sum(line['rebuilt'] for line in there)} of {len(there)} runs"
    share = f"{middle / len(kills):.0%}" if kills else "-"
    back = _times([kill["back_s"] for kill in kills if kill["back_s"] is not None])
    return f"| {role} | {len(kills)} | {share} | {lost} | {twice} | {equal} | {back} |"


def _times(seconds: Sequence[float]) -> str:
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    return f"{median(ordered):.1f} s, {ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]:.1f} s"


def page(lines: Sequence[Line], wanted: tuple[int, int], seed: int, made_on: str, version: str) -> str:
    """The whole page; ``wanted``: kills, and kills under shipped settings."""
    own = [line for line in lines if line["what"] != "shipped"]
    parts = [TITLE, _answer(lines), table(lines), _summary(own, wanted[0], seed, made_on, version), HEAD, READING]
    parts += [_trainer(lines), _shipped(lines, wanted[1], seed, made_on, version)]
    parts += [CLUSTER, _leaders(lines), TESTS.format(processes=_processes())]
    parts += [_troubles(own)] if any(wrong(line) for line in own) else []
    return "\n\n".join(part for part in parts if part) + "\n"


def with_shipped(text: str, lines: Sequence[Line], wanted: int, seed: int, made_on: str, version: str) -> str:
    """The page ``text`` with its answer and its part about the shipped settings made anew, and nothing else."""
    title, following = SHIPPED.partition("\n")[0], CLUSTER.partition("\n")[0]
    before, _, rest = text.partition(f"{following}\n")
    before = re.sub(
        r"^- .*shipped settings.*$", lambda _: _kills(lines, "shipped"), before, count=1, flags=re.MULTILINE
    )
    before = before.partition(f"{title}\n")[0]
    return f"{before}{_shipped(lines, wanted, seed, made_on, version)}\n\n{following}\n{rest}"


def _answer(lines: Sequence[Line]) -> str:
    """The answer in at most five lines."""
    leaders = [line for line in lines if line["what"] == "cluster" and "silences" in line]
    kills, told = sum(len(line["silences"]) for line in leaders), sum(line["acknowledged"] for line in leaders)
    lost, twice = (sum(line[name] for line in leaders) for name in ("missing", "twice"))
    cluster = f"{kills} kills of a cluster's leader: {lost} of {told} acknowledged events lost, {twice} stored twice."
    bad = sum(bool(wrong(line)) for line in lines)
    out = [
        _kills(lines, "round"),
        _kills(lines, "shipped"),
        f"- {cluster}",
        "- Not tested: loss of power, a split network.",
    ]
    out += [f"- {bad} of {len(lines)} measurements were not as they must be: see the end."] if bad else []
    return "\n".join(out)


def _kills(lines: Sequence[Line], what: str) -> str:
    """What was lost in the rounds under some settings, in a line."""
    under = {"round": "settings for short waits", "shipped": "the shipped settings"}[what]
    rounds = [line for line in lines if line["what"] == what and line.get("kills")]
    if not rounds:
        return f"- Under {under}: it is not measured yet."
    kills = [kill for line in rounds for kill in line["kills"]]
    lost, twice = (sum(kill[name] for kill in kills) for name in ("lost", "twice"))
    equal = sum(line["rebuilt"] for line in rounds)
    return (
        f"- {len(kills)} kills under {under}: {lost} attempts lost, {twice} made twice; tables equal a rebuild in "
        f"{equal} of {len(rounds)} runs."
    )


def _shipped(lines: Sequence[Line], wanted: int, seed: int, made_on: str, version: str) -> str:
    found = [line for line in lines if line["what"] == "shipped"]
    if not found:
        return f"{SHIPPED}\n\nNo round has been made so yet."
    parts = [SHIPPED, _summary(found, wanted, seed, made_on, version), table(lines, "shipped")]
    parts += [_troubles(found)] if any(wrong(line) for line in found) else []
    return "\n\n".join(parts)


def _summary(lines: Sequence[Line], wanted: int, seed: int, made_on: str, version: str) -> str:
    rounds = [line for line in lines if line["what"] in ("round", "shipped") and "failed" not in line]
    load = median([line["load"] for line in lines]) if lines else 0.0
    minutes = sum(line["seconds"] for line in lines) / 60
    attempts = sum(line.get("attempts", 0) for line in rounds)
    whole = made(lines) >= wanted
    more = "" if whole else f" The schedule has {wanted} kills; the same command goes on where this one stopped."
    training = " and in a training of the built-in model" if any(line["what"] == "tiny" for line in lines) else ""
    return _wrapped(
        f"Made on {made_on} with version {version} and seed {seed}: **{made(lines)} kills** in {len(rounds)} runs with "
        f"{attempts} attempts{training}, in {minutes:.0f} minutes on two cores. Their "
        f"load was {load:.0f} at the median, mostly by others: on a machine of its own a run is back sooner.{more}"
    )


def _trainer(lines: Sequence[Line]) -> str:
    found = [line for line in lines if line["what"] == "tiny" and "same" in line]
    if not found:
        return "A training of the built-in model has not been killed yet."
    kills = [kill for line in found for kill in line["kills"]]
    middle, steps = sum(kill["middle"] for kill in kills), sum(kill["steps"] for kill in kills)
    same = "byte for byte those" if all(line["same"] for line in found) else "NOT those"
    return _wrapped(
        f"**The built-in model's trainer** was killed {len(kills)} times: {middle} times while a training was under "
        f"way, {steps} of these with steps kept to go on from, the others after it. Both adapters were {same} of a "
        "trainer that was left alone, and the run went on to its end."
    )


def _leaders(lines: Sequence[Line]) -> str:
    found = [line for line in lines if line["what"] == "cluster" and "silences" in line]
    if not found:
        return "A leader has not been killed by this command yet."
    kills, told = sum(len(line["silences"]) for line in found), sum(line["acknowledged"] for line in found)
    lost, twice = (sum(line[name] for line in found) for name in ("missing", "twice"))
    silences = [one for line in found for one in line["silences"]]
    return _wrapped(
        f"The leader was killed {kills} times while four writers published: of {told} acknowledged events {lost} were "
        f"lost and {twice} stored twice. Writers waited {median(silences):.1f} s for the next leader at the median, "
        f"{max(silences):.1f} s at most; nats-server lets four to nine seconds pass before an election."
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)


def _processes() -> str:
    rows = [f"| {kind} | `agent0 {' '.join(words)}` |" for kind, words in KINDS.items()]
    return "\n".join([*rows, f"| {BROKER} | nats-server, started again by whoever uses it |"])


def _troubles(lines: Sequence[Line]) -> str:
    rows = [_trouble(line, lines) for line in lines if wrong(line)]
    return "\n".join(["What was not as it must be:", "", *rows])


def _trouble(line: Line, lines: Sequence[Line]) -> str:
    again = "; it did under later code, when it was done again" if done_again(line, lines) else ""
    return f"- {line['what']} {line.get('number', '')} under {line.get('code', '-')}: {', '.join(wrong(line))}{again}"


def done_again(line: Line, lines: Sequence[Line]) -> bool:
    """Whether what broke off came to an end under other code."""
    same = [one for one in lines if (one["what"], one.get("number")) == (line["what"], line.get("number"))]
    return "failed" in line and any("failed" not in one and one.get("code") != line.get("code") for one in same)


TITLE = """\
# Reliability

Is anything lost when processes are killed?"""

HEAD = """\
```
make crash        # .venv/bin/python -m benchmarks.crash, and the slow test of the cluster
```

## What must hold

Any process of a run may be killed at any moment, the log's server too:

- the run ends, and says what it would have said (the same facts as a run in memory, where nobody is killed);
- what was stored stays: no finished attempt is lost, and none is made twice;
- no event is stored twice, under one id or under another;
- the tables are those that a rebuild from the whole log gives;
- a training that is killed resumes, and ends in the same adapter.

Nobody has to do anything but start what ended again, which a service manager or a container engine does.

## How it is measured

Each round is one run of the scripted model, in a process for each role, and every role is killed with `kill -9` at
moments drawn from the seed: soon after it got something to do and before it can have done it; those that may be busy
at any time, at any time. Killed ones are started again at once, eight of them at a time. What was done is kept in a
file of JSON lines, so the command resumes where it was cut off."""

READING = """\
*In the middle of work*: it had been asked something (the projector: there was something to read) that was answered
only after the kill. *At work again*: from the kill to the first answer of that, which holds the start of a process
(half a second of processor; with a sandbox, twice that), the second after which the server delivers again what nobody
acknowledged (`handlers.ack_wait_s`, here 1, by default 30), and the work itself."""

SHIPPED = """\
## With the shipped settings

The rounds above have `handlers.ack_wait_s` 1, `handlers.max_deliver` 1000, `handlers.in_flight` 3,
`handlers.commit_ms` 10, `sandbox.cgroup` never and one fork server a sandbox: so what was killed is soon at work again,
and there is always something under way. These leave handlers and sandboxes as they are shipped (30 s, 10, as
declared, 3, auto and two) and kill the same roles of the same run, of which only sizes and models are set. A
delivery that ended with its process counts towards nothing but `handlers.max_crashes` (20): a reaction during which
processes ended oftener waits for a person, and is not dropped
([architecture](../design/architecture.md#failure))."""

CLUSTER = """\
## A cluster

With `nats.replicas = 3` on three servers an acknowledged event is on the disks of two. Lose any one server, and the
others choose a leader within seconds; meanwhile writers ask again, and what had been stored without an answer is
found rather than stored twice. Reads end where the leader says that the log ends, whichever server they are made
from. Streams of a cluster are not compressed: nats-server 2.15.1 that was killed cannot always cut a compressed block
back to what the others agreed upon, and then stays away for good. `agent0 log init` makes one that was compressed an
uncompressed one from there on."""

TESTS = """\
## What tests it

| role | process |
|---|---|
{processes}

`make test` kills each of them three times in one run (`tests/test_crash.py`) and a cluster's leader once
(`tests/test_cluster.py`), at moments drawn anew each time; the seed is printed where it fails. What a killed server
may have done to its files is another matter: [seals](../design/architecture.md#evidence) and `agent0 events verify`
are for that.

Not tested: loss of power (a kill leaves the operating system's buffers alone; `sync_interval: always` is what
protects then), and servers that lose each other while all of them go on."""
