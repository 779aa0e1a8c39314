"""Run the fast tests against mutants, from inside the copied tree (started by ``benchmarks.mutants``).

One pytest session collects the tests and forks: first a child that runs every test and notes which functions it calls
and how long it takes, then a child for each mutant that runs the tests of the mutant's room which call its function,
quickest first, until one fails. A child starts from modules as they were imported, so nothing is left from the last.
"""

import hashlib
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.format_utils import mangled_name_from_mutant_name

from agent0.handlers import assign_reward

# The fast tests of each room: no server, no sandbox, no process. Tests in them that do start a server are left out.
TESTS = {
    "stats": "same_seed analysis bench_report edges grids calibration comparison fusion gate registry self_critique "
    "teacher_gate within training_rules task_rules scores study_tables experiment_tables benchmark_scores",
    "state": "same_seed changing climb curriculum evaluation_items guardrails guards making registry repetition "
    "rewards_sets run run_benchmarks run_failure signatures teacher_gate uncomputable training_rules task_rules "
    "verdict_rules reward_facts ladder_faults gate reviewing",
    "grading": "edges readings forms answers benchmarks chat_format grading grading_strict literals spelling "
    "student verifiers rewriting spellings rows verdict_rules",
    "tasks": "edges same_seed checked climb decontamination families guardrails ladders literals novelty searching "
    "splits splitting curriculum chances fresh_sets scripted student teacher verdicts verifiers within "
    "ladder_faults writing_teacher contamination task_rules reward_facts flow hacking "
    "spelling rewards",
    "rollout": "turns_read readings same_seed analysis answers chat_format climb confidence evaluation_items "
    "forking fusion long_attempts panel parsing run scripted self_critique spellings student teacher training "
    "tool_prompts ladders writing_teacher teacher_gate rollout_records drafts families verifiers calibrate",
    "provenance": "same_seed redaction seals forking rescoring training_rules",
    "verification": "edges same_seed program_verdicts stated_rules checked grading panel reviewing spelling teacher "
    "uncomputable verdicts verifiers verify literals verdict_rules task_rules flow reverify rows policies_earn "
    "rewriting readings",
    "training": "same_seed chat_format climb conventions dataset diet making objectives rewards_sets run searching "
    "seeding splits training writing_teacher training_rules reviewing",
    "rewards": "edges same_seed hacking repetition reviewing rewards rewards_majority rewards_sets "
    "rewards_told self_critique signatures reward_facts policies_earn rescoring writing_teacher",
    "run": "same_seed curriculum evaluation_items forking gate guards registry reviewing run run_benchmarks "
    "run_failure state_digest teacher_gate uncomputable ladder_faults flow training_rules panel writing_teacher "
    "rewards_majority contamination run_requests",
    "evaluation": "edges rows same_seed analysis bench_items bench_report benchmarks calibrate chances "
    "evaluation_items fresh_sets gate mistakes registry run_benchmarks teacher_gate within fitting scores "
    "benchmark_scores contamination skill rejudge study_gains",
    "experiments": "edges same_seed arms_page chances compare_page fresh_sets rescoring reviewing "
    "trials ladder_faults study_files shrinking reverify rejudge writing_teacher skill "
    "panel stated_rules grids experiment_tables study_tables study_refusals study_gains",
}
NOT_FAST = ("nats_server", "log")
SLOW_S = 5.0  # of processor time: a test that takes longer is no fast one, and is stopped
MOST_S = 20.0  # of processor time that is spent on a mutant: one that is not killed by then survives
CPU_S = 15.0  # what a mutant may use beyond five times what its tests take: one that uses more runs for ever
HANGS_S = 180  # a test that takes longer waits for what never comes, and fails
HELD = Path("..")
Noted = tuple[float, list[str]]


def files(rooms: Collection[str]) -> list[str]:
    """The test files of ``rooms``, each once."""
    return sorted({f"tests/test_{name}.py" for room in rooms for name in TESTS[room].split()})


class Runs:
    """A pytest plugin that tries the ``mutants`` in place of running the tests once."""

    def __init__(self, mutants: Sequence[str]) -> None:
        self.mutants = mutants

    def pytest_sessionstart(self) -> None:
        """Look for counterexamples only: shrinking one takes long and changes no verdict."""
        from hypothesis import Phase, settings  # not before pytest, which wants to see it imported

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", deadline=None, database=None, derandomize=True, phases=phases)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Note what each test calls, then try each mutant."""
        items = {one.nodeid: one for one in session.items if not set(NOT_FAST) & set(getattr(one, "fixturenames", ()))}
        noted = note(list(items.values()))
        for n, mutant in enumerate(self.mutants, 1):
            started = time.monotonic()
            verdict = try_one(mutant, [items[name] for name in tests_of(mutant, noted)], noted)
            with (HELD / "verdicts.jsonl").open("a") as file:
                file.write(json.dumps([mutant, verdict]) + "\n")
            print(f"{n}/{len(self.mutants)} {verdict} {mutant} {time.monotonic() - started:.1f} s", flush=True)
        return True


def note(items: Sequence[pytest.Item]) -> dict[str, Noted]:
    """Each test's processor time and the functions with mutants that it calls; of unchanged files as noted before."""
    told, fresh = HELD / "noted.json", HELD / "noted.new"
    known = json.loads(told.read_text()) if told.is_file() else {}
    files = defaultdict(list)
    for item in items:
        files[_file(item.nodeid)].append(item)
    for name, held in files.items():
        digest = hashlib.sha256(Path(name).read_bytes()).hexdigest()
        if known.get(name, {}).get("digest") != digest:
            if _in_child(partial(_note, held, fresh), 3600) != 0:
                raise SystemExit(f"{name} was stopped, without any mutant: see what is above.")
            known[name] = {"digest": digest, "tests": json.loads(fresh.read_text())}
            told.write_text(json.dumps(known))
    return {test: (one[0], one[1]) for name in files for test, one in known[name]["tests"].items()}


def _file(name: str) -> str:
    return name.partition("::")[0]


def _note(items: Sequence[pytest.Item], told: Path) -> int:
    set_mutant_under_test("stats")
    signal.signal(signal.SIGPROF, _too_slow)
    found = {}
    for item, following in pairwise([*items, None]):
        assert item
        state()._stats.clear()
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SLOW_S, 1.0)  # again, where the first is taken for a failure
        if _run(item, following):
            found[item.nodeid] = time.process_time() - started, sorted(state()._stats)
        else:
            print(f"left out, slow or fails without a mutant: {item.nodeid}")
        signal.setitimer(signal.ITIMER_PROF, 0)
    told.write_text(json.dumps(found))
    print(f" {_file(items[0].nodeid)}: {sum(seconds for seconds, _ in found.values()):.1f} s", flush=True)
    return 0


def _too_slow(*_: object) -> None:
    raise TimeoutError("no fast test")


def tests_of(mutant: str, noted: dict[str, Noted]) -> list[str]:
    """The fast tests of the mutant's room that call its function, quickest first, ``MOST_S`` of them together."""
    function, room = mangled_name_from_mutant_name(mutant), mutant.split(".")[1]
    here = {f"tests/test_{name}.py" for name in TESTS[room].split()}
    names = [name for name, (_, functions) in noted.items() if function in functions and _file(name) in here]
    ordered = sorted(names, key=lambda name: noted[name][0])
    spent = accumulate(noted[name][0] for name in ordered)
    return [name for name, seconds in zip(ordered, spent, strict=True) if seconds <= MOST_S]


def try_one(mutant: str, items: Sequence[pytest.Item], noted: dict[str, Noted]) -> str:
    """What became of ``mutant``: killed, loops, survived, no test (none calls it) or stopped (unknown why)."""
    if not items:
        return "no test"
    seconds = sum(noted[item.nodeid][0] for item in items)
    code = _in_child(lambda: _try(mutant, items), int(CPU_S + 5 * seconds))
    return {0: "survived", 1: "killed", -signal.SIGXCPU: "loops"}.get(code, "stopped")


def _try(mutant: str, items: Sequence[pytest.Item]) -> int:
    set_mutant_under_test(mutant)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    for item, following in pairwise([*items, None]):
        assert item
        if not _run(item, following):
            return 1
    return 0


def _run(item: pytest.Item, following: pytest.Item | None) -> bool:
    before = item.session.testsfailed
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return item.session.testsfailed == before


def _in_child(work: Callable[[], int], cpu_s: int) -> int:
    """Run ``work`` in a fork: its exit code, or the negative signal that ended it."""
    sys.stdout.flush()
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
    assign_reward._aside = ThreadPoolExecutor(1)  # a fork has no thread of its parent's pool
    code = 2
    try:
        code = work()
    finally:
        os._exit(code)


def main() -> int:
    """Try the mutants that ``benchmarks.mutants`` asks for."""
    wanted = json.loads((HELD / "wanted.json").read_text())
    if not wanted:
        return 0
    rooms = {name.split(".")[1] for name in wanted}
    options = ["-q", "-p", "no:cacheprovider", f"--timeout={HANGS_S}"]
    return int(pytest.main([*options, *files(rooms)], plugins=[Runs(wanted)]))


if __name__ == "__main__":
    raise SystemExit(main())
