"""The process that rebuilds tables reaches the log that its server has, and learns no other secret."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from agent0.api.context import environment_for
from agent0.config.loading import load
from agent0.settings import NatsSettings, Settings


@pytest.mark.parametrize(
    "nats",
    [NatsSettings(), NatsSettings(url="nats://10.0.0.7:4222", user="a", password=SecretStr("sk-canary"), replicas=3)],
)
def test_it_gets_the_home_and_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nats: NatsSettings) -> None:
    monkeypatch.setenv("AGENT0_TELEMETRY__WEBHOOK_SECRET", "other-canary")
    monkeypatch.setenv("AGENT0_HANDLERS__COMMIT_MS", "7")
    given = environment_for(Settings(home=tmp_path, nats=nats))
    found = load(None, {}, given)
    assert (found.home, found.nats) == (tmp_path, nats)
    assert found.handlers.commit_ms == 7, "a setting of the environment"
    assert "other-canary" not in given.values()
