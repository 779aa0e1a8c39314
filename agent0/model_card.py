"""A checkpoint's card: what it was made from, how it scored beside its controls, what may be said of it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
_NOT_SHOWN = "not measured"


def model_card(held: Row, run: Row, scores: Sequence[Row], families: Mapping[str, int]) -> str:
    """Markdown with a YAML head as model hubs read it.

    ``held``: the checkpoint's row; ``run``: its run's; ``scores``: the run's evaluations in order; ``families``: tasks
    accepted in the run by family.
    """
    return "\n".join([*_head(held, run), *_scores(held, scores), *_making(held, run, families), *_limits(held)]) + "\n"


def _head(held: Row, run: Row) -> Iterator[str]:
    why = f" ({held['reason']})" if held.get("reason") else ""
    whole = (held["recipe"] or {}).get("rank") == 0
    library, tags = ("transformers", "full") if whole else ("peft", "lora")
    yield from ("---", "license: mit", f"library_name: {library}", f"tags: [agent0, self-evolved, {tags}]", "---", "")
    yield f"# {held['run']}/{held['checkpoint']}"
    yield ""
    kind = "All weights" if whole else "A LoRA adapter"
    yield f"{kind} of {_base(run, held['role'])}, trained on tasks that its own teacher made up."
    yield f"It plays the {held['role']}. Its status in its run is *{held['status']}*{why}."
    yield ""


def _base(run: Row, role: str) -> str:
    actor = run["config"].get(role, {})
    return f"`{actor['model']}`" if actor.get("model") else f"the default model of provider `{actor.get('provider')}`"


def _scores(held: Row, scores: Sequence[Row]) -> Iterator[str]:
    own = [s for s in scores if s["checkpoint"] == held["checkpoint"] and s["status"] == "evaluated"]
    controls = [s for s in scores if s["checkpoint"] == "base" and s["status"] == "evaluated"]
    yield "## Scores"
    yield ""
    if not own:
        yield f"Held-out accuracy: {_NOT_SHOWN}."
        yield ""
        return
    yield "| who | set | n | one attempt (95 %) | within k checked attempts (95 %) | tool use |"
    yield "|---|---|---|---|---|---|"
    yield from (_line("this checkpoint", score) for score in own)
    for score in controls:
        yield _line("control: untrained, tool forced" if score["forced_tool"] else "control: untrained", score)
    yield ""
    word = "a gain over the best student before it is proven" if held.get("improved") else "no gain is proven"
    yield f"By the paired test at its promotion, {word}. Validation chose among checkpoints; test never did."
    yield ""


def _line(who: str, score: Row) -> str:
    one = f"{score['accuracy']:.3f} ({score['lower95']:.3f} to {score['upper95']:.3f})"
    within = _NOT_SHOWN
    if score.get("solved_within") is not None:
        span = f"{score['lower95_within']:.3f} to {score['upper95_within']:.3f}"
        within = f"{score['solved_within']:.3f} ({span}), k = {score['checked']}, n = {score['checkable']}"
    return f"| {who} | {score['split']} | {score['n']} | {one} | {within} | {score['tool_use']:.3f} |"


def _making(held: Row, run: Row, families: Mapping[str, int]) -> Iterator[str]:
    yield "## Training data"
    yield ""
    lessons = f", {held['lessons']} lessons made of its own attempts" if held["lessons"] else ""
    own = f"{held['samples'] or 0} trajectories of its own, {held['replay'] or 0} replayed ones"
    yield f"No human-made data. {own}{lessons},"
    yield f"from run `{held['run']}` (seed {run['seed']}, configuration `{run['config_sha'][:12]}`)."
    yield (
        "Tasks accepted in it: " + ", ".join(f"{name} {count}" for name, count in families.items()) + "."
        if families
        else "No task was accepted in it."
    )
    yield ""
    yield f"Left out, by reason: {_listed(held['skipped'])}."
    yield ""
    yield "## Making"
    yield ""
    yield f"- parent: `{held['parent']}`; adapter: `{held['adapter']}`; manifest: `{held['manifest']}`"
    yield f"- recipe: {_listed(held['recipe'])}"
    yield f"- metrics: {_listed(held['metrics'])}"
    yield f"- environment: {_listed(held['environment'])}"
    yield f"- every event behind it: `agent0 model lineage {held['run']}/{held['checkpoint']}`"
    yield ""


def _listed(found: Mapping[str, Any] | None) -> str:
    told = [f"{name} {v:g}" if isinstance(v, float) else f"{name} {v}" for name, v in (found or {}).items()]
    return ", ".join(told) or "nothing"


def _limits(held: Row) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield "Scores are of tasks of the families above, in their own wording; nothing is claimed beyond them. An adapter"
    yield "fits the base it was trained on and no other. What it writes is checked for being right, for nothing else."
    yield ""
    yield "Licence of the adapter: MIT. The base has its own."
