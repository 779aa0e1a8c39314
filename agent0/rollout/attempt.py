"""One attempt as a value: what was written and done, and the budget that is left. It can be stored between any two
turns and continued anywhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent0.events.base import Value
from agent0.events.values import Artifact, Capture, End, SelfCritique, ToolUse, Trajectory, Turn, Usage
from agent0.ports.models import Generation


class WrittenTurn(Value):
    """One assistant turn as the model wrote it.

    Its context is the first ``shared`` tokens of everything seen and sampled in the turn before, then ``prompt_ids``: a
    growing context is stored once.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    ends: tuple[int, ...] = ()
    shared: int = 0
    prompt_ids: tuple[int, ...] = ()
    finish: Literal["stop", "length"] = "stop"
    usage: Usage = Usage()
    model: str = ""
    capture: Capture = ""
    untrainable: str = ""
    seed: int | None = None
    author: str = ""


class AttemptProgress(Value):
    """An attempt between two turns. ``end`` says how it ended, None while it goes on.

    ``turns``, ``calls``, ``seconds`` of tool time and ``characters`` of tool output are what is left of its budgets;
    ``over_budget``: the student knows that no call is left. ``work`` is the manifest of its work folder, None for an
    empty one. ``subgoals`` are the answers given so far to those of a long task. ``prompt`` is a version, ``question``
    what was asked; ``critique`` what it said of its answer, where it was asked.
    """

    transcript: tuple[Turn, ...]
    prompt: str
    turns: int
    calls: int
    seconds: float
    characters: int
    subgoals: tuple[str | None, ...] = ()
    written: tuple[WrittenTurn, ...] = ()
    called: tuple[ToolUse, ...] = ()
    work: Artifact | None = None
    over_budget: bool = False
    errors: int = 0
    answer: str | None = None
    end: End | None = None
    question: str = ""
    critique: SelfCritique | None = None

    def but(self, **changes: object) -> "AttemptProgress":
        """Return a copy with ``changes``, which are not validated."""
        return self.model_copy(update=changes)

    def wrote(self, generation: Generation, errors: int) -> "AttemptProgress":
        """Return the progress after one more assistant turn, in which ``errors`` parse errors were found."""
        context = _context_ids(self)
        shared = len(context) if generation.prompt_ids[: len(context)] == context else 0
        written = WrittenTurn(
            text=generation.text,
            token_ids=generation.token_ids,
            logprobs=generation.logprobs,
            ends=generation.ends,
            shared=shared,
            prompt_ids=generation.prompt_ids[shared:],
            finish=generation.finish,
            usage=generation.usage,
            model=generation.model,
            capture=generation.capture,
            untrainable=generation.untrainable,
            seed=generation.seed,
            author=generation.author,
        )
        turn = Turn(
            role="assistant", content=generation.text, token_ids=generation.token_ids, thinking=generation.thinking
        )
        return self.but(
            transcript=(*self.transcript, turn),
            written=(*self.written, written),
            turns=self.turns - 1,
            errors=self.errors + errors,
        )


def generations(progress: AttemptProgress) -> list[Generation]:
    """Rebuild the model's generations of an attempt from its stored turns."""
    out: list[Generation] = []
    context: tuple[int, ...] = ()
    for turn in progress.written:
        prompt = context[: turn.shared] + turn.prompt_ids
        fields = (turn.text, turn.token_ids, turn.logprobs, prompt, turn.finish, turn.usage, turn.model, turn.ends)
        out.append(Generation(*fields, turn.capture, turn.untrainable, turn.seed, author=turn.author))
        context = prompt + turn.token_ids
    return out


def _context_ids(progress: AttemptProgress) -> tuple[int, ...]:
    turns = generations(progress)
    return turns[-1].prompt_ids + turns[-1].token_ids if turns else ()


@dataclass(frozen=True)
class AttemptResult:
    """How an attempt went; fields as in ``TaskAttempted``. ``trajectory_problem`` says why there is no trajectory."""

    answer: str | None
    end: End
    turns: int
    tool_calls: tuple[ToolUse, ...]
    tool_ok: int
    parse_errors: int
    grounded: bool
    transcript: tuple[Turn, ...]
    trajectory: Trajectory | None
    trajectory_problem: str
    mean_logprob: float | None
    signals: dict[str, float]
    usage: Usage
    model: str
    prompt: str
    subgoals: tuple[str | None, ...]
    work: Artifact | None
    capture: Capture = ""
    critique: SelfCritique | None = None
    seeds: tuple[int | None, ...] = ()
    authors: Mapping[str, int] = field(default_factory=dict)

    @property
    def wall_s(self) -> float:
        """Seconds that model and tools took together."""
        return self.usage.wall_s + sum(called.result.wall_s for called in self.tool_calls if not called.inner)
