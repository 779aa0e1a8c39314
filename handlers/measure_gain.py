"""Measures what training on parts of an iteration's accepted answers does for the student."""

from collections.abc import Mapping

from agent0.evaluation.gains import draw_probe, measure_subset
from agent0.evaluation.item_rollout import RolloutPorts
from agent0.events.base import Event
from agent0.events.tasks import GainRequested, ProbeSelected, SubsetMeasured
from agent0.handlers import on
from agent0.ports.environments import Environments
from agent0.ports.models import Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts, History, QuestionFile
from agent0.ports.training import Trainers
from agent0.ports.web import Web
from agent0.run.lifecycle import RunState
from agent0.tools.cache import ToolCache
from agent0.tools.definition import Tool
from agent0.training.pipeline import make_room


@on(GainRequested, ProbeSelected, SubsetMeasured, in_flight=1, long=True)
async def measure_gain(
    event: GainRequested | ProbeSelected | SubsetMeasured,
    run: RunState,
    history: History,
    models: Models,
    trainers: Trainers,
    sandbox: Sandbox,
    verifier_sandbox: Sandbox,
    tool_cache: ToolCache,
    artifacts: Artifacts,
    web: Web,
    tools: Mapping[str, Tool],
    question_file: QuestionFile,
    environments: Environments,
) -> list[Event]:
    """Draw the probe of a measurement that was requested, then measure one subset after the other: which is next is a
    matter of the state as of the event, so that a result that is in the log is not measured again."""
    gain = run.gain
    if gain is None or gain.complete or event.measurement != gain.request.measurement:
        return []  # given up, or done
    ports = RolloutPorts(models, sandbox, verifier_sandbox, tool_cache, web, tools, question_file, environments)
    if gain.probe is None:
        return [await draw_probe(gain.request, run, history, artifacts, ports)]
    await make_room(run.config, models)
    return [await measure_subset(gain, run, trainers, history, artifacts, ports)]
