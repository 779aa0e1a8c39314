"""Tasks whose answers nothing can compute: verdicts of a panel settle them, whatever is given up."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent0.events import runs, tasks
from agent0.events.base import Event, Recorded
from agent0.handlers import Handler, handlers
from agent0.run.lifecycle import RunState
from tests.test_run import FEW, TO_THE_END, brief, failing, played, sound


def uncomputable() -> dict[str, Handler]:
    """All handlers, with proposals that only the panel can judge."""
    known = handlers()
    real = known["propose_task"]

    class Free(Handler):
        async def __call__(self, cause: Recorded, run: RunState, ports: Mapping[str, Any]) -> list[Event]:
            (told,) = await real(cause, run, ports)
            assert isinstance(told, tasks.TaskProposed)
            free = told.proposal and told.proposal.model_copy(update={"family": "open"})
            return [told.model_copy(update={"proposal": free})]

    return known | {"propose_task": Free(**real.__dict__)}


@FEW
@given(
    attempts=st.lists(st.integers(0, 20), max_size=6),
    verdicts=st.lists(st.integers(0, 25), max_size=4),
    seed=st.integers(),
)
def test_collective_verdicts_survive_what_is_given_up(attempts: list[int], verdicts: list[int], seed: int) -> None:
    chosen = uncomputable()
    if attempts:
        chosen["attempt_task"] = failing("attempt_task", attempts)["attempt_task"]
    if verdicts:
        chosen["verify_result"] = failing("verify_result", verdicts)["verify_result"]
    told = played(brief(**TO_THE_END), chosen, seed)
    assert isinstance(told[-1].event, runs.RunFinished)
    sound(told)
    judges = {r.event.verifier for r in told if r.type == "ResultVerified"}  # type: ignore[attr-defined]
    assert judges <= {"panel"}


def test_collective_verdicts_that_always_fail_settle_their_task() -> None:
    told = played(brief(**TO_THE_END), uncomputable() | {"verify_result": failing("verify_result")["verify_result"]})
    assert isinstance(told[-1].event, runs.RunFinished)
    assert not any(r.type == "ResultVerified" for r in told)
