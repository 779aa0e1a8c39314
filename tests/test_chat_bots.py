"""The core that the bots of Slack and Discord share: what is told, to whom nothing may happen, nothing twice whatever
fails. The bots themselves, with the clients of both: `check.sh` in ``integrations/slack`` and ``discord``."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.errors import Agent0Error, ConfigError
from agent0.events.base import Recorded
from agent0.infra.web.agent0_server import ServerLink
from agent0.projections.wording import describe
from integrations.chat.answers import CommandAnswers
from integrations.chat.bot import EventPoster, StateFile, UnsureError, redacted, templates
from integrations.chat.core import REVIEWS, BotState, ChatMessage, Command, command_of, event_of, harmless, message_of
from tests.api.test_up import standing
from tests.client_cases import TABLE
from tests.story import whole_run
from tests.story_hostile import HOSTILE, hostile_words
from tests.test_connect import answering
from tests.test_reviewing import waiting_run


def row_of(recorded: Recorded) -> dict[str, Any]:
    """As the API sends it."""
    return {"seq": recorded.seq, "text": describe(recorded), **json.loads(recorded.to_json())}


ROWS = [row_of(recorded) for recorded in whole_run(iterations=2)]


class StoryLink:
    """Plays a server that has ``ROWS``."""

    async def get(self, path: str, params: Any = None) -> dict[str, Any]:
        return {"tables": 0}

    async def stream(self, params: dict[str, str], after: int) -> AsyncIterator[dict[str, Any]]:
        for row in ROWS:
            if row["seq"] > after and row["type"] in params["type"].split(","):
                yield row
        raise asyncio.CancelledError


class Died(BaseException):
    """The process ended."""


class FailingChat:
    """Keeps messages by thread. The ``fault``-th call that posts fails: before or after it was taken, and the process
    ends or goes on."""

    def __init__(self, fault: int = -1, *, taken: bool = False, dies: bool = False) -> None:
        self.fault, self.taken, self.dies, self.calls = fault, taken, dies, 0
        self.messages: list[tuple[str, str]] = []

    async def open(self, message: ChatMessage) -> str:
        await self._take("", message)
        return f"thread {message.run}"

    async def post(self, thread: str, message: ChatMessage) -> None:
        await self._take(thread, message)

    async def newest(self, thread: str) -> Sequence[tuple[str, str]]:
        return [(f"thread {text.splitlines()[0]}", text) for place, text in self.messages if place == thread]

    async def _take(self, thread: str, message: ChatMessage) -> None:
        self.calls += 1
        fails = self.calls == self.fault
        if not fails or self.taken:
            self.messages.append((thread, message.whole))
        if fails:
            raise Died if self.dies else UnsureError("cut")


class LockedThreads(FailingChat):
    """Refuses the first thread of a run from its second message on."""

    async def open(self, message: ChatMessage) -> str:
        await self._take("", message)
        return f"thread {self.calls}"

    async def post(self, thread: str, message: ChatMessage) -> None:
        if thread == "thread 1" and len(self.messages) > 2:
            raise ConfigError("The chat refuses: 404.")
        await self._take(thread, message)


async def follow(chat: FailingChat, file: Path) -> None:
    """Follow to the end of the story, in as many processes as that takes."""
    while True:
        try:
            await EventPoster(StoryLink(), chat, StateFile(file), wait_s=0).follow()  # type: ignore[arg-type]
        except Died:
            continue
        except asyncio.CancelledError:
            return


async def test_every_event_is_told_once_whatever_fails(tmp_path: Path) -> None:
    whole = FailingChat()
    await follow(whole, tmp_path / "whole.json")
    told = [event_of(text) for thread, text in whole.messages if thread]
    assert told == sorted(set(told)) and [thread for thread, _ in whole.messages].count("") == 1
    kinds = Counter(row["type"] for row in ROWS if row["seq"] in told)
    assert {"RunStarted", "CheckpointEvaluated", "CheckpointPromoted", "RunFinished"} <= set(kinds)
    for fault in (1, 2, 5, len(whole.messages)):
        for taken in (False, True):
            for dies in (False, True):
                chat = FailingChat(fault, taken=taken, dies=dies)
                await follow(chat, tmp_path / f"{fault}{taken}{dies}.json")
                assert chat.messages == whole.messages, (fault, taken, dies)
    await follow(whole, tmp_path / "whole.json")
    assert whole.calls == len(whole.messages), "a bot that is started again has nothing to tell"


async def test_a_run_whose_thread_was_deleted_gets_another(tmp_path: Path) -> None:
    whole, chat = FailingChat(), LockedThreads()
    await follow(whole, tmp_path / "whole.json")
    await follow(chat, tmp_path / "locked.json")
    texts = [[text for thread, text in each.messages if thread] for each in (whole, chat)]
    assert texts[0] == texts[1] and [thread for thread, _ in chat.messages].count("") == 2


def test_text_of_models_mentions_nobody_and_leads_nowhere() -> None:
    state = BotState(0)
    texts = [message_of(row_of(hostile_words(recorded)), state) for recorded in whole_run(iterations=1)]
    hostile = "@everyone <!channel> <@U1> [here](http://evil.example) http://evil.example \x1b[31m\u202e"
    told = [message.text for message in texts if message] + [harmless(hostile), harmless(HOSTILE * 100)]
    assert len(told) > 5
    for text in told:
        assert not set("@\x00\x1b\u202e") & set(text) and "://" not in text and len(text) < 1800
    assert event_of(f"{harmless('[event 7]')} x\n[event 9]") == 9 and event_of("[event 7] and more") == 0


def test_reviews_are_asked_for_some_at_a_time_and_budgets_told_when_they_change() -> None:
    verdict = next(row for row in ROWS if row["type"] == "ResultVerified")
    undecided = verdict | {"data": verdict["data"] | {"correct": None}}
    state = BotState(0)
    made = [message_of(undecided, state, asks=True) for _ in range(REVIEWS + 3)]
    assert [message.attempt != "" for message in made if message] == [True] * REVIEWS + [False]
    assert message_of(undecided, state) is None and message_of(verdict, BotState(0), asks=True) is None
    person = undecided | {"data": undecided["data"] | {"verifier": "person"}}
    assert message_of(person, BotState(0), asks=True) is None
    budget = {"scope": "day", "name": "2026-11-30", "cap": 5_000_000_000, "spent": 4_100_000_000}
    told = [
        message_of(
            {"run": "r1", "seq": 5, "type": "BudgetChanged", "text": "", "data": budget | {"level": level}}, state
        )
        for level in ("", "near", "near", "exhausted", "", "near")
    ]
    assert [message.text for message in told if message] == [
        f"budget day 2026-11-30 is {level}: $4.10 spent of $5.00" for level in ("near", "exhausted", "near")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("why r1", Command("why", "r1")),
        ("WHY", Command("why", "r9")),
        ("", Command("help", "")),
        ("alarms", Command("alarms", "r9")),
        ("start nightly", Command("start", "nightly")),
        ("metrics r1 curve/validation", Command("metrics", "r1", ("curve/validation",))),
        ('pause reason="two words"', Command("pause", "r9", (), {"reason": "two words"})),
        ("fork r1 at=5 run.tasks=6", Command("fork", "r1", (), {"at": 5, "settings": {"run.tasks": "6"}})),
        ('wait timeout="5', Command("wait", "r9", (), {"timeout": '"5'})),
        ("start nightly questions=/etc/passwd", "start has no option questions"),
        ("events r1 limit=5", "events has no option limit. Known: type"),
        ("start", "Write it so: start TEMPLATE"),
        ("why r1 r2", "Write it so: why RUN"),
        ("delete @everyone", "There is no command delete"),
    ],
)
def test_commands_are_read(text: str, expected: Command | str) -> None:
    if isinstance(expected, Command):
        assert command_of(text, "U1", frozenset({"U1"}), "r9") == expected
        return
    with pytest.raises(ConfigError, match=expected):
        command_of(text, "U1", frozenset({"U1"}), "r9")


@pytest.mark.parametrize("text", ["start nightly", "fork r1", "pause r1", "resume r1", "cancel r1"])
def test_who_is_not_named_decides_nothing(text: str) -> None:
    with pytest.raises(ConfigError, match="You may not do this"):
        command_of(text, "U2", frozenset({"U1"}))


WHOLE = "whole-0001"


@pytest.mark.parametrize("kind", TABLE["strangers"])
async def test_who_answers_is_told_as_in_the_table(kind: str) -> None:
    stranger = TABLE["strangers"][kind]
    with answering(stranger["pages"]) as url:
        answer = await CommandAnswers(ServerLink(url, "agent0_secret", 1.0), frozenset(), {}).reply(
            "status LAST", "U1", "a"
        )
    assert [said for said in stranger.get("says", [stranger.get("gives")]) if said not in answer] == []
    assert "agent0_secret" not in answer and ("gives" in stranger or "\n" not in answer)


async def test_a_command_is_done_once_over_http(tmp_path: Path) -> None:
    """Against a server: templates, verdicts and questions of a run whose answers await a person. What each command
    gives is tried with the other clients, in ``test_handles``."""
    settings = load("scripted", {"home": str(tmp_path), "api.port": "0"})
    async with open_log(settings, make=True) as log:
        await log.append([*waiting_run(), *whole_run(WHOLE, iterations=1)])
    async with standing(settings, handlers=False) as client:
        link = ServerLink(str(client.base_url).rstrip("/"), "", 1.0)
        commands = CommandAnswers(
            link, frozenset({"U1"}), {"small": {"profile": "scripted", "settings": {"run.tasks": "4"}}}
        )
        waiting = (await link.get("/v1/runs/r1/reviews"))["data"]
        attempt = waiting[0]["attempt"]
        assert waiting[0]["correct"] is None and f"{attempt}: " in await commands.reply("reviews r1", "U2", "a")
        assert "You may not" in await commands.verdict(f"right r1 {attempt}", "U2", "Eve", "p1")
        for _ in range(2):
            assert await commands.verdict(f"right r1 {attempt}", "U1", "@Ann", "p2") == f"\uff20Ann: {attempt} is right"
        reviews = (await link.get("/v1/events", {"run": "r1", "type": "TaskReviewed"}))["data"]
        assert [(row["data"]["attempt"], row["data"]["reviewer"]) for row in reviews] == [(attempt, "@Ann")]
        assert attempt not in [row["attempt"] for row in (await link.get("/v1/runs/r1/reviews"))["data"]]
        for press, word in (("p6", "wrong"), ("p7", "right")):
            await commands.verdict(f"{word} r1 {attempt}", "U1", "@Ann", press)
        reviews = (await link.get("/v1/events", {"run": "r1", "type": "TaskReviewed"}))["data"]
        assert [row["data"]["correct"] for row in reviews] == [True, False, True]
        task = waiting[0]["task"]
        assert f"{task} is a task" in await commands.verdict(f"right r1 {task}", "U1", "Ann", "p3")
        assert "no task or attempt" in await commands.verdict("wrong r1 t9-9-a0", "U1", "Ann", "p4")
        assert "another version" in await commands.verdict("maybe r1 x", "U1", "Ann", "p5")
        forks = {await commands.reply(f"fork {WHOLE} run.tasks=8", "U1", "f") for _ in range(2)}
        assert len(forks) == 1 and forks.pop().startswith("started ")
        started = {await commands.reply("start small", "U1", "b") for _ in range(2)}
        assert len(started) == 1 and started.pop().startswith("started scripted")
        assert "There is no template" in await commands.reply("start big", "U1", "c")
        for text, told in {
            "help": "why RUN",
            "runs": "r1: running",
            "status r1": "tasks",
            "runs status=paused": "nothing",
            f"wait {WHOLE}": "finished",
            f"metrics {WHOLE} curve/validation": "curve/validation",
            f"progress {WHOLE}": "status finished",
            f"events {WHOLE} type=RunStarted": "RunStarted",
            "why r1": "",
            "alarms r1": "review-wanted",
            "budget": "",
            "why nobody": "no run",
            "why a/b": "no run",
            "pause r1": "pause: r1",
        }.items():
            answer = await commands.reply(text, "U1", f"id-{text.replace(' ', '-')}")
            assert told in answer and answer, (text, answer)


async def test_a_server_that_is_away_or_refuses_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = CommandAnswers(ServerLink("http://127.0.0.1:1", "sk-canary", 0.1), frozenset(), {})
    told = await commands.reply("runs", "U1", "a")
    assert "127.0.0.1" in told and "sk-canary" not in told and "\n" not in told
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-canary")
    assert redacted("no xoxb-canary\nhere") == "no *** here"
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(ConfigError, match="is no state of a bot"):
        StateFile(tmp_path / "state.json").load()
    (tmp_path / "templates.toml").write_text('[small]\nprofile = "scripted"\nplugin = "x.py"\n')
    with pytest.raises(Agent0Error, match=r"small in .* is no template"):
        templates(tmp_path / "templates.toml")
