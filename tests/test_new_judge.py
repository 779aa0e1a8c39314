"""A run's answers put to another judge: by its vendor's batch API, at its price, and kept for whoever asks next."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.replay import reverify as reverifies
from agent0.assembly.replay.reverify import Reverify, reverify
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.events.base import Recorded
from agent0.events.budgets import BudgetChanged
from agent0.events.models import BatchEnded, BatchSubmitted, ModelCalled
from agent0.events.tasks import ResultVerified
from agent0.settings import Settings
from agent0.verification.panel.opinion import CHECK
from tests.batch_server import serving
from tests.pasts import events_of, judged, keep, tell
from tests.test_batches import COST, MODELS
from tests.test_reverify import Remembering

CLAUDE = MODELS["anthropic"]
PRICED = {f"router.prices.anthropic/{CLAUDE}.{name}": price for name, price in
          (("input", "3"), ("output", "15"), ("batch", "0.5"))}  # fmt: skip


def asked(settings: Settings, url: str, name: str, asks: Any, commit: bool = True) -> dict[str, Any]:
    changes = {"verification.judge.provider": f"anthropic/{CLAUDE}", "verification.judge.base_url": url}
    changes["verification.judge.max_tokens"] = "200"  # as many as the stand-in counts
    return asyncio.run(reverify(settings, Reverify("r1", name, changes, commit, asks)))


async def opened(names: Sequence[str], *_: object) -> dict[str, object]:
    """In the place of the real ports."""
    return {**dict.fromkeys(names), "verifier_sandbox": Remembering()}


def of(events: list[Recorded], kind: type[Any]) -> list[Any]:
    return [event.event for event in events if isinstance(event.event, kind)]


def test_another_judge_is_asked_by_batch_and_kept_for_whoever_asks_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    monkeypatch.setattr(reverifies, "open_ports", opened)
    keep(tmp_path, tell()[0], tell()[1])
    settings = load("scripted", {"home": str(tmp_path), "router.batch_s": "0.001", **PRICED}, {})
    with serving() as server:
        server.text = "verdict: wrong"
        with pytest.raises(ConfigError, match=r"never asked.*--ask batch"):
            asked(settings, server.url, "none", "")
        found = asked(settings, server.url, "doubt", "batch")
        again = asked(settings, server.url, "later", "calls")  # the server answers no call of its own
    told, later = events_of(settings, "exp-doubt"), events_of(settings, "exp-later")
    [submitted], [ended] = of(told, BatchSubmitted), of(told, BatchEnded)
    calls = of(told, ModelCalled)
    batched = [call for call in calls if call.batch]
    assert submitted.requests == ended.answered == len(batched) > 1 and ended.failed == 0
    assert ended.cost == len(batched) * COST["anthropic"] == sum(call.cost for call in calls)
    spent = [one.spent for one in of(told, BudgetChanged) if one.scope == "run"]
    assert spent[-1] == ended.cost
    assert all(one.cache == "hit" and one.cost == 0 for one in of(later, ModelCalled)) and of(later, ModelCalled)
    panel = [one for one in of(told, ResultVerified) if judged(one)]
    votes = [vote for one in panel for vote in one.votes if vote.check == CHECK]
    assert False in (said := {vote.correct for vote in votes}) and True not in said
    assert {key: found[key] for key in ("changed", "flips")} == {key: again[key] for key in ("changed", "flips")}
    assert found["changed"] > 0
