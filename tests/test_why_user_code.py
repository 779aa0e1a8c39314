"""A function of a user's file that does not come back, or has not the form of what it is declared as, is named."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.waits import waits
from agent0.assembly.runtime import plugins
from agent0.errors import ConfigError, OperationError
from agent0.infra.bus import user_code
from agent0.infra.bus.bus import _Pulse
from agent0.run.diagnosis import diagnose
from agent0.run.diagnosis.case import Case, Iteration, Setting, Training
from agent0.settings import RunConfig
from agent0.verification.verifiers import verifiers
from tests.plugin_files import forgotten
from tests.test_why_plugins import FLAT, TRAINED
from tests.world import small

HEAD = "import asyncio\nimport time\n\nimport agent0\n\n\n"
VERIFIER = (
    HEAD
    + '''@agent0.verifier("mine", applies=lambda task: True, rank=-1)
{how}def mine(task, answers, sandbox{more}):
    """Of a test."""
    {body}
'''
)


def loaded(folder: Path, body: str, how: str = "async ", more: str = "") -> None:
    file = folder / "mine.py"
    file.write_text(VERIFIER.format(body=body, how=how, more=more))
    plugins.load_plugin_file(file)


async def judged(answers: list[str | None]) -> Any:
    return await verifiers()["mine"].judge(None, answers, None)  # type: ignore[arg-type]


async def test_where_a_verifier_waits_for_ever_is_read_from_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_code, "SHOWN_S", 0.0)
    with forgotten():
        loaded(tmp_path, "await asyncio.sleep(600)")
        stuck = asyncio.create_task(judged(["1"]))
        await asyncio.sleep(0)
        place, seconds = user_code.awaited()
        assert place == "verifier mine of plugin mine.py, judge, line 10" and seconds == 0
        await asyncio.sleep(0.01)
        assert user_code.awaited()[1] >= 0.01
        user_code.write(tmp_path, place, 25.0)
        assert waits(tmp_path) == f"{place}, 25 s"
        stuck.cancel()
        await asyncio.wait([stuck])
        assert user_code.awaited() == ("", 0.0)
        user_code.write(tmp_path, *user_code.awaited())
        assert waits(tmp_path) == "" and user_code.read(tmp_path) is None


def test_what_a_process_that_is_gone_stood_in_counts_only_where_it_ended_by_it(tmp_path: Path) -> None:
    for ended in (False, True):
        user_code.write(tmp_path, "reward r of plugin r.py, line 6", 25.0, ended=ended)
        (path,) = (tmp_path / user_code.FOLDER).iterdir()
        assert user_code.read(tmp_path)["place"] and bool(waits(tmp_path)) is not ended
        os.utime(path, (0, 0))
        assert bool(user_code.read(tmp_path)) is ended
    path.write_text("half")
    assert user_code.read(tmp_path) is None
    user_code.forget(tmp_path)
    assert not path.exists()


def test_a_loop_that_a_users_function_keeps_busy_ends_the_process_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent0.infra.bus.bus.STARVED_S", 0.2)
    died: list[str] = []

    async def busy() -> None:
        pulse = _Pulse(died.append, tmp_path)
        pulse.start()
        await judged(["1"])
        pulse.stop()

    with forgotten():
        loaded(tmp_path, "[time.sleep(0.01) for _ in range(60)]; return [agent0.Verdict(True, '')]")
        asyncio.run(busy())
    assert died[0].endswith("in verifier mine of plugin mine.py, judge, line 10"), died
    found = user_code.read(tmp_path)
    assert found["ended"] and found["place"].startswith("verifier mine of plugin mine.py")


@pytest.mark.parametrize(("ended", "carried", "line"), [
    (False, True, "does not come back: the run stands still there, for 25 s so far"),
    (True, False, "did not come back, so its process ended after 25 s"),
    (False, False, ""), (True, True, ""),
])  # fmt: skip
def test_the_first_line_names_where_it_stands(ended: bool, carried: bool, line: str) -> None:
    place = "verifier mine of plugin mine.py, judge, line 10"
    here = {"carried": carried, "user_code": {"place": place, "seconds": 25.0, "ended": ended}}
    found = diagnose(Case("r1", "scripted", "running", RunConfig(), last=60, here=here))
    assert any(one.name == "unreturned" for one in found) is bool(line)
    if line:
        assert found[0].conclusion == f"{place}, {line}" and found[0].event == 60
        assert found[0].mend == "agent0 run fork r1 --at 60" and found[0].advice.startswith("Correct mine.py")


@pytest.mark.parametrize(("form", "words"), [
    ({"how": ""}, "it must be an async function"),
    ({"more": ", context"}, "missing a required argument: 'context'; with informed=True it gets a context, too"),
])  # fmt: skip
def test_a_verifier_of_another_form_is_refused_when_its_file_is_loaded(
    tmp_path: Path, form: dict[str, str], words: str
) -> None:
    with forgotten(), pytest.raises(ConfigError) as refused:
        loaded(tmp_path, "return []", **form)
    assert words in str(refused.value) and "await mine(task, answers, sandbox)" in str(refused.value)


@pytest.mark.parametrize(("body", "words"), [
    ("return [agent0.Verdict(True, '')]", "gave 1 verdicts for 2 answers"),
    ("return True", "gave True, which is no list, for 2 answers"),
    ("return [True, False]", "gave True, which is no Verdict, for 2 answers"),
])  # fmt: skip
async def test_a_verifier_that_gives_no_verdict_for_each_answer_is_named(tmp_path: Path, body: str, words: str) -> None:
    with forgotten():
        loaded(tmp_path, body)
        with pytest.raises(OperationError) as refused:
            await judged(["1", "2"])
    assert str(refused.value).startswith(f"The verifier mine of plugin mine.py, line 7, {words}.")


@pytest.mark.parametrize(("key", "value", "usual"), [
    ("run.training.student.every", 50, 1), ("run.training.schedule", "teacher", "joint"),
])  # fmt: skip
def test_a_schedule_that_never_trains_the_student_is_named(key: str, value: object, usual: object) -> None:
    training = {"schedule": value} if key.endswith("schedule") else {"student": {"every": value}}
    seen, changed = Iteration(0, attempts=12, answered=12), Setting(key, value, usual, "profile scripted")
    case = Case("r1", "scripted", "finished", small(training=training), iterations=(seen,), changes=(changed,))
    first = diagnose(case)[0]
    assert first.conclusion.startswith(f"the student was not trained, though it made 12 attempts ({key} is {value},")
    assert first.mend.endswith(f"--set {key}={usual}")


def test_tools_that_tasks_need_and_no_profile_has_are_added() -> None:
    seen = Iteration(0, attempts=9, answered=9, calls={"unknown": 8, "ok": 1}, missing=("read_file", "teleport"))
    first = diagnose(Case("r1", "scripted", "finished", RunConfig(), iterations=(seen,)))[0]
    assert "student does not have: read_file, teleport (run.student.tools is" in first.conclusion
    assert first.mend.endswith("""--set 'run.student.tools=["python", "sympy", "read_file"]'""")


def test_all_of_a_recipe_that_is_far_off_is_named_and_set_back() -> None:
    parts = {"minibatch": (1, 32), "replay_steps": (0, 8), "epochs": (2, 1)}
    changes = tuple(Setting(f"run.training.student.{k}", *held, "profile tiny") for k, held in parts.items())
    first = diagnose(Case("r1", "tiny", "finished", RunConfig(), changes=changes, scores=FLAT, trainings=(TRAINED,)))[0]
    told = "run.training.student.minibatch of 1 and run.training.student.replay_steps of 0 train nothing: validation"
    assert first.conclusion.startswith(told) and first.conclusion.endswith("(in profile tiny 32 and 8)")
    assert first.mend.endswith("--set run.training.student.minibatch=32 --set run.training.student.replay_steps=8")


def test_a_penalty_that_is_far_off_is_no_learning_rate() -> None:
    made = Training("student-0", "student", 0, "base", "promoted", samples=9, metrics={"loss": 73.2}, requested=50)
    changes = (Setting("run.training.student.kl", 1000.0, 0.0, "profile tiny"),)
    first = diagnose(Case("r1", "tiny", "finished", RunConfig(), changes=changes, trainings=(made,)))[0]
    assert first.conclusion.startswith("the student's recipe: the training of student-0 diverged, its loss is 73.2")
    assert first.mend.endswith("--set run.training.student.kl=0")
