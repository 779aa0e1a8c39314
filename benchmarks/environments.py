"""Whether environments of others run here, and our server there: ``make environments`` adds some of OpenEnv, gymnasium,
verifiers and Harbor as their authors wrote them, has a student that draws its actions play them, kills what serves them
and then the run, and resumes it; has OpenEnv's own client and validator ask our server; and writes the tables of
docs/results/environments.md. ``python -m benchmarks.environments --model NAME`` scores a language model on them."""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.events.alarms import DependencyLost
from agent0.events.base import Recorded
from agent0.events.tasks import ResultVerified, ToolCalled
from agent0.tasks.families import families
from benchmarks.measured_page import write

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "environments"
HOME = BUILD / "home"
OPENENV = "openenv==0.10.0"
SOURCES = {
    "openenv": ("https://github.com/meta-pytorch/OpenEnv", "685de411e5f77286b0fd94798d42c4467cf8a1bc"),
    "verifiers": ("https://github.com/PrimeIntellect-ai/verifiers", "9daf5a9337e1d3516b0f7086909db2cbf24a42b6"),
    "cookbook": ("https://github.com/harbor-framework/harbor-cookbook", "e093c9a860b988d9d74901010ddddb9c7f124f92"),
}
"""Repositories of others, and the commits that are played."""
SMALL = {"ITERATIONS": "1", "TASKS": "4", "ATTEMPTS": "4", "EVALUATION__VALIDATION": "1", "EVALUATION__TEST": "0"}
SMALL |= {"STUDENT__MAX_TURNS": "64", "STUDENT__MAX_CALLS": "64"}
EPISODES = 50
COOKBOOK = ("harbor", "cookbook:harbor_cookbook/recipes")
KILLED_S = 45.0
"""After how long a model is killed, in the middle of episodes."""


@dataclass(frozen=True)
class Foreign:
    """An environment of others: what it is called here and in the table, the words of ``env add`` that add it, where
    NAME:PATH is a path in a repository of ``SOURCES``, its options, and at which turns what is killed."""

    name: str
    title: str
    words: tuple[str, ...]
    options: tuple[str, ...]
    kills: str = "environment:5 run:30"
    held_out: str = ""
    """The environment whose tasks are held out, where it has but one."""


LEGS = "run:5"
"""Where its one step is the answer, no turn is in the middle of an episode."""
VERIFIERS = ("--package", "verifiers==0.1.14", "--package", "verifiers:environments/reasoning_gym_env")
PLAYED = (
    Foreign(
        "reasoning_gym_env",
        "OpenEnv `reasoning_gym_env`",
        ("openenv", "openenv:envs/reasoning_gym_env", "--count", "30"),
        ("dataset_name=leg_counting", "size=1"),
        LEGS,
    ),
    Foreign(
        "maze_env",
        "OpenEnv `maze_env`",
        ("openenv", "openenv:envs/maze_env", "--steps", "--question", "", "--right", "5", "--count", "3"),
        (),
        held_out="reasoning_gym_env",
    ),
    Foreign(
        "frozenlake-v1",
        "gymnasium `FrozenLake-v1`",
        ("gym", "FrozenLake-v1", "--count", "60"),
        ("desc=random", "is_slippery=false"),
    ),
    Foreign(
        "verifiers-legs",
        "verifiers `reasoning_gym_env`",
        ("verifiers", "reasoning_gym_env", *VERIFIERS, "--count", "30"),
        ("gym=leg_counting", "num_train_examples=40", "num_eval_examples=5"),
        "environment:5 run:12",
    ),
)


@dataclass(frozen=True)
class PlayedRun:
    """What the log holds of a run of an environment that was killed and resumed."""

    verdicts: Counter[bool | None]
    steps: int
    twice: int
    waited: int

    @classmethod
    def of(cls, told: Sequence[Recorded]) -> "PlayedRun":
        """Count the events of the run."""
        events = [recorded.event for recorded in told]
        steps = Counter((e.task, e.attempt, e.number) for e in events if isinstance(e, ToolCalled))
        return cls(
            Counter(e.correct for e in events if isinstance(e, ResultVerified)),
            steps.total(),
            steps.total() - len(steps),
            sum(isinstance(e, DependencyLost) for e in events),
        )


def source(word: str) -> str:
    """The folder that NAME:PATH names, fetched where it is not there; any other word as it is."""
    name, _, path = word.partition(":")
    if name not in SOURCES or not path:
        return word
    (url, commit), clone, out = SOURCES[name], BUILD / f"{name}.git", BUILD / name
    if not (out / path).is_dir():
        if not clone.is_dir():
            subprocess.run(["git", "clone", "--quiet", "--bare", url, str(clone)], check=True)
        out.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(["git", "-C", str(clone), "archive", commit, path], check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", str(out)], input=packed.stdout, check=True)
    return str(out / path)


def agent0(*words: str, module: str = "agent0", **variables: str) -> int:
    """Run one command with its data in ``HOME``; its exit code, negative where it was killed."""
    own = {f"AGENT0_RUN__{name}": size for name, size in SMALL.items()} | {"AGENT0_HOME": str(HOME)}
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(command, env=os.environ | own | variables, cwd=ROOT, check=False).returncode


def add(name: str, *words: str) -> Path:
    """Add an environment where it is not there; returns its folder."""
    folder = HOME / "environments" / name
    if not folder.is_dir() and agent0("env", "add", *map(source, words), "--name", name):
        raise SystemExit(f"{name} could not be added.")
    return folder


def added(foreign: Foreign) -> Path:
    """Add it where it is not there; returns its folder."""
    options = [word for option in foreign.options for word in ("--option", option)]
    return add(foreign.name, *foreign.words, *options)


async def play(foreign: Foreign) -> PlayedRun:
    """Play a run of it, kill and resume it; what the log then holds."""
    folder = added(foreign)
    player = "benchmarks.environment_player"
    named = ["--name", foreign.name, "--questions", str(folder), "--profile", "scripted"]
    if foreign.held_out:
        named += ["--set", f"run.questions.heldout={folder.parent / foreign.held_out}", "--set", "run.tasks=1"]
    if agent0("run", "start", *named, module=player, KILLS=foreign.kills) != -signal.SIGKILL:
        raise SystemExit(f"The run of {foreign.name} was not killed.")
    if agent0("run", "resume", "LAST", module=player):
        raise SystemExit(f"The run of {foreign.name} was not resumed.")
    async with open_log(load(env={"AGENT0_HOME": str(HOME)}), "reader") as log:
        told = [recorded async for recorded in log.read("")]
    runs = [recorded.run for recorded in told if recorded.type == "RunStarted"]
    run = PlayedRun.of([r for r in told if r.run == runs[-1]])
    if run.twice:
        raise SystemExit(f"{run.twice} steps of {foreign.name} are in the log twice.")
    return run


CLIENT = """
import json, sys
from openenv.core.generic_client import GenericEnvClient

with GenericEnvClient(base_url=sys.argv[1]).sync() as env:
    for seed in range(int(sys.argv[2])):
        print(json.dumps(env.reset(seed=seed).observation["question"]), flush=True)
        result = env.step({"answer": json.loads(sys.stdin.readline())})
        print(json.dumps([result.reward, result.done]), flush=True)
"""


@contextmanager
def served() -> Iterator[str]:
    """The address of our own server of countdown."""
    command = [sys.executable, "-m", "agent0", "env", "serve", "countdown", "--port", "0"]
    environment = os.environ | {"AGENT0_HOME": str(HOME), "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "ws://" in line)
        yield next(word for word in line.split() if word.startswith("ws://")).removesuffix("/ws.").replace("ws", "http")
    finally:
        server.terminate()
        server.wait()


def driven() -> tuple[int, str]:
    """Of ``EPISODES`` that OpenEnv's client played on our server, every other right: how many were rewarded so; and
    whether its validator passes it."""
    venv, family, right = BUILD / "client", families()["countdown"], 0
    if not (venv / "bin" / "openenv").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin" / "pip"), "install", "--quiet", OPENENV], check=True)
    with served() as url:
        command = [str(venv / "bin" / "python"), "-c", CLIENT, url, str(EPISODES)]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert client.stdin is not None and client.stdout is not None
        for number in range(EPISODES):
            params = family.parse(json.loads(client.stdout.readline()))
            assert params is not None
            answer = family.solve(params) if number % 2 else "1"
            print(json.dumps(answer), file=client.stdin, flush=True)
            right += json.loads(client.stdout.readline()) == [float(number % 2), True]
        client.wait()
        validate = [str(venv / "bin" / "openenv"), "validate", "--url", url, "--json"]
        report = json.loads(subprocess.run(validate, check=False, stdout=subprocess.PIPE).stdout)
    return right, "passes" if report["passed"] else "fails"


def table(runs: dict[Foreign, PlayedRun]) -> str:
    """The part of the page that is measured."""
    lines = ["| environment | attempts | right | steps | waited for |", f"|{'---|' * 5}"]
    for foreign, run in runs.items():
        judged = run.verdicts.total() - run.verdicts[None]
        counts = (judged, run.verdicts[True], run.steps, run.waited)
        lines.append(f"| {foreign.title} | {' | '.join(map(str, counts))} |")
    return "\n".join((*lines, ""))


def scored(name: str, model: str) -> dict[str, float]:
    """What ``model`` scores on all tasks of an added environment, by a command that is killed once, and resumed."""
    command = [sys.executable, "-m", "agent0", "bench", "run"]
    words = [str(HOME / "environments" / name), "--profile", "qwen", "--model", model]
    environment = os.environ | {"AGENT0_HOME": str(HOME)}
    with subprocess.Popen([*command, *words], env=environment, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        identity = re.search(r"bench-\w+", process.stderr.readline())
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILLED_S)
        process.kill()
    assert identity is not None
    resumed = [*command, "--resume", identity[0], "--json"]
    done = subprocess.run(resumed, env=environment, stdout=subprocess.PIPE, cwd=ROOT, check=True)
    report = json.loads(done.stdout)
    scores: dict[str, float] = report["results"][name]
    return scores | {"n": report["n-samples"][name]["effective"]}


def model_table(model: str) -> str:
    """A row for each environment of OpenEnv, and for Harbor's: what ``model`` solves with tools, and how sure that
    is."""
    environments = {
        foreign.name: foreign.title for foreign in PLAYED if foreign.words[0] == "openenv" and added(foreign)
    }
    environments[add("cookbook", *COOKBOOK).name] = "Harbor `simple-task`"
    agent0("model", "get", model)
    lines = [f"| environment, {model} | tasks | right | 95 % |", f"|{'---|' * 4}"]
    for name, title in environments.items():
        score = scored(name, model)
        right, low, high = (score[f"{key},tools"] for key in ("acc", "acc_lower95", "acc_upper95"))
        lines.append(f"| {title} | {score['n']:.0f} | {right * score['n']:.0f} | {low:.2f} to {high:.2f} |")
    return "\n".join((*lines, ""))


def main() -> None:
    """Play, print and, with ``--write``, keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/results/environments.md")
    parser.add_argument("--model", default="", help="score this one of the catalogue instead, and write nothing")
    arguments = parser.parse_args()
    if arguments.model:
        return print(model_table(arguments.model))
    right, verdict = driven()
    runs = {foreign: asyncio.run(play(foreign)) for foreign in PLAYED}
    tasks = len(list((add("cookbook", *COOKBOOK) / "tasks").iterdir()))
    found = table(runs) + (
        f"\nOn our server {right} of {EPISODES} episodes of OpenEnv's client ({OPENENV}) are rewarded rightly; its\n"
        f"validator {verdict}. Of Harbor's cookbook {tasks} task is added.\n"
    )
    print(found)
    if arguments.write:
        write("environments.md", found)


if __name__ == "__main__":
    main()
