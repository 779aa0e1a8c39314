"""Whether our verdicts on τ²-bench are those of its own scorer: ``make tau2`` plays more than 1,000 episodes, golden,
cut, permuted, wrong, with more reads, silent, empty, left open and played twice, judges each by both, and writes the
table of docs/results/tau2.md."""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent0.events.episodes import Episode
from agent0.infra.environments.tau2 import DOMAINS, Tau2, digest_of_installed, install_tau2, python_of
from benchmarks.measured_page import write

BUILD = Path(__file__).parents[1] / "build" / "tau2"
PANDAS = "pandas==3.1.1"
RESPOND, DONE = "respond_to_user", "done"
READS = {"airline": "list_all_airports", "retail": "list_all_product_types", "telecom": "check_status_bar"}
FOR_EACH = {"telecom-user": 3, "telecom": 7, "retail": 2, "airline": 1}
"""Episodes of each task: the airline's databases are the slowest."""
AT_ONCE = 20
DONE_ALREADY = BUILD / "episodes.jsonl"
"""What was judged by the same code, which another start does not repeat."""

Call = tuple[str, dict[str, Any]]


def _wrong(calls: list[Call], rng: random.Random) -> list[Call]:
    """One argument of one call is another."""
    places = [(i, name) for i, (_, arguments) in enumerate(calls) for name in arguments]
    if not places:
        return [*calls, ("cancel_reservation", {"reservation_id": "none"})]
    index, name = rng.choice(places)
    tool, arguments = calls[index]
    value = arguments[name]
    other = value + 1 if isinstance(value, int | float) else f"{value}0" if isinstance(value, str) else []
    return [*calls[:index], (tool, {**arguments, name: other}), *calls[index + 1 :]]


def _read(calls: list[Call], rng: random.Random, tool: str) -> list[Call]:
    out = list(calls)
    for _ in range(3):
        out.insert(rng.randrange(len(out) + 1), (tool, {}))
    return out


KINDS: Mapping[str, Callable[[list[Call], list[Call], random.Random, str], list[Call]]] = {
    "golden": lambda calls, told, rng, read: [*calls, *told, (DONE, {})],
    "cut short": lambda calls, told, rng, read: [*calls[:-1], *told, (DONE, {})],
    "permuted": lambda calls, told, rng, read: [*rng.sample(calls, len(calls)), *told, (DONE, {})],
    "a wrong argument": lambda calls, told, rng, read: [*_wrong(calls, rng), *told, (DONE, {})],
    "more reads": lambda calls, told, rng, read: [*_read(calls, rng, read), *told, (DONE, {})],
    "silent": lambda calls, told, rng, read: [*calls, (DONE, {})],
    "empty": lambda calls, told, rng, read: [(DONE, {})],
    "left open": lambda calls, told, rng, read: [*calls, *told],
    "played twice": lambda calls, told, rng, read: [*calls, *calls, *told, (DONE, {})],
}


def _tasks(folder: Path, domain: str, name: str = "tasks.json") -> Any:
    (data,) = folder.glob("lib/python*/site-packages/tau2/data/tau2/domains")
    return json.loads((data / domain.removesuffix("-user") / name).read_text())


def _user_tools(folder: Path) -> set[str]:
    """What the user of telecom does themselves."""
    actions = [action for task in _tasks(folder, "telecom") for action in task["evaluation_criteria"]["actions"]]
    return {READS["telecom"]} | {action["name"] for action in actions if action["requestor"] == "user"}


def episodes(folder: Path) -> list[tuple[str, int, str, list[Call]]]:
    """Domain, task, kind and calls of every episode; of telecom's tasks those of its base split."""
    out = []
    for domain in FOR_EACH:
        tasks = _tasks(folder, domain)
        base = set(map(str, _tasks(folder, domain, "split_tasks.json")["base"]))
        numbers = [number for number, task in enumerate(tasks) if str(task["id"]) in base]
        for place, number in enumerate(numbers):
            criteria = tasks[number]["evaluation_criteria"]
            calls = [(action["name"], action["arguments"]) for action in criteria.get("actions") or []]
            infos = criteria.get("communicate_info") or []
            told = [(RESPOND, {"message": f"It is {info}."}) for info in infos] if "telecom" not in domain else []
            names = list(KINDS)
            for turn in range(FOR_EACH[domain]):
                kind = names[(place * FOR_EACH[domain] + turn) % len(names)]
                rng = random.Random(f"{domain} {number} {kind}")
                out.append((domain, number, kind, KINDS[kind](calls, told, rng, READS[domain.removesuffix("-user")])))
    return out


def _told(tool: str, arguments: Mapping[str, Any]) -> Call:
    """What has the user call a tool of theirs."""
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return RESPOND, {"message": f"Please do {tool}({written}) and tell me what you see."}


async def _play(
    tau2: Tau2, program: str, domain: str, task: int, calls: Sequence[Call], theirs: Collection[str]
) -> tuple[bool, list[Any]]:
    """Our verdict on an episode, and its steps; tools in ``theirs`` are the user's."""
    episode = Episode(url=f"tau2:{domain}", seed=task, question="", action="", program=program)
    reward, steps = None, []
    async with tau2.opened(episode) as session:
        for name, asked in calls:
            tool, arguments = _told(name, asked) if name in theirs else (name, asked)
            observation = await session.step(tool, arguments)
            reward = observation.reward
            steps.append({"tool": tool, "arguments": arguments, "asked": asked, "observation": observation.text})
    return reward == 1.0, steps


async def measure(limit: int) -> str:
    """Play every episode, at most ``limit``, and return the table."""
    folder, other = BUILD / "env", BUILD / "scorer"
    for each in (folder, other):
        install_tau2(each)
    subprocess.run([python_of(other), "-m", "pip", "install", "-q", "--no-warn-conflicts", PANDAS], check=True)
    scorer = await asyncio.create_subprocess_exec(
        *(python_of(other), "-I", "-W", "ignore", Path(__file__).with_name("tau2_scorer.py")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHON_DOTENV_DISABLED": "1"},
    )
    assert scorer.stdin and scorer.stdout
    begun, tau2, program = time.monotonic(), Tau2(folder), digest_of_installed(folder)
    judged = {tuple(entry["episode"]): entry for entry in _judged(program)}
    user_tools = _user_tools(folder)
    room, rewards = asyncio.Semaphore(AT_ONCE), dict[int, asyncio.Future[float]]()

    async def judge(number: int, domain: str, task: int, kind: str, calls: Sequence[Call]) -> None:
        async with room:
            theirs = user_tools if domain.endswith("-user") else ()
            ours, steps = await _play(tau2, program, domain, task, calls, theirs)
            rewards[number] = asyncio.get_running_loop().create_future()
            line = {"number": number, "domain": domain, "task": task, "steps": steps}
            scorer.stdin.write(json.dumps(line).encode() + b"\n")
            entry = {"program": program, "episode": [domain, task, kind], "ours": ours}
            judged[domain, task, kind] = entry | {"theirs": await rewards[number] == 1.0}
        with DONE_ALREADY.open("a") as file:
            print(json.dumps(judged[domain, task, kind]), file=file)
        if len(judged) % 50 == 0:
            print(f"{len(judged)} judged, {time.monotonic() - begun:.0f} s", flush=True)

    async def read() -> None:
        async for line in scorer.stdout:
            entry = json.loads(line)
            rewards[entry["number"]].set_result(entry["reward"])

    left = [episode for episode in episodes(folder)[:limit] if episode[:3] not in judged]
    reading = asyncio.create_task(read())
    try:
        await asyncio.gather(*(judge(number, *episode) for number, episode in enumerate(left)))
    finally:
        scorer.stdin.close()
        reading.cancel()
        await tau2.close()
    counts: Counter[tuple[str, str, str]] = Counter()
    for (domain, _, kind), entry in judged.items():
        counts[kind, domain, "played"] += 1
        counts[kind, domain, "equal"] += entry["ours"] is entry["theirs"]
        counts[kind, domain, "right"] += entry["theirs"]
    return _table(counts)


def _judged(program: str) -> list[Any]:
    """What was judged before, by the code with the digest ``program``."""
    lines = DONE_ALREADY.read_text().splitlines() if DONE_ALREADY.is_file() else []
    return [entry for entry in map(json.loads, lines) if entry["program"] == program]


def _table(counts: Mapping[tuple[str, str, str], int]) -> str:
    lines = [f"| episodes | {' | '.join(DOMAINS)} | equal |", "|---" * (len(DOMAINS) + 2) + "|"]
    for kind in KINDS:
        cells = [f"{counts[kind, d, 'right']}/{counts[kind, d, 'played']}" for d in DOMAINS]
        equal, played = (sum(counts[kind, domain, what] for domain in DOMAINS) for what in ("equal", "played"))
        lines.append(f"| {kind} | {' | '.join(cells)} | {equal}/{played} |")
    equal, played = (sum(n for (_, _, what), n in counts.items() if what == wanted) for wanted in ("equal", "played"))
    return "\n".join([*lines, f"| all {'| ' * len(DOMAINS)}| {equal}/{played} |", ""])


def main() -> None:
    """Measure; ``--write`` puts the table on its page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--limit", type=int, default=10_000)
    arguments = parser.parse_args()
    table = asyncio.run(measure(arguments.limit))
    print(table)
    if arguments.write:
        write("tau2.md", table)


if __name__ == "__main__":
    sys.exit(main())
