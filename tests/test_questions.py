"""Questions from a file: every row once an epoch, held-out rows never trained on, and a run that anybody can go on with
who has the same file."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent0
from agent0.assembly.runtime.app import lacks
from agent0.assembly.validate.questions import forked_questions, question_notes, with_questions
from agent0.assembly.validate.requirements import REQUIREMENTS
from agent0.assembly.validate.run_config import check_names
from agent0.errors import Agent0Error, ConfigError, DependencyError
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointPromoted, CheckpointRejected, EvaluationItemScored, TrainingRequested
from agent0.events.runs import RunFinished, RunStarted
from agent0.events.tasks import ResultVerified, TaskAttempted, TaskProposed, TaskRejected, TaskRequested
from agent0.events.values import QUESTIONS
from agent0.handlers import handlers
from agent0.infra.embeddings.benchmark_index import BenchmarkRows
from agent0.infra.storage.datasets import LocalQuestions, require_questions
from agent0.settings import QuestionsConfig, RunConfig, Settings
from agent0.state.run_state import RunState
from agent0.tasks.families import families
from agent0.tasks.questions import place
from tests.kept_open import attached, one_sandbox
from tests.killed_runs import QUICK, facts, killed_before_a_verdict
from tests.play import finished, play
from tests.terminal import agent0 as call
from tests.test_contamination import folder
from tests.test_forking import begin, branch, state_at
from tests.world import ports, small, started

COUNT = 30
WORLD = ports()
GOOD = [{"question": f"What is {n}?", "answer": str(n)} for n in range(50)]


def write(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows as GSM8K has them, with questions that the scripted student can solve."""
    entry, rng, rows = families()["arithmetic"], random.Random(3), dict[str, str]()
    while len(rows) < COUNT:
        params = entry.sample(1 + len(rows) % 3, rng)
        rows[entry.render(params, rng)] = f"It is <<x={entry.solve(params)}>>.\n#### {entry.solve(params)}"
    path = tmp_path_factory.mktemp("questions") / "train.jsonl"
    return write(path, [{"question": question, "answer": answer} for question, answer in rows.items()])


def plan(file: Path, share: float = 1.0, **changes: Any) -> RunConfig:
    """A small run with the rows of ``file``, checked as a start checks it."""
    config = small(questions={"file": str(file), "share": share}, **{"iterations": 3, "attempts": 2} | changes)
    config = with_questions(config)
    check_names(config)
    return config


def of(told: Sequence[Recorded], kind: Any) -> list[Any]:
    return [recorded.event for recorded in told if isinstance(recorded.event, kind)]


def rows_of(told: Sequence[Recorded]) -> list[tuple[int, str]]:
    """Epoch and id of each row that was asked, in the order of tasks."""
    proposed = sorted(of(told, TaskProposed), key=lambda event: (event.iteration, event.slot))
    rows = [event.proposal.row for event in proposed if event.proposal]
    return [(row.epoch, row.id) for row in rows if row]


def expected(config: RunConfig, count: int) -> list[tuple[int, str]]:
    """The first ``count`` rows of a run, by the rule itself."""
    tasks = questions(LocalQuestions(), config.questions).tasks["train"]
    places = [place(number, len(tasks), config.seed) for number in range(count)]
    return [(epoch, row.id) for epoch, index in places if (row := tasks[index].row)]


@pytest.fixture(scope="module")
def told(file: Path) -> list[Recorded]:
    return finished(play(started(plan(file, tasks=10)), WORLD))


# --- epochs ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(0, 2**63), st.integers(0, 4))
def test_an_epoch_asks_every_row_once(rows: int, seed: int, epoch: int) -> None:
    places = [place(number, rows, seed) for number in range(epoch * rows, (epoch + 1) * rows)]
    assert {where for where, _ in places} == {epoch}
    assert sorted(index for _, index in places) == list(range(rows))


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = [tuple(place(epoch * 50 + n, 50, seed)[1] for n in range(50)) for epoch in range(3) for seed in range(3)]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_rows_in_place_of_those_without_contrast_are_the_next_ones(file: Path, share: float) -> None:
    config = plan(file, share, tasks=6, attempts=2, refill=2.5, iterations=2)
    told = finished(play(started(config), WORLD))
    rows, first = rows_of(told), [event for event in of(told, TaskRequested) if event.slot < config.tasks]
    assert len(first) == 2 * config.tasks and len(rows) > 2 * share * config.tasks
    assert rows == expected(config, len(rows))


def test_a_rising_curriculum_asks_rows_from_the_lowest_level_on(file: Path, tmp_path: Path) -> None:
    rows = [{**json.loads(line), "level": 1 + n % 3} for n, line in enumerate(file.read_text().splitlines())]
    path = write(tmp_path / "levels.jsonl", rows)
    config = plan(path, tasks=10, max_untrained=0, curriculum={"kind": "rising"})
    told = finished(play(started(config), ports()))
    train = questions(LocalQuestions(), config.questions).tasks["train"]
    proposed = sorted(of(told, TaskProposed), key=lambda event: (event.iteration, event.slot))
    first = [event.proposal for event in proposed if event.proposal.row.epoch == 0]
    assert [task.level for task in first] == sorted(task.level for task in train)
    assert [task.question for task in first] != [task.question for task in sorted(train, key=lambda task: task.level)]


def test_an_iteration_goes_on_where_the_last_one_ended(told: list[Recorded], file: Path) -> None:
    assert rows_of(told) == expected(plan(file, tasks=10), 30)
    assert {epoch for epoch, _ in rows_of(told)} == {0, 1}, "it goes round more than once"
    assert not of(told, TaskRejected), "no row is a duplicate in another epoch"


# --- what is held out, and verdicts ----------------------------------------------------------------------------------


def test_held_out_rows_are_scored_and_never_trained_on(told: list[Recorded], file: Path) -> None:
    held = questions(LocalQuestions(), plan(file).questions).tasks
    trained = {event.proposal.question for event in of(told, TaskProposed)}
    scored = {event.question for event in of(told, EvaluationItemScored)}
    assert scored == {task.question for split in ("validation", "test") for task in held[split]}
    assert scored.isdisjoint(trained) and trained == {task.question for task in held["train"]}


def test_verdicts_are_by_the_published_answers(told: list[Recorded]) -> None:
    golds = {event.task: event.proposal.row.answer for event in of(told, TaskProposed)}
    answers = {event.attempt: event.answer for event in of(told, TaskAttempted)}
    verdicts = of(told, ResultVerified)
    assert {event.verifier for event in verdicts} == {"rows"} and {event.correct for event in verdicts} == {True, False}
    assert all(event.correct == (answers[event.attempt] == golds[event.task]) for event in verdicts)


def test_no_teacher_is_asked_or_trained(file: Path) -> None:
    config = plan(file, teacher={"provider": "tiny"}, training={"teacher": {"enabled": True}})
    told = finished(play(started(config), ports()))
    assert {event.role for event in of(told, TrainingRequested)} == {"student"}
    assert {event.model for event in of(told, TaskProposed)} == {""}


def test_a_share_of_the_tasks_is_rows_and_the_teacher_proposes_the_others(file: Path) -> None:
    config = plan(file, share=0.5, tasks=6)
    told = finished(play(started(config), ports()))
    requested = of(told, TaskRequested)
    assert [event.family == QUESTIONS for event in requested] == ([True] * 3 + [False] * 3) * 3
    assert rows_of(told) == expected(config, 9)
    held = {task.question for task in questions(LocalQuestions(), config.questions).tasks["validation"]}
    scored = [event.question in held for event in of(told, EvaluationItemScored) if "validation" in event.evaluation]
    assert sum(scored) * 2 == len(scored)


def test_a_row_near_a_benchmark_row_is_not_trained_on(file: Path, tmp_path: Path) -> None:
    words = (
        "Forty lanterns hang above Marigold street, and the baker lights three dozen before supper. How many remain?"
    )
    rows = [*map(json.loads, file.read_text().splitlines()), {"question": words, "answer": "4"}]
    config = plan(write(tmp_path / "near.jsonl", rows), tasks=30, iterations=1, attempts=1)
    near = folder(tmp_path / "rows", f"Once more: {words}")
    told = finished(play(started(config), {**ports(), "contamination": BenchmarkRows(near, None)}))
    (refused,) = of(told, TaskRejected)
    (task,) = [event.proposal for event in of(told, TaskProposed) if event.task == refused.task]
    assert (
        refused.reason == "contaminated" and refused.detail.startswith("gsm8k gsm8k/test/0") and task.question == words
    )


# --- a held-out file -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def apart(file: Path, tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """The rows of ``file``, and a held-out file that overlaps it: one row as it is, one in capitals."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    heldout = [*rows[:1], {**rows[1], "question": rows[1]["question"].upper()}]
    heldout += [
        {"question": f"How much is {n} plus {n}, in words of one syllable?", "answer": str(2 * n)} for n in range(9)
    ]
    path = write(tmp_path_factory.mktemp("apart") / "test.jsonl", heldout)
    return with_questions(
        small(questions={"file": str(file), "heldout": str(path)}, tasks=14, attempts=1, iterations=2)
    )


def test_a_held_out_file_is_scored_and_what_repeats_it_is_not_trained_on(apart: RunConfig) -> None:
    read = questions(LocalQuestions(), apart.questions)
    assert [copy.location for copy in read.copies] == ["train.jsonl, line 1", "train.jsonl, line 2"]
    assert len(read.tasks["train"]) == COUNT - 2, "all others are, whatever their own split would be"
    assert len(read.tasks["validation"]) + len(read.tasks["test"]) == 11
    told = finished(play(started(apart), ports()))
    assert not of(told, TaskRejected)
    assert {event.proposal.question for event in of(told, TaskProposed)} == {
        task.question for task in read.tasks["train"]
    }
    scored = {event.question for event in of(told, EvaluationItemScored)}
    assert scored <= {task.question for split in ("validation", "test") for task in read.tasks[split]} and scored


def test_a_start_names_what_is_not_trained_on(apart: RunConfig) -> None:
    (note,) = question_notes(apart.questions)
    assert "2 rows nearly copy held-out rows, and are not trained on: line 1, line 2. All of them: agent0 q" in note
    assert question_notes(QuestionsConfig()) == []


def test_a_held_out_file_that_changed_or_contradicts_is_refused(apart: RunConfig, file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "test.jsonl"
    copy.write_text(Path(apart.questions.heldout).read_text())
    config = with_questions(small(questions={"file": str(file), "heldout": str(copy)}))
    copy.write_text(copy.read_text() + "\n")
    with pytest.raises(DependencyError, match=rf"{copy}.*It has changed"):
        questions(LocalQuestions(), config.questions)
    copy.unlink()
    with pytest.raises(DependencyError, match=rf"{copy}.*not there"):
        require_questions(config.questions)
    with pytest.raises(ConfigError, match=r"There is no file .*run\.questions\.heldout"):
        with_questions(small(questions={"file": str(file), "heldout": str(copy)}))
    first = json.loads(file.read_text().splitlines()[0])
    write(copy, [{**first, "answer": "-123"}, *GOOD])
    with pytest.raises(ConfigError, match=r"train\.jsonl, line 1: one question has two answers.*that of line 1, whose"):
        with_questions(small(questions={"file": str(file), "heldout": str(copy)}))
    write(copy, [{"prompt": "f", "tests": "assert f(1) == 1"}])
    with pytest.raises(ConfigError, match=r"test\.jsonl, line 1: its questions are of another kind"):
        with_questions(small(questions={"file": str(file), "heldout": str(copy)}))


def test_a_fork_to_another_held_out_file_begins_anew(apart: RunConfig, file: Path) -> None:
    changed = apart.model_copy(update={"questions": apart.questions.model_copy(update={"heldout": ""})})
    config = forked_questions(apart, changed, {"run.questions.heldout"})
    assert config.questions.heldout_sha256 == "" != apart.questions.heldout_sha256
    assert config.questions.order != apart.questions.order and config.questions.sha256 == apart.questions.sha256


# --- layouts ---------------------------------------------------------------------------------------------------------


# --- from Python -----------------------------------------------------------------------------------------------------


def test_rows_in_python_are_a_file_of_the_folder(file: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    with attached(tmp_path / "home") as home, one_sandbox():
        folder = agent0.open(home, profile="scripted", settings={"run.iterations": 1, "run.attempts": 1})
        size = {"run.tasks": 8, "run.evaluation.validation": 4, "run.evaluation.test": 0}
        run = folder.start(settings=size, questions=iter(rows[:22]), heldout=rows[20:])
        events = list(run.events())
        (stored, heldout) = sorted((home / "questions").iterdir())
        with pytest.raises(ConfigError, match="22 repeat a held-out row, 0 of 30 are for training"):
            folder.start(settings=size, questions=rows[:22], heldout=file)
        assert sorted((home / "questions").iterdir()) == [stored, heldout], "the same rows are the same file"
        with pytest.raises(ConfigError, match=r"Row 1 is no mapping.*'What'"):
            folder.start(questions=["What"])  # type: ignore[list-item]
    assert run.status == "finished" and len(rows_of(events)) == 8
    assert {row for _, row in rows_of(events)} <= {f"{stored.stem}/{n}" for n in range(20)} | {
        f"{heldout.stem}/{n}" for n in range(20)
    }
    asked = {event.proposal.question for event in of(events, TaskProposed)}
    assert asked <= {row["question"] for row in rows[:20]}, "what is held out, too, is not trained on"


# --- bad input -------------------------------------------------------------------------------------------------------


def test_held_out_sets_are_no_larger_than_the_file_allows(file: Path) -> None:
    config = small(questions={"file": str(file)}, evaluation={"validation": 300})
    assert with_questions(config).evaluation.validation < 10
    with pytest.raises(ConfigError, match=r"run\.evaluation\.validation = 300 does not fit.*Set it to \d"):
        with_questions(config, {"run.evaluation.validation"})


def test_a_file_that_changed_is_refused_by_name(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_text(file.read_text())
    config = plan(copy)
    assert LocalQuestions().read(config.questions).sha256 == config.questions.sha256
    copy.write_text(file.read_text().replace("####", "#### "))
    for refused in (lambda: LocalQuestions().read(config.questions), lambda: forked_questions(config, config, ())):
        with pytest.raises(DependencyError, match=rf"{copy}.*It has changed: its sha256"):
            refused()
    copy.unlink()
    with pytest.raises(Agent0Error, match=rf"{copy}.*not there"):
        LocalQuestions().read(config.questions)


def test_the_command_line_names_the_file(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.jsonl", [*GOOD, {"question": "q"}])
    assert "--questions" in call("run", "start", "--help").out
    for path, words in ((bad, "bad.jsonl, line 51: no row of questions."), (tmp_path / "none", "There is no file")):
        refused = call("run", "start", "--profile", "scripted", "--questions", str(path), home=tmp_path / "home")
        assert (refused.code, refused.out) == (2, "") and words in refused.err


async def test_what_a_run_needs_is_looked_at(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_text(file.read_text())
    settings = Settings(run=plan(copy))
    (there,) = await REQUIREMENTS["questions"](settings)
    copy.unlink()
    (gone,) = await REQUIREMENTS["questions"](settings)
    assert (there.state, gone.state) == ("ok", "fail") and str(copy) in gone.detail
    state = RunState(run="r", seq=1, config=settings.run, config_sha="")
    lacking = await lacks(handlers(), handlers()["propose_task"], state)
    assert lacking and str(copy) in str(lacking)


# --- forks, and a run that was killed --------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_fork_goes_on_with_the_rows_of_its_parent(told: list[Recorded], file: Path, share: float) -> None:
    config, seq = plan(file, tasks=10), round(len(told) * share)
    start = begin(state_at(seq, told), seq, config)
    forked = finished(play(start, WORLD, past=told))
    assert rows_of(_last_of_each_task(branch(forked, "f1"))) == rows_of(told)


def _last_of_each_task(told: list[Recorded]) -> list[Recorded]:
    return [
        *{(recorded.task, recorded.type): recorded for recorded in told if recorded.type == "TaskProposed"}.values()
    ]


def test_a_fork_with_other_numbers_of_tasks_repeats_no_row_of_an_epoch(told: list[Recorded], file: Path) -> None:
    seq = next(r.seq for r in told if r.type == "TaskRequested" and getattr(r.event, "iteration", 0) == 1)
    config = plan(file, tasks=5)
    forked = finished(play(begin(state_at(seq, told), seq, config), WORLD, past=told))
    assert rows_of(_last_of_each_task(branch(forked, "f1"))) == expected(config, 20)


def test_a_fork_to_another_file_begins_its_first_epoch(told: list[Recorded], file: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.jsonl", file.read_text().splitlines()[3:])
    parent = plan(file, tasks=10)
    changed = parent.model_copy(update={"questions": parent.questions.model_copy(update={"file": str(other)})})
    config = forked_questions(parent, changed, {"run.questions.file"})
    assert config.questions.sha256 != parent.questions.sha256
    seq = next(r.seq for r in told if r.type == "TaskRequested" and getattr(r.event, "iteration", 0) == 1)
    forked = finished(play(begin(state_at(seq, told), seq, config), WORLD, past=told))
    own = [recorded for recorded in forked if recorded.run == "f1"]
    assert rows_of(own) == expected(config, 20)
    assert not of(own, (CheckpointPromoted, CheckpointRejected))[0].against, "other rows were scored before"


def test_the_state_of_a_run_without_a_file_is_as_before() -> None:
    """Digests of logs from before there were such files stay what they are."""
    state = RunState(run="r", seq=1, config=RunConfig(), config_sha="")
    assert state.digest == RunState(run="r", seq=1, config=RunConfig(), config_sha="", rows_before=0).digest
    assert state.digest != RunState(run="r", seq=1, config=RunConfig(), config_sha="", rows_before=1).digest


def test_a_killed_run_is_resumed_with_the_next_rows(file: Path, tmp_path: Path) -> None:
    """Killed while no verdict was given, so that it cannot have ended before."""
    copy, home = tmp_path / "train.jsonl", tmp_path / "home"
    copy.write_text(file.read_text())
    sizes = {"run.tasks": 6, "run.attempts": 1, "run.max_untrained": 0}
    sizes |= {"run.evaluation.validation": 4, "run.evaluation.test": 0}
    with killed_before_a_verdict(home, sizes, "--questions", copy) as (crew, run):
        copy.write_text(copy.read_text() + "\n")
        refused = call("run", "resume", *QUICK, home=home)
        copy.write_text(file.read_text())
        resumed = call("run", "resume", *QUICK, home=home)
        told = facts(crew, run)
        ledger = call("questions", "ledger", run, "--json", home=home).json
        shown = call("questions", "ledger", run, home=home).out
    asked = Counter(row for _, row in rows_of(told))
    assert {row["row"]: row["asked"] for row in ledger if row["asked"]} == asked and asked.total() == 12
    assert [row["attempts"] for row in ledger] == [row["asked"] for row in ledger], "each was attempted once a time"
    train = questions(LocalQuestions(), RunConfig.recorded(of(told, RunStarted)[0].config).questions).tasks["train"]
    assert sorted(row["row"] for row in ledger) == sorted(task.row.id for task in train if task.row)
    assert f"asked {len(asked)} of {len(train)} rows, 12 times in all" in shown
    assert refused.code == 5 and f"{copy}" in refused.err and "It has changed" in refused.err
    assert resumed.code == 0 and of(told, RunFinished)
    assert rows_of(told) == expected(RunConfig.recorded(of(told, RunStarted)[0].config), 12)
