"""A package ``tau2`` of two small domains, in an environment of its own: what ``infra/environments/tau2_inside.py``
asks of the real one, which ``make tau2`` installs."""

import json
import sys
import venv
from pathlib import Path
from typing import Any

MESSAGE = """
class ToolCall:
    def __init__(self, id, name, arguments, requestor):
        self.id, self.name, self.arguments, self.requestor = id, name, arguments, requestor
"""
UTILS = "from pathlib import Path\nDATA_DIR = Path(__file__).parents[1] / 'data'\n"
ENVIRONMENT = """
import enum, json
from types import SimpleNamespace as Space


class Kind(enum.Enum):
    DB, ACTION, COMMUNICATE = "DB", "ACTION", "COMMUNICATE"
    ENV_ASSERTION, NL_ASSERTION = "ENV_ASSERTION", "NL_ASSERTION"


class Task:
    @classmethod
    def model_validate(cls, raw):
        criteria = raw["criteria"]
        actions = [Space(requestor="assistant", compare_args=None, **action) for action in criteria["actions"]]
        assertions = [Space(func_name="is_on")] if "ENV_ASSERTION" in criteria["basis"] else []
        return Space(
            id=raw["id"], ticket=raw["ticket"], initial_state=None,
            user_scenario=Space(instructions=Space(**raw["user"])),
            evaluation_criteria=Space(
                actions=actions, env_assertions=assertions, communicate_info=criteria["told"],
                reward_basis=[Kind(name) for name in criteria["basis"]],
            ),
        )


class DB(dict):
    def model_dump(self):
        return self


class Environment:
    policy = "Be kind."

    def __init__(self, solo_mode):
        self.solo_mode = solo_mode
        self.tools = Space(db=DB({str(number): "pending" for number in range(9)}))
        self.user_tools = Space(db=DB(on=False)) if "telecom" in __name__ else None

    def get_tools(self):
        return [spec(name, **fields) for name, fields in {"get": {"order": "string"}, "cancel": {"order": "string"},
                "calculate": {"expression": "string"}}.items()]

    def get_user_tools(self):
        return [spec("toggle"), spec("set_volume", level="integer", label="string")]

    def set_state(self, initialization_data, initialization_actions, message_history):
        pass

    def make_tool_call(self, tool_name, requestor, **arguments):
        orders = self.tools.db
        if tool_name in ("toggle", "set_volume") and (requestor == "user") == self.solo_mode:
            raise ValueError("not theirs")
        if tool_name == "set_volume":
            return f"volume {arguments['level'] + 0} {arguments.get('label')}"
        if tool_name == "toggle":
            self.user_tools.db["on"] = not self.user_tools.db["on"]
            return "toggled"
        if tool_name == "calculate":
            return str(eval(arguments["expression"]))
        if tool_name == "hang":
            while True:
                pass
        if tool_name == "cancel":
            orders[arguments["order"]] = "cancelled"
        return orders[arguments["order"]]

    def get_response(self, call):
        try:
            return Space(content=str(self.make_tool_call(call.name, call.requestor, **call.arguments)), error=False)
        except Exception as error:
            return Space(content=f"Error: {error!r}", error=True)

    def run_env_assertion(self, assertion, raise_assertion_error):
        return self.user_tools.db["on"]


def spec(name, **fields):
    parameters = {"type": "object", "properties": {name: {"type": kind} for name, kind in fields.items()}}
    return Space(openai_schema={"function": {"name": name, "description": name, "parameters": parameters}})


def get_environment(solo_mode=False):
    return Environment(solo_mode)
"""


def task(number: int, actions: list[tuple[str, dict[str, Any]]], basis: list[str], told: list[str]) -> dict[str, Any]:
    user = {
        "reason_for_call": f"I want to cancel {number}.",
        "known_info": "I am Ann.",
        "unknown_info": None,
        "task_instructions": "Insist.",
    }
    made = [{"name": name, "arguments": arguments} for name, arguments in actions]
    criteria = {"actions": made, "basis": basis, "told": told}
    return {"id": f"[{number}]", "ticket": "It is off.", "user": user, "criteria": criteria}


BOTH = ["DB", "COMMUNICATE"]
RETAIL = [
    task(0, [("get", {"order": "0"}), ("cancel", {"order": "0"})], BOTH, ["1000"]),
    task(1, [], BOTH, []),
    *(task(number, [("cancel", {"order": str(number)})], BOTH, []) for number in range(2, 8)),
    task(8, [], ["NL_ASSERTION"], []),
]
TELECOM = [task(number, [("toggle", {})], ["ENV_ASSERTION", "ACTION"], []) for number in range(3)]


def install(folder: Path) -> Path:
    """Make the environment in ``folder``; returns it."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages" / "tau2"
    files = {"data_model/message.py": MESSAGE, "utils/utils.py": UTILS}
    for domain, tasks in {"retail": RETAIL, "telecom": TELECOM}.items():
        data = f"data/tau2/domains/{domain}"
        files[f"domains/{domain}/environment.py"] = ENVIRONMENT
        files[f"{data}/tasks.json"] = json.dumps(tasks)
        files[f"{data}/split_tasks.json"] = json.dumps({"test": [entry["id"] for entry in tasks[:2]]})
    for name, text in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
