"""What ``agent0 --help`` shows: every noun with one line, by the question that it answers. It stands here, apart from
the nouns, so that it is there at once; a test compares the two."""

from collections.abc import Iterable, Mapping

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Start here": {
        "tutorial": "Walk through a whole run in two minutes, without a model.",
        "run": "Start a run, watch it, resume it, and see what it came to.",
        "questions": "Check a file of your own questions before you train on it.",
        "doctor": "Check what works on this machine, with one fix for what does not.",
        "config": "Show and check settings and profiles.",
    },
    "Look": {
        "up": "Open runs in a browser, and execute them: all in one command.",
        "view": "Open a data folder, a run or an archive in a browser, to read.",
        "report": "Write a page on what came of a run: answers, tables, pictures.",
        "task": "List the tasks that a teacher proposed; review answers to them.",
        "trajectory": "Read attempts turn by turn; export them as training data.",
        "reward": "Explain a reward part by part; play cheats against a reward set.",
        "curriculum": "See what was asked for, how hard it was, and how broad it stayed.",
        "events": "Follow, look up, search, verify and export what happened.",
        "projections": "Query the tables with SQL; rebuild them from the log.",
        "failures": "Look at reactions that were given up; retry or drop them.",
    },
    "Ask again": {
        "experiment": "Other rewards, verdicts or training; variants over seeds.",
        "bench": "Score a student on benchmarks, and compare scores.",
        "batch": "Answer a file of questions, each once, whatever stops it.",
        "calibrate": "Fit how sure a student may be of its answers.",
        "verify": "Measure verifiers on labelled pairs.",
        "env": "Tasks of others: add their environments, list, remove.",
        "solve": "Repair, test, review or document your own repository.",
        "family": "Check a task family; write its tasks as Harbor's folders.",
    },
    "Models": {
        "chat": "Talk with a model or a checkpoint, which has its tools.",
        "model": "Checkpoints: list, compare, promote, export, serve elsewhere.",
        "router": "Budgets of model calls: what may be spent, what was.",
        "tiny": "The built-in small model: make it, read its card.",
        "prompt": "Prompts of teacher and student: list, show, compare.",
        "tool": "Tools of a student: list them, call one, serve calls.",
    },
    "Operate": {
        "status": "What stands and works: log, tables, processes, runs.",
        "api": "Keys and description of the HTTP API.",
        "handlers": "Run reactions as processes of their own.",
        "cluster": "See who reacts on which host, and what waits; make keys.",
        "log": "Make and check the event log's streams.",
        "backup": "Write a live log with artifacts and settings to a file.",
        "restore": "Make a log again from a backup, here or on servers.",
        "artifacts": "Verify what events name, throw away what none names.",
        "sandbox": "Check the sandbox, allow and deny, look at work folders.",
        "metrics": "Metrics for Prometheus: print or serve them.",
    },
}
HEAD = """\
Usage: agent0 [OPTIONS] COMMAND [ARGS]...

  Self-evolving agent training, event-sourced. New here? agent0 tutorial
"""
TAIL = """\
Options:
  --version   Show the version.
  -h, --help  Show this message; agent0 COMMAND --help has examples.

A run is named by its id, a unique beginning of it, its name, LAST or LAST~1.
Every command that shows data has --json."""


def first_page(others: Iterable[str] = ()) -> str:
    """The text of ``agent0 --help``. ``others``: nouns that were added to the command line."""
    added = dict.fromkeys(sorted(others), "")
    groups = {**GROUPS, **({"Others": added} if added else {})}
    blocks = [
        "\n".join([f"{title}:", *(f"  {noun:<12} {about}".rstrip() for noun, about in nouns.items())])
        for title, nouns in groups.items()
    ]
    return "\n\n".join([HEAD.rstrip("\n"), *blocks, TAIL])
