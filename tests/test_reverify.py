"""Attempts judged again: by the same verifiers the same verdicts, whatever the stored ones say; a judge is heard from
the log; what changes is told, written down once, and changes rewards of exactly its tasks."""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.replay import reverify as reverifies
from agent0.assembly.replay.compare_runs import gather
from agent0.assembly.replay.rescore import Rescore, rescore_run
from agent0.assembly.replay.retrain import Retrain, retrain
from agent0.assembly.replay.reverify import Reverify, planned, reverify
from agent0.errors import ConfigError, DependencyError, NotFoundError, OperationError, SandboxUnavailableError
from agent0.events.base import Recorded
from agent0.events.experiments import ExperimentFinished, RecomputeFailed
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.events.values import Task
from agent0.experiments.rescore import RescoredReceipt, rescore
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.report.score_answers import reverify_answer
from agent0.settings import Settings
from agent0.verification.human_review import PERSON
from agent0.verification.panel.opinion import CHECK
from agent0.verification.verifiers import _verifiers, verifier
from tests.kept_open import attached
from tests.memory import TrustingSandbox
from tests.pasts import RULES, events_of, judged, keep, settings_at, tell
from tests.terminal import agent0 as call
from tests.world import small

LIVE = {r.event.attempt: r.event for r in tell()[0] if isinstance(r.event, ResultVerified)}
REVERIFY = ("experiment", "reverify", "r1")
TRUSTED = TrustingSandbox()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the run; nobody changes it."""
    folder = tmp_path_factory.mktemp("kept")
    keep(folder, tell()[0], tell()[1])
    return folder


@pytest.fixture
def home(kept: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of it, whose server stands."""
    with attached(Path(shutil.copytree(kept, tmp_path / "home", symlinks=True))) as copy:
        yield copy


class Remembering(TrustingSandbox):
    """Runs what it has run before from memory, and is away from the call ``last`` on."""

    known: dict[str, SandboxResult] = {}  # noqa: RUF012 - one for all of them

    def __init__(self, last: int = 10**9) -> None:
        super().__init__()
        self.last = last

    async def call(self, call: SandboxCall) -> SandboxResult:
        if len(self.calls) >= self.last:
            raise SandboxUnavailableError("sandbox", "It went away.")
        if call.code not in self.known:
            self.known[call.code] = await TRUSTED.call(call)
        self.calls.append(call)
        return self.known[call.code]


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Remembering:
    """In the place of the real one."""
    made = Remembering()

    async def opened(names: Sequence[str], *_: object) -> dict[str, object]:
        assert names == ("verifier_sandbox", "environments"), "no model is opened"
        return {"verifier_sandbox": made, "environments": None}

    monkeypatch.setattr(reverifies, "open_ports", opened)
    return made


def decided(said: Sequence[Recorded]) -> dict[str, ResultVerified]:
    return {r.event.attempt: r.event for r in said if isinstance(r.event, ResultVerified)}


def test_its_own_settings_give_its_own_verdicts_in_fresh_sandboxes(kept: Path) -> None:
    before = len(events_of(settings_at(kept), ""))
    said = call(*REVERIFY, "--json", home=kept)
    assert said.code == 0, said.err
    right = sum(event.correct is True for event in LIVE.values())
    assert said.json["answer"] == [
        f"0 of {len(LIVE)} verdicts of r1 change under its own settings.",
        f"Right: {right} attempts as the run judged them, {right} now.",
    ]
    assert (said.json["identical"], said.json["changed"], said.json["verdicts"]) == (True, 0, len(LIVE))
    assert (said.json["own_settings"], said.json["committed"], said.json["changes"]) == (True, False, [])
    assert {row["verifier"] for row in said.json["by_verifier"]} == {"checked", "exact", "execution", "panel"}
    assert len(events_of(settings_at(kept), "")) == before, "nothing is written"


def nonsense(told: Recorded) -> Recorded:
    """A verdict that says the opposite, for no reason; only what the judge said is left of it."""
    event = told.event
    if not isinstance(event, ResultVerified):
        return told
    votes = tuple(v if v.check == CHECK else v.model_copy(update={"correct": not v.correct}) for v in event.votes)
    changed = {"correct": not event.correct, "reason": "nonsense", "expected": "x", "got": "y", "votes": votes}
    return told.model_copy(update={"event": event.model_copy(update=changed)})


def test_stored_verdicts_are_never_read(tmp_path: Path, sandbox: Remembering) -> None:
    said = judging(keep(tmp_path, [nonsense(r) for r in tell()[0]], tell()[1]), Reverify("r1", "x"))
    assert (said["own_settings"], said["identical"], said["changed"]) == (True, False, len(LIVE))
    after = {row["attempt"]: row["after"] for row in said["changes"]}
    wanted = {name: event.model_dump(mode="json") for name, event in LIVE.items()}
    assert after == {name: {key: plain[key] for key in after[name]} for name, plain in wanted.items()}
    assert sandbox.calls


def test_other_settings_are_shown_first_written_down_once_and_change_rewards(home: Path, sandbox: Remembering) -> None:
    held, deaf = settings_at(home), {"verification.judge.provider": ""}
    shown = judging(held, Reverify("r1", "deaf", deaf))
    assert shown["committed"] is False and events_of(held, "exp-deaf") == []
    first = call(*REVERIFY, "-s", "verification.judge.provider=", "--name", "deaf", "--commit", "--json", home=home)
    again = judging(held, Reverify("r1", "deaf", deaf, True))
    assert first.code == 0 and again == {**shown, "committed": True}
    assert first.json == {**again, "answer": reverify_answer(again)}
    count = f"{shown['flipped']} of them the label"
    assert count in first.json["answer"][0] and "under other settings" in first.json["answer"][0]
    said = events_of(held, "exp-deaf")
    assert len({r.id for r in said}) == len(said) == len(LIVE) + 2
    after = decided(said)
    assert isinstance(said[-1].event, ExperimentFinished) and said[-1].event.events == len(LIVE) == len(after)
    flipped = {name for name in LIVE if after[name].correct is not LIVE[name].correct}
    assert flipped == {name for name, event in LIVE.items() if judged(event)} != set()
    assert {row["attempt"] for row in shown["changes"] if row["flip"]} == flipped
    assert sum(shown["flips"].values()) == len(flipped) == shown["flipped"]
    rows = {row["verifier"]: row for row in shown["by_verifier"]}
    assert (rows["exact"]["changed"], rows["execution"]["changed"]) == (0, 0) and rows["panel"]["flipped"]
    with pytest.raises(OperationError, match="another name"):
        judging(held, Reverify("r1", "deaf", {}, True))
    assert_paid_otherwise(held, flipped)


def assert_paid_otherwise(held: Settings, flipped: set[str]) -> None:
    """Rewards under these verdicts differ for the tasks of ``flipped`` alone, and only they can be trained on."""
    paid = asyncio.run(rescore_run(held, Rescore("r1", "paid", None, "deaf", True)))
    assert paid["identical"] is False
    said = {(e.attempt, e.task): e for r in events_of(held, "exp-paid") if isinstance(e := r.event, RewardAssigned)}
    lived = {(e.attempt, e.task): e for r in tell()[0] if isinstance(e := r.event, RewardAssigned)}
    assert said.keys() == lived.keys()
    changed = {key for key in said if said[key] != lived[key]}
    assert {attempt for attempt, _ in changed} - {"-"} == flipped
    assert {task for _, task in changed} == {LIVE[name].task for name in flipped}
    with pytest.raises(OperationError, match="rescore r1 --verdicts deaf"):
        asyncio.run(retrain(held, Retrain("deaf", "x")))
    with pytest.raises(OperationError, match="holds no verdicts"):
        asyncio.run(rescore_run(held, Rescore("r1", "x", None, "paid")))
    with_them = asyncio.run(gather(held, ["r1", "deaf", "paid"]))
    assert with_them[0].rewards == with_them[1].rewards != with_them[2].rewards


def test_a_verifier_that_raises_is_told_by_attempt_and_the_rest_goes_on(home: Path, sandbox: Remembering) -> None:
    held, known = settings_at(home), dict(_verifiers.entries)
    broken = next(e.task for e in LIVE.values() if e.verifier == "panel")

    @verifier("panel", applies=lambda task: True, rank=8, collective=True)
    async def fragile(task: Task, answers: Sequence[str | None], world: Any, evidence: Any) -> Any:
        if task == next(r.event.proposal for r in tell()[0] if r.type == "TaskAccepted" and r.task == broken):  # type: ignore[attr-defined]
            raise ZeroDivisionError("on purpose")
        return await known["panel"].judge(task, answers, world, evidence)

    try:
        said = judging(held, Reverify("r1", "fragile", {}, True))
        shown = call(*REVERIFY, "--full", home=home)
    finally:
        _verifiers.entries = known
    lost = {name for name, event in LIVE.items() if event.task == broken}
    assert (said["identical"], said["failed"], said["only_before"]) == (False, 3, 3)
    assert shown.code == 1 and shown.out.count("could not be judged: ZeroDivisionError: on purpose") == 3
    events = events_of(held, "exp-fragile")
    failed = [r.event for r in events if isinstance(r.event, RecomputeFailed)]
    assert {(e.attempt, e.task, e.what, e.error) for e in failed} == {
        (name, broken, "verdict", "ZeroDivisionError") for name in lost
    }
    assert decided(events) == {name: event for name, event in LIVE.items() if name not in lost}
    stands = asyncio.run(rescore_run(held, Rescore("r1", "x", None, "fragile")))
    assert stands["identical"], "where none could be made, the run's own verdict stands"


def test_what_is_written_is_not_decided_again(
    home: Path, sandbox: Remembering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reverifies, "PART", 4)
    asked, held = Reverify("r1", "slow", {}, True), settings_at(home)
    whole = judging(held, Reverify("r1", "whole", {}, True))
    calls, sandbox.last, sandbox.calls = len(sandbox.calls), len(sandbox.calls) // 2, []
    with pytest.raises(DependencyError):
        judging(held, asked)
    begun = decided(events_of(held, "exp-slow"))
    assert 0 < len(begun) < len(LIVE)
    with pytest.raises(NotFoundError, match="no finished experiment"):
        asyncio.run(rescore_run(held, Rescore("r1", "x", None, "slow")))
    with pytest.raises(OperationError, match="unfinished"):
        asyncio.run(retrain(held, Retrain("slow", "x")))
    sandbox.last, sandbox.calls = 10**9, []
    assert judging(held, asked) == {**whole, "experiment": "exp-slow"}
    assert 0 < len(sandbox.calls) < calls
    said, other = ([r.event for r in events_of(held, f"exp-{name}")] for name in ("slow", "whole"))
    assert said[1:] == other[1:], "the same in the same order, and the same digest"


def judging(held: Settings, asked: Reverify) -> dict[str, Any]:
    return asyncio.run(reverify(held, asked))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attempts": "2"}, "changes no verdict"),
        ({"run.verification.undecided": "ask"}, "changes no verdict"),
        ({"verification.judge.provider": "ollama"}, "never asked"),
        ({"verification.judge.temperature": "1"}, "never asked"),
        ({"verification.unchecked": "nobody"}, "nobody"),
        ({"verification.agreeing": "x"}, "agreeing"),
        ({"verification.knob": "1"}, "knob"),
    ],
)
def test_settings_that_decide_nothing_are_refused_by_name(changes: dict[str, str], words: str) -> None:
    own = small(verification=RULES)
    with pytest.raises(ConfigError, match=words):
        planned(own, changes)
    assert planned(own, {"verification.judge.provider": ""}).verification.judge.provider == ""


@pytest.mark.parametrize(
    ("arguments", "words"), [(("r1", "--commit"), "needs a name"), (("nobody",), "no run 'nobody'")]
)
def test_what_cannot_be_asked_is_refused_by_name(kept: Path, arguments: tuple[str, ...], words: str) -> None:
    said = call("experiment", "reverify", *arguments, home=kept)
    assert said.code in (1, 2) and words in said.err, said.err


def test_where_verifiers_leave_off_a_persons_word_stands() -> None:
    """A run that asks persons, its verdicts replaced: what would have asked again changes nothing that a person said,
    and what nobody was asked about is undecided."""
    asking = [r.model_copy(update={"event": asks(r.event)}) if r.type == "RunStarted" else r for r in tell()[0]]
    answered = next(r for r in asking if isinstance(r.event, ResultVerified))
    assert isinstance(answered.event, ResultVerified)
    person = answered.event.model_copy(update={"verifier": PERSON, "correct": True})
    told = [r.model_copy(update={"event": person}) if r.id == answered.id else r for r in asking]
    other = {name: event.model_copy(update={"correct": None}) for name, event in LIVE.items()}
    found = [each.reward for each in rescore(told, verdicts=other) if isinstance(each, RescoredReceipt)]
    facts = {r.attempt: r.facts["correct"] for r in found if r.role == "student"}
    assert facts.pop(person.attempt) is True
    decided_then = {n for n, e in LIVE.items() if e.correct is not None} - {person.attempt}
    assert set(facts) == decided_then and set(facts.values()) == {None}


def asks(event: Any) -> Any:
    changed = {**event.config, "verification": {**event.config["verification"], **RULES, "undecided": "ask"}}
    return event.model_copy(update={"config": changed})
