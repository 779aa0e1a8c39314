"""What is known of an OpenAI-compatible server's role before a run begins."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.runtime.providers import check_models
from agent0.assembly.validate.run_config import check_names
from agent0.errors import ConfigError, DependencyError
from agent0.settings import EvaluationConfig, RunConfig, StudentConfig
from tests.openai_server import actor


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"temperature": 0.7}, "temperature 1 and top_p 1"),
        ({"top_p": 0.9}, "temperature 1 and top_p 1"),
        ({"tokenizer": ""}, "no token ids"),
        ({"tokenizer": str(Path(__file__).parent)}, "no weights"),
    ],
)
def test_a_run_that_would_train_on_less_does_not_begin(changes: dict[str, Any], why: str) -> None:
    plan = RunConfig(evaluation=EvaluationConfig(forced_tool=False))
    check_names(plan.model_copy(update={"student": actor("http://host")}))
    with pytest.raises(ConfigError, match=why):
        check_names(plan.model_copy(update={"student": actor("http://host", **changes)}))


def test_settings_hold_no_secret_and_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://me:hunter2@host:80/v1", "http://host/v1?key=hunter2", "host:80"):
        with pytest.raises(ValueError, match="base_url"):
            StudentConfig(base_url=url)
    with pytest.raises(ConfigError, match="address of a server"):
        check_models(RunConfig(student=StudentConfig(provider="openai")))
    monkeypatch.setattr("agent0.assembly.routing.server_probes.find_spec", lambda name: None)
    with pytest.raises(DependencyError, match="EXTRAS=openai"):
        check_models(RunConfig(student=actor("http://127.0.0.1:9")))


def test_the_client_is_loaded_only_where_it_is_used() -> None:
    code = (
        "import sys, agent0.cli, agent0.assembly.runtime.providers as p; p.providers(); print('openai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
