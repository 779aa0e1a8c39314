"""Part of the rim: modules and names that plugins may import as they were before the rooms.

An import of an old path gives the module of the new one, never a second copy of it, and warns.
"""

import importlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

MOVED = {
    "agent0.answers": "agent0.grading.normal_form",
    "agent0.benchmarks": "agent0.evaluation.benchmarks",
    "agent0.evidence": "agent0.rewards.features",
    "agent0.families": "agent0.tasks.families",
    "agent0.grading.kinds": "agent0.grading.answer_types",
    "agent0.grids": "agent0.experiments.ablations",
    "agent0.guards": "agent0.run.monitors",
    "agent0.hacking": "agent0.rewards.red_team",
    "agent0.objectives": "agent0.training.objectives",
    "agent0.panel": "agent0.verification.panel",
    "agent0.parsing": "agent0.rollout.parsing",
    "agent0.policy": "agent0.tools.policy",
    "agent0.programs": "agent0.verification.programs",
    "agent0.prompts": "agent0.rollout.prompts",
    "agent0.tools.answer": "agent0.tools.results",
    "agent0.verifiers": "agent0.verification.verifiers",
}
"""Old module -> new one; what lay below the old one lies below the new one."""

SPLIT = {
    "agent0.assembly.models": ("agent0.assembly.runtime.providers",),
    "agent0.ports": tuple(f"agent0.ports.{role}" for role in ("models", "sandbox", "storage", "training", "web")),
    "agent0.run": ("agent0.run.lifecycle",),
    "agent0.state": ("agent0.state.run_state",),
}
"""Old module whose name is a package now -> the modules that have its names."""


RENAMED: dict[str, dict[str, str]] = {
    "agent0.experiments.ablations": {
        "Arm": "Variant",
        "Grid": "AblationStudy",
        "grid": "ablation_study",
        "grids": "ablation_studies",
    },
    "agent0.ports.training": {"Lesson": "TrainingExample", "Trained": "TrainingResult"},
    "agent0.rewards": {"Facts": "Features"},
    "agent0.rewards.features": {"Deed": "RewardContext", "Fact": "Feature", "fact": "feature", "facts": "features"},
    "agent0.state.run_state": {"Made": "ToolCallRecord"},
    "agent0.tasks.families": {"asked": "requested_families", "fault": "rejection", "kind_of": "task_length"},
    "agent0.tools.definition": {"Foreign": "ExternalTool"},
    "agent0.training.objectives": {"Weighed": "WeightedSample"},
    "agent0.verification.panel": {"Evidence": "VerificationContext", "Said": "VoteAndReason"},
    "agent0.verification.verifiers": {"NOTHING": "NO_CONTEXT", "compared": "compare_answer"},
}
"""Module -> its old names and what they are called now."""


class _Loader(Loader):
    """Puts the module of the new path where that of the old one is looked for."""

    def __init__(self, new: str) -> None:
        self._new = new

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self._new)


class _Finder(MetaPathFinder):
    """Finds modules below the old paths."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        old = next((old for old in MOVED if name == old or name.startswith(f"{old}.")), None)
        if old is None:
            return None
        new = MOVED[old] + name.removeprefix(old)
        _warn(name, new)
        return ModuleSpec(name, _Loader(new))


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} moved to {new}", DeprecationWarning, stacklevel=2)


def _split(old: str, homes: Sequence[str], name: str) -> Any:
    public = not name.startswith("_") and find_spec(f"{old}.{name}") is None
    for home in homes if public else ():
        if hasattr(module := importlib.import_module(home), name):
            _warn(f"{old}.{name}", home)
            return getattr(module, name)
    raise AttributeError(f"module {old!r} has no attribute {name!r} (its names moved to {', '.join(homes)})")


def _renamed(module: str, names: Mapping[str, str], name: str) -> Any:
    if name not in names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    _warn(f"{module}.{name}", f"{module}.{names[name]}")
    return getattr(importlib.import_module(module), names[name])


_finder = _Finder()


def follow_moves() -> None:
    """Let old paths be imported from now on."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    for module, names in RENAMED.items():
        importlib.import_module(module).__getattr__ = partial(_renamed, module, names)  # type: ignore[method-assign]
    for old, homes in SPLIT.items():
        importlib.import_module(old).__getattr__ = partial(_split, old, homes)  # type: ignore[method-assign]


def moved(error: BaseException) -> str:
    """One sentence on where what ``error`` did not find is now, empty where nothing of that name moved."""
    name = getattr(error, "name", None)
    homes = SPLIT.get(name or "", ())
    return f" {name} moved to {' and '.join(homes)}." if homes else ""
