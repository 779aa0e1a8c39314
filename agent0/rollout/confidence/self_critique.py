"""The self-critique turn: after its answer a student is asked whether that is right, and says Yes or No (P(True), arXiv
2207.05221, section 4).

The turn follows the attempt and is no part of it: it is in no trajectory, and nothing is trained on it.
"""

import math
import re
from collections.abc import Sequence

from agent0.errors import OperationError
from agent0.events.values import Artifact, SelfCritique, Turn
from agent0.ports.models import GenerateRequest, Generation, Likelihood, Likely, Model, Sampling
from agent0.rollout.confidence.token_spans import within
from agent0.rollout.prompts import ANY, CRITIQUE, prompt, render
from agent0.settings import StudentConfig

YES, NO = "Yes", "No"
LONGEST_ANSWER = 2_000
"""Characters of the answer that the question repeats."""

_THOUGHT = re.compile(r"^.*</think>", re.DOTALL)
_VERDICT = re.compile(r"[\s*\"'`]*(yes|no)\b", re.IGNORECASE)


async def criticise(
    model: Model,
    config: StudentConfig,
    transcript: Sequence[Turn],
    answer: str,
    *,
    seed: int,
    adapter: Artifact | None = None,
    group: str = "",
    task: str = "",
    attempt: str = "",
) -> SelfCritique:
    """Ask ``model`` whether ``answer``, with which ``transcript`` ends, is right.

    A model that scores texts is asked how likely each of the two words is. Any other one writes its reply, greedily:
    what counts is the probability of the word that it chose, or where the provider tells none the word itself. A reply
    that is neither has no probability, which is not 0.

    Raises:
        DependencyError, TransientError: from the model.
    """
    words = prompt(config.prompts, ANY, CRITIQUE)
    asked = render(words, {"answer": answer[:LONGEST_ANSWER]})
    turns = (*transcript, *asked)
    if isinstance(model, Likelihood):
        try:
            yes, no = await model.likelihood(turns, (YES, NO), adapter)
        except OperationError as error:
            return SelfCritique(prompt=words.version, asked=asked[-1].content, problem=str(error))
        return _by_likelihood(yes, no, words.version, asked[-1].content)
    sampling = Sampling(0.0, 1.0, config.max_tokens, seed)
    request = GenerateRequest(turns, sampling, adapter=adapter, group=group, task=task, attempt=attempt)
    said = await model.generate(request)
    return _by_reply(said, words.version, asked[-1].content)


def _by_likelihood(yes: Likely, no: Likely, version: str, asked: str) -> SelfCritique:
    """The two words share the whole probability: what else the model might say does not count."""
    probability = 1 / (1 + math.exp(min(700.0, no.logprob - yes.logprob)))
    fields = {"text": YES if probability >= 0.5 else NO, "verdict": probability >= 0.5, "probability": probability}
    return SelfCritique(prompt=version, asked=asked, by="likelihood", **fields)


def _by_reply(said: Generation, version: str, asked: str) -> SelfCritique:
    fields = {"prompt": version, "asked": asked, "text": said.text[:LONGEST_ANSWER], "usage": said.usage}
    found = read_verdict(said.text)
    if found is None:
        return SelfCritique(**fields, problem="the reply says neither Yes nor No")
    verdict, span = found
    chosen = _chosen(said, span)
    if chosen is None:
        return SelfCritique(**fields, verdict=verdict, probability=float(verdict), by="text")
    return SelfCritique(**fields, verdict=verdict, probability=chosen if verdict else 1 - chosen, by="tokens")


def read_verdict(reply: str) -> tuple[bool, tuple[int, int]] | None:
    """Read a reply's verdict and where its word stands: the first word behind any closed thought; None where that is
    neither of the two."""
    thought = _THOUGHT.match(reply)
    found = _VERDICT.match(reply, thought.end() if thought else 0)
    return (found[1].lower() == YES.lower(), found.span(1)) if found else None


def _chosen(said: Generation, span: tuple[int, int]) -> float | None:
    """The probability of the tokens of the verdict's word; None where it is not known."""
    if len(said.ends) != len(said.logprobs) or any(math.isnan(value) for value in said.logprobs):
        return None
    places = within([span], said.ends)
    return math.exp(min(0.0, sum(said.logprobs[place] for place in places))) if places else None
