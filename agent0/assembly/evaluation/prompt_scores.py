"""Part of the rim: prompts of a student are scored on the same items, each in a benchmark run that everything its
scores depend on names, so that nothing is asked twice."""

import errno
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent0.assembly.evaluation.benchmark_item import in_mode
from agent0.assembly.evaluation.benchmark_run import Plan, Report, run_benchmarks, same_run, scored_items
from agent0.assembly.log.access import open_log
from agent0.assembly.routing.billing import check_routing, spent_usd
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError
from agent0.evaluation.benchmark_scores import NAMES
from agent0.events.benchmarks import BenchmarkScored, ItemScored, Mode
from agent0.events.values import Usage
from agent0.infra.storage.files import read_regular
from agent0.rollout.prompts import prompts, styles
from agent0.rollout.prompts.own_text import LONGEST, student_text
from agent0.rollout.student import student_prompt
from agent0.settings import Settings


@dataclass(frozen=True)
class PromptChoice:
    """A student's prompt under the name that a user gave it: ``style`` is a style's name, or the prompt's own text."""

    name: str
    style: str

    def settings(self, settings: Settings) -> Settings:
        """Return ``settings`` with this prompt for their student."""
        student = settings.run.student.model_copy(update={"prompts": self.style})
        return settings.model_copy(update={"run": settings.run.model_copy(update={"student": student})})


@dataclass(frozen=True)
class PromptScore:
    """What a prompt came to in the benchmark run ``run``. ``calls`` of the model, ``usd`` None: a price is not known;
    ``seconds`` by the clock, None where they were not measured."""

    prompt: PromptChoice
    run: str
    score: BenchmarkScored
    items: tuple[ItemScored, ...]
    calls: int
    usage: Usage
    seconds: float | None
    usd: float | None


def prompt_choice(name: str) -> PromptChoice:
    """Find the prompt that ``name`` stands for: a style, STYLE/DOMAIN/ROLE of ``prompt list``, or a file.

    Raises:
        ConfigError: there is none, or the file holds no prompt of a student.
    """
    if name in styles():
        return PromptChoice(name, name)
    if (data := _read(name)) is not None:
        return PromptChoice(name, student_text(_text(data, name), f"The prompt file {name}"))
    if text := {each.name: each.text for each in prompts()}.get(name):
        return PromptChoice(name, student_text(text, f"The prompt {name}"))
    what = f"There is no prompt style {name[:80]!r}, and no file of this name."
    raise ConfigError(what, f"Styles: {', '.join(styles())}.", nearest(name[:80], styles()))


def _read(name: str) -> bytes | None:
    """The content of the file ``name``, None where there is none. Raises ConfigError where it cannot be read."""
    try:
        return read_regular(Path(name), LONGEST + len(BOM_UTF8))
    except ValueError:  # a zero byte
        return None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return None
        why = f"{str(error.strerror)[:1].upper()}{str(error.strerror)[1:]}."
        raise ConfigError(f"The prompt file {name} cannot be read.", why, "Name another.") from error


def _text(data: bytes, name: str) -> str:
    """A prompt's text with the line ends of Unix. Raises ConfigError."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"The prompt file {name} is no UTF-8.", f"{error}.", "Save it as UTF-8.") from error
    if "\0" in text:
        raise ConfigError(f"The prompt file {name} is no text.", "It holds a zero byte.", "Save it as text.")
    return text.replace("\r\n", "\n")


def require_different(settings: Settings, choices: Sequence[PromptChoice], domain: str, mode: Mode) -> None:
    """Two prompts at least, and none that another repeats for tasks of ``domain`` in ``mode``.

    Raises:
        ConfigError: that is not so.
    """
    if len(choices) < 2:
        given = f"Given: {', '.join(choice.name for choice in choices) or 'none'}."
        raise ConfigError("Two prompts are needed to compare.", given, "agent0 prompt compare full mine.txt --on gsm8k")
    texts: dict[str, str] = {}
    for choice in choices:
        text = student_prompt(in_mode(choice.settings(settings).run.student, mode), domain).text
        if earlier := texts.get(text):
            why = f"For {domain} {NAMES[mode]} their texts are the same."
            raise ConfigError(f"{earlier} and {choice.name} are one prompt.", why, "Change one of them.")
        texts[text] = choice.name


async def score_prompts(
    settings: Settings,
    plan: Plan,
    choices: Sequence[PromptChoice],
    reports: Callable[[], Report],
    say: Callable[[str], object],
    command: str,
) -> list[PromptScore]:
    """Score the student of ``settings`` under each prompt on the one benchmark of ``plan`` in its one mode; what is
    scored already is not asked again. ``reports`` makes what hears of one prompt's progress, ``command`` goes on with
    it. Errors as for ``run_benchmarks``."""
    check_routing(settings)
    return [await _score(choice, choice.settings(settings), plan, reports(), say, command) for choice in choices]


async def _score(
    choice: PromptChoice, settings: Settings, plan: Plan, report: Report, say: Callable[[str], object], command: str
) -> PromptScore:
    run = same_run(settings, plan)
    say(f"Prompt {choice.name}:")
    await run_benchmarks(settings, plan, run, report, say=say, command=command)
    items, (score,) = await scored_items(settings, run)
    usage = Usage(
        prompt_tokens=sum(item.usage.prompt_tokens for item in items),
        completion_tokens=sum(item.usage.completion_tokens for item in items),
    )
    async with open_log(settings, make=True) as log:
        usd = await spent_usd(settings, log, run, settings.run.student, usage)
    pace = score.metrics.get("items_per_s")
    seconds = len(items) / pace if pace else None
    return PromptScore(choice, run, score, tuple(items), sum(item.turns for item in items), usage, seconds, usd)
