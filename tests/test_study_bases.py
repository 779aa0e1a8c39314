"""Bases of a study: one a seed, taught once from that seed."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.ablations.base_models import make_bases, provenance, seeds_without_base, with_base
from agent0.config.loading import load
from agent0.errors import OperationError
from agent0.experiments.ablation_runs import AblationRun
from agent0.infra.models.transformers import packaged
from agent0.infra.tiny import courses
from agent0.settings import RunConfig


@pytest.mark.slow
def test_a_base_is_taught_once_and_the_packaged_one_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert asyncio.run(make_bases(tmp_path, "climb", [0], 1, said.append)) == {0: packaged("climb")}
    short = replace(courses.CLIMB_MIX, phases=(replace(courses.CLIMB_MIX.phases[0], steps=2),), batch=2)
    monkeypatch.setitem(courses.MIXES, "climb", short)
    (tmp_path / "base-1.part").mkdir()  # of a process that was killed
    (tmp_path / "base-1.part" / "provenance.json").write_text("{}")
    found = asyncio.run(make_bases(tmp_path, "climb", [1], 1, said.append))
    assert found == {1: tmp_path / "base-1"} and provenance(found[1])["seed"] == 1 and said
    assert not (tmp_path / "base-1.part").exists() and (found[1] / "model.safetensors").exists()
    told_once = list(said)
    assert asyncio.run(make_bases(tmp_path, "climb", [1], 1, said.append)) == found and said == told_once
    monkeypatch.setitem(courses.MIXES, "climb", replace(short, batch=3))
    with pytest.raises(ExceptionGroup) as refused:
        asyncio.run(make_bases(tmp_path, "climb", [1], 1, said.append))
    assert refused.group_contains(OperationError, match="The base of seed 1 is another one")
    own = with_base(AblationRun("ours", 1, "r", load("climb", env={}).run), "climb", found)
    assert (own.config.student.provider, own.config.student.model) == ("transformers", str(found[1]))
    assert seeds_without_base([own, AblationRun("x", 2, "r", RunConfig())], "climb") == []
    plain = AblationRun("bandit", 0, "r", load("tiny", env={}).run)
    assert with_base(plain, "", {}) == plain and seeds_without_base([plain], "") == []  # a grid without a course
