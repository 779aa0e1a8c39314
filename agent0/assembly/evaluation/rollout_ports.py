"""Part of the rim: the ports that attempting and verifying a task takes, opened together."""

from contextlib import AsyncExitStack
from dataclasses import fields

from agent0.assembly.runtime.port_openers import open_ports
from agent0.evaluation.item_rollout import RolloutPorts
from agent0.infra.log.event_log import Log
from agent0.ports.storage import Artifacts
from agent0.settings import Settings


async def open_rollout_ports(
    settings: Settings, artifacts: Artifacts, stack: AsyncExitStack, log: Log | None = None
) -> RolloutPorts:
    """What plays the ports of ``RolloutPorts``; as ``open_ports``."""
    names = [port.name for port in fields(RolloutPorts)]
    return RolloutPorts(**await open_ports(names, settings, artifacts, stack, log))
