"""One attempt as a value: what was written and done, and the budget that is left. It can be stored between any two
turns and continued anywhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agent0.errors import ContextFullError
from agent0.events.base import Value
from agent0.events.values import Artifact, Capture, End, SelfCritique, ToolUse, Trajectory, Turn, Usage
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.rollout.tool_prompts import delivered

ENDS = 160
"""Characters of a tool's output that stay at its beginning and its end where it is shortened."""
LONG = 3 * ENDS
"""Characters from which one may be."""


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
    what was asked; ``critique`` what it said of its answer, where it was asked. ``compacted`` tool outputs were
    shortened because the context was full, last before the turn ``exact_from`` was written.
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
    compacted: int = 0
    exact_from: int = 0

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


def compacted(progress: AttemptProgress) -> AttemptProgress | None:
    """Shorten the older half of the tool outputs that are long, and say so in each; None where none is. What was sent
    until now stays with the turns that were written."""
    places = [n for n, turn in enumerate(progress.transcript) if turn.role == "assistant"]
    own = places[-len(progress.written) :] if progress.written else []
    turns = [*enumerate(progress.transcript)][own[0] :] if own else []
    long = [n for n, turn in turns if turn.role == "tool" and len(turn.content) > LONG]
    if not long:
        return None
    chosen = {*long[: (len(long) + 1) // 2]}
    transcript = tuple(_shortened(turn) if n in chosen else turn for n, turn in enumerate(progress.transcript))
    count = progress.compacted + len(chosen)
    return progress.but(transcript=transcript, compacted=count, exact_from=len(progress.written))


async def next_turn(
    progress: AttemptProgress, request: GenerateRequest, model: Model, form: str
) -> tuple[AttemptProgress, Generation]:
    """Have ``model`` write the next turn of ``progress``, whose messages take the place of those of ``request``. Where
    its context is full, older tool outputs are shortened first, as far as there are any; errors as the model's."""
    while True:
        try:
            written = await model.generate(replace(request, turns=delivered(progress.transcript, form)))
        except ContextFullError:
            if (shorter := compacted(progress)) is None:
                raise
        else:
            full = _was_full(written, request.sampling.max_tokens)
            if not full or (shorter := compacted(progress)) is None:
                return progress, written
        progress = shorter


def _was_full(written: Generation, max_tokens: int) -> bool:
    """Whether a turn ended before its own limit of tokens because the context did."""
    tokens = len(written.token_ids) or written.usage.completion_tokens
    return written.finish == "length" and tokens < max_tokens and (tokens > 0 or not written.text)


def _shortened(turn: Turn) -> Turn:
    text, left_out = turn.content, len(turn.content) - 2 * ENDS
    notice = f"[{left_out} characters are left out here, as the context was full; the call made again shows them]"
    return turn.model_copy(update={"content": f"{text[:ENDS]}\n{notice}\n{text[-ENDS:]}"})


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
    compacted: int = 0

    @property
    def wall_s(self) -> float:
        """Seconds that model and tools took together."""
        return self.usage.wall_s + sum(called.result.wall_s for called in self.tool_calls if not called.inner)
