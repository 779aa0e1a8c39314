"""``agent0 solve`` under a budget that ends in the middle, and with several models behind a strategy."""

from pathlib import Path

import pytest

from tests.anthropic_server import serving
from tests.solved import BROKEN, REPAIR, SOUND, content, laid, played
from tests.terminal import agent0

CHECK = ("--check", "python -c 'from sums import total; assert total([1, 2]) == 3'")
MODEL = "claude-sonnet-4-5"
PRICES = (f"router.prices.anthropic/{MODEL}.input=0", f"router.prices.anthropic/{MODEL}.output=10")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return laid(tmp_path / "repo", BROKEN)


def test_work_stops_where_its_budget_ends_and_goes_on_where_the_cap_is_raised(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    home = tmp_path / "home"
    with serving() as server:
        # A turn reserves 300 tokens, and is charged 200 of them: the second does not fit under 400.
        settings = (
            *PRICES,
            "run.student.max_tokens=300",
            "handlers.ack_wait_s=1",
            f"run.student.base_url={server.url}",
        )
        options = [part for pair in settings for part in ("--set", pair)]
        model = ("--profile", "scripted", "--provider", "anthropic", "--model", MODEL, "--budget", "0.004")
        command = ["solve", "fix", str(repository), *CHECK, *model, *options]
        server.blocks = [REPAIR[0]]
        for _ in range(2):
            stopped = agent0(*command, home=home)
            assert stopped.code == 5 and "is used up" in stopped.err and "Traceback" not in stopped.err, stopped
            assert len(server.asked) == 1, "nothing is sent that may cost more than is left"
        [row] = agent0("solve", "list", "--json", home=home).json
        assert row["status"] == "submitted" and f"agent0 router budget set run {row['id']}" in stopped.err
        assert agent0("router", "budget", "set", "run", row["id"], "--cap", "1", home=home).code == 0
        server.blocks = [REPAIR[1]]
        resume = ["solve", "resume", row["id"], "--profile", "scripted", *options]
        for _ in range(2):
            done = agent0(*resume, home=home)
            assert done.code == 0 and "only what is needed" in done.out, done
        assert len(server.asked) == 2 and content(repository) == BROKEN


def test_a_strategy_chooses_who_takes_a_turn(repository: Path, tmp_path: Path) -> None:
    home, model = tmp_path / "home", played(tmp_path, *REPAIR)
    (tmp_path / "unsure.json").write_text('["It may be the bound."]')
    first = [*model[:4], "--set", f"run.student.model={tmp_path / 'unsure.json'}", *model[6:]]
    command = ["solve", "fix", str(repository), *CHECK, *first, "--model", "router/student", "--accept"]
    refused = agent0(*command, "--strategy", "threshold", home=home)
    assert refused.code == 2 and "has nothing to choose from" in refused.err
    done = agent0(*command, "--strategy", "threshold", "--with", f"played/{tmp_path / 'turns.json'}", home=home)
    assert done.code == 0 and content(repository) == SOUND, done
    assert (tmp_path / "unsure.asked").exists() and (tmp_path / "turns.asked").exists()
