"""Self-evolving agent training, event-sourced. ``import agent0`` is the command line in Python:

    import agent0

    folder = agent0.open("my-runs")
    run = folder.start("scripted", {"run.tasks": 4})
    print(run.status, run.curve()[-1]["validation"])
    for trajectory in run.trajectories(correct=False):
        print(trajectory.question, trajectory.answer)

``start(..., wait=False)`` returns a handle at once; ``agent0.connect(url, key)`` has the same handles for a server.
`%load_ext agent0` shows them live in a notebook.

A reward, verifier, tool, family or prompt of yours is a function with a decorator, in a file that ``--plugin`` or
``agent0.open(plugins=…)`` names. Everything here is imported at its first use: ``import agent0`` itself costs nothing.
Below it are the rooms of the framework: thought without I/O, and the rim that puts them together.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent0.assembly.api.folder import Folder as Folder
    from agent0.assembly.api.folder import open as open
    from agent0.assembly.api.handles import AsyncRun as AsyncRun
    from agent0.assembly.api.handles import AsyncRuns as AsyncRuns
    from agent0.assembly.api.handles import RunHandle as RunHandle
    from agent0.assembly.api.handles import RunProgress as RunProgress
    from agent0.assembly.api.notebook import load_ipython_extension as load_ipython_extension
    from agent0.assembly.api.rows import Rows as Rows
    from agent0.assembly.api.runs import Run as Run
    from agent0.assembly.api.servers import Server as Server
    from agent0.assembly.api.servers import connect as connect
    from agent0.assembly.api.solutions import solve as solve
    from agent0.assembly.api.studies import Study as Study
    from agent0.assembly.api.trajectories import Trajectory as Trajectory
    from agent0.errors import Agent0Error as Agent0Error
    from agent0.events.base import Recorded as Recorded
    from agent0.events.values import Task as Task
    from agent0.events.values import ToolResult as ToolResult
    from agent0.ports.sandbox import Sandbox as Sandbox
    from agent0.rewards import Features as Features
    from agent0.rewards import reward as reward
    from agent0.rewards import reward_set as reward_set
    from agent0.rollout.prompts import prompt_text as prompt_text
    from agent0.tasks.families import Family as Family
    from agent0.tasks.families import Params as Params
    from agent0.tasks.families import family as family
    from agent0.tools import tool as tool
    from agent0.tools.definition import Example as Example
    from agent0.tools.results import answer as answer
    from agent0.tools.workspace import Workspace as Workspace
    from agent0.training.gate import gate as gate
    from agent0.training.scored_trajectory import ScoredTrajectory as ScoredTrajectory
    from agent0.verification.verifiers import Verdict as Verdict
    from agent0.verification.verifiers import verifier as verifier

_HOMES = {
    "Agent0Error": "agent0.errors",
    "AsyncRun": "agent0.assembly.api.handles",
    "AsyncRuns": "agent0.assembly.api.handles",
    "Example": "agent0.tools.definition",
    "Family": "agent0.tasks.families",
    "Features": "agent0.rewards",
    "Folder": "agent0.assembly.api.folder",
    "Params": "agent0.tasks.families",
    "Recorded": "agent0.events.base",
    "Rows": "agent0.assembly.api.rows",
    "Run": "agent0.assembly.api.runs",
    "RunHandle": "agent0.assembly.api.handles",
    "RunProgress": "agent0.assembly.api.handles",
    "Sandbox": "agent0.ports.sandbox",
    "ScoredTrajectory": "agent0.training.scored_trajectory",
    "Server": "agent0.assembly.api.servers",
    "Study": "agent0.assembly.api.studies",
    "Task": "agent0.events.values",
    "ToolResult": "agent0.events.values",
    "Trajectory": "agent0.assembly.api.trajectories",
    "Verdict": "agent0.verification.verifiers",
    "Workspace": "agent0.tools.workspace",
    "answer": "agent0.tools.results",
    "connect": "agent0.assembly.api.servers",
    "family": "agent0.tasks.families",
    "open": "agent0.assembly.api.folder",
    "gate": "agent0.training.gate",
    "load_ipython_extension": "agent0.assembly.api.notebook",
    "prompt_text": "agent0.rollout.prompts",
    "reward": "agent0.rewards",
    "reward_set": "agent0.rewards",
    "solve": "agent0.assembly.api.solutions",
    "tool": "agent0.tools",
    "verifier": "agent0.verification.verifiers",
}
"""Where each name of the API is defined."""
__all__ = [
    *_HOMES,
]

if not TYPE_CHECKING:  # for mypy every name would be there otherwise

    def __getattr__(name):  # noqa: ANN001, ANN202
        """A name of the API, imported at its first use."""
        if name not in _HOMES:
            raise AttributeError(f"module 'agent0' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__():  # noqa: ANN202
        """What there is, the names of the API included."""
        return sorted({*globals(), *_HOMES})
