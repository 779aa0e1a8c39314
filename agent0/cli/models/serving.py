"""``agent0 model export``, ``push`` and ``verify``: a checkpoint for other programs, and whether they serve it as it
was trained."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.export import ExportSource, check_files, open_source
from agent0.assembly.models.export import export as write
from agent0.assembly.models.export import push as send
from agent0.assembly.models.parity import verify as compare
from agent0.assembly.runtime.read_models import reading_log
from agent0.cli import console, flags, lookup
from agent0.errors import ConfigError, GateError
from agent0.infra.weights.merge import KINDS

Format = Literal["gguf", "gguf-merged", "merged", "adapter"]
Way = Literal["auto", "adapter", "merged"]
Checkpoint = Annotated[
    str,
    typer.Argument(metavar="CHECKPOINT", help="RUN/CHECKPOINT, or its adapter's digest.", callback=lookup.of_newest),
]
Base = Annotated[Path | None, typer.Option(help="Folder of the base, where it is not where its run had it.")]
URL = Annotated[str, typer.Option("--url", "--host", help="Server of models; empty: models.ollama_url.")]


async def _source(settings: Any, checkpoint: str, base: Path | None) -> ExportSource:
    async with reading_log(settings) as log:
        return await open_source(log, artifact_store(settings), checkpoint, base)


def export(
    checkpoint: Checkpoint,
    out: Annotated[Path, typer.Option(help="A new or empty folder.")],
    form: Annotated[
        Format,
        typer.Option("--format", help="GGUF base and adapter, GGUF in one, a transformers folder, or a peft folder."),
    ] = "gguf",
    numbers: Annotated[str, typer.Option(help="Of format merged: float32, float16 or bfloat16.")] = "float32",
    base: Base = None,
    as_json: console.Json = False,
) -> None:
    """Write a checkpoint as files that other programs load. All of them are written, or none."""
    if numbers not in KINDS:
        raise ConfigError(f"There are no numbers {numbers!r}.", f"Known: {', '.join(KINDS)}.")
    settings = flags.settings()
    source = console.run_async(lambda: _source(settings, checkpoint, base))
    _show(write(source, form, out, numbers), as_json)
    if not source.split[1] and form.startswith("gguf"):
        console.say(_INEXACT, "yellow")


_INEXACT = (
    "llama.cpp has no name for how this tokenizer cuts text. Token ids are served exactly; text may be cut elsewhere."
)


def push(
    checkpoint: Checkpoint,
    name: Annotated[str, typer.Option(help="What the model is to be called there, as student:i007.")],
    url: URL = "",
    way: Annotated[
        Way, typer.Option("--as", help="As an adapter beside its base, or merged; auto: what the server takes.")
    ] = "auto",
    parent: Annotated[str, typer.Option("--from", help="The base as that server has it; empty: it is sent.")] = "",
    template: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="Ollama's own template.")] = None,
    quantize: Annotated[str, typer.Option(help="Let the server quantise a merged model: q8_0 …")] = "",
    base: Base = None,
    as_json: console.Json = False,
) -> None:
    """Make a checkpoint a model of an Ollama server. Look at it with: agent0 model verify"""
    settings = flags.settings()
    text = template.read_text(encoding="utf-8") if template else ""

    async def work() -> dict[str, Any]:
        source = await _source(settings, checkpoint, base)
        there = url or settings.models.ollama_url
        return await send(source, name, there, way, base=parent, template=text, quantize=quantize)

    pushed = console.run_async(work)
    _show(pushed, as_json)
    if not pushed["text"]["exact"]:
        console.say(_INEXACT, "yellow")


def verify(
    checkpoint: Checkpoint,
    url: URL = "",
    name: Annotated[str, typer.Option(help="The model's name there; a llama.cpp server has but one.")] = "",
    folder: Annotated[Path | None, typer.Option(help="Look at exported files only, and ask no server.")] = None,
    tolerance: Annotated[float, typer.Option(min=0, help="Nats by which a token's log-probability may differ.")] = 1e-3,
    base: Base = None,
    as_json: console.Json = False,
) -> None:
    """Is what is served what was trained? Digests, template and probes are compared. Exit 3 where it is not."""
    settings = flags.settings()

    async def work() -> dict[str, Any]:
        source = await _source(settings, checkpoint, base)
        if folder:
            return check_files(folder, source)
        return await compare(source, artifact_store(settings), url or settings.models.ollama_url, name, tolerance)

    comparison = console.run_async(work)
    _show(comparison, as_json)
    if not comparison.get("agrees", True):
        why = "A cache in half precision or quantised weights differ by more than float32; another adapter by far more."
        fix = "See the numbers; start llama-server with -ctk f32 -ctv f32, raise --tolerance, or push it again."
        raise GateError("What is served is not, as far as was asked, what was trained.", why, fix)


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        console.data(result)
        return
    flat = {
        key: "  ".join(f"{k} {_short(v)}" for k, v in value.items()) if isinstance(value, dict) else value
        for key, value in result.items()
    }
    console.record(flat, False)


def _short(value: Any) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value)
