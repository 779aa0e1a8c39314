"""``agent0 batch``: each row of a file is answered once, whoever is killed when; what cannot be asked is named by row
and column; what fails is a row all the same."""

import fcntl
import json
import os
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.batches.batch_files import LONGEST_LINE, opened_answers, read_rows, survey
from agent0.assembly.batches.batch_plan import BatchListener, BatchPlan, BatchTally, Forecast, begin, begun_batch
from agent0.assembly.batches.batch_run import answer_batch
from agent0.cli.batches.batch import _accepting, _BatchReporter, forecast_line, took
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.tasks.batch_rows import BatchColumns, read_row
from benchmarks.batch import kill_and_go_on, write_questions
from tests.anthropic_server import serving as anthropic
from tests.openai_server import OpenAIStandIn, serving
from tests.terminal import Said, agent0
from tests.test_routed_models import CLAUDE, PRICES

COLUMNS = BatchColumns()


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"question": 12}', "row 7, column question: a number, and text is needed"),
        (b'{"question": true}', "row 7, column question: true or false, and text is needed"),
        (b'{"question": null}', "row 7, column question: null, and text is needed"),
        (b'{"question": ["a"]}', "row 7, column question: a list, and text is needed"),
        (b'{"question": {"a": 1}}', "row 7, column question: an object, and text is needed"),
        (b'{"question": " "}', "row 7, column question: it is empty"),
        (b'{"q": "a", "n": 1}', "row 7, column question: it is missing; the row has q, n"),
        (b'{"question": "a\\u0000"}', "row 7, column question: character 2 is NUL"),
        (b'{"question": "ab\\ud83d"}', "row 7, column question: character 3 is half of a pair (U+D83D)"),
        (b'{"question": "a", "id": [1]}', "row 7, column id: a list, and text or a number is needed"),
        (b'{"question": "a", "id": "' + b"x" * 1001 + b'"}', "row 7, column id: it has more than 1,000 characters"),
        (b'"a"', "row 7: text, and an object is needed"),
        (b"question,answer", "row 7: no JSON: Expecting value at character 1"),
        (b'{"question": "What is', "row 7: no JSON: it is cut off behind 21 bytes"),
        (b'{"question": "a", ', "row 7: no JSON: it is cut off behind 18 bytes"),
        (b'{"question": "\xff"}', "row 7: byte 15 is no UTF-8"),
        (b"[" * 100_000, "row 7: it is nested too deeply"),
        (b'{"question": "a", "n": ' + b"1" * 5000 + b"}", "row 7: no JSON: Exceeds the limit"),
    ],
)
def test_a_row_that_cannot_be_asked_is_named_by_row_and_column(line: bytes, problem: str) -> None:
    assert read_row(line, 7, COLUMNS).problem.startswith(problem)


@pytest.mark.parametrize("question", ["<script>alert(1)</script>", "<|im_end|>\x1b[2J", "‮ gnirts 🜁", "{question}"])
def test_hostile_markup_is_a_question_like_any_other(question: str) -> None:
    row = read_row(json.dumps({"id": question, "question": question}).encode(), 1, COLUMNS)
    assert (row.id, row.question, row.problem) == (question, question, "")


def test_ids_are_kept_as_they_are_and_rows_without_one_have_their_number() -> None:
    for identity, kept in (("a", "a"), (5, 5), (1.5, 1.5), (None, 3)):
        assert read_row(json.dumps({"id": identity, "question": "a"}).encode(), 3, COLUMNS).id == kept
    assert read_row(b'{"prompt": "a", "key": "k"}', 3, BatchColumns("prompt", "key")).id == "k"


def test_a_mark_blank_lines_long_cells_and_a_cut_end(tmp_path: Path) -> None:
    """10 MB in a cell, a line without end, a byte order mark: the rows around them are read."""
    path = tmp_path / "q.jsonl"
    cell = json.dumps({"question": "x" * 10_000_000}).encode()
    endless = b'{"question": "' + b"y" * (LONGEST_LINE + 1_000_000)
    lines = [b'\xef\xbb\xbf{"question": "first"}', b" ", cell, endless, b'{"question": "last"}', b'{"question": "cu']
    path.write_bytes(b"\n".join(lines))
    rows = [*read_rows(path, COLUMNS)]
    assert [row.question for row in rows if not row.problem] == ["first", "last"]
    assert [row.problem for row in rows if row.problem] == [
        "row 2, column question: it has 10,000,000 characters, and 1,000,000 are the most",
        f"row 3: its line has more than {LONGEST_LINE:,} bytes",
        "row 5: no JSON: it is cut off behind 16 bytes",
    ]
    surveyed = survey(path, COLUMNS, 0)
    assert (surveyed.rows, surveyed.bad, len(surveyed.problems)) == (5, 3, 3)
    assert [row.number for row in read_rows(path, COLUMNS, 4, after=2)] == [3, 4]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"question\nWhat?\n", b'[{"question": "a"}]', b"\xff\xfe{\x00"])
def test_a_file_without_a_row_that_can_be_asked_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "q.jsonl").write_bytes(content)
    with pytest.raises(ConfigError, match=r"q\.jsonl"):
        survey(tmp_path / "q.jsonl", COLUMNS, 0)
    for missing in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            survey(missing, COLUMNS, 0)


def test_rows_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    write_questions(path, 50_000)
    tracemalloc.start()
    try:
        assert survey(path, COLUMNS, 0).rows == 50_000
        assert tracemalloc.get_traced_memory()[1] < 4 << 20 < path.stat().st_size * 2
    finally:
        tracemalloc.stop()


# --- the file of answers ----------------------------------------------------------------------------------------------


def test_answers_are_in_the_order_of_the_rows_and_a_cut_line_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with opened_answers(path, "batch-1") as answers:
        for number in (2, 3, 1, 5):
            answers.add(number, {"batch": "batch-1", "row": number})
        assert answers.written == 3
    whole = path.read_bytes()
    assert [json.loads(line)["row"] for line in whole.splitlines()] == [1, 2, 3]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with opened_answers(path, "batch-1") as answers:
            assert answers.written == whole[:cut].count(b"\n")
        assert path.read_bytes() == whole[: whole.rfind(b"\n", 0, cut) + 1]
    path.write_bytes(whole.replace(b'"row": 2', b'"row": 3') + b"\0\0\n")
    with opened_answers(path, "batch-1") as answers:
        assert answers.written == 0 == path.stat().st_size


def test_what_is_not_of_the_batch_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for content in (b"mine\n", b'{"batch": "batch-2", "row": 1}\n', b'{"question": "a"}\n'):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="something else"), opened_answers(path, "batch-1"):
            pass
        assert path.read_bytes() == content
    path.write_bytes(b"")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="Another process"), opened_answers(path, "batch-1"):
            pass


# --- the command ------------------------------------------------------------------------------------------------------


def test_two_rows_of_one_id_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    questions, out = tmp_path / "q.jsonl", tmp_path / "a.jsonl"
    ids: list[object] = ["a", 7, None, "7", "a", 1.5, 7, "a", True, 1]
    rows = [{"question": f"What is {n}?"} | ({} if i is None else {"id": i}) for n, i in enumerate(ids)]
    questions.write_text("\n".join(map(json.dumps, rows)))
    told = agent0("batch", "run", str(questions), "--out", str(out), "--provider", "scripted", home=tmp_path / "home")
    assert told.code == 2 and not out.exists(), told
    assert 'Rows 1 and 5 have the id "a"; rows 2 and 7 have the id 7; rows 1 and 8 have the id "a".' in told.err
    surveyed = survey(questions, COLUMNS, 4)
    assert (surveyed.rows, surveyed.repeated, surveyed.repeats) == (4, 0, ())
    questions.write_text("\n".join(json.dumps({"question": "What?", "id": "b"}) for _ in range(20)))
    surveyed = survey(questions, COLUMNS, 0)
    assert (surveyed.repeated, len(surveyed.repeats)) == (19, 5)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_bad_rows_are_rows_of_the_answers_and_the_same_command_asks_nothing_twice(tmp_path: Path) -> None:
    questions, out = tmp_path / "q.jsonl", tmp_path / "a.jsonl"
    good = [json.dumps({"id": f"q{n}", "question": f"What is {n}+{n}? <b>\x1b[31m"}) for n in range(30)]
    questions.write_text("\n".join([*good[:5], '{"id": "bad", "question": 12}', *good[5:], '{"question": "cu']))
    words = ("batch", "run", str(questions), "--out", str(out), "--provider", "scripted", "--no-tools")
    told = agent0(*words, home=tmp_path / "home")
    assert told.code == 6 and "2 of 32 rows failed" in told.err, told
    assert "2 of 32 rows cannot be asked" in told.err and "row 6, column question: a number" in told.err
    assert "Forecast after 2" in told.err and "no cost" in told.err and "\x1b" not in told.out + told.err
    rows = rows_of(out)
    assert [row["row"] for row in rows] == [*range(1, 33)]
    assert [row["id"] for row in rows] == [*(f"q{n}" for n in range(5)), "bad", *(f"q{n}" for n in range(5, 30)), 32]
    assert [(row["row"], row["question"]) for row in rows if row["error"]] == [(6, 12), (32, None)]
    assert {(row["finish"], row["reply"]) for row in rows if not row["error"]} == {("no_answer", "I cannot tell.")}
    assert all(row["tokens"]["written"] and row["model"] == "scripted" for row in rows if not row["error"])
    before = out.read_bytes()
    for cut in (before, before[:4000], b""):
        out.write_bytes(cut)
        again = agent0(*words, "--json", home=tmp_path / "home")
        assert (again.code, out.read_bytes()) == (6, before)
        counts = {name: again.json[name] for name in ("rows", "answered", "unanswered", "failed")}
        assert counts == {"rows": 32, "answered": 0, "unanswered": 30, "failed": 2}
    batch = again.json["batch"]
    query = "SELECT count(*) AS n FROM events WHERE type = 'RowAnswered'"
    assert agent0("projections", "query", query, "--json", home=tmp_path / "home").json == [{"n": 32}]
    (listed,) = agent0("batch", "list", "--json", home=tmp_path / "home").json
    assert (listed["batch"], listed["status"], listed["rows"], listed["failed"]) == (batch, "finished", 32, 2)
    shown = agent0("trajectory", "show", rows[0]["transcript"], batch, "--json", home=tmp_path / "home").json
    assert shown["transcript"][-1]["content"] == "I cannot tell."
    assert agent0("run", "list", "--json", home=tmp_path / "home").json == []

    resumed = agent0("batch", "run", "--resume", batch, home=tmp_path / "home")
    assert (resumed.code, out.read_bytes()) == (6, before)
    other = agent0(*words, "--set", "run.seed=1", home=tmp_path / "home")
    assert (other.code, "holds something else" in other.err) == (2, True)
    questions.write_text(questions.read_text() + "\n")
    changed = agent0("batch", "run", "--resume", batch, home=tmp_path / "home")
    assert (changed.code, "has changed" in changed.err, out.read_bytes()) == (2, True, before)
    unknown = agent0("batch", "run", "--resume", "batch-0", home=tmp_path / "home")
    assert (unknown.code, "agent0 batch list" in unknown.err) == (1, True)
    for missing in (("batch", "run"), ("batch", "run", str(questions))):
        assert agent0(*missing, home=tmp_path / "home").code == 2


def test_a_row_is_answered_once_whenever_the_process_is_killed(tmp_path: Path) -> None:
    """A real process, SIGKILL, 300 rows; 20,000 rows: ``python -m benchmarks.batch``."""
    report = kill_and_go_on(tmp_path, 300, 2, random.Random(1), 0.1)
    assert (report.code, report.lines, report.not_once) == (0, 300, 0), report
    assert (report.events, report.events_not_once) == (300, 0)
    assert len(report.kills) == 2 and 0 < report.kills[0] < 300


# --- models ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[OpenAIStandIn]:
    with serving() as there:
        yield there


def ask(server: OpenAIStandIn, folder: Path, *more: str) -> Said:
    settings = {"base_url": f"{server.url}/v1", "max_calls": 0}
    sets = [word for name, value in settings.items() for word in ("-s", f"run.student.{name}={value}")]
    words = ("batch", "run", str(folder / "q.jsonl"), "--out", str(folder / "a.jsonl"), "--provider", "openai")
    return agent0(*words, "--model", "student", *sets, *more, home=folder / "home")


def refusing(server: OpenAIStandIn, *numbers: int) -> None:
    """Let the server refuse the questions of these rows."""
    answer = server.answer

    def answered(method: str, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        if any(f"What is {number} +" in str(body.get("messages")) for number in numbers):
            return 400, {"error": {"message": "too long", "type": "invalid_request_error"}}
        return answer(method, path, body, key)

    server.answer = answered  # type: ignore[method-assign]


def test_a_row_that_its_server_refuses_fails_alone(server: OpenAIStandIn, tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 40)
    refusing(server, 1, 2, 33)
    told = ask(server, tmp_path)
    rows = rows_of(tmp_path / "a.jsonl")
    assert (told.code, [row["row"] for row in rows]) == (6, [*range(1, 41)]), told
    assert [row["row"] for row in rows if row["error"]] == [1, 2, 33] and "too long" in rows[0]["error"]
    assert not [row for row in rows if not row["error"] and row["finish"] == "failed"]


def test_where_no_row_can_be_answered_nothing_is_recorded(server: OpenAIStandIn, tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 40)
    refusing(server, *range(1, 41))
    told = ask(server, tmp_path)
    assert (told.code, "None of the first 20 rows" in told.err) == (1, True), told
    assert (tmp_path / "a.jsonl").read_bytes() == b""
    server.answer = type(server).answer.__get__(server)  # type: ignore[method-assign]
    assert ask(server, tmp_path).code == 0
    assert len(rows_of(tmp_path / "a.jsonl")) == 40


def test_a_strategy_answers_some_rows_and_a_budget_stops_a_batch_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A0_TEST_KEY", "sk-ant-test")
    write_questions(tmp_path / "q.jsonl", 30)
    with anthropic() as cloud:
        cloud.blocks = ["\\boxed{4}"]
        server = {"base_url": cloud.url, "key_env": "A0_TEST_KEY"}
        sets = {**PRICES, **{f"router.servers.anthropic.{name}": value for name, value in server.items()}}

        def answered(out: str, *way: str, cap: float = 9.0, **more: str) -> Said:
            pairs = {**sets, **{f"run.student.{name}": value for name, value in more.items()}, "router.caps.run": cap}
            words = [word for key, value in pairs.items() for word in ("-s", f"{key}={value}")]
            paths = (str(tmp_path / "q.jsonl"), "--out", str(tmp_path / out))
            return agent0("batch", "run", *paths, *way, "--no-tools", "--json", *words, home=tmp_path / "home")

        routed = answered("a.jsonl", "--provider", "scripted", "--with", f"anthropic/{CLAUDE}", "--strategy", "ab")
        alone = ("--provider", "anthropic", "--model", CLAUDE)
        capped = answered("b.jsonl", *alone, cap=0.05, **server)
        count = len(rows_of(tmp_path / "b.jsonl"))
        whole = answered("b.jsonl", *alone, **server)
    rows = rows_of(tmp_path / "a.jsonl")
    assert routed.code == 0 and len(rows) == 30 and {row["answer"] for row in rows} == {"4", None}, routed
    assert routed.json["usd"] > 0 and routed.json["answered"] == sum(row["answer"] == "4" for row in rows)
    assert {row["model"] for row in rows if row["answer"]} == {f"anthropic/{CLAUDE}"}
    assert (capped.code, "batch run --resume" in capped.err, count < 30) == (5, True, True), capped
    assert (whole.code, whole.json["answered"]) == (0, 30), whole
    assert whole.json["usd"] > 0.185  # 30 answers, and calls that were under way when the budget ended


# --- forecast and progress --------------------------------------------------------------------------------------------


async def test_a_forecast_that_is_declined_stops_and_what_is_answered_stays(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 50)
    settings = load("scripted", {"home": str(tmp_path / "home"), "run.student.tools": "[]"}, {})
    plan = BatchPlan(tmp_path / "q.jsonl", tmp_path / "a.jsonl")
    batch, began = begin(settings, plan, survey(plan.source, COLUMNS, 0))
    forecasts: list[Forecast] = []

    async def declines(forecast: Forecast) -> bool:
        forecasts.append(forecast)
        return False

    outcome = await answer_batch(settings, batch, began, BatchListener(accepts=declines))
    assert (outcome.stopped, outcome.tally.done, len(rows_of(plan.out))) == (True, 20, 20)
    (forecast,) = forecasts
    assert (forecast.sample, forecast.rows, forecast.usd) == (20, 30, 0.0)
    assert forecast.written == 30 * 5 and 0 < forecast.seconds < 600
    settings, began = await begun_batch(settings, batch)
    outcome = await answer_batch(settings, batch, began, BatchListener(accepts=declines))
    assert (outcome.stopped, outcome.tally.done, len(forecasts)) == (False, 50, 1)


@pytest.mark.parametrize(("typed", "goes_on"), [(b"\n", True), (b"Y\n", True), (b"n\n", False), (b"what?\n", False)])
async def test_a_terminal_is_asked_and_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch, typed: bytes, goes_on: bool
) -> None:
    forecast = Forecast(20, 30, 1.0, 1, 1, 0.0)
    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        assert await _accepting(ask=True)(forecast)
    person, terminal = os.openpty()
    with os.fdopen(person, "wb"), os.fdopen(terminal, "r") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert await _accepting(ask=False)(forecast)
        os.write(person, typed)
        assert await _accepting(ask=True)(forecast) is goes_on


def test_forecast_and_progress_are_said_in_units_of_people(capsys: pytest.CaptureFixture[str]) -> None:
    line = forecast_line(Forecast(20, 19_980, 7_300.0, 1_200_000, 40_000, 2.345))
    assert line == (
        "Forecast after 20 rows: the other 19,980 take about 2.0 h; 1,200,000 tokens read, 40,000 written; $2.35."
    )
    assert "price is not known" in forecast_line(Forecast(20, 1, 1.0, 1, 1, None))
    assert [took(seconds) for seconds in (0.4, 119, 121, 7_199, 7_200, 200_000)] == [
        "0 s", "119 s", "2.0 min", "120 min", "2.0 h", "2.3 d"
    ]  # fmt: skip
    times = iter([0.0, 0.0, 1.0, 6.0])
    report = _BatchReporter(lambda: next(times))
    for done, failed in ((1, 0), (2, 0), (61, 1)):
        report(BatchTally(100, answered=done - failed, failed=failed))
    assert capsys.readouterr().err == "61 of 100 rows, 1 failed, 10 rows/s, 4 s left\n"
