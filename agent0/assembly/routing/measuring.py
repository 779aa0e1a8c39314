"""Part of the rim: what a role's strategy measures of an answer before it decides."""

from agent0.events.values import Turn
from agent0.infra.gateway.measure import Critique, Measure
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.rollout.confidence.self_critique import criticise
from agent0.rollout.confidence.signals import MEANING, OF_TURNS
from agent0.rollout.confidence.turn_signals import answer_key, answer_of, question_of, turn_signals
from agent0.rollout.parsing import parse_turn
from agent0.settings import ActorConfig, RoutingConfig, StudentConfig
from agent0.tasks.seeds import derive_seed
from agent0.verification.panel.substitution import solves

NAMES = tuple(name for name in (*MEANING, *OF_TURNS) if name != "checked")
"""Everything that a calibrator of turns may read. Further samples call no tools, so none is ``checked``."""


def measure_of(routing: RoutingConfig, actor: ActorConfig) -> Measure:
    """What ``routing`` measures of the answers of ``actor``'s models."""
    critique = _critique(actor) if routing.self_critique else None
    return Measure(_features, answer_key, routing.samples, critique, lambda text: bool(parse_turn(text).calls))


def _features(request: GenerateRequest, written: Generation) -> dict[str, float]:
    """Signals of the turn, and of the verifier that needs no right answer."""
    features, answer = turn_signals(request, written), answer_of(written.text)
    solved = None if answer is None else solves(question_of(request.turns), answer)
    return features | ({} if solved is None else {"verified": float(solved)})


def _critique(actor: ActorConfig) -> Critique:
    config = StudentConfig(prompts=actor.prompts, max_tokens=actor.max_tokens)

    async def ask(model: Model, request: GenerateRequest, written: Generation) -> float | None:
        answer = answer_of(written.text)
        if answer is None:
            return None
        turns = (*request.turns, Turn(role="assistant", content=written.text, token_ids=written.token_ids))
        seed = derive_seed(request.sampling.seed, "critique")
        about = {"group": request.group, "task": request.task, "attempt": request.attempt}
        critique = await criticise(model, config, turns, answer, seed=seed, adapter=request.adapter, **about)
        return critique.probability

    return ask
