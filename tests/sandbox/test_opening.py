"""Which candidate is used: the first that passes, in the fixed order; none where none does."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox import selection, survey
from agent0.infra.sandbox.inside.calling import SandboxProcessError
from agent0.infra.sandbox.selection import BACKENDS, Backend, open_sandbox
from agent0.infra.sandbox.selftest import MissedProbeError, Probe
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.settings import SandboxSettings

ORDER = ("zygote-bwrap", "zygote-docker", "bwrap-cold", "docker-cold")
Fault = Callable[[], BaseException]
FAULTS: dict[str, Fault] = {
    "absent": lambda: SandboxUnavailableError("The sandbox", "it is absent.", "Install it."),
    "ended": lambda: SandboxProcessError("it ended"),
    "lacking": lambda: OSError("no such file"),
    "": lambda: AssertionError("never raised"),
}


class Played:
    """A backend that fails as it is told, or passes; it notes what was done with it."""

    def __init__(self, name: str, fault: str) -> None:
        self.name, self.fault = name, fault
        self.done: list[str] = []

    async def start(self) -> None:
        self.done.append("start")
        if self.fault == "absent":
            raise FAULTS[self.fault]()
        if self.fault:
            raise SandboxUnavailableError("The sandbox", f"{self.fault}.", "Mend it.")

    async def execute(self, call: SandboxCall) -> SandboxResult:
        if self.fault:
            raise FAULTS["absent"]() if self.fault != "ended" else FAULTS["ended"]()
        return SandboxResult(ToolState.ERROR, 1, "", "", 0.0, 0.0, 0.0, "watchdog", self.name)

    async def call(self, call: SandboxCall) -> SandboxResult:
        return await self.execute(call)

    async def close(self) -> None:
        self.done.append("close")


def _played(plan: dict[str, str]) -> tuple[dict[str, Backend], dict[str, Played]]:
    made = {name: Played(name, plan[name]) for name in ORDER if name in plan}

    def trial(name: str) -> Callable[[SandboxSettings], Awaitable[Played]]:
        async def give(_: SandboxSettings) -> Played:
            return made[name]

        return give

    return {name: Backend(trial(name), lambda *given, n=name: made[n]) for name in made}, made


plans = st.fixed_dictionaries({name: st.sampled_from(sorted(FAULTS)) for name in ORDER})


def test_the_order_is_fixed() -> None:
    assert tuple(BACKENDS) == ORDER
    assert selection.named(SandboxSettings()) == list(ORDER)
    assert selection.named(SandboxSettings(backend="bwrap-cold")) == ["bwrap-cold"]


@given(plan=plans, only=st.sampled_from(["auto", *ORDER]))
def test_the_first_that_passes_is_chosen_or_none(plan: dict[str, str], only: str) -> None:
    asked = [name for name in ORDER if only in ("auto", name)]
    passing = [name for name in asked if not plan[name]]
    with pytest.MonkeyPatch.context() as patch:
        backends, made = _played(plan)
        patch.setattr(selection, "BACKENDS", backends)
        if passing:
            opened = asyncio.run(open_sandbox(SandboxSettings.model_validate({"backend": only})))
            assert opened is made[passing[0]]
            assert made[passing[0]].done == ["start"]
        else:
            with pytest.raises(SandboxUnavailableError) as refused:
                asyncio.run(open_sandbox(SandboxSettings.model_validate({"backend": only})))
            assert all(f"{name}: " in refused.value.why for name in asked), "each candidate has its reason"
            assert refused.value.fix
    tried = asked[: asked.index(passing[0])] if passing else asked
    assert all(made[name].done == ["start", "close"] for name in tried), "who failed is closed"
    later = [name for name in ORDER if name not in tried and name not in passing[:1]]
    assert all(made[name].done == [] for name in later), "who comes later is not even started"


@given(plan=plans)
def test_a_survey_shows_each_and_chooses_like_one_who_opens(plan: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        backends, made = _played(plan)
        patch.setattr(selection, "BACKENDS", backends)
        patch.setattr(selection, "PAUSE_S", 0.0)
        found = asyncio.run(survey(SandboxSettings()))
    assert [one.name for one in found] == list(ORDER)
    assert [one.chosen for one in found] == [False] * 4, "one that runs nothing passes no self-test"
    assert all(one.why and one.probes and one.fix for one in found)
    assert all(not one.probes[-1].ok or plan[one.name] == "" for one in found)
    assert all(set(played.done) == {"close"} for played in made.values()), "each is ended"


class Busy(Played):
    """A backend on a machine that has other things to do: its self-test misses so many times."""

    def __init__(self, name: str, misses: int) -> None:
        super().__init__(name, "")
        self.misses = misses

    async def start(self) -> None:
        await super().start()
        self.misses -= 1
        if self.misses >= 0:
            raise MissedProbeError("The sandbox", "its self-test missed: memory_limit.", "See `agent0 doctor`.")


def _busy(patch: pytest.MonkeyPatch, misses: int) -> list[Busy]:
    made: list[Busy] = []

    def make(*_: object) -> Busy:
        made.append(Busy("busy", misses if not made else made[-1].misses))
        return made[-1]

    backends, _ = _played({"zygote-bwrap": "", "zygote-docker": "absent"})
    busy = Backend(backends["zygote-bwrap"].trial, make)
    patch.setattr(selection, "BACKENDS", {"zygote-bwrap": busy, "zygote-docker": backends["zygote-docker"]})
    patch.setattr(selection, "PAUSE_S", 0.0)
    return made


def test_a_self_test_that_misses_is_tried_again_before_the_next_backend() -> None:
    with pytest.MonkeyPatch.context() as patch:
        made = _busy(patch, selection.TRIES - 1)
        assert asyncio.run(open_sandbox()) is made[-1]
    assert [one.done for one in made] == [["start", "close"]] * (selection.TRIES - 1) + [["start"]]


def test_one_that_goes_on_missing_refuses() -> None:
    with pytest.MonkeyPatch.context() as patch:
        made = _busy(patch, 99)
        with pytest.raises(SandboxUnavailableError, match=r"memory_limit.*it is absent"):
            asyncio.run(open_sandbox())
    assert [one.done for one in made] == [["start", "close"]] * selection.TRIES


def test_a_survey_tries_a_self_test_that_misses_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    async def inspect(_: object) -> list[Probe]:
        seen.append(len(seen) > 0)
        return [Probe("computes", seen[-1], "seen")]

    async def limits(_: object) -> list[Probe]:
        return []

    monkeypatch.setattr(selection.selftest, "inspect", inspect)
    monkeypatch.setattr(selection.selftest, "limits", limits)
    _busy(monkeypatch, 0)
    first, _ = asyncio.run(survey(SandboxSettings(), until_chosen=False))
    assert (first.chosen, seen) == (True, [False, True, True]), "the second backend passes at once"


def test_whatever_goes_wrong_besides_is_no_reason_for_less() -> None:
    class Broken(Played):
        async def start(self) -> None:
            raise RuntimeError("a mistake of ours")

    later = Played("later", "")
    broken = Broken("broken", "")
    with pytest.MonkeyPatch.context() as patch:
        backends, _ = _played({"zygote-bwrap": ""})
        both = {"a": Backend(backends["zygote-bwrap"].trial, lambda *_: broken)}
        both["b"] = Backend(backends["zygote-bwrap"].trial, lambda *_: later)
        patch.setattr(selection, "BACKENDS", both)
        with pytest.raises(RuntimeError, match="mistake"):
            asyncio.run(open_sandbox())
    assert (broken.done, later.done) == (["close"], [])
