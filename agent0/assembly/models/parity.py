"""Part of the rim: is what a server serves what was trained? Files, template and probes, compared with the reference,
which is the model and its adapter through transformers in float32."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent0.assembly.models.export import ExportSource
from agent0.errors import ConfigError, bare_url
from agent0.evaluation.serving_parity import FAR, PROBES, TOKENS, DecodedToken, Parity, limit, parity, probes
from agent0.events.values import Turn
from agent0.infra.models.llama_server import LlamaServer, ServedModel, WrittenText, kind_of, spelt
from agent0.infra.models.ollama.registry import OllamaServed
from agent0.infra.models.transformers import Transformers
from agent0.infra.storage.files import file_digest
from agent0.infra.weights.gguf import write_adapter
from agent0.ports.models import GenerateRequest, Generation, Sampling
from agent0.ports.storage import Artifacts


async def verify(
    source: ExportSource, artifacts: Artifacts, url: str, name: str, tolerance: float, base_name: str = ""
) -> dict[str, object]:
    """Compare a served model with the trained checkpoint. ``verdict`` is a sentence; ``agrees`` needs equal digests and
    templates, and one of these:
    - the probes' distance to the trained model is within ``tolerance``, or a twentieth of that to the untrained one;
    - it is about the rounding distance between the server's base and ours, and either less than the distance to the
      untrained model, or the adapter's file is the same. ``base_name`` names that base where the server does not;
    - the server gives no log-probabilities, and texts are equal.

    Raises:
        DependencyError, OperationError: no server, or no such model.
    """
    turns_of_probes = probes(PROBES)
    trained, plain = await reference(source, artifacts, turns_of_probes)
    server = await _open(url, name, base_name)
    try:
        served = [await _written(server, source, turn, True) for turn in trained]
        base = [await _written(server, source, turn, False) for turn in plain]
        to_trained, untrained = (_parity(server, turns, served) for turns in (trained, plain))
        adapter = await _digest(source, server)
        is_trained = to_trained.nearer(untrained) or adapter["agree"] is True
        rounding = _parity(server, plain, base).distance if all(base) and is_trained else 0.0
        allowed = limit(tolerance, untrained.distance, rounding)
        report = {
            "checkpoint": source.name,
            "server": f"{server.kind} at {bare_url(url)}",
            "adapter": adapter,
            "template": await _template(source, server, turns_of_probes, trained),
            "probes": _compared(server, trained, served, allowed),
            "base": _compared(server, plain, base, allowed) if all(base) else "not computed by this server",
            "untrained": _compared(server, plain, served, tolerance),
        }
    finally:
        await server.close()
    checks = [report[name] for name in ("adapter", "template", "probes", "base")]
    # a template or digest that is not told is no disagreement; the probes decide
    agrees = all(check["agree"] is not False for check in checks if isinstance(check, dict))
    verdict = _verdict(report, agrees, to_trained, untrained)
    return {**report, "tolerance": tolerance, "allowed": allowed, "agrees": agrees, "verdict": verdict}


def _verdict(report: Mapping[str, object], agrees: bool, trained: Parity, untrained: Parity) -> str:
    """The comparison in a sentence: is what is served the trained model, and why not."""
    name = report["checkpoint"]
    disagree = [
        key for key in ("probes", "base", "template", "adapter")
        if isinstance(check := report[key], dict) and check["agree"] is False
    ]  # fmt: skip
    numbers = (
        f"mean difference of log-probabilities {trained.mean:.2g} nats, to the untrained base {untrained.mean:.2g}"
        if trained.compared
        else "no log-probabilities were compared"
    )
    if agrees and (not trained.compared or trained.nearer(untrained)):
        return f"this is {name} as trained ({numbers})"
    if agrees:
        adapter = report["adapter"]
        same = isinstance(adapter, dict) and adapter["agree"] is True
        by = "by its adapter's file alone" if same else "or its untrained base"
        return f"this is {name}, {by}: probes do not tell the two apart ({numbers})"
    if untrained.compared and not untrained.unseen and (trained.unseen or untrained.nearer(trained)):
        return f"this is not {name}: it answers as the untrained base does ({numbers})"
    if untrained.compared and untrained.distance < FAR and not trained.nearer(untrained):
        return f"probes do not distinguish this from the untrained base: not shown to be {name} ({numbers})"
    return f"this is not {name} as trained: {', '.join(disagree)} differ ({numbers})"


async def reference(
    source: ExportSource, artifacts: Artifacts, turns_of_probes: Sequence[tuple[Turn, ...]]
) -> tuple[list[Generation], list[Generation]]:
    """What the trained model writes greedily after each probe, and what its base does, in single precision."""
    model = Transformers(source.base, artifacts, name="reference", precision="fp32")
    sampling = Sampling(temperature=0.0, max_tokens=TOKENS)
    try:
        both = [
            await asyncio.gather(
                *(model.generate(GenerateRequest(t, sampling, adapter=adapter)) for t in turns_of_probes)
            )
            for adapter in (source.adapter, None)
        ]
    finally:
        await model.close()
    return both[0], both[1]


async def _written(server: ServedModel, source: ExportSource, written: Generation, adapted: bool) -> WrittenText | None:
    return await server.write(written.prompt_ids, spelt(source.base, written.prompt_ids), TOKENS, adapted)


def _compared(
    server: ServedModel, expected: Sequence[Generation], served: Sequence[WrittenText | None], tolerance: float
) -> dict[str, object]:
    """By log-probability where the server tells them, else by text."""
    turns = [turn for turn in served if turn is not None]
    texts = sum(turn.text.strip() == other.text.strip() for turn, other in zip(expected, turns, strict=True))
    if not any(turn.steps for turn in turns):
        note = "the server tells no log-probabilities; greedy texts were compared"
        return {"probes": len(turns), "same_text": texts, "note": note, "agree": texts == len(turns)}
    measured, by_id = _parity(server, expected, served), server.kind != "ollama"
    numbers = {
        "largest": measured.largest,
        "mean": measured.mean,
        "tokens": measured.compared,
        "parted": measured.parted,
    }
    numbers |= {"unseen": measured.unseen, "same_text": texts, "probes": len(turns)}
    return {**numbers, "by": "token id" if by_id else "token text", "agree": measured.within(tolerance)}


def _parity(server: ServedModel, expected: Sequence[Generation], served: Sequence[WrittenText | None]) -> Parity:
    by_id = server.kind != "ollama"
    return parity([_steps(turn, by_id) for turn in expected], [turn.steps for turn in served if turn is not None])


def _steps(written: Generation, by_id: bool) -> list[DecodedToken]:
    """Tokens by id; or by text, without the end of the turn, which has none."""
    if by_id:
        return [
            DecodedToken(token, logprob) for token, logprob in zip(written.token_ids, written.logprobs, strict=True)
        ]
    starts = (0, *written.ends[:-1])
    pieces = [written.text[start:end] for start, end in zip(starts, written.ends, strict=True)]
    return [DecodedToken(piece, logprob) for piece, logprob in zip(pieces, written.logprobs, strict=True) if piece]


async def _digest(source: ExportSource, server: ServedModel) -> dict[str, object]:
    """Whether the adapter that the server has is, byte for byte, the one that this checkpoint gives; None where that
    cannot be told."""
    digest, note = await server.digest()
    if source.whole:
        return {"sha256": "", "served": digest, "note": "a full adapter is served merged", "agree": None}
    with tempfile.TemporaryDirectory(prefix="agent0-verify-") as folder:
        path = Path(folder) / "adapter.gguf"
        write_adapter(source.weights, source.base, path)
        ours = file_digest(path)
    if digest and digest != ours and server.kind == "ollama":
        note, digest = f"Ollama rewrites files on their way in, this one as {digest}; the probes decide", ""
    return {"sha256": ours, "served": digest, "note": note, "agree": ours == digest if digest else None}


async def _template(
    source: ExportSource, server: ServedModel, turns_of_probes: Sequence[tuple[Turn, ...]], ours: Sequence[Generation]
) -> dict[str, object]:
    theirs = [await server.rendered(turns) for turns in turns_of_probes]
    if None in theirs:
        return {"agree": None, "note": "the server does not tell what its template makes"}
    same = [text == spelt(source.base, turn.prompt_ids) for text, turn in zip(theirs, ours, strict=True)]
    first = next((str(theirs[n])[:120] for n, agrees in enumerate(same) if not agrees), "")
    return {"agree": all(same), "probes": len(same), **({"differs": first} if first else {})}


async def _open(url: str, name: str, base: str) -> ServedModel:
    if await kind_of(url) != "ollama":
        return LlamaServer(url)
    if not name:
        raise ConfigError(
            "Which model of Ollama?", f"At {url} there is Ollama, which has many.", "Name it with --name."
        )
    return OllamaServed(url, name, base)
