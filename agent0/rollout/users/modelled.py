"""A model that plays the user of an episode: it reads what the student writes to them, and replies."""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import JsonValue

from agent0.events.episodes import Episode
from agent0.events.values import Turn
from agent0.ports.environments import OpenEpisode, StepOutcome
from agent0.ports.models import GenerateRequest, Sampling
from agent0.rollout.prompts import ANY, FULL, prompt, render
from agent0.rollout.student import Conditions
from agent0.tasks.seeds import derive_seed
from agent0.turns.thoughts import split_thoughts

USER = "user"
"""The role of the model."""
END, LEFT, NO_REPLY = "[END]", "[the user has left]", "[no reply]"
LONGEST_REPLY = 256
"""Tokens of a reply."""
PHONE = "[on my phone] "
"""Begins a reply of the environment that the user is to know of: what came of a thing that they did."""


class ModelledUser:
    """An episode whose user a model plays: it reads the messages, and what comes of what they have the user do, and
    replies, until it has left."""

    def __init__(self, session: OpenEpisode, episode: Episode, conditions: Conditions) -> None:
        self.question, self.tools = session.question, session.tools
        self._session, self._episode, self._conditions = session, episode, conditions
        opening = session.question.rpartition("\n\n")[2]
        self._turns = (*render(prompt(FULL, ANY, USER), {"question": episode.user}), _own(opening))
        self._left = False

    async def step(self, tool: str, arguments: Mapping[str, JsonValue]) -> StepOutcome:
        """As ``OpenEpisode.step``; the environment takes a message, and its own words for the user are not read.

        Raises:
            DependencyError: the model is not available, too.
        """
        observation = await self._session.step(tool, arguments)
        if tool != self._episode.action or observation.refused or observation.done:
            return observation
        if not self._left:
            told = [str(arguments.get("message", "")), *[observation.text] * observation.text.startswith(PHONE)]
            self._turns = (*self._turns, Turn(role="user", content="\n\n".join(told)))
            reply = await self._reply()
            self._left = END in reply
            self._turns = (*self._turns, _own(reply))
            if not self._left:
                return replace(observation, text=reply)
        return replace(observation, text=LEFT)

    async def _reply(self) -> str:
        model, seed = self._conditions.user or self._conditions.model, self._conditions.seed
        sampling = Sampling(0.0, 1.0, LONGEST_REPLY, derive_seed(seed, USER, len(self._turns)))
        request = GenerateRequest(self._turns, sampling, group=self._conditions.group, task=self._conditions.task)
        return split_thoughts((await model.generate(request)).text).visible.strip() or NO_REPLY


def _own(text: str) -> Turn:
    """What the user wrote: of the model that plays it, an assistant's turn."""
    return Turn(role="assistant", content=text)
