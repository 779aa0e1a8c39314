"""Scores episodes of τ²-bench by its own scorer, run by the Python of an environment that has ``tau2`` and pandas: a
line of JSON for each episode in, its reward out. Of the package only the client of language models is left out, which
no task of the three domains asks to score."""

import importlib
import json
import os
import signal
import sys
import types
from collections.abc import Iterator
from typing import Any

RESPOND, DONE, STOP = "respond_to_user", "done", "###STOP###"
PHONE = "[on my phone] "


def main() -> None:
    """Answer each line of standard input by one of standard output."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    client = types.ModuleType("tau2.utils.llm_utils")
    stub: Any = client
    stub.generate = stub.get_cost = stub.get_token_usage = stub.set_llm_log_dir = None
    sys.modules[client.__name__] = client
    evaluator = importlib.import_module("tau2.evaluator.evaluator")
    messages = importlib.import_module("tau2.data_model.message")
    simulation = importlib.import_module("tau2.data_model.simulation")
    domains: dict[str, list[Any]] = {}
    for line in sys.stdin:
        episode = json.loads(line)
        domain = episode["domain"]
        if domain not in domains:
            domains[domain] = _read_twice(domain.removesuffix("-user"))
        if os.fork():  # an evaluation changes two copies of the databases
            continue
        task, steps = domains[domain][episode["task"]], episode["steps"]
        run = simulation.SimulationRun(
            id="1",
            task_id=str(task.id),
            start_time="",
            end_time="",
            duration=0.0,
            termination_reason="user_stop" if steps and steps[-1]["tool"] == DONE else "max_steps",
            messages=list(_messages(messages, steps, alone=domain == "telecom")),
        )
        reward = evaluator.evaluate_simulation(
            simulation=run,
            task=task,
            evaluation_type=evaluator.EvaluationType.ALL,
            solo_mode=domain == "telecom",
            domain=domain.removesuffix("-user"),
        )
        print(json.dumps({"number": episode["number"], "reward": reward.reward}), flush=True)
        os._exit(0)


def _read_twice(domain: str) -> list[Any]:
    """The tasks of ``domain``, whose databases are from here on copies in memory: two of each, as a scorer takes."""
    module = importlib.import_module(f"tau2.domains.{domain}.environment")
    paths = importlib.import_module(f"tau2.domains.{domain}.utils")
    for name in ("FlightDB", "RetailDB", "TelecomDB", "TelecomUserDB"):
        if database := getattr(module, name, None):
            path = getattr(paths, f"{domain.upper()}{'_USER' * ('User' in name)}_DB_PATH")
            copies = [database.load(path), database.load(path)]
            database.load = classmethod(lambda cls, path, copies=copies: copies.pop())
    return list(module.get_tasks(None))


def _messages(messages: Any, steps: list[Any], *, alone: bool) -> Iterator[Any]:
    """An episode's steps as the benchmark's own messages."""
    for number, step in enumerate(steps):
        if step["tool"] == DONE:
            stop = messages.AssistantMessage if alone else messages.UserMessage
            yield stop(role="assistant" if alone else "user", content=STOP)
        elif step["tool"] == RESPOND and not alone:
            yield messages.AssistantMessage(role="assistant", content=step["arguments"]["message"])
            if step["observation"].startswith(PHONE):
                name, _, observation = step["observation"].removeprefix(PHONE).partition(": ")
                call = messages.ToolCall(id=str(number), name=name, arguments=step["asked"], requestor="user")
                yield messages.UserMessage(role="user", tool_calls=[call])
                yield messages.ToolMessage(id=call.id, role="tool", content=observation, requestor="user")
            yield messages.UserMessage(role="user", content=step["observation"])
        else:
            call = messages.ToolCall(
                id=str(number), name=step["tool"], arguments=step["arguments"], requestor="assistant"
            )
            yield messages.AssistantMessage(role="assistant", tool_calls=[call])
            yield messages.ToolMessage(id=call.id, role="tool", content=step["observation"], requestor="assistant")


if __name__ == "__main__":
    main()
