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
Parent = Annotated[str, typer.Option("--from", help="The base as that server has it; empty: it is sent.")]
HALF = 0.05
"""Nats by which a server whose cache is in half precision may differ."""
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
    parent: Parent = "",
    template: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="Ollama's own template.")] = None,
    quantize: Annotated[str, typer.Option(help="Let the server quantise a merged model: q8_0; empty: as --from.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of a model of that name.")] = False,
    check: Annotated[bool, typer.Option("--verify/--no-verify", help="Ask it whether it is the trained one.")] = True,
    base: Base = None,
    as_json: console.Json = False,
) -> None:
    """Make a checkpoint a model of an Ollama server, and compare what it writes. Exit 3 where it is another."""
    settings = flags.settings()
    text = template.read_text(encoding="utf-8") if template else ""
    there = url or settings.models.ollama_url

    async def work() -> dict[str, Any]:
        source = await _source(settings, checkpoint, base)
        options: dict[str, Any] = {"base": parent, "template": text, "quantize": quantize, "replace": replace}
        pushed = await send(source, name, there, way, **options)
        if check:
            store = artifact_store(settings)
            pushed["verify"] = await compare(source, store, there, name, HALF, parent)
        return pushed

    pushed = console.run_async(work)
    comparison = pushed.get("verify", {})
    _show(pushed if as_json else {**pushed, "verify": comparison.get("verdict", "not asked for")}, as_json)
    if not pushed["text"]["exact"]:
        console.say(_INEXACT, "yellow")
    finer = "Few bits may round away what was learned: --quantize q8_0 --replace. " if pushed["quantize"] else ""
    _gate(comparison, f"{finer}It stays there; `ollama rm {name}` removes it.")


def verify(
    checkpoint: Checkpoint,
    url: URL = "",
    name: Annotated[str, typer.Option(help="The model's name there; a llama.cpp server has but one.")] = "",
    parent: Parent = "",
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
        there = url or settings.models.ollama_url
        return await compare(source, artifact_store(settings), there, name, tolerance, parent)

    comparison = console.run_async(work)
    _show(comparison, as_json)
    fix = "See the numbers; start llama-server with -ctk f32 -ctv f32, raise --tolerance, or push it again."
    _gate(comparison, fix)


def _gate(comparison: dict[str, Any], fix: str) -> None:
    if not comparison.get("agrees", True):
        why = "A cache in half precision or quantised weights differ by more than float32; another adapter by far more."
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
