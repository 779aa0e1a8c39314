"""Part of the rim: whether what a run's settings ask for is there and fits together, before anything is asked."""

import json
import random
from collections.abc import Sequence

from agent0.assembly.runtime.providers import provider_of
from agent0.config.setting_entries import require_known
from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows.question_file import heldout_share
from agent0.events.values import Split
from agent0.run.canaries import TASKS, canaries
from agent0.settings import ActorConfig, CurriculumConfig, RunConfig
from agent0.settings.roles import is_packaged
from agent0.tasks.answer_length import context_needed, tokens_needed
from agent0.tasks.families import KINDS, OPEN_FAMILY, families, gym, requested_families
from agent0.tasks.splits import heldout

FIX = "Lower run.evaluation sizes, or let the family draw from more values."


def check_curriculum(run: RunConfig) -> None:
    """There must be something to ask for, and enough of it to hold out.

    Raises:
        ConfigError: there is not.
    """
    plan = run.curriculum
    if plan.band[0] >= plan.band[1]:
        raise ConfigError(f"run.curriculum.band = {list(plan.band)} is empty.", "The first must be lower.")
    _check_documents(run)
    if not run.has_teacher:
        return
    if plan.kind == "rising" and run.time_limit:
        why = "Levels rise with the number of iterations, and a run with a time limit has no such number."
        fix = "Set run.iterations instead of run.time_limit."
        raise ConfigError("run.curriculum.kind = rising does not fit run.time_limit.", why, fix)
    _check_packages(plan)
    require_known("run.curriculum.domains", plan.domains, {entry.domain for entry in families(long=None).values()})
    require_known("run.curriculum.families", plan.families, (*KINDS, OPEN_FAMILY, *families(long=None)))
    if not plan.domains:
        raise ConfigError("run.curriculum.domains is empty.", "There would be nothing to ask for.", "Name a domain.")
    _check_families(run)
    for domain in plan.domains:
        _check_domain(domain, plan)
        _check_ladders(domain, run)
    _check_sets(run)
    if plan.kind == "teacher" and provider_of(run.teacher).draws:
        why = f"Provider {run.teacher.provider} writes the level that it is told."
        raise ConfigError("run.curriculum.kind = teacher does not fit.", why, "Choose another provider, or kind.")


def _check_documents(run: RunConfig) -> None:
    """Somebody must write about them who reads."""
    if not run.documents.folder:
        return
    if not run.has_teacher:
        why = "All tasks are rows of a file of questions, and no teacher writes any."
        raise ConfigError("run.documents.folder has no effect.", why, "Set run.questions.share = 0.5.")
    if run.teacher.provider != "scripted" and is_packaged(run.teacher.provider, run.teacher.model):
        why = "The built-in teacher knows our families only: it reads no passages."
        raise ConfigError("run.documents.folder does not fit this teacher.", why, "Choose a language model: --model.")


def _check_packages(plan: CurriculumConfig) -> None:
    named = [name for name in (*plan.domains, *plan.families) if name == gym.DOMAIN or name.startswith(gym.PREFIX)]
    if named and not gym.present():
        what = f"run.curriculum asks for {named[0][:80]}, which needs the package reasoning-gym."
        raise ConfigError(what, "It is not installed.", "make setup EXTRAS=gym (it needs a C compiler)")


def _check_families(run: RunConfig) -> None:
    """What is named must be of a domain that is asked for, and some of it as held-out tasks are."""
    plan, there, long = run.curriculum, families(long=None), run.evaluation.long
    for name in plan.families:
        if name in there and (domain := there[name].domain) not in plan.domains:
            fix = f"Add {domain} to run.curriculum.domains."
            raise ConfigError(f"run.curriculum.families = {name} is never asked for.", f"It is of {domain}.", fix)
    if plan.families and not any(requested_families(domain, plan.families, long) for domain in plan.domains):
        adjectives = ("have no steps", "long") if long else ("have steps", "short")
        why = f"All of them {adjectives[0]} or are free questions; held-out tasks are {adjectives[1]} and of a family."
        fix = f"Name a {adjectives[1]} one, or set run.evaluation.long = {str(not long).lower()}."
        raise ConfigError(f"run.curriculum.families = {list(plan.families)} does not fit.", why, fix)
    if plan.families and not (plan.long or any(requested_families(domain, plan.families) for domain in plan.domains)):
        why = "All of them have steps or are free questions, and run.curriculum.long is 0."
        raise ConfigError(f"run.curriculum.families = {list(plan.families)} does not fit.", why, "Name a short one.")


def _check_domain(domain: str, plan: CurriculumConfig) -> None:
    """Levels, and long tasks where they are wanted; nothing is asked of a domain of which no family is named."""
    chosen = requested_families(domain, plan.families)
    if plan.families and not chosen:
        return
    if plan.long and not requested_families(domain, plan.families, long=True):
        why = f"No family of {domain} {'that is named ' if plan.families else ''}has steps."
        raise ConfigError(f"run.curriculum.long = {plan.long} does not fit.", why, "Set it to 0.")
    highest = max(family.levels for family in chosen.values())
    if not plan.levels or not all(1 <= level <= highest for level in plan.levels):
        why = f"Levels of {domain} are 1 to {highest}."
        raise ConfigError(f"run.curriculum.levels = {list(plan.levels)} does not fit.", why)


def _check_ladders(domain: str, run: RunConfig) -> None:
    """The highest level's answer must fit into a turn (digits are counted as a token each) and, with its question, into
    the context; and the verifier must know right answers from wrong ones."""
    levels, context = (*run.curriculum.levels, *run.evaluation.levels), _context(run.student)
    for entry in requested_families(domain, run.curriculum.families).values():
        if not entry.ladder:
            continue
        params = entry.sample(max(levels), random.Random(0))
        if (needed := tokens_needed(entry, params)) > run.student.max_tokens:
            length = len(entry.solve(params))
            why = f"Its answer has {length} characters, and run.student.max_tokens is {run.student.max_tokens}."
            fix = f"Set run.student.max_tokens = {needed}, or ask for lower levels."
            raise ConfigError(f"Level {max(levels)} of {entry.name} cannot be answered.", why, fix)
        if context and (both := context_needed(entry, params)) > context:
            why = f"Its question and answer take about {both} tokens, and the student's context holds {context}."
            raise ConfigError(
                f"Level {max(levels)} of {entry.name} is beyond the context.", why, "Ask for lower levels."
            )
        drawn = list(canaries([entry], max(levels), TASKS, "before a run"))
        if faults := sum(canary.fault for canary in drawn):
            why = f"It is wrong about {faults} of {len(drawn)} known answers, or says otherwise when asked again."
            fix = (
                f"Mend the check of {entry.name}: it must accept what its solve writes, and nothing else of its length."
            )
            raise ConfigError(f"The verifier of {entry.name} cannot be relied on.", why, fix)


def _context(actor: ActorConfig) -> int:
    """How many tokens the actor's model reads and writes together; 0 where nothing here says so."""
    provider = provider_of(actor)
    config = provider.folder(actor) / "config.json" if provider.folder else None
    stated = json.loads(config.read_bytes()).get("max_position_embeddings") if config and config.is_file() else None
    return min(filter(None, (stated, actor.num_ctx if provider.sized else None)), default=0)


def _check_sets(run: RunConfig) -> None:
    plan, scored = run.curriculum, run.evaluation
    sizes: tuple[tuple[Split, int], ...] = (("validation", scored.validation), ("test", scored.test))
    check_levels("run.evaluation.levels", scored.levels, run)
    try:
        for split, n in sizes:
            heldout(
                split,
                n - heldout_share(run, n),
                scored.seed,
                plan.domains,
                names=plan.families,
                long=scored.long,
                levels=scored.levels,
            )
    except ValueError as error:
        raise ConfigError("The held-out sets cannot be drawn.", f"{error}.", FIX) from error


def check_levels(key: str, levels: Sequence[int], run: RunConfig) -> None:
    """Raise ConfigError where held-out tasks of ``levels`` are requested that a domain's chosen families lack;
    ``key`` is the setting that requests them."""
    plan, long = run.curriculum, run.evaluation.long
    if not levels:
        return
    highest = {
        domain: max(f.levels for f in entries.values())
        for domain in plan.domains
        if (entries := requested_families(domain, plan.families, long))
    }
    for domain, most in highest.items():
        if min(levels) < 1 or min(levels) > most or max(levels) > max(highest.values()):
            raise ConfigError(f"{key} = {list(levels)} does not fit.", f"Levels of {domain} are 1 to {most}.")
