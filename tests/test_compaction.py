"""A context that is full: older tool outputs are shortened, which the student reads; tokens stay as they were sent."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from agent0.errors import ContextFullError
from agent0.events import tasks
from agent0.ports.models import GenerateRequest, Generation
from agent0.rollout.attempt import ENDS, generations
from agent0.rollout.claim_check import get_progress, redeem
from agent0.rollout.trajectories import token_fault
from agent0.turns.observations import REPEATED
from tests.test_long_attempts import LAST, World, asked, call, put
from tests.test_student import Playback
from tests.world import Opened

NOTICE = "characters are left out here, as the context was full"
READ = call("python", code="cat a")
STORY = [put("a", "".join(f"{n:04}" for n in range(500))), *[READ] * 6, LAST]
"""Two thousand characters are read six times."""
LONG_ENOUGH = {"long_factor": 8, "tool_output": 100_000}


@dataclass
class Windowed(Playback):
    """Has room for ``window`` tokens, its prompt's included: refuses what does not fit, or ends where it is full."""

    window: int = 0
    refuses: bool = False
    sent: list[Generation] = field(default_factory=list)

    async def generate(self, request: GenerateRequest) -> Generation:
        written = await super().generate(request)
        room = self.window - len(written.prompt_ids)
        if room < len(written.token_ids):
            if self.refuses:
                raise ContextFullError("It does not fit.")
            ids = written.token_ids[: max(room, 0)]
            usage = written.usage.model_copy(update={"completion_tokens": len(ids)})
            parts = {"text": written.text[: len(ids)], "token_ids": ids, "logprobs": written.logprobs[: len(ids)]}
            return replace(written, usage=usage, finish="length", **parts)
        self.sent.append(written)
        return written


async def told(model: Playback, texts: Sequence[str] = STORY) -> tuple[tasks.TaskAttempted, list[tasks.ToolCalled]]:
    """The attempt with its tokens, each turn of it in a process of its own; and its calls."""
    world = World(texts, LONG_ENOUGH)
    out = await world.react(asked(), models=Opened(model))
    while isinstance(out[-1], tasks.TurnCompleted):
        out += await world.react(out[-1], models=Opened(model))
    assert isinstance(out[-1], tasks.TaskAttempted)
    tokens = redeem(out[-1].trajectory, out[-1].trajectory_artifact, world.artifacts)
    ended = out[-1].model_copy(update={"trajectory": tokens})
    return ended, [event for event in out if isinstance(event, tasks.ToolCalled)]


@pytest.mark.parametrize("refuses", [True, False], ids=["refuses", "ends"])
async def test_the_oldest_outputs_are_shortened_until_a_turn_fits(refuses: bool) -> None:
    model = Windowed(STORY, window=9_000, refuses=refuses)
    ended, calls = await told(model)
    assert (ended.answer, ended.end, ended.turns) == ("5", "answered", len(STORY))
    outputs = [turn.content.removeprefix(f"{REPEATED}\n") for turn in ended.transcript if turn.role == "tool"]
    shortened = [NOTICE in text for text in outputs]
    assert shortened == [False, *sorted(shortened[1:], reverse=True)], "the oldest first; the first says little"
    assert sum(shortened) == ended.compacted > 0 and not shortened[-1]
    whole = calls[1].result.output
    for text in outputs[1:]:
        assert text == whole or (text.startswith(whole[: ENDS - len(REPEATED) - 1]) and text.endswith(whole[-ENDS:]))
    assert all(event.result.output == whole for event in calls[1:]), "events have outputs whole"


async def test_tokens_are_those_that_were_sent_and_only_turns_written_in_them_are_learned() -> None:
    model = Windowed(STORY, window=9_000)
    ended, _ = await told(model)
    trajectory, last = ended.trajectory, model.sent[-1]
    assert trajectory and trajectory.token_ids == last.prompt_ids + last.token_ids
    assert token_fault(trajectory, ended.turns, 0) == ""
    contexts = [written.prompt_ids + written.token_ids for written in model.sent]
    same = [n for n, context in enumerate(contexts) if trajectory.token_ids[: len(context)] == context]
    assert 1 < len(same) < len(contexts), "some were written in a context that is none of this one"
    assert sum(trajectory.mask) == sum(len(model.sent[n].token_ids) for n in same)
    for written in (model.sent[n] for n in same):
        start = len(written.prompt_ids)
        assert set(trajectory.mask[start : start + len(written.token_ids)]) == {1}


async def test_each_turn_is_stored_with_the_context_that_it_was_written_in() -> None:
    model, world = Windowed(STORY, window=9_000), World(STORY, LONG_ENOUGH)
    out = await world.react(asked(), models=Opened(model))
    while isinstance(out[-1], tasks.TurnCompleted):
        progress = await get_progress(out[-1].progress, world.artifacts)
        assert [(g.prompt_ids, g.token_ids) for g in generations(progress)] == [
            (g.prompt_ids, g.token_ids) for g in model.sent
        ]
        out += await world.react(out[-1], models=Opened(model))
    assert progress.compacted and 0 < progress.exact_from <= len(progress.written)


async def test_a_window_that_is_large_enough_changes_nothing() -> None:
    plain, _ = await told(Playback(STORY))
    windowed, _ = await told(Windowed(STORY, window=100_000))
    assert windowed == plain and plain.compacted == 0 and plain.trajectory
    assert sum(plain.trajectory.mask) == plain.usage.completion_tokens


async def test_where_nothing_can_be_shortened_it_is_as_full_as_before() -> None:
    short = [put("a", "1"), READ, LAST]
    ended, _ = await told(Windowed(short, window=20), short)
    assert (ended.end, ended.answer, ended.compacted) == ("length", None, 0)
    with pytest.raises(ContextFullError):
        await told(Windowed(short, window=20, refuses=True), short)


async def test_a_turn_that_meets_its_own_limit_is_no_full_context() -> None:
    model = Playback([STORY[0], READ, "x" * 500], finish="length")
    ended, _ = await told(model, model.texts)
    assert (ended.end, ended.compacted) == ("length", 0)
