"""A real model whose context is full goes on once older tool outputs are shortened."""

from agent0.chat_format import format_call
from agent0.events.values import Turn
from agent0.infra.models.transformers import Transformers
from agent0.ports.models import GenerateRequest, Sampling
from agent0.rollout.attempt import AttemptProgress, WrittenTurn, next_turn


async def test_a_turn_fits_once_the_oldest_output_is_shortened(model: Transformers, context: int) -> None:
    call, outputs = format_call("python", {"code": "1"}), ["0123456789" * context, "short"]
    turns = [Turn(role="user", content="Why?")]
    for output in outputs:
        turns += [Turn(role="assistant", content=call), Turn(role="tool", name="python", content=output)]
    written = (WrittenTurn(text=call),) * len(outputs)
    full = AttemptProgress(
        transcript=tuple(turns), prompt="", turns=9, calls=9, seconds=9, characters=9, written=written
    )
    request = GenerateRequest((), Sampling(max_tokens=8, seed=1))
    progress, generation = await next_turn(full, request, model, "template")
    assert (progress.compacted, progress.exact_from) == (1, 2)
    assert generation.token_ids and len(generation.prompt_ids) + len(generation.token_ids) <= context
    assert progress.transcript[2].content != outputs[0] and progress.transcript[4] == full.transcript[4]
