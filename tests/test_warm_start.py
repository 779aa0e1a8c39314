"""A run whose student begins with an adapter from a folder: what is read and refused, and where it goes on from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import agent0
from agent0.assembly.models.students import adapter_of, student
from agent0.assembly.models.warm_start import warm_checkpoint, warm_start
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.events.tasks import TaskAttempted
from agent0.events.values import Artifact, Trajectory
from agent0.infra.engine.adapter import CONFIG, NOTE, WEIGHTS, files, unpack
from agent0.infra.engine.inference import Engine
from agent0.infra.models.transformers import BASE, PACKAGED
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.weights.merge import read_lora, save_merged
from agent0.infra.weights.peft_folder import read_peft_folder
from agent0.infra.weights.safetensors_io import Weights, write
from agent0.state.run_state import first_student
from agent0.training.objectives.policy_gradient import token_logprobs
from tests.adapters import adapter
from tests.terminal import agent0 as call

SMALL = (
    *("--profile", "scripted", "--iterations", "1", "--tasks", "2", "--attempts", "2"),
    *("--set", "run.student.provider=tiny", "--set", "run.student.max_turns=1"),
    *("--set", "run.evaluation.validation=2", "--set", "run.evaluation.test=2"),
    *("--set", "run.training.teacher.enabled=false", "--set", "run.training.student.replay_steps=0"),
)


@pytest.fixture
def lora(tmp_path: Path) -> Path:
    """A folder as peft saves it, without a note of ours."""
    folder = tmp_path / "lora"
    folder.mkdir()
    for name, content in files(adapter(BASE, seed=1, size=0.02)).items():
        if name != NOTE:
            (folder / name).write_bytes(content)
    return folder


def reconfigured(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**config, **changes}))


def reweighted(folder: Path, change: Callable[[dict[str, Any]], None], kind: str = "F32") -> None:
    weights = Weights({WEIGHTS: (folder / WEIGHTS).read_bytes()})
    tensors = {name: np.array(weights.read(name)) for name in weights}
    change(tensors)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    write(folder / WEIGHTS, shapes, lambda name: tensors[name], kind)


def to_queries(tensors: dict[str, Any]) -> None:
    for name in [name for name in tensors if "q_proj" not in name]:
        del tensors[name]


def test_what_peft_saved_is_what_a_run_keeps(lora: Path) -> None:
    """Numbers of half the width, some targets alone, settings that change nothing; the same folder, the same bytes."""
    reweighted(lora, to_queries, "BF16")
    more = {"target_modules": ["q_proj"], "lora_dropout": 0.05, "inference_mode": True, "peft_version": "0.21.2"}
    reconfigured(lora, **more, base_model_name_or_path="somebody/else")
    read = read_peft_folder(lora, BASE)
    kept = unpack(read.data)
    source = Weights({WEIGHTS: (lora / WEIGHTS).read_bytes()})
    assert {*kept.weights} == {*source} and (read.rank, read.alpha, read.targets) == (8, 16, ("q_proj",))
    assert all(np.array_equal(tensor.numpy(), source.read(name)) for name, tensor in kept.weights.items())
    assert "names the base else" in str(read) and kept.settings["lora_dropout"] == 0
    assert read_peft_folder(lora, BASE).data == read.data


def spoiled_note(folder: Path) -> None:
    (folder / NOTE).write_text(json.dumps({"base": "0" * 64}))


def pickled(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "adapter_model.bin")


def cut(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])


def not_finite(tensors: dict[str, Any]) -> None:
    next(iter(tensors.values()))[0, 0] = np.inf


def first_block_gone(tensors: dict[str, Any]) -> None:
    for name in [name for name in tensors if ".layers.0." in name]:
        del tensors[name]


def wider(tensors: dict[str, Any]) -> None:
    name = next(name for name in tensors if name.endswith("lora_A.weight"))
    tensors[name] = np.zeros((8, 7), np.float32)


def head_too(tensors: dict[str, Any]) -> None:
    tensors["base_model.model.nowhere.weight"] = np.zeros((2, 2), np.float32)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "pickle": (pickled, "are a pickle"),
    "no settings": (lambda folder: (folder / CONFIG).unlink(), f"It has no {CONFIG}"),
    "settings are no JSON": (lambda folder: (folder / CONFIG).write_text("{"), "no adapter|cannot be read|Expecting"),
    "settings are a list": (lambda folder: (folder / CONFIG).write_text("[]"), "cannot be read|no adapter"),
    "another kind": (lambda folder: reconfigured(folder, peft_type="IA3"), "IA3|no adapter"),
    "cut": (cut, "data ends|no header|safetensors"),
    "another base": (spoiled_note, "trained on weights with sha256 000000000000"),
    "another rank": (lambda folder: reconfigured(folder, r=4), r"ranks \[8\]"),
    "more than pairs": (lambda folder: reconfigured(folder, use_dora=True), "use_dora"),
    "a moved base": (lambda folder: reconfigured(folder, init_lora_weights="pissa_niter_4"), "begun by pissa"),
    "not finite": (lambda folder: reweighted(folder, not_finite), "not finite"),
    "some blocks": (lambda folder: reweighted(folder, first_block_gone), "in some blocks only"),
    "another shape": (lambda folder: reweighted(folder, wider), "in the base"),
    "a loose tensor": (lambda folder: reweighted(folder, head_too), "more, or less, than pairs"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_folder_that_is_no_such_adapter_is_one_line(lora: Path, case: str) -> None:
    spoil, why = BAD[case]
    spoil(lora)
    with pytest.raises(ConfigError, match=why) as refused:
        read_peft_folder(lora, BASE)
    assert str(lora) in refused.value.what and refused.value.fix and "\n" not in str(refused.value)


def test_a_student_without_weights_or_whose_weights_all_learn_is_refused(lora: Path, tmp_path: Path) -> None:
    scripted = load("scripted", {"home": str(tmp_path / "home")}, {})
    for settings, why in (
        (scripted, "provider scripted"),
        (load("tiny", {"home": str(tmp_path / "home"), "run.training.student.rank": "0"}, {}), "trains all weights"),
    ):
        with pytest.raises(ConfigError, match=why):
            warm_start(settings, lora)
    for where in (tmp_path / "nowhere", tmp_path):
        said = call("run", "start", *SMALL, "--adapter", str(where), home=tmp_path / "home")
        assert said.code == 2 and str(where) in said.err and said.err.count("\n") == 1, said.err
    assert not (tmp_path / "home" / "nats").exists()


def gap(engine: Engine, trajectory: Trajectory) -> float:
    """The largest difference, in nats a token, of what was written from what the model of ``engine`` computes."""
    ids, written = torch.tensor([trajectory.token_ids]), torch.tensor(trajectory.mask[1:], dtype=torch.bool)
    with torch.inference_mode():
        computed = token_logprobs(engine._model(ids).logits, ids)[0, 1:]
    return float((computed - torch.tensor(trajectory.logprobs[1:]))[written].abs().max())


def test_a_run_begins_with_it_goes_on_with_it_and_is_forked_with_it(lora: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    begun = call("run", "start", *SMALL, "--adapter", str(lora), "--detach", "--json", home=home)
    assert begun.code == 0 and "rank 8, alpha 16" in begun.err, begun.err
    (lora / WEIGHTS).unlink()  # the run has its own
    done = call("run", "resume", "LAST", "--json", home=home)
    assert done.code == 0, done.err
    run = agent0.open(home).run()
    store, sha = FileArtifacts(home), run.row["student_adapter"]
    events = [recorded.event for recorded in run.events()]
    first = [event for event in events if isinstance(event, TaskAttempted)]
    data = store.path(Artifact(sha256=sha, size=1)).read_bytes()
    (merged := tmp_path / "merged").mkdir()
    save_merged(BASE, read_lora(data), merged)
    with_it, without = Engine(str(merged)), Engine(str(BASE))
    for attempt in first:
        trajectory = attempt.trajectory or Trajectory.model_validate_json(store.get(attempt.trajectory_artifact))
        assert gap(with_it, trajectory) < 1e-3 < gap(without, trajectory)
    named = {type(e).__name__: e for e in events if getattr(e, "adapter", None) or getattr(e, "parent_adapter", None)}
    assert {"EvaluationRequested", "AttemptRequested", "TrainingRequested"} <= {*named}
    assert named["TrainingRequested"].parent_adapter.sha256 == sha
    assert "as it started" in " ".join(run.overview()["answer"]) and "untrained" not in " ".join(
        run.overview()["answer"]
    )
    whole = call("report", run.id, "--full", "--out", str(tmp_path / "page.html"), home=home).out
    card = call("model", "card", f"{run.id}/student-0", home=home).out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"it began with an adapter that its user brought, sha256 `{sha}`" in card
    assert [line for line in whole.splitlines() if line.startswith("as it started")], whole
    assert all("as it started" in text for text in (run.curve_svg(), run._repr_html_(), page))
    assert "untrained" not in run.curve_svg() + card
    with run.folder.tables() as db:
        again = load("tiny", {"home": str(home)}, {})
        warm = warm_checkpoint(again, db, f"{run.id}/base")
        assert (warm.adapter.sha256, f"begins with {run.id}/base" in warm.line) == (sha, True)
        other = {"run.student.provider": "transformers", "run.student.model": str(PACKAGED["climb"])}
        with pytest.raises(ConfigError, match=f"{run.id}/base.*trained on weights with sha256"):
            warm_checkpoint(load("tiny", {"home": str(home), **other}, {}), db, f"{run.id}/base")
        assert adapter_of(store, "base", student(db, f"{run.id}/base")[1]) == named["EvaluationRequested"].adapter
    forked = call("run", "fork", "LAST", "--at", "1", "--detach", "--json", home=home)
    assert forked.code == 0, forked.err
    child = agent0.open(home).run()
    assert child.id != run.id and child.row["student_adapter"] == sha
    other = ("--set", "student.provider=transformers", "--set", f"student.model={PACKAGED['climb']}")
    refused = call("run", "fork", run.id, "--at", "1", *other, "--detach", home=home)
    assert refused.code == 2 and "does not fit the student's model" in refused.err
    assert call("run", "check", run.id, home=home).code == 0


def test_the_word_for_the_first_student_is_true() -> None:
    assert (first_student(None), first_student("ab12")) == ("untrained", "as it started")
