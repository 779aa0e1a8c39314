"""A checkpoint's card: what it was made from, how it scored beside its controls, what may be said of it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from agent0.evaluation.protocol import scores as scores_of
from agent0.events.checkpoints import StudentExamined
from agent0.projections.base import Row
from agent0.report.markdown.rendering import render
from agent0.state.run_state import BASE, first_student
from agent0.training.distillation import described
from agent0.training.gate import VERIFIED

_gates = {
    VERIFIED: "that a verifier found right",
    "permuted": "that permuted verdicts call right (control)",
    "majority": "that most attempts at their task agree on (control)",
}


def model_card(
    checkpoint: Row, run: Row, scores: Sequence[Row], families: Mapping[str, int], exams: Sequence[StudentExamined] = ()
) -> str:
    """Markdown with a YAML head as model hubs read it.

    ``checkpoint``: the checkpoint's row; ``run``: its run's; ``scores``: the run's evaluations in order; ``families``:
    tasks accepted in the run by family; ``exams``: those of the checkpoint, and of the base beside it.
    """
    recipe, config = checkpoint["recipe"] or {}, run["config"]
    kind, start = _kind(checkpoint, config), first_student(run.get("student_adapter"))
    return render(
        "model_card.md.jinja",
        held={"reason": None, "test": None, "improved": None, "pruned": None, **checkpoint},
        run=run,
        kind=kind,
        whole=recipe.get("rank") == 0,
        base={role: _base(config.get(role, {})) for role in ("teacher", "student")},
        scripted=config.get("teacher", {}).get("provider") in ("scripted", "sampler"),
        rows=_rows(config.get("questions") or {}),
        iterated=recipe.get("objective") == "sft",
        replayed=recipe.get("taught", 0.0) if recipe.get("steps") else 0.0,
        accepted=_accepted(recipe),
        beside=config.get("training", {}).get("teacher", {}).get("enabled"),
        distilled=described(checkpoint.get("distilled") or {}),
        scores=list(_scores(checkpoint["checkpoint"], [e for e in scores if e["status"] == "evaluated"], start)),
        exams=[(f"control: {start}" if e.checkpoint == BASE else "this checkpoint", e, scores_of(e)) for e in exams],
        began=run.get("student_adapter") if checkpoint["role"] == "student" else None,
        families=_listed(families) if families else "",
        listed=_listed,
    )


def _kind(checkpoint: Row, config: Row) -> str:
    """What there is of the checkpoint: ``weights``, ``skill`` of a scripted stand-in, or ``nothing``."""
    if not checkpoint["adapter"]:
        return "nothing"
    return "skill" if config.get(checkpoint["role"], {}).get("provider") == "scripted" else "weights"


def _accepted(recipe: Row) -> str:
    """Which of its answers a likelihood training accepted."""
    gate = recipe.get("gate", VERIFIED)
    return _gates.get(gate, f"that the gate {gate} accepts")


def _base(actor: Row) -> str:
    """The name of a role's base model; of a path its last part, since a card is published."""
    model = str(actor.get("model") or "")
    name = PurePath(model).name if model.startswith(("/", "~", ".")) else model
    return f"`{name}`" if name else f"the default model of provider `{actor.get('provider')}`"


def _rows(questions: Row) -> Row:
    """The file whose rows were tasks, and whether all tasks were; its name is empty where there is none."""
    file = questions.get("file") or ""
    return {"file": PurePath(file).name, "all": bool(file) and questions.get("share", 1.0) == 1}


def _scores(checkpoint: str, scores: Sequence[Row], start: str) -> Iterator[Row]:
    """The checkpoint's scores, then those of the first student; none where the checkpoint has none."""
    scored = [score for score in scores if score["checkpoint"] == checkpoint]
    for score in [*scored, *(score for score in scores if scored and score["checkpoint"] == BASE)]:
        control = f"control: {start}, tool forced" if score["forced_tool"] else f"control: {start}"
        yield {"solved_within": None, **score, "who": "this checkpoint" if score in scored else control}


def _listed(values: Mapping[str, object] | None) -> str:
    texts = [f"{name} {v:g}" if isinstance(v, float) else f"{name} {v}" for name, v in (values or {}).items()]
    return ", ".join(texts) or "nothing"
