"""Families as Harbor's task folders, run with nothing but an interpreter; and what ``family validate`` finds."""

import asyncio
import json
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.environments.family_validation import validate_level
from agent0.errors import ConfigError
from agent0.infra.sandbox import Refusing
from agent0.tasks import families as registered
from agent0.tasks.families import Family, families
from agent0.tasks.harbor.export import harbor_task
from tests.terminal import agent0

NO_SANDBOX = Refusing("none is needed", "")


def question(name: str, level: int = 1, seed: int = 0) -> str:
    family, rng = families(long=None)[name], random.Random(seed)
    return family.render(family.sample(level, rng), rng)


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def reward(folder: Path, answer: bytes | None, app: Path) -> str:
    """What the task's own test writes, its absolute paths laid below ``app`` and Agent0 out of reach."""
    shutil.rmtree(app, ignore_errors=True)
    app.mkdir()
    if answer is not None:
        (app / "answer.txt").write_bytes(answer)
    script = (folder / "tests/test.sh").read_text()
    for absolute, path in (("/tests/", f"{folder}/tests/"), ("/app/", f"{app}/"), ("/logs/", f"{app}/logs/")):
        script = script.replace(absolute, path)
    script = script.replace("python3 -Es", f"{sys.executable} -SEs")
    subprocess.run(["bash", "-c", script], check=True, cwd="/", env={"PATH": "/usr/bin:/bin"})
    return (app / "logs/verifier/reward.txt").read_text().strip()


def solution(folder: Path) -> bytes:
    script = (folder / "solution/solve.sh").read_text().replace("> /app/answer.txt", "")
    return subprocess.run(["bash", "-c", script], check=True, stdout=subprocess.PIPE).stdout


@pytest.mark.parametrize("name", ["arithmetic", "countdown", "ledger"])
def test_an_exported_task_rewards_its_solution_and_nothing_else(name: str, tmp_path: Path) -> None:
    """A family that computes, one that checks, and a long one."""
    folder = laid_out(tmp_path / "task", harbor_task(families(long=None)[name], question(name), name))
    assert reward(folder, solution(folder), tmp_path / "app") == "1"
    assert reward(folder, None if name == "ledger" else b"\xff\0nonsense", tmp_path / "app") == "0"
    assert set(json.loads((folder / "tests/task.json").read_text())) == {"family", "module", "question"}


def test_a_folder_has_what_harbor_reads(tmp_path: Path) -> None:
    result = agent0("family", "export", "word_reversal", str(tmp_path), "--count", "2", "--level", "3", "--json")
    assert result.code == 0 and len(result.json["tasks"]) == 2, result.err
    for name in result.json["tasks"]:
        config = tomllib.loads((tmp_path / name / "task.toml").read_text())
        assert config["task"]["name"] == f"agent0/{name}" and config["verifier"]["timeout_sec"] > 0
        assert "/app/answer.txt" in (tmp_path / name / "instruction.md").read_text()
        assert (tmp_path / name / "environment/Dockerfile").read_text().startswith("FROM python:")
        assert (tmp_path / name / "tests/test.sh").stat().st_mode & 0o111
    first = (tmp_path / result.json["tasks"][0] / "tests/task.json").read_bytes()
    again = agent0("family", "export", "word_reversal", str(tmp_path), "--count", "2", "--level", "3")
    assert again.code == 0 and (tmp_path / result.json["tasks"][0] / "tests/task.json").read_bytes() == first


def test_what_a_plain_image_cannot_run_is_refused(tmp_path: Path) -> None:
    plugin = tmp_path / "needy.py"
    plugin.write_text("import numpy\n\ndef solve(params): return str(numpy.array(1))\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import needy  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(tmp_path))
    family = replace(families()["arithmetic"], solve=needy.solve)
    with pytest.raises(ConfigError, match="imports numpy"):
        harbor_task(family, question("arithmetic"), "t")
    with pytest.raises(ConfigError, match="does not read"):
        harbor_task(families()["arithmetic"], "`rm -rf /` $(x) '\"", "t")
    for arguments, why in (
        (("nope",), "no family"),
        (("countdown", "--level", "9"), "no level 9"),
    ):
        result = agent0("family", "export", *arguments[:1], str(tmp_path / "out"), *arguments[1:])
        assert result.code in (1, 2) and why in result.err and "Traceback" not in result.err
    (tmp_path / "file").write_text("")
    result = agent0("family", "export", "countdown", str(tmp_path / "file"))
    assert result.code == 5 and "is not available" in result.err


def checked(patch: pytest.MonkeyPatch, family: Family, count: int = 12) -> tuple[str, ...]:
    registered.families()
    patch.setitem(registered._families.entries, family.name, family)
    return asyncio.run(validate_level(family, 1, count, 0, NO_SANDBOX, 10.0)).problems


def changing() -> Callable[..., str]:
    calls: list[int] = []

    def solve(params: Any) -> str:
        calls.append(1)
        return str(len(calls))

    return solve


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"parse": lambda text: None}, "does not read its own question"),
        ({"check": lambda params, answer: "" if "=" in answer or not answer else "no"}, "an empty answer is right"),
        ({"check": lambda params, answer: "no"}, "is not right"),
        ({"check": lambda params, answer: "", "derive": None}, "of random answers are right"),
        ({"solve": changing()}, "the same seed gave another"),
        ({"sample": lambda level, rng: {"numbers": [1, 2], "target": 3}}, "all its tasks are the same"),
    ],
)
def test_validate_names_what_is_wrong_with_a_family(
    changes: dict[str, Any], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = checked(monkeypatch, replace(families()["countdown"], **changes))
    assert any(problem in found for found in problems) if problem else not problems, problems


def test_validate_says_it_by_its_exit_code() -> None:
    fit = agent0("family", "validate", "countdown", "--count", "5", "--seconds", "60", "--json")
    assert fit.code == 0 and [row["oracle"] for row in fit.json] == [1.0] * 4 and {r["empty"] for r in fit.json} == {0}
    slow = agent0("family", "validate", "reversal", "--level", "2", "--count", "2", "--seconds", "0.001", "--json")
    assert json.loads(slow.out)[0]["level"] == 2 and slow.code in (0, 3)
