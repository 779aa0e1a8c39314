"""Serves a domain of τ²-bench over a socket of this machine, run by the Python of its own environment: the standard
library and ``tau2`` alone, never the rest of the project.

The process reads the domain once and forks for each connection, so every episode has databases of its own. A request
is a line of JSON, and so is its answer. ``tau2`` keeps the databases and carries out the tools; what an episode is
worth is compared here.
"""

import ast
import contextlib
import gc
import hashlib
import importlib
import json
import operator
import os
import re
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESPOND, DONE = "respond_to_user", "done"
MEMORY, CPU_S, OPEN_FILES = 4 << 30, 120, 64
"""What an episode may take: bytes of address space, seconds of a processor, files."""
PHONE = "[on my phone] "
"""Begins what a user tells of a tool of theirs."""
ONE_STEP = "I cannot do several things at once. Tell me one."
NOTHING_LEFT = "That is all I can tell you. Yes, if you need my consent."
INTRODUCTION = "You are an agent of a customer service and follow this policy:"
WITH_USER = (
    f"Each turn, either call a tool or write to the customer: a turn that calls no tool is a message to them, and so "
    f"is {RESPOND}. When nothing is left to do, call {DONE}."
)
WITH_PHONE = (
    f"{WITH_USER} The customer does what a message names as the manual does, such as toggle_data() or "
    'check_app_status(app_name="messaging"), one thing a message, and tells what comes of it.'
)
ALONE = f"Nobody answers messages: solve the ticket by calls of tools, then call {DONE}."
MOST_BITS = 1 << 20
"""Of a whole number that is calculated."""
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
TAKES_MESSAGE = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
TAKES_NOTHING: dict[str, object] = {"type": "object", "properties": {}}
Arguments = dict[str, object]


class Domain:
    """The databases, policy and tasks of one domain, as they are before any episode. ``telecom-user`` is telecom, whose
    user has tools, in place of a ticket."""

    def __init__(self, name: str) -> None:
        self.alone = name == "telecom"
        name, with_phone, _ = name.partition("-user")
        module = importlib.import_module(f"tau2.domains.{name}.environment")
        self.task_type = module.Task
        self.call_type = importlib.import_module("tau2.data_model.message").ToolCall
        self.environment = module.get_environment(solo_mode=self.alone)
        path = Path(importlib.import_module("tau2.utils.utils").DATA_DIR) / "tau2" / "domains" / name
        self.tasks = json.loads((path / "tasks.json").read_text(encoding="utf-8"))
        splits = json.loads((path / "split_tasks.json").read_text(encoding="utf-8"))
        self.splits = {split: set(map(str, ids)) for split, ids in splits.items()}
        users = [tool.openai_schema["function"] for tool in (self.environment.get_user_tools() if with_phone else ())]
        self.phone = {spec["name"]: list(spec["parameters"]["properties"]) for spec in users}
        """Names of the user's tools, with those of their parameters."""
        self.setting = WITH_PHONE if with_phone else ALONE if self.alone else WITH_USER
        self.tools = self._tools()

    def task(self, number: int) -> Any:
        """The task ``number``, counted from 0, as the package's own model of it."""
        return self.task_type.model_validate(self.tasks[number])

    def listed(self, number: int) -> dict[str, object]:
        """What is known of task ``number`` before any episode."""
        task = self.task(number)
        return {
            "id": str(task.id),
            "question": self.question(task),
            "user": [] if self.alone else scenario(task),
            "splits": sorted(split for split, ids in self.splits.items() if str(task.id) in ids),
        }

    def _tools(self) -> list[dict[str, object]]:
        offered = [*self.environment.get_tools(), *(self.environment.get_user_tools() if self.alone else ())]
        specs = [tool.openai_schema["function"] for tool in offered]
        named = [
            {"name": spec["name"], "description": spec.get("description", ""), "parameters": spec["parameters"]}
            for spec in specs
        ]
        if not self.alone:
            named.append({"name": RESPOND, "description": "Write to the customer.", "parameters": TAKES_MESSAGE})
        return [*named, {"name": DONE, "description": "End the conversation.", "parameters": TAKES_NOTHING}]

    def question(self, task: Any) -> str:
        """The text that an agent reads at the begin of ``task``: policy, rules and opening."""
        opening = f"The ticket:\n{task.ticket}" if self.alone else f"The customer writes:\n{scenario(task)[0]}"
        return f"{INTRODUCTION}\n\n{self.environment.policy.strip()}\n\n{self.setting}\n\n{opening}"


def scenario(task: Any) -> list[str]:
    """What the user of ``task`` has to say, in order: why they write, what they know and do not, what they want."""
    instructions = task.user_scenario.instructions
    if isinstance(instructions, str):
        return [instructions]
    fields = ("reason_for_call", "known_info", "unknown_info", "task_instructions")
    parts = [getattr(instructions, field) for field in fields]
    return [part.strip() for part in parts if part and part.strip()]


class Tau2Episode:
    """One task under way, on the databases of this process."""

    def __init__(self, domain: Domain, number: int, address: str) -> None:
        self.domain, self.number, self.address = domain, number, address
        self.task, self.environment = domain.task(number), domain.environment
        self.calls: list[tuple[str, Arguments]] = []
        self.messages: list[str] = []
        self.told = 0
        self.ended = False
        begin(self.environment, self.task)

    def step(self, tool: str, arguments: Arguments) -> dict[str, object]:
        """Make one step; returns its observation, reward, whether it ended the episode, and whether it was refused."""
        if self.ended:
            raise ValueError("the episode has ended")
        if tool == DONE:
            self.ended = True
            reward, why = self.worth()
            return {"text": f"[ended: {why}]", "reward": reward, "done": True, "refused": False}
        if tool == RESPOND and not self.domain.alone:
            message = arguments.get("message")
            if not isinstance(message, str):
                return refusal("Error: message must be a text")
            self.messages.append(message)
            return {"text": self._reply(message), "reward": None, "done": False, "refused": False}
        if tool == "calculate" and not small(str(arguments.get("expression"))):
            return refusal("Error: the numbers are too large")  # they can take hours that nothing interrupts
        text, failed = self._call(tool, arguments, "assistant")
        return {"text": text, "reward": None, "done": False, "refused": failed}

    def _call(self, tool: str, arguments: Arguments, requestor: str) -> tuple[str, bool]:
        self.calls.append((tool, arguments))
        call = self.domain.call_type(id="", name=tool, arguments=arguments, requestor=requestor)
        answer = self.environment.get_response(call)
        return answer.content, bool(answer.error)

    def _reply(self, message: str) -> str:
        """What the user says: what came of the one thing that they were told to do, else what they have left to say."""
        named = calls_in(message, self.domain.phone)
        if len(named) > 1:
            return ONE_STEP
        for tool, arguments in named.items():
            if arguments is None:
                return f"I do not know how to do that: {tool}"
            return f"{PHONE}{tool}: {self._call(tool, arguments, 'user')[0]}"
        self.told += 1
        texts = scenario(self.task)
        return texts[self.told] if self.told < len(texts) else NOTHING_LEFT

    def worth(self) -> tuple[float | None, str]:
        """The episode's reward, 1 or 0, and what decided: end state, calls and messages, by the task's own basis."""
        criteria = self.task.evaluation_criteria
        if criteria is None or (criteria.actions is None and criteria.env_assertions is None):
            return 1.0, "nothing is asked for"
        basis = {kind.value for kind in criteria.reward_basis}
        if basis - {"DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE"}:
            return None, f"only a model could tell {', '.join(sorted(basis))}"
        checks = {
            "DB": self._wrong_state,
            "ENV_ASSERTION": self._failed_assertions,
            "ACTION": self._missing_actions,
            "COMMUNICATE": self._missing_messages,
        }
        failed = [why for kind, check in checks.items() if kind in basis for why in check(criteria)]
        return (0.0, f"not as asked: {', '.join(failed)[:200]}") if failed else (1.0, "as asked")

    def _wrong_state(self, criteria: Any) -> list[str]:
        reference = answer_of(self.address, {"kind": "reference", "task": self.number})
        return [] if states(self.environment) == reference else ["the end state of the database"]

    def _failed_assertions(self, criteria: Any) -> list[str]:
        met = self.environment.run_env_assertion
        failed = [each for each in criteria.env_assertions or [] if not met(each, raise_assertion_error=False)]
        return [f"assertion {each.func_name}" for each in failed]

    def _missing_actions(self, criteria: Any) -> list[str]:
        actions = criteria.actions or []
        return [f"action {each.name}" for each in actions if not any(same(each, *call) for call in self.calls)]

    def _missing_messages(self, criteria: Any) -> list[str]:
        sent = [message.lower().replace(",", "") for message in self.messages]
        texts = criteria.communicate_info or []
        return [f"message {text}" for text in texts if not any(text.lower() in message for message in sent)]


def calls_in(message: str, phone: dict[str, list[str]]) -> dict[str, Arguments | None]:
    """The tools of ``phone`` that ``message`` names, with the arguments behind the first name that has some; None where
    these cannot be read."""
    named: dict[str, Arguments | None] = {}
    for name, written in re.findall(r"\b(\w+)\b(\([^()]{0,1000}\)|\()?", message):
        if name in phone and not named.get(name):
            named[name] = arguments_of(written, phone[name])
    return named


def arguments_of(written: str, names: list[str]) -> Arguments | None:
    """Arguments in parentheses as Python writes them, by name; None where they are none, or not of JSON."""
    try:
        call = ast.parse(f"_{written or '()'}", mode="eval").body
        if not isinstance(call, ast.Call) or len(call.args) > len(names) or any(not each.arg for each in call.keywords):
            return None
        by_name = dict(zip(names, call.args, strict=False)) | {str(each.arg): each.value for each in call.keywords}
        read = {name: ast.literal_eval(value) for name, value in by_name.items()}
        arguments: Arguments = json.loads(json.dumps(read, allow_nan=False))
    except Exception:
        return None
    return arguments


def small(expression: str) -> bool:
    """Whether no whole number on the way to what ``expression`` comes to has more than ``MOST_BITS``; True of what is
    no calculation, which the tool itself refuses."""

    def value(node: Any) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        operands = [value(part) for part in parts]
        whole = all(isinstance(each, int) for each in operands)
        if isinstance(node.op, ast.Pow) and whole and operands[0].bit_length() * operands[1] > MOST_BITS:
            raise OverflowError
        result = OPERATORS[type(node.op)](*operands)
        if isinstance(result, int) and result.bit_length() > MOST_BITS:
            raise OverflowError
        return result

    try:
        value(ast.parse(expression.strip(), mode="eval").body)
    except OverflowError as error:
        return bool(error.args)  # those of Python itself say what they are about
    except Exception:
        return True
    return True


def refusal(text: str) -> dict[str, object]:
    """The answer to a step that was not made."""
    return {"text": text, "reward": None, "done": False, "refused": True}


def begin(environment: Any, task: Any) -> None:
    """Bring the databases of ``environment`` into the state that ``task`` begins with."""
    initial = task.initial_state
    environment.set_state(
        initialization_data=initial.initialization_data if initial else None,
        initialization_actions=initial.initialization_actions if initial else None,
        message_history=(initial.message_history or []) if initial else [],
    )


def reference_states(domain: Domain, number: int) -> list[str | None]:
    """The end state that the actions of the task itself leave."""
    task, environment = domain.task(number), domain.environment
    environment.solo_mode = False
    begin(environment, task)
    for action in task.evaluation_criteria.actions or []:
        with contextlib.suppress(Exception):  # an action that fails changes nothing
            environment.make_tool_call(tool_name=action.name, requestor=action.requestor, **action.arguments)
    return states(environment)


def states(environment: Any) -> list[str | None]:
    """The digests of both databases; None where there is none."""
    kits = (environment.tools, environment.user_tools)
    return [kit and hashlib.sha256(canonical(kit.db.model_dump())).hexdigest() for kit in kits]


def canonical(value: object) -> bytes:
    """``value`` as JSON in UTF-8, keys in order, so that equal values are equal bytes."""
    return json.dumps(value, sort_keys=True, default=str).encode()


def same(action: Any, tool: str, arguments: Arguments) -> bool:
    """Whether a call is the ``action``, by the arguments that count: its own list, else all that the call has."""
    keys = arguments.keys() if action.compare_args is None else action.compare_args
    call, reference = ({key: v for key, v in values.items() if key in keys} for values in (arguments, action.arguments))
    return action.name == tool and call == reference


def answer_of(address: str, request: dict[str, object]) -> object:
    """What another connection to ``address`` answers to ``request``: it has databases of its own."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        connection.sendall(json.dumps({"id": 0, **request}).encode() + b"\n")
        with connection.makefile("rb") as lines:
            return json.loads(lines.readline())["answer"]


def answer_to(request: Any, domain: Domain, address: str, episodes: list[Tau2Episode]) -> object:
    """What a request is answered; ``episodes`` holds the one of this connection."""
    kind = request["kind"]
    if kind == "tasks":
        first, count = request["first"], request["count"]
        return [domain.listed(number) for number in range(first, min(first + count, len(domain.tasks)))]
    if kind == "open":
        episodes.append(Tau2Episode(domain, request["task"], address))
        return {"question": domain.question(episodes[0].task), "tools": domain.tools}
    if kind == "reference":
        return reference_states(domain, request["task"])
    return episodes[0].step(request["tool"], request["arguments"])


def serve(connection: socket.socket, domain: Domain, address: str) -> None:
    """Answer the requests of one connection, until it closes."""
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_FSIZE, 0)):
        resource.setrlimit(kind, (most, most))
    episodes: list[Tau2Episode] = []
    with connection.makefile("rb") as lines:
        for line in lines:
            request = json.loads(line)
            try:
                answer = {"id": request["id"], "answer": answer_to(request, domain, address, episodes)}
            except Exception as error:
                answer = {"id": request["id"], "error": f"{type(error).__name__}: {error}"[:500]}
            connection.sendall(json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Serve the domain that is named first at the address named second, until standard input closes."""
    name, address = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    domain = Domain(name)
    gc.collect()
    gc.freeze()  # what was read stays shared with those who fork
    gc.disable()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(128)
        os.write(1, b"ready\n")
        while True:
            if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
                return
            connection, _ = listener.accept()
            if not os.fork():
                listener.close()
                serve(connection, domain, address)
                os._exit(0)
            connection.close()


if __name__ == "__main__":
    main()
