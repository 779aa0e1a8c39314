"""Part of the rim: a checkpoint as files that other programs load, and as a model of an Ollama server."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Literal
from uuid import uuid4

from agent0.assembly.models.lineage import check_stored, checkpoint
from agent0.assembly.runtime.providers import provider_of
from agent0.errors import DependencyError, LogError, NotFoundError, OperationError, bare_url
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.experiments import ExperimentStarted
from agent0.events.runs import RunStarted
from agent0.events.values import Artifact
from agent0.infra.engine.adapter import files
from agent0.infra.log.event_log import Log
from agent0.infra.models.ollama.registry import QUANTISED, OllamaModels
from agent0.infra.models.transformers import check_folder
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.files import file_digest
from agent0.infra.weights.gguf import architecture, model_metadata, split_name, write_adapter, write_base
from agent0.infra.weights.merge import Lora, MergedWeights, check_fit, merged, not_separable, read_adapter, save_merged
from agent0.infra.weights.model_config import ModelConfig
from agent0.infra.weights.safetensors_io import Weights, digest
from agent0.settings import ActorConfig, RunConfig

Format = Literal["gguf", "gguf-merged", "merged", "adapter"]
Way = Literal["auto", "adapter", "merged"]
NOTE = "served.json"
"""Beside exported files: what they were made of, and the sha256 of each."""
ROOM = 1.1
"""Free space that is asked for, as a multiple of what is written."""


@dataclass(frozen=True)
class ExportSource:
    """A checkpoint with everything that serves it: the adapter read and fitted, the folder of its base."""

    run: str
    trained: CheckpointTrained
    adapter: Artifact
    actor: ActorConfig
    base: Path
    data: bytes
    weights: Lora | MergedWeights

    @property
    def name(self) -> str:
        """RUN/CHECKPOINT."""
        return f"{self.run}/{self.trained.checkpoint}"

    @property
    def whole(self) -> bool:
        """Whether its adapter stands in the place of its base, and so cannot be served beside it."""
        return isinstance(self.weights, MergedWeights)

    @property
    def split(self) -> tuple[str, bool]:
        """How its tokenizer cuts text, by llama.cpp's name, and whether a server that is given text, not token ids,
        is sure to cut it as the model was taught."""
        return split_name(json.loads((self.base / "tokenizer.json").read_text(encoding="utf-8")))


async def open_source(log: Log, artifacts: FileArtifacts, name: str, base: Path | None = None) -> ExportSource:
    """The checkpoint ``name`` (RUN/CHECKPOINT, or the beginning of its adapter's digest) over the base that its run
    names, or the one in the folder ``base``.

    Raises:
        NotFoundError: there is none, its adapter was pruned or is gone from the store, or the base is not there.
        LogError: the adapter's file is damaged.
        OperationError: it holds no weights, or does not fit the base.
    """
    stored = await checkpoint(log, name)
    trained = stored.event
    assert isinstance(trained, CheckpointTrained)  # noqa: S101 - chosen so
    if trained.adapter is None:
        why = "There was nothing to learn from, so its parent was kept."
        raise OperationError(f"{name} has no weights of its own.", why, f"Name {stored.run}/{trained.parent}.")
    actor = await _actor(log, stored.run, trained.role)
    folder = base or _base(actor)
    if not folder.is_dir():
        why = f"There is no folder {folder.absolute()}."
        raise NotFoundError(f"The base {folder} is not here.", why, "Name the folder of the base with --base.")
    await check_stored(log, artifacts, f"{stored.run}/{trained.checkpoint}", trained.adapter)
    data = artifacts.get(trained.adapter)
    weights = read_adapter(data)
    recorded, actual = trained.environment.get("base", ""), digest(folder)
    if recorded and recorded != actual:
        why = f"It was trained on weights with sha256 {recorded[:12]}…, those in {folder} have {actual[:12]}…."
        raise OperationError("The adapter does not fit this base.", why, "Name the base it was trained on with --base.")
    check_fit(weights, Weights.of_folder(folder))
    return ExportSource(stored.run, trained, trained.adapter, actor, folder, data, weights)


async def _actor(log: Log, run: str, role: str) -> ActorConfig:
    """Who played ``role`` in ``run``, or in the run that an experiment looked at."""
    async for stored in log.read(run, ["RunStarted", "ExperimentStarted"]):
        match stored.event:
            case RunStarted(config=config):
                plan = RunConfig.recorded(config)
                return plan.student if role == "student" else plan.teacher
            case ExperimentStarted(run=source):
                return await _actor(log, source, role)
    raise NotFoundError(f"The log has no beginning of run {run}.", fix="Import its archive.")


def _base(actor: ActorConfig) -> Path:
    folder_of = provider_of(actor).folder
    if folder_of is None:
        why = f"Checkpoints of provider {actor.provider} hold no weights that another program could load."
        raise OperationError("This checkpoint cannot be served.", why, "Take one of a run with tiny or transformers.")
    folder = folder_of(actor)
    check_folder(folder)
    return folder


def export(source: ExportSource, form: Format, out: Path, kind: str = "float32") -> dict[str, object]:
    """Write ``source`` as files into the folder ``out``: all of them, or none. What was written, with digests.

    ``gguf``: base.gguf and adapter.gguf. ``gguf-merged``: model.gguf. ``merged``: a folder for transformers, in
    numbers of ``kind``. ``adapter``: a folder for peft; of a full adapter, which peft does not know, its files.

    Raises:
        OperationError: ``out`` holds something, or the base cannot be written in this form.
        DependencyError: the disk has no room for it.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OperationError(f"{out} is there already.", "It is no empty folder.", "Name another with --out.")
    with _staged(out, _size(source, form)) as folder:
        _WRITERS[form](source, folder, kind)
        note = {**describe(source), "format": form, "numbers": kind if form == "merged" else "float32"}
        note["files"] = {path.name: file_digest(path) for path in sorted(folder.iterdir())}
        (folder / NOTE).write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    return {**note, "out": str(out)}


def describe(source: ExportSource) -> dict[str, object]:
    """What serves: by names and digests, and ``split``."""
    name, exact = source.split
    return {
        "checkpoint": source.name,
        "role": source.trained.role,
        "adapter": source.adapter.sha256,
        "base": {"name": source.base.name, "sha256": digest(source.base)},
        "text": {"split": name, "exact": exact},
    }


@contextmanager
def _staged(out: Path, size: int) -> Iterator[Path]:
    """A folder beside ``out`` that takes its place at the end, and goes where that does not come."""
    out.parent.mkdir(parents=True, exist_ok=True)
    _check_room(out.parent, size, "name another folder with --out")
    folder = out.with_name(f".{out.name}.{uuid4().hex}")
    folder.mkdir()
    try:
        yield folder
        folder.replace(out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_room(folder: Path, size: int, mend: str) -> None:
    """Raises DependencyError, which ends with ``mend``, where ``folder`` has no room for ``size`` bytes."""
    free = shutil.disk_usage(folder).free
    if free < size * ROOM:
        why = f"{folder} has {free >> 20} MiB, the files need {size >> 20}."
        raise DependencyError("disk space", why, f"Free some, or {mend}.")


def _size(source: ExportSource, form: Format) -> int:
    base = Weights.of_folder(source.base)
    size = len(source.data)
    return size if form == "adapter" else size + 4 * sum(prod(base.shape(name)) for name in base)


def _gguf(source: ExportSource, folder: Path, _: str) -> None:
    write_adapter(source.weights, source.base, folder / "adapter.gguf")
    write_base(source.base, folder / "base.gguf")


def _gguf_merged(source: ExportSource, folder: Path, _: str = "", *, half: bool = False) -> None:
    write_base(source.base, folder / "model.gguf", merged(source.weights, Weights.of_folder(source.base)), half)


def _merged(source: ExportSource, folder: Path, kind: str) -> None:
    save_merged(source.base, source.weights, folder, kind)


def _adapter(source: ExportSource, folder: Path, _: str) -> None:
    for name, content in files(source.data).items():
        (folder / name).write_bytes(content)


_WRITERS: dict[Format, Callable[[ExportSource, Path, str], None]] = {
    "gguf": _gguf,
    "gguf-merged": _gguf_merged,
    "merged": _merged,
    "adapter": _adapter,
}


def check_files(folder: Path, source: ExportSource) -> dict[str, object]:
    """Whether exported files are what they were, and of this checkpoint.

    Raises:
        NotFoundError: there is no note of an export in ``folder``.
        LogError: a file is missing or changed, or the files are of another checkpoint.
    """
    try:
        note = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        listed, adapter = dict(note["files"]), str(note["adapter"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        fix = "Name a folder that `agent0 model export` wrote."
        raise NotFoundError(f"There is no note of an export in {folder}.", f"{error}"[:200], fix) from error
    again = f"Export it again: agent0 model export {source.name} --format {note.get('format', 'gguf')} --out FOLDER"
    for name, sha in listed.items():
        path = folder / Path(name).name
        if not path.is_file() or file_digest(path) != sha:
            raise LogError(f"{path} is {'damaged' if path.is_file() else 'missing'}.", "", again)
    if adapter != source.adapter.sha256:
        raise LogError(f"The files in {folder} are of another checkpoint.", f"Adapter {adapter[:12]}….", again)
    return {"folder": str(folder), "files": len(listed), "agree": True}


async def push(
    source: ExportSource,
    name: str,
    url: str,
    way: Way = "auto",
    *,
    base: str = "",
    template: str = "",
    quantize: str = "",
    replace: bool = False,
) -> dict[str, object]:
    """Make ``source`` the model ``name`` of the Ollama server at ``url``; what was sent.

    As an adapter beside its base where the server takes one, else merged; a full adapter always merged. ``base`` is a
    model that the server has and that this checkpoint was trained on: an adapter is put beside it, a merged model gets
    its quantisation unless ``quantize`` names another. Without it, the base is sent. ``template`` (Go's) is passed on.

    Raises:
        DependencyError: no server, one that is too old, or a disk without room.
        OperationError: it refuses, has a model ``name`` that is not to be replaced, cannot quantise so, its ``base``
            has another shape, or a full adapter is to be sent apart.
    """
    if way == "adapter" and source.whole:
        raise not_separable()
    server = OllamaModels(url)
    try:
        apart = await _is_apart(server, source, way, url)
        if not replace:
            await _check_free(server, name)
        if base:
            await _check_base(server, source, base)
        quantize = await _quantisation(server, quantize, "" if apart else base)
        with tempfile.TemporaryDirectory(prefix="agent0-push-") as folder:
            sent = await _sent(server, source, Path(folder), base, apart, bool(quantize))
        await server.create(name, **sent, template=template, quantize=quantize, parameters=_parameters(source))
        served = {"name": name, "server": bare_url(url), "version": await server.version()}
        return {**served, "way": "adapter" if apart else "merged", "quantize": quantize, **sent, **describe(source)}
    finally:
        await server.close()


async def _is_apart(server: OllamaModels, source: ExportSource, way: Way, url: str) -> bool:
    takes = await server.takes_adapters()
    if way == "adapter" and not takes:
        why = f"Ollama {await server.version()} at {bare_url(url)} takes no adapters; it did from 0.30 to 0.34.0."
        raise OperationError("The adapter cannot be sent apart from its base.", why, "Leave --as out, or: merged.")
    return takes and way != "merged" and not source.whole


async def _sent(
    server: OllamaModels, source: ExportSource, folder: Path, base: str, apart: bool, quantised: bool
) -> dict[str, object]:
    """Files handed over, as /api/create names them; in half precision where the server is to quantise them, since it
    refuses to where they are float32."""
    size = len(source.data) if apart and base else _size(source, "gguf")
    _check_room(folder, size, "set TMPDIR to a folder of another disk")
    if not apart:
        _gguf_merged(source, folder, half=quantised)
        return {"files": {"model.gguf": await server.put(folder / "model.gguf")}}
    write_adapter(source.weights, source.base, folder / "adapter.gguf")
    adapters = {"adapter.gguf": await server.put(folder / "adapter.gguf")}
    if base:
        return {"from": base, "adapters": adapters}
    write_base(source.base, folder / "base.gguf", half=quantised)
    return {"files": {"base.gguf": await server.put(folder / "base.gguf")}, "adapters": adapters}


async def _check_base(server: OllamaModels, source: ExportSource, base: str) -> None:
    """Raises OperationError where the server's model ``base`` has another shape than the one that was trained on."""
    info = (await server.show(base)).get("model_info") or {}
    config = ModelConfig.of_folder(source.base)
    family_name = architecture(config)
    ours = {f"{family_name}.{key}": value for key, value in model_metadata(config).items() if isinstance(value, int)}
    ours.pop(f"{family_name}.context_length")  # a matter of how it is served
    other = [f"{key} {info[key]}, not {value}" for key, value in ours.items() if key in info and info[key] != value]
    family = info.get("general.architecture", family_name)
    if family != family_name or other:
        why = f"It is {family}: {'; '.join(other[:3]) or 'another family'}."
        raise OperationError(f"The adapter does not fit {base}.", why, "Name its base, or leave --from out.")


async def _check_free(server: OllamaModels, name: str) -> None:
    if await server.has(name):
        fix = "Name another with --name, or add --replace."
        raise OperationError(f"Ollama has a model {name} already.", "It was left as it is.", fix)


async def _quantisation(server: OllamaModels, level: str, base: str) -> str:
    """``level``, or that of the server's model ``base``, as it names it; empty where nothing is to be quantised."""
    if inherited := bool(base and not level):
        details = (await server.show(base)).get("details") or {}
        level = str(details.get("quantization_level") or "")
    level = "" if level.upper() in ("F32", "UNKNOWN") else level.upper()
    if level and level not in QUANTISED:
        why = f"It does to {', '.join(QUANTISED)}" + (f"; {base} is {level}." if inherited else ".")
        raise OperationError(f"Ollama does not quantise to {level}.", why, "Name one of them with --quantize.")
    return level


def _parameters(source: ExportSource) -> dict[str, object]:
    """What keeps the server from its own defaults: context, and where a turn ends."""
    config = json.loads((source.base / "config.json").read_text(encoding="utf-8"))
    tokenizer_config = json.loads((source.base / "tokenizer_config.json").read_text(encoding="utf-8"))
    end = tokenizer_config.get("eos_token")
    end = end.get("content") if isinstance(end, dict) else end
    window = {"num_ctx": min(int(config["max_position_embeddings"]), source.actor.num_ctx)}
    return window | ({"stop": [end]} if end else {})
