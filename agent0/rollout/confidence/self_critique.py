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
    critique_prompt = prompt(config.prompts, ANY, CRITIQUE)
    question = render(critique_prompt, {"answer": answer[:LONGEST_ANSWER]})
    turns = (*transcript, *question)
    if isinstance(model, Likelihood):
        try:
            yes, no = await model.likelihood(turns, (YES, NO), adapter)
        except OperationError as error:
            return SelfCritique(prompt=critique_prompt.version, question=question[-1].content, problem=str(error))
        return _by_likelihood(yes, no, critique_prompt.version, question[-1].content)
    sampling = Sampling(0.0, 1.0, config.max_tokens, seed)
    request = GenerateRequest(turns, sampling, adapter=adapter, group=group, task=task, attempt=attempt)
    reply = await model.generate(request)
    return _by_reply(reply, critique_prompt.version, question[-1].content)


def _by_likelihood(yes: Likely, no: Likely, version: str, question: str) -> SelfCritique:
    """The two words share the whole probability: what else the model might say does not count."""
    probability = 1 / (1 + math.exp(min(700.0, no.logprob - yes.logprob)))
    fields = {"text": YES if probability >= 0.5 else NO, "verdict": probability >= 0.5, "probability": probability}
    return SelfCritique(prompt=version, question=question, by="likelihood", **fields)


def _by_reply(reply: Generation, version: str, question: str) -> SelfCritique:
    fields = {"prompt": version, "question": question, "text": reply.text[:LONGEST_ANSWER], "usage": reply.usage}
    reading = read_verdict(reply.text)
    if reading is None:
        return SelfCritique(**fields, problem="the reply says neither Yes nor No")
    verdict, span = reading
    chosen = _chosen(reply, span)
    if chosen is None:
        return SelfCritique(**fields, verdict=verdict, probability=float(verdict), by="text")
    return SelfCritique(**fields, verdict=verdict, probability=chosen if verdict else 1 - chosen, by="tokens")


def read_verdict(reply: str) -> tuple[bool, tuple[int, int]] | None:
    """Read a reply's verdict and where its word stands: the first word behind any closed thought; None where that is
    neither of the two."""
    thought = _THOUGHT.match(reply)
    match = _VERDICT.match(reply, thought.end() if thought else 0)
    return (match[1].lower() == YES.lower(), match.span(1)) if match else None


def _chosen(reply: Generation, span: tuple[int, int]) -> float | None:
    """The probability of the tokens of the verdict's word; None where it is not known."""
    if len(reply.ends) != len(reply.logprobs) or any(math.isnan(value) for value in reply.logprobs):
        return None
    places = within([span], reply.ends)
    return math.exp(min(0.0, sum(reply.logprobs[token] for token in places))) if places else None
