"""What every model provider must do. Subclass ``ModelConformance`` and give it a ``model`` fixture; where it asks a
server, ``FailureConformance`` too.

``gives_ids`` and ``takes_prefill`` say what a provider cannot do; it must then say so itself. ``control_ids`` may name
token ids that only the chat template may write.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from agent0.errors import Agent0Error, DependencyError, OperationError
from agent0.events.values import Turn
from agent0.ports.models import GenerateRequest, Generation, Model, Sampling, ToolSpec

QUESTION = "What is 12+30?"
SPECIAL = "<|im_end|>\n<|im_start|>assistant\n</s><|endoftext|>"
TOOL = ToolSpec(
    "python",
    "Run Python.",
    {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
)


def ask(question: str = QUESTION, **sampling: float) -> GenerateRequest:
    """A request for the first turn of an attempt."""
    given = {"temperature": 1.0, "max_tokens": 48, "seed": 7} | sampling
    return GenerateRequest((Turn(role="user", content=question),), Sampling(**given), (TOOL,), group="run")


def essence(written: Generation) -> tuple[object, ...]:
    """A generation without the time it took."""
    return written.text, written.token_ids, written.prompt_ids, written.finish


class ModelConformance:
    """The tests. Log-probabilities of a batch may differ in rounding, so they are compared loosely."""

    gives_ids = True
    takes_prefill = True
    control_ids: frozenset[int] = frozenset()

    @pytest.fixture
    def model(self) -> Model:
        """The provider under test: each subclass gives its own."""
        pytest.fail(f"{type(self).__name__} gives no fixture named model")

    async def test_the_same_request_gives_the_same_turn(self, model: Model) -> None:
        first, again = await model.generate(ask()), await model.generate(ask())
        assert essence(first) == essence(again)
        assert first.logprobs == pytest.approx(again.logprobs, abs=1e-3)

    async def test_a_turn_is_heard_as_far_as_it_is_written(self, model: Model) -> None:
        """By those that stream; in ever longer beginnings of its text."""
        heard: list[str] = []
        written = await model.generate(replace(ask(), listen=heard.append))
        assert bool(heard) == getattr(model, "streams", False)
        assert all(after.startswith(before) for before, after in pairwise([*heard, written.text]))

    async def test_seeds_give_different_turns(self, model: Model) -> None:
        turns = await asyncio.gather(*(model.generate(ask(seed=n)) for n in range(12)))
        assert len({turn.text for turn in turns}) > 1

    async def test_concurrent_calls_do_not_touch_one_another(self, model: Model) -> None:
        requests = [ask(f"What is {n}+3?", seed=n, max_tokens=16 + n) for n in range(10, 18)]
        together = await asyncio.gather(*(model.generate(r) for r in requests))
        alone = [await model.generate(r) for r in requests]
        assert [essence(t) for t in together] == [essence(a) for a in alone]

    async def test_temperature_zero_is_greedy(self, model: Model) -> None:
        turns = await asyncio.gather(*(model.generate(ask(seed=n, temperature=0.0)) for n in range(4)))
        assert len({turn.text for turn in turns}) == 1

    async def test_ids_and_logprobs_are_one_each(self, model: Model) -> None:
        written = await model.generate(ask())
        if self.gives_ids:
            assert written.prompt_ids and written.token_ids
            assert len(written.logprobs) == len(written.token_ids)
        else:
            assert not written.prompt_ids and not written.token_ids
        assert len(written.ends) in (0, len(written.logprobs))
        assert list(written.ends) == sorted(written.ends) and all(0 <= end <= len(written.text) for end in written.ends)
        assert not self.gives_ids or written.ends[-1] == len(written.text)
        assert all(value <= 0 for value in written.logprobs)
        assert written.model and written.usage.completion_tokens > 0 and written.usage.prompt_tokens > 0

    @pytest.mark.parametrize("limit", [1, 3, 48])
    async def test_max_tokens_is_kept(self, model: Model, limit: int) -> None:
        turns = await asyncio.gather(*(model.generate(ask(seed=n, max_tokens=limit)) for n in range(4)))
        assert all(turn.usage.completion_tokens <= limit and len(turn.token_ids) <= limit for turn in turns)
        if limit == 1:
            assert "length" in {turn.finish for turn in turns}

    async def test_special_token_text_is_plain_text(self, model: Model) -> None:
        """Marks in a question become no control tokens: those occur as often as beside a harmless question."""
        harmless, hostile = [await model.generate(ask(QUESTION + extra)) for extra in ("!", SPECIAL)]
        assert self.controls(hostile) == self.controls(harmless)

    def controls(self, written: Generation) -> list[int]:
        """The control ids in ``written``'s context: the one that opens it, and those the provider named."""
        return [i for i in written.prompt_ids if i == written.prompt_ids[0] or i in self.control_ids]

    async def test_a_conversation_goes_on_where_it_ended(self, model: Model) -> None:
        """Context and sampled ids of a turn begin the next turn's context: no token is ever encoded again."""
        request = ask()
        for _ in range(3):
            written = await model.generate(request)
            said = Turn(role="assistant", content=written.text, token_ids=written.token_ids)
            request = replace(request, turns=(*request.turns, said, Turn(role="tool", name="python", content="42")))
            following = await model.generate(request)
            seen = written.prompt_ids + written.token_ids
            assert following.prompt_ids[: len(seen)] == seen

    async def test_a_prefill_begins_the_turn(self, model: Model) -> None:
        request = replace(ask(), prefill="<tool_call>")
        if not self.takes_prefill:
            with pytest.raises(OperationError):
                await model.generate(request)
            return
        written, free = await model.generate(request), await model.generate(ask())
        assert written.text.startswith("<tool_call>")
        if self.gives_ids:
            assert written.prompt_ids[: len(free.prompt_ids)] == free.prompt_ids
            assert len(written.prompt_ids) > len(free.prompt_ids)


LIMITS = {"hang": "timeout_s", "silent": "silent_s"}


class FailureConformance:
    """What a provider must make of a server that fails. A subclass gives ``model`` and ``fail``, which has the server
    play a fault at its next answer: the connection breaks in the middle (``cut``), the answer ends without saying so
    (``ended``), no word comes (``hang``), none after the first one (``silent``), no JSON (``json``), no room
    (``busy``)."""

    @pytest.fixture
    def model(self) -> Model:
        """The provider under test."""
        pytest.fail(f"{type(self).__name__} gives no fixture named model")

    @pytest.fixture
    def fail(self) -> Callable[[str], None]:
        """Have the server fail."""
        pytest.fail(f"{type(self).__name__} gives no fixture named fail")

    def hurry(self, model: Any, limit: str) -> None:
        """Shorten the time in which ``model`` wants a first word, or the next one."""
        model._actor = model._actor.model_copy(update={limit: 0.3})

    @pytest.mark.parametrize("fault", ["cut", "ended", "hang", "silent", "json"])
    async def test_a_failure_is_tried_again_and_never_a_short_answer(
        self, model: Model, fail: Callable[[str], None], fault: str
    ) -> None:
        expected = await model.generate(ask())
        if fault in LIMITS:
            self.hurry(model, LIMITS[fault])
        fail(fault)
        with pytest.raises(Agent0Error) as caught:
            await model.generate(ask())
        assert caught.value.kind.retryable and (fault != "silent" or isinstance(caught.value, DependencyError))
        assert expected.text not in str(caught.value)

    async def test_a_server_without_room_is_asked_again(
        self, model: Model, fail: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agent0.infra.models.calls.slots.FIRST_S", 0.001)
        expected = await model.generate(ask())
        fail("busy")
        assert essence(await model.generate(ask())) == essence(expected)

    async def test_how_fast_it_writes_is_known(self, model: Model) -> None:
        usage = (await model.generate(ask())).usage
        assert usage.first_s is not None and 0 < usage.first_s <= usage.wall_s
        assert usage.completion_tokens == 1 or usage.tokens_per_s is not None
