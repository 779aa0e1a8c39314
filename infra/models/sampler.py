"""A teacher without a model: it writes a task of the family and level that it is asked for, drawn at random.

Tasks that are kept for held-out sets are not drawn, so nearly all of its tasks are accepted, unlike the scripted
teacher's. It cannot be trained, and answers nothing.
"""

import random

from agent0.errors import OperationError
from agent0.infra.models.scripted import requested
from agent0.ports.models import GenerateRequest, Generation
from agent0.tasks.splits import split_key, split_of

DRAWS = 1000
"""Draws after which a level is taken to have no task for training."""


class Sampler:
    """The ``Model`` port for a teacher: the same request and seed give the same task."""

    name = "sampler"

    async def generate(self, request: GenerateRequest) -> Generation:
        """Draw and word one task.

        Raises:
            OperationError: the request names no family and level, or the level has no task for training.
        """
        prompt = next((turn.content for turn in reversed(request.turns) if turn.role == "user"), "")
        target = requested(prompt)
        if target is None:
            raise OperationError(
                "The sampler only draws tasks.",
                "This asks for none of a family.",
                "It can play the teacher only, with a prompt that names a family: --set run.teacher.prompts=compact",
            )
        entry, level = target
        rng = random.Random(f"sampler {request.sampling.seed}")
        for _ in range(DRAWS):
            params = entry.sample(level, rng)
            if split_of(split_key(entry, params)) == "train":
                return Generation(entry.render(params, rng), model=self.name)
        why = f"{DRAWS} draws at level {level} are all kept for held-out sets."
        raise OperationError(f"There is no task of {entry.name} to train on.", why)

    async def close(self) -> None:
        """There is nothing to give back."""
