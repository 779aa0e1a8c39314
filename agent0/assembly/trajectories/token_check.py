"""Part of the rim: the tokens of a run's attempts, checked as they are stored."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.read_models import sound_log
from agent0.errors import Agent0Error
from agent0.events.tasks import TaskAttempted
from agent0.rollout.claim_check import redeem
from agent0.rollout.trajectories import token_fault
from agent0.settings import Settings


@dataclass
class TokenCheck:
    """What the check of a run's attempts came to: ``faults`` by attempt, ``without`` by why there are no tokens."""

    attempts: int = 0
    whole: int = 0
    tokens: int = 0
    written: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    without: Counter[str] = field(default_factory=Counter)

    def as_row(self) -> Mapping[str, object]:
        """The counts as JSON has them."""
        return vars(self) | {"without": dict(self.without)}


async def check_tokens(settings: Settings, run: str) -> TokenCheck:
    """Check every attempt of ``run``: see ``agent0.rollout.trajectories.token_fault``. An artifact that is gone or
    damaged is a fault of its attempt."""
    check, artifacts = TokenCheck(), artifact_store(settings)
    async with sound_log(settings) as log:
        async for stored in log.read(run, ["TaskAttempted"]):
            event = stored.event
            assert isinstance(event, TaskAttempted)  # noqa: S101 - only these are read
            check.attempts += 1
            try:
                trajectory = redeem(event.trajectory, event.trajectory_artifact, artifacts)
            except (Agent0Error, ValueError) as error:
                check.faults[event.attempt] = f"{error}"[:200]
                continue
            if trajectory is None:
                check.without[event.trajectory_problem or "none was recorded"] += 1
                continue
            check.tokens += len(trajectory.token_ids)
            check.written += sum(trajectory.mask)
            counted = 0 if event.compacted else event.usage.completion_tokens
            if fault := token_fault(trajectory, event.turns, counted):
                check.faults[event.attempt] = fault
            else:
                check.whole += 1
    return check
