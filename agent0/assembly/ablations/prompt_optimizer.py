"""Part of the rim: the search over instructions itself, by the package gepa (arXiv 2507.19457): a pool of candidates
with a score for each task, parents drawn from its Pareto front, a child kept where it is better on a minibatch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

from agent0.errors import ConfigError, RequirementsError

MINIBATCH = 3
"""Tasks that a proposal is written by, and first scored on."""
LEAST = 2 * MINIBATCH
"""Tasks of the front, at least."""
_COMPONENT = "instruction"
_REWRITE = """This is an instruction for an assistant:
```
{}
```

Write another version of it: in other words, in another order, with more or with less detail. Provide the new \
instruction within ``` blocks."""


@dataclass(frozen=True)
class ScoredAnswer:
    """Whether an answer is right, and what a reflection reads of it: task, reply and feedback, by heading."""

    correct: bool
    record: Mapping[str, str]


class PromptTasks(Protocol):
    """What a search calls, from a thread of its own; what either raises ends the search."""

    def score(self, instruction: str, numbers: Sequence[int], *, front: bool) -> list[ScoredAnswer]:
        """Answer the tasks ``numbers`` under ``instruction``; ``front``: they decide what is kept."""
        ...

    def write(self, prompt: str) -> str:
        """Return a model's reply to ``prompt``."""
        ...


def require_optimizer() -> None:
    """Raise RequirementsError, with the command that installs it, where gepa is not installed."""
    if find_spec("gepa") is None:
        fix = "make setup EXTRAS=prompts. Or: pip install gepa"
        raise RequirementsError("A search over prompts needs the package gepa.", "It is not installed.", fix)


def front_size(budget: int, tasks: int) -> int:
    """How many of ``tasks`` are the front of a search with ``budget`` attempts: an eighth of these.

    Raises:
        ConfigError: there are too few of either.
    """
    size = min(max(LEAST, budget // 8), tasks - MINIBATCH, 200)
    if size < LEAST or budget < 2 * size + 2 * MINIBATCH:
        why = f"It has {budget} attempts and {tasks} tasks, and {3 * LEAST} and {LEAST + MINIBATCH} are the least."
        raise ConfigError(
            "A search over prompts is too small.", why, "Raise run.iterations, run.tasks or run.attempts."
        )
    return size


def best_instruction(
    instruction: str,
    tasks: PromptTasks,
    minibatches: Sequence[int],
    front: Sequence[int],
    *,
    budget: int,
    seed: int,
    reflects: bool,
    stopped: Callable[[], bool],
) -> str:
    """Search from ``instruction``, with at most ``budget`` attempts, for the one that is best on the tasks ``front``;
    proposals are written by tasks of ``minibatches``. The earlier one wins a tie. Where it does not reflect, a
    proposal sees no answer: a paraphrase. The same scores and replies make the same search."""
    from gepa import optimize  # noqa: PLC0415 - an extra

    adapter: Any = _TaskAdapter(tasks, frozenset(front))
    result = optimize(
        seed_candidate={_COMPONENT: instruction},
        trainset=[*minibatches],
        valset=[*front],
        adapter=adapter,
        reflection_lm=(lambda prompt: tasks.write(str(prompt))) if reflects else None,
        custom_candidate_proposer=None if reflects else adapter.paraphrased,
        reflection_minibatch_size=MINIBATCH,
        max_metric_calls=budget
        - 2 * MINIBATCH
        - len(front),  # what an iteration may take is still there when it begins
        stop_callbacks=[lambda _: stopped()],
        logger=_Silent(),
        seed=seed,
    )
    best = result.best_candidate
    return str(best[_COMPONENT] if isinstance(best, Mapping) else best)


class _Silent:
    def log(self, message: str) -> None:
        """Nothing is printed: what counts is recorded."""


class _TaskAdapter:
    """The adapter of gepa between its calls and ``PromptTasks``."""

    propose_new_texts = None

    def __init__(self, tasks: PromptTasks, front: frozenset[int]) -> None:
        self._tasks, self._front = tasks, front

    def evaluate(self, batch: list[int], candidate: Mapping[str, str], capture_traces: bool = False) -> Any:
        from gepa import EvaluationBatch  # noqa: PLC0415 - an extra

        answers = self._tasks.score(candidate[_COMPONENT], batch, front=self._front.issuperset(batch))
        scores = [float(answer.correct) for answer in answers]
        return EvaluationBatch(outputs=answers, scores=scores, trajectories=answers if capture_traces else None)

    def make_reflective_dataset(self, candidate: Mapping[str, str], scored: Any, components: Sequence[str]) -> Any:
        return {component: [dict(answer.record) for answer in scored.trajectories] for component in components}

    def paraphrased(self, candidate: Mapping[str, str], dataset: object, components: Sequence[str]) -> dict[str, str]:
        from gepa.strategies.instruction_proposal import InstructionProposalSignature  # noqa: PLC0415 - an extra

        reply = self._tasks.write(_REWRITE.format(candidate[_COMPONENT]))
        return {_COMPONENT: InstructionProposalSignature.output_extractor(reply)["new_instruction"]}
