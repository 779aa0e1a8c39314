"""A checkpoint's card: what it was made from, how it scored beside its controls, what may be said of it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent0.evaluation.protocol import scores as scores_of
from agent0.state.run_state import BASE
from events.checkpoints import StudentExamined

Row = Mapping[str, Any]
_NOT_SHOWN = "not measured"
_seeds = {
    "own": "from the student's own tries",
    "random": "from random derivations, not from anything that the student wrote",
    "written": "of those tries alone that the student wrote without a mistake",
    "permuted": "from the student's own tries, under permuted verdicts",
    "wrong": "from the student's own tries, every verdict wrong",
}


def model_card(
    held: Row, run: Row, scores: Sequence[Row], families: Mapping[str, int], exams: Sequence[StudentExamined] = ()
) -> str:
    """Markdown with a YAML head as model hubs read it.

    ``held``: the checkpoint's row; ``run``: its run's; ``scores``: the run's evaluations in order; ``families``: tasks
    accepted in the run by family; ``exams``: those of the checkpoint, and of the base beside it.
    """
    found = [*_head(held, run), *_scores(held, scores), *_exams(exams), *_making(held, run, families), *_limits(held)]
    return "\n".join(found) + "\n"


def _head(held: Row, run: Row) -> Iterator[str]:
    why = f" ({held['reason']})" if held.get("reason") else ""
    whole = (held["recipe"] or {}).get("rank") == 0
    library, tags = ("transformers", "full") if whole else ("peft", "lora")
    yield from ("---", "license: mit", f"library_name: {library}", f"tags: [agent0, self-evolved, {tags}]", "---", "")
    yield f"# {held['run']}/{held['checkpoint']}"
    yield ""
    kind = "All weights" if whole else "A LoRA adapter"
    yield f"{kind} of {_base(run, held['role'])}, trained on tasks that {_author(held, run)}."
    if (held["recipe"] or {}).get("lessons") == "search":
        yield "This is supervised training on synthetic search traces. Their source is a tool"
        yield "(`agent0.training.search_traces` with `Family.retrace`),"
        yield f"which makes them {_seeds[held['recipe'].get('source', 'own')]}."
    yield f"It plays the {held['role']}. Its status in its run is *{held['status']}*{why}."
    yield ""


def _base(run: Row, role: str) -> str:
    actor = run["config"].get(role, {})
    return f"`{actor['model']}`" if actor.get("model") else f"the default model of provider `{actor.get('provider')}`"


def _author(held: Row, run: Row) -> str:
    if held["role"] == "teacher":
        return "it made up itself"
    config = run["config"]
    if config.get("teacher", {}).get("provider") == "scripted":
        return "a scripted sampler drew: no model made them up"
    trained = config.get("training", {}).get("teacher", {}).get("enabled")
    return f"its teacher made up, {_base(run, 'teacher')}, {'trained beside it' if trained else 'untrained'}"


def _exams(exams: Sequence[StudentExamined]) -> Iterator[str]:
    if not exams:
        return
    yield "Exams, several attempts at each task (95 %):"
    yield ""
    yield "| who | set | asked | n | one attempt | pass@k (verifier-selected) | maj@k |"
    yield "|---|---|---|---|---|---|---|"
    for exam in exams:
        scores = scores_of(exam)
        spans = [
            f"{scores[name]:.3f} ({scores[f'{name}_lower95']:.3f} to {scores[f'{name}_upper95']:.3f})"
            for name in ("single", "within", "majority")
        ]
        levels = f", levels {', '.join(map(str, exam.levels))}" if exam.levels else ""
        who = "control: untrained" if exam.checkpoint == BASE else "this checkpoint"
        yield f"| {who} | {exam.split}{levels} | {exam.exam} | {scores['n']} | {' | '.join(spans)} |"
    yield ""


def _scores(held: Row, scores: Sequence[Row]) -> Iterator[str]:
    own = [s for s in scores if s["checkpoint"] == held["checkpoint"] and s["status"] == "evaluated"]
    controls = [s for s in scores if s["checkpoint"] == BASE and s["status"] == "evaluated"]
    yield "## Scores"
    yield ""
    if not own:
        yield f"Held-out accuracy: {_NOT_SHOWN}."
        yield ""
        return
    yield "| who | set | n | one attempt (95 %) | pass@k, verifier-selected (95 %) | tool use |"
    yield "|---|---|---|---|---|---|"
    yield from (_line("this checkpoint", score) for score in own)
    for score in controls:
        yield _line("control: untrained, tool forced" if score["forced_tool"] else "control: untrained", score)
    yield ""
    word = "a gain over the best student before it is proven" if held.get("improved") else "no gain is proven"
    judged = f"By the gate's paired test, {word}." if held.get("test") else "No paired test judged it."
    yield f"{judged} Validation chose among checkpoints; test never did."
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
    lessons = f", {held['lessons']} lessons that a tool made" if held["lessons"] else ""
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
    texts = [f"{name} {v:g}" if isinstance(v, float) else f"{name} {v}" for name, v in (found or {}).items()]
    return ", ".join(texts) or "nothing"


def _limits(held: Row) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield "Scores are of tasks of the families above, in their own wording; nothing is claimed beyond them. An adapter"
    yield "fits the base it was trained on and no other. What it writes is checked for being right, for nothing else."
    yield ""
    yield "Licence of the adapter: MIT. The base has its own."
