"""One file of a run has all of it: every attempt that fits, its cost, a search that runs from disk and asks nobody."""

import re
import shutil
import subprocess
from base64 import b64encode
from contextlib import closing
from hashlib import sha256
from html import escape
from pathlib import Path
from urllib.parse import quote

import pytest

from agent0.events.base import Recorded
from agent0.events.tasks import TaskAttempted
from agent0.events.values import Turn
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.report.html import whole_run as whole
from agent0.report.html.run_page import page
from agent0.rollout.claim_check import claim_turns
from tests.story import whole_run
from tests.test_report import NASTY, NOWHERE, Reader, poisoned, told

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
LONG = tuple(Turn(role="assistant", content=f"step {n} {'x' * 3000}") for n in range(40))


@pytest.fixture(scope="module")
def story() -> list[Recorded]:
    return whole_run(iterations=2, tasks=3, attempts=3)


@pytest.fixture(scope="module")
def hostile(story: list[Recorded]) -> str:
    return made([*map(poisoned, story)])


def made(story: list[Recorded], artifacts: FileArtifacts = NOWHERE) -> str:
    with closing(told(story)) as db:
        return page(db, artifacts, "r1")


def attempts_of(story: list[Recorded]) -> list[TaskAttempted]:
    return [recorded.event for recorded in story if isinstance(recorded.event, TaskAttempted)]


def shown(text: str) -> dict[str, str]:
    """What the section of all attempts says of each."""
    section = text.partition(">All attempts</h2>")[2].partition("<h2")[0]
    return dict(
        re.findall(r'<div class="attempt" data-name="([^"]+)">(.*?)</div>\n(?=<div|</div>)', section, re.DOTALL)
    )


def test_every_attempt_is_there_with_what_was_said(story: list[Recorded]) -> None:
    text = made(story)
    parts = shown(text)
    assert {*parts} == {attempt.attempt for attempt in attempts_of(story)}
    for attempt in attempts_of(story):
        place = parts[attempt.attempt]
        own = [turn for turn in attempt.transcript if turn.role in ("assistant", "tool")]
        if f'href="#{attempt.attempt}"' in place:
            place = text.partition(f'<div id="{attempt.attempt}">')[2].partition("</details>")[0]
        assert own and all(
            escape(turn.content, quote=False) in place.replace("&#39;", "'").replace("&#34;", '"') for turn in own
        )


@pytest.mark.parametrize("most", [0, 5_000])
def test_what_does_not_fit_is_told_and_each_iteration_has_its_share(
    story: list[Recorded], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "MOST", most)
    text = made(story)
    parts, all_of_them = shown(text), len(attempts_of(story))
    assert len(parts) < all_of_them and sum(map(len, parts.values())) <= most
    if parts:
        assert f"{len(parts)} of {all_of_them} attempts, of each iteration the first ones" in " ".join(text.split())
        counts = [sum(name.startswith(f"t{n}-") for name in parts) for n in range(2)]
        assert max(counts) - min(counts) <= 1
    assert (len(parts) > 0) == (most > 0)


def test_a_long_transcript_is_read_from_its_artifact_or_told_to_be_elsewhere(
    tmp_path: Path, story: list[Recorded]
) -> None:
    store, last = FileArtifacts(tmp_path), attempts_of(story)[-2]
    _, artifact = claim_turns(LONG, store)
    changes = {"transcript": (), "transcript_artifact": artifact, "turns": len(LONG)}
    long = [
        recorded.model_copy(update={"event": recorded.event.model_copy(update=changes)})
        if recorded.event is last
        else recorded
        for recorded in story
    ]
    assert artifact and "step 39 xxx" in shown(made(long, store))[last.attempt]
    assert "an artifact that is not here" in shown(made(long))[last.attempt]


def test_only_its_own_script_may_run(hostile: str) -> None:
    """By its digest, whatever the texts hold; nothing may be loaded, embedded or sent."""
    assert Reader(hostile).tags.count("script") == 1
    script = hostile.partition("<script>")[2].partition("</script>")[0]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', hostile)
    assert policy and f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy[1]
    assert policy[1].startswith("default-src 'none';") and "unsafe-inline' '" not in policy[1]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|fetch|https?:", script)


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_it_searches_from_disk(tmp_path: Path, hostile: str) -> None:
    """In a browser, from file://: the words in the address are looked for, hits are text, and no text runs."""
    file = tmp_path / "run.html"
    file.write_text(hostile, encoding="utf-8")
    address = f"{file.as_uri()}#q={quote(NASTY[20:50])}"
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
        address,
    ]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    count = re.search(r"data-count[^>]*>(\d+) places", dom)
    hits = re.search(r"<ol>(.*?)</ol>", dom, re.DOTALL)
    assert count and int(count[1]) > 3 and hits and "<mark>" in hits[1]
    assert "<img" not in dom and "alert(" in hits[1]
