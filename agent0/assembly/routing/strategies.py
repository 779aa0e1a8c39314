"""Part of the rim: strategies as settings name them."""

from agent0.assembly.runtime.plugins import load_plugins
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError
from agent0.events.values import Turn
from agent0.infra.gateway.measure import Critique, Measure
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.rollout.confidence.self_critique import criticise
from agent0.rollout.confidence.signals import MEANING, OF_TURNS
from agent0.rollout.confidence.turn_signals import answer_key, answer_of, question_of, turn_signals
from agent0.rollout.parsing import parse_turn
from agent0.routing.budgets import in_nano
from agent0.routing.confidence import is_whole
from agent0.routing.strategies import Rules, StrategyEntry, strategies
from agent0.settings import ActorConfig, RoutingConfig, StudentConfig
from agent0.tasks.seeds import derive_seed
from agent0.verification.panel.substitution import solves


def entry_of(name: str) -> StrategyEntry:
    """The strategy of this name.

    Raises:
        ConfigError: there is none.
    """
    load_plugins()
    registered = strategies()
    if name not in registered:
        raise ConfigError(
            f"There is no strategy {name!r}.", f"Known: {', '.join(registered)}.", nearest(name, list(registered))
        )
    return registered[name]


def rules_of(routing: RoutingConfig) -> Rules:
    """The numbers that ``routing`` gives a strategy, amounts in nano-dollars."""
    allowance = None if routing.allowance_usd is None else in_nano(routing.allowance_usd)
    return Rules(routing.threshold, in_nano(routing.worth_usd), routing.share, allowance)


_PLACES = {
    "judge": ("run.verification.judge.routing", "run.verification.judge.fallback"),
    "teacher": ("run.teacher.routing", "run.teacher.fallback"),
    "student": ("run.student.distil_routing", "run.student.distil_from"),
}
"""Where settings have a role's strategy, and the models that it chooses from."""


def check_strategy(role: str, routing: RoutingConfig, stand_ins: int) -> None:
    """A strategy must exist, have models to choose from, and the numbers that it cannot do without.

    Raises:
        ConfigError: it does not.
    """
    if not routing.strategy:
        return
    where, models = _PLACES[role]
    reads = entry_of(routing.strategy).reads
    if not stand_ins:
        raise ConfigError(f"{where}.strategy has nothing to choose from.", "", f"Name models in {models}.")
    _check_calibrators(where, routing)
    if "worth" in reads and not (routing.worth_usd and routing.right):
        fix = f"Set {where}.worth_usd, and {where}.right for the models that stand in."
        raise ConfigError(f"{routing.strategy} does not know what a right answer is worth.", "", fix)
    if "allowance" in reads and routing.allowance_usd is None:
        raise ConfigError(f"{routing.strategy} has no allowance.", "", f"Set {where}.allowance_usd.")


def _check_calibrators(where: str, routing: RoutingConfig) -> None:
    if not routing.calibrators:
        return

    for model, plan in routing.calibrators.items():
        if not set(plan.signal.split("+")) <= set(NAMES) or not is_whole(plan):
            what = f"{where}.calibrators.{model} is no whole calibrator of a turn's features."
            raise ConfigError(what, f"They are {', '.join(NAMES)}.", "Take one whole: agent0 router calibrate")


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
