"""What ``make run`` installs is enough: an extra that is absent is named where it is needed, and nowhere else."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WITHOUT = """
import asyncio, sys
from importlib.machinery import PathFinder
absent, home, *profiles = set(sys.argv[1].split(",")), *sys.argv[2:]
find_spec = PathFinder.find_spec
def without(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in absent else find_spec(name, path, target)
PathFinder.find_spec = classmethod(without)
from agent0.assembly.validate.model_checks import models
from agent0.config.loading import load
import agent0.assembly.evaluation.benchmark_run, agent0.assembly.runtime.execution
import json
def failures(profile):
    checks = asyncio.run(models(load(profile, {"home": home}, {})))
    return [check.detail for check in checks if check.state == "fail"]
print(json.dumps({profile: failures(profile) for profile in profiles}))
"""
IMPORTED_AS = {"reasoning-gym": "reasoning_gym", "opentelemetry-proto": "opentelemetry", "mlflow-skinny": "mlflow"}


def optional() -> set[str]:
    """The modules of extras that neither the package itself nor its extra ``train`` needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    def names(requirements: list[str]) -> set[str]:
        return {requirement.partition(">")[0].partition("=")[0].strip() for requirement in requirements}

    needed = names(project["dependencies"]) | names(extras["train"]) | {"httpx2"}  # genai-prices brings it
    others = {name for extra, listed in extras.items() if extra not in ("train", "dev") for name in names(listed)}
    return {IMPORTED_AS.get(name, name) for name in others - needed}


def test_models_are_checked_without_any_extra(tmp_path: Path) -> None:
    absent = optional()
    assert {"openai", "anthropic", "xllamacpp", "mcp"} <= absent
    words = [sys.executable, "-c", WITHOUT, ",".join(sorted(absent)), str(tmp_path), "climb", "vllm", "llamacpp"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    failures = json.loads(done.stdout.splitlines()[-1])
    assert failures["climb"] == []
    for profile, module in (("vllm", "openai"), ("llamacpp", "xllamacpp")):
        assert any(f"Not installed: {module}" in detail for detail in failures[profile]), failures
