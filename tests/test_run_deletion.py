"""Runs are hidden, tagged, archived and deleted: what others need is refused, and every seal verifies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent0.assembly.log.artifact_check import Named
from agent0.assembly.requests.run_deletion import _deletion
from agent0.events.values import Artifact
from tests.kept_open import attached
from tests.terminal import Said
from tests.terminal import agent0 as call

SMALL = (
    *("--profile", "scripted", "--iterations", "1", "--tasks", "4", "--attempts", "2"),
    *("-s", "run.evaluation.test=2", "-s", "run.evaluation.validation=2"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with two runs that trained, and a fork of the first."""
    with attached(tmp_path_factory.mktemp("deletion")) as folder:
        for name, seed in (("first", "1"), ("second", "2")):
            started = call("run", "start", *SMALL, "--name", name, "--seed", seed, home=folder)
            assert started.code == 0, started.err
        forked = call("run", "fork", "first", "--at", "+9", "--name", "fork", "--detach", home=folder)
        assert forked.code == 0, forked.err
        assert call("run", "cancel", "fork", "--yes", home=folder).code == 0
        yield folder


def names(home: Path, *more: str) -> list[str]:
    return sorted(row["name"] for row in call("run", "list", *more, "--json", home=home).json)


def whole(home: Path) -> None:
    """Every seal verifies, and no artifact that a kept run names is missing."""
    assert call("events", "verify", home=home).code == 0
    assert call("artifacts", "verify", "--json", home=home).json["missing"] == []


def deleted(home: Path, run: str) -> Said:
    return call("run", "delete", run, "--commit", "--reason", "done with it", "--json", home=home)


def test_labels_that_no_list_can_show_and_filters_that_no_run_can_have_are_refused(home: Path) -> None:
    for words, why in (
        (("run", "note", "LAST", "n" * 2001), "at most 2,000 characters"),
        (("run", "tag", "LAST", ""), "1 to 100 characters"),
        (("run", "tag", "LAST", "t" * 101), "1 to 100 characters"),
        (("run", "list", "--status", "finishd"), "Did you mean finished"),
        (("run", "list", "--profile", "scriptd"), "Did you mean scripted"),
    ):
        refused = call(*words, home=home)
        assert refused.code == 2 and why in refused.err, (words, refused.err)


def test_runs_are_hidden_tagged_and_deleted_and_the_log_says_so(home: Path, tmp_path: Path) -> None:
    assert call("run", "hide", "second", home=home).code == 0
    assert names(home) == ["first", "fork"] and "second" in names(home, "--all")
    assert call("run", "hide", "second", "--undo", home=home).code == 0 and "second" in names(home)
    assert call("run", "tag", "second", "old", "--json", home=home).json["tags"] == ["old"]
    noted = call("run", "note", "second", "Half <the> rate", "--json", home=home).json
    assert noted == {"run": noted["run"], "hidden": False, "tags": ["old"], "note": "Half <the> rate"}
    for filters in (("--tag", "old"), ("--text", "HALF <"), ("--text", "second", "--status", "finished")):
        assert names(home, *filters) == ["second"], filters
    assert names(home, "--tag", "ol") == names(home, "--profile", "tiny") == names(home, "--status", "paused") == []

    refused = deleted(home, "first")
    assert refused.code == 1 and "fork-" in refused.err and "began from it, or uses a checkpoint" in refused.err
    assert "first" in names(home)

    planned = call("run", "delete", "second", "--json", home=home).json
    assert planned["bytes"] > 0 and planned["users"] == [] and not planned["deleted"]
    pruned = call("run", "prune", "--tag", "old", "--commit", "--json", home=home).json
    assert [(row["bytes"], row["deleted"]) for row in pruned] == [(planned["bytes"], True)]
    assert names(home) == ["first", "fork"]
    [told] = call("events", "tail", "-t", "RunDeleted", "--json", home=home).lines
    assert told["run"].startswith("second")
    whole(home)
    again = call("run", "fork", "second", home=home)
    assert again.code == 1 and "is deleted" in again.err

    kept = call("run", "archive", "fork", "--out", str(tmp_path / "fork.tar"), "--json", home=home)
    assert kept.code == 0 and (tmp_path / "fork.tar").stat().st_size > 0, kept.err
    assert deleted(home, "first").json["bytes"] > 0, "nothing needs it any more"
    assert names(home) == []
    whole(home)
    none = call("run", "show", home=home)
    assert none.code == 1 and "agent0 run list --all" in none.err


def test_a_run_whose_checkpoint_another_uses_is_named_with_that_one_until_it_is_deleted() -> None:
    used = Artifact(sha256="a" * 64, size=7)
    owner = Named(named={used.sha256: used}, trained={used.sha256})
    for user, users in ((Named(used={used.sha256}), ("user",)), (Named(used={used.sha256}, deleted=True), ())):
        deletion = _deletion("owner", {"owner": owner, "user": user}, {used.sha256: used})
        assert (deletion.users, deletion.bytes) == (users, 7)


@pytest.mark.parametrize(
    ("words", "message"),
    [(("--older-than", "soon"), "is no amount"), (("--larger-than", "5 XB"), "is no amount")],
)
def test_an_amount_that_is_none_is_refused(home: Path, words: tuple[str, ...], message: str) -> None:
    refused = call("run", "prune", *words, home=home)
    assert refused.code == 2 and message in refused.err
