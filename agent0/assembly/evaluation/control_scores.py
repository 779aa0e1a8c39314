"""Part of the rim: controls of a student on a folder of tasks, from benchmark runs that everything their scores depend
on names, so that nothing is asked twice."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from agent0.assembly.evaluation.benchmark_run import Plan, Report, read_plan, run_benchmarks, same_run, scored_items
from agent0.assembly.evaluation.prompt_scores import PromptChoice
from agent0.errors import ConfigError
from agent0.evaluation.benchmark_scores import Control, controls_of, prompted
from agent0.evaluation.benchmarks import Benchmark
from agent0.events.benchmarks import ItemScored
from agent0.events.values import Task
from agent0.rollout.student import start_folder, student_prompt
from agent0.settings import Settings


async def score_controls(
    settings: Settings,
    plan: Plan,
    prompts: Sequence[PromptChoice],
    reports: Callable[[], Report],
    say: Callable[[str], object],
    command: str,
) -> list[Control]:
    """Score the student of ``settings`` on the one folder of ``plan``: greedily, by majority and by visible tests of
    ``plan.samples`` samples, by as many rounds of refinement, and greedily under each of ``prompts``; greedy comes
    first. ``command`` goes on with it.

    Raises:
        ConfigError: the folder asks for no work folders, the student draws no different samples, or a prompt is the
            student's own. Otherwise as for ``run_benchmarks``.
    """
    _check(settings, plan, prompts)

    async def scored(what: str, settings: Settings, plan: Plan) -> list[ItemScored]:
        run = same_run(settings, plan)
        say(f"{what}:")
        await run_benchmarks(settings, plan, run, reports(), say=say, command=command)
        return (await scored_items(settings, run))[0]

    refined = await scored("Greedy, then refined", settings, replace(plan, control="refined"))
    sampled = await scored("Sampled", settings, replace(plan, control="visible"))
    others = [
        prompted(
            choice.name, await scored(f"Prompt {choice.name}", choice.settings(settings), replace(plan, samples=1))
        )
        for choice in prompts
    ]
    return [*controls_of(sampled, refined, plan.samples), *others]


def _check(settings: Settings, plan: Plan, prompts: Sequence[PromptChoice]) -> None:
    student = settings.run.student
    ((entry, items),) = read_plan(plan)[0].values()
    tasks = [Task.model_validate_json(item.data) for item in items] if entry.in_folders else []
    if not tasks or not all(map(start_folder, tasks)):
        why = "Best of several is chosen by tests in work folders, and it has none."
        raise ConfigError(f"{plan.benchmarks[0]} has no tasks for controls.", why, "See: agent0 task generate --help")
    if not student.temperature and student.provider != "scripted":
        why = "At temperature 0 all samples are alike."
        raise ConfigError("run.student.temperature is 0.", why, "--set run.student.temperature=0.7")
    texts = {_text(settings, entry, tasks): "the student's own"}
    for choice in prompts:
        text = _text(choice.settings(settings), entry, tasks)
        if text in texts:
            why = f"For these tasks it has the text of {texts[text]}."
            raise ConfigError(f"The prompt {choice.name} is no other one.", why, "Name a file with another text.")
        texts[text] = choice.name


def _text(settings: Settings, entry: Benchmark, tasks: Sequence[Task]) -> str:
    """All that a student reads of ``tasks`` beside their statements."""
    domains = dict.fromkeys(task.domain for task in tasks) or [entry.domain]
    return "\n".join(student_prompt(settings.run.student, domain, long=True).text for domain in domains)
