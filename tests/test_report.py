"""The report: one file that shows what the tables say, however hostile the words in it."""

import errno
import json
import re
import sqlite3
import xml.etree.ElementTree as ET
from collections import Counter
from contextlib import closing
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.textpath import TextPath

from agent0.cli.runs.foreground import print_conclusion
from agent0.config.loading import load
from agent0.errors import NotFoundError
from agent0.events.base import Event, Recorded
from agent0.events.checkpoints import CheckpointEvaluated
from agent0.events.runs import RunStarted
from agent0.events.tasks import TaskAttempted, ToolCalled
from agent0.events.values import Turn
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.projections import Projector, tables
from agent0.report.charts.learning_curve import Palette, curve_svg, draw_curve
from agent0.report.charts.plots import as_file, lines
from agent0.report.charts.terminal_plot import plot
from agent0.report.findings import findings
from agent0.report.html.run_page import page
from tests.story import benchmark_run, bodies, whole_run
from tests.terminal import agent0

VOID = {"meta", "br", "img", "link", "input"}
NASTY = (
    '</pre></details><script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}{% raw %} $\\frac{}$ '
    "\x1b[2J\x00\u202egnirts &lt; ]]> --> <!-- <style>*{display:none}</style>"
)


NOWHERE = FileArtifacts(Path("/nonexistent"))


def told(events: list[Recorded], where: str | Path = ":memory:") -> sqlite3.Connection:
    held = sqlite3.connect(where, isolation_level=None)
    Projector(Path("memory"), lambda _: held, tables(), "stream").apply(bodies(events))
    return held


@pytest.fixture(scope="module")
def story() -> list[Recorded]:
    return whole_run(iterations=3, tasks=6, attempts=3)


@pytest.fixture(scope="module")
def text(story: list[Recorded]) -> str:
    with closing(told(story)) as db:
        return page(db, NOWHERE, "r1")


class Reader(HTMLParser):
    """What a browser would see: tags with their attributes, text, and whether every tag is closed where it must be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_page_asks_nothing_of_anyone(text: str) -> None:
    seen = Reader(text)
    assert {"img", "link", "iframe", "object", "embed", "form", "base"} & set(seen.tags) == set()
    assert seen.tags.count("script") == 1
    names = {name for name, _ in seen.attributes}
    assert not any(name.startswith("on") or name in ("src", "srcset", "action") for name in names)
    targets = [value for name, value in seen.attributes if name in ("href", "xlink:href")]
    assert targets and all(target.startswith("#") for target in targets)
    assert not re.search(r"@import|url\((?!#)", text)
    assert "default-src 'none'" in text
    assert len(text) < 1_000_000


def test_page_shows_what_the_tables_say(text: str, story: list[Recorded]) -> None:
    words = " ".join(" ".join(Reader(text).words).split())
    scores = [e.event for e in story if e.type == "CheckpointEvaluated" and e.event.split == "test"]
    for score in scores:
        assert f"{score.accuracy:.1%}" in words
    for kind, count in Counter(e.type for e in story).items():
        assert re.search(rf"\b{kind} {count}\b", words), kind
    families = {e.event.proposal.family for e in story if e.type == "TaskAccepted"}
    assert families <= set(words.split())
    assert {e.event.alarm for e in story if e.type == "AlarmRaised"} <= set(words.split())


def test_same_tables_same_bytes(text: str, story: list[Recorded]) -> None:
    with closing(told(story)) as db:
        assert page(db, NOWHERE, "LAST") == text


def poisoned(recorded: Recorded) -> Recorded:
    event: Event = recorded.event
    match event:
        case RunStarted():
            event = event.model_copy(
                update={"name": NASTY, "prompts": {NASTY: NASTY}, "config": event.config | {NASTY: NASTY}}
            )
        case ToolCalled():
            result = event.result.model_copy(update={"output": NASTY})
            event = event.model_copy(update={"call": event.call.model_copy(update={"name": NASTY}), "result": result})
        case TaskAttempted():
            turns = (Turn(role="assistant", content=NASTY), Turn(role="tool", content=NASTY, name=NASTY))
            event = event.model_copy(update={"answer": NASTY, "transcript": turns})
    return recorded.model_copy(update={"event": event})


def test_no_text_becomes_markup(text: str, story: list[Recorded]) -> None:
    with closing(told([poisoned(recorded) for recorded in story])) as db:
        seen = Reader(page(db, NOWHERE, "r1"))
    assert set(seen.tags) == set(Reader(text).tags)
    assert not any(name.startswith("on") for name, _ in seen.attributes)
    shown = "".join(seen.words)
    assert '<script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}' in shown
    assert not set("\x00\x1b\u202e") & set(shown)


def test_a_run_that_only_began(tmp_path: Path, story: list[Recorded]) -> None:
    with closing(told(story[:1])) as db:
        assert "Nothing was evaluated yet." in "".join(Reader(page(db, NOWHERE, "r1")).words)
        assert curve_svg(db, "r1") == ""
        draw_curve(db, "r1", tmp_path / "curve.png")
        with pytest.raises(NotFoundError):
            page(db, NOWHERE, "r2")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_curve_is_drawn_from_every_point(tmp_path: Path, story: list[Recorded]) -> None:
    with closing(told([poisoned(recorded) for recorded in story])) as db:
        for ending, magic in (("png", b"\x89PNG"), ("svg", b"<?xml")):
            draw_curve(db, "r1", tmp_path / f"curve.{ending}")
            assert (tmp_path / f"curve.{ending}").read_bytes().startswith(magic)
        drawn = curve_svg(db, "r1")
    root = ET.fromstring(as_file(drawn))
    words = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"untrained", "0", "1", "2", "validation accuracy", "tool use"} <= set(words)
    colours = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", drawn))
    assert colours <= {"none", *(f"var(--{field.name})" for field in fields(Palette))}
    line = [
        node
        for node in root.iter()
        if re.search(r"stroke: var\(--validation\).*stroke-width: 2", node.get("style", ""))
    ]
    points = sum(1 for e in story if e.type == "CheckpointEvaluated" and e.event.split == "validation")
    assert max(len(re.findall("[ML]", node.get("d", ""))) for node in line) == points == 4


def with_items(story: list[Recorded], store: FileArtifacts) -> list[Recorded]:
    """The story with real item tables: logic fails as the outcomes say, with a hostile word in it."""
    held = []
    for recorded in story:
        event = recorded.event
        if isinstance(event, CheckpointEvaluated):
            rows = [
                {"task": str(n), "domain": "logic" if c == "0" else NASTY, "level": 1, "question": NASTY,
                 "answer": None, "correct": c == "1", "tool_ok": 0, "tokens": 1, "seconds": 0.1}
                for n, c in enumerate(event.outcomes)
            ]  # fmt: skip
            stored = store.put("\n".join(map(json.dumps, rows)).encode())
            recorded = recorded.model_copy(update={"event": event.model_copy(update={"items": stored})})
        held.append(recorded)
    return held


def test_failures_are_those_of_the_last_validation_items(tmp_path: Path, story: list[Recorded]) -> None:
    store = FileArtifacts(tmp_path)
    held = with_items(story, store)
    with closing(told(held)) as db:
        found = findings(db, store, "r1")
        seen = Reader(page(db, store, "r1"))
        assert findings(db, NOWHERE, "r1")["failures"] == found["failures"][1:]
    last = [e.event for e in held if e.type == "CheckpointEvaluated" and e.event.split == "validation"][-1]
    first = found["failures"][0]
    wrong = last.n - last.correct
    assert (first["items"], first["wrong"]) == (last.n, wrong)
    logic = next(mode for mode in first["modes"] if mode["by"] == "domain")
    assert (logic["mode"], logic["wrong"], logic["share"], logic["gain"]) == ("logic", wrong, 1.0, wrong / last.n)
    assert next(mode["mode"] for mode in first["modes"] if mode["by"] == "error") == "no_answer"
    assert seen.tags.count("script") == 1


def test_improved_is_said_where_the_paired_test_says_so(story: list[Recorded]) -> None:
    def scored(recorded: Recorded) -> Recorded:
        event = recorded.event
        if not isinstance(event, CheckpointEvaluated) or event.split != "validation":
            return recorded
        outcomes = {-1: "0" * 30, 0: "1" * 3 + "0" * 27, 1: "1" * 30}.get(event.iteration, "1" * 30)
        return recorded.model_copy(update={"event": event.model_copy(update={"outcomes": outcomes})})

    with closing(told([scored(recorded) for recorded in story])) as db:
        rows = findings(db, NOWHERE, "r1")["iterations"]
        words = " ".join(Reader(page(db, NOWHERE, "r1")).words)
    says = [(row["against_before"] or {}).get("word") for row in rows]
    assert says == [None, "no difference shown", "improved", "no difference shown"]
    assert [row["against_base"]["word"] for row in rows[1:]] == ["no difference shown", "improved", "improved"]
    claims = sum(row[name] is not None for row in rows for name in ("against_before", "against_base"))
    assert words.count("detectable") >= claims == 6


def test_what_tasks_were_compared_with_is_told(story: list[Recorded]) -> None:
    index = next(e for e in benchmark_run() if e.type == "BenchmarksIndexed")
    known = [*story, index.model_copy(update={"run": "r1", "seq": len(story) + 1})]
    for events, words in (
        (story, "not compared: no benchmark folder named"),
        (known, "against 2 items of 1 benchmarks"),
    ):
        with closing(told(events)) as db:
            assert findings(db, NOWHERE, "r1")["decontamination"] == words
            assert words in " ".join(Reader(page(db, NOWHERE, "r1")).words)


@given(
    st.lists(
        st.tuples(*[st.floats(0, 1)] * 4).map(
            lambda s: dict(zip(("accuracy", "lower95", "upper95", "tool_use"), s, strict=True))
        ),
        max_size=300,
    )
)
def test_any_curve_fits_a_terminal(scores: list[dict[str, float]]) -> None:
    drawn = plot([{**score, "iteration": n - 1} for n, score in enumerate(scores)])
    assert drawn.count("●") == (min(len(scores), 32) + 1 if scores else 0)
    assert max(map(len, drawn.splitlines()), default=0) <= 110


def test_report_is_a_command(tmp_path: Path, story: list[Recorded]) -> None:
    (tmp_path / "tables").mkdir()
    told(story, tmp_path / "tables" / "view.db").close()
    said = agent0("report", "--full", home=tmp_path)
    assert said.code == 0
    for words in (
        "Run r1",
        "●",
        "Conclusions on validation",
        "Where it fails",
        "Tool transitions",
        "contaminated",
    ):
        assert words in said.out
    path = Path(said.out.rstrip().splitlines()[-1])
    assert path.read_text() == agent0("report", "r1", "--out", "-", home=tmp_path).out[:-1]
    shown = agent0("report", "--json", "--out", str(tmp_path / "r.html"), home=tmp_path).json
    assert (tmp_path / "r.html").stat().st_size == shown["bytes"]
    assert [row["iteration"] for row in shown["iterations"]] == [-1, 0, 1, 2]
    refused = agent0("report", "--out", "/proc/nowhere/r.html", home=tmp_path)
    assert refused.code == 2
    assert "There is no folder /proc/nowhere." in refused.err


def test_a_picture_that_cannot_be_written_is_left_out_with_a_word(
    story: list[Recorded], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    (tmp_path / "tables").mkdir()
    told(story, tmp_path / "tables" / "view.db").close()
    monkeypatch.setenv("AGENT0_HOME", str(tmp_path))
    monkeypatch.setattr("agent0.report.charts.learning_curve.draw_curve", refused)
    print_conclusion(load("scripted", {"home": str(tmp_path)}), "r1", as_json=False)
    said = capsys.readouterr()
    assert "is left out: Read-only file system." in said.err and "Learning curve: " not in said.out


@settings(max_examples=8)
@given(st.lists(st.integers(0, 26), min_size=2, max_size=9))
def test_a_legend_is_no_wider_than_its_picture(lengths: list[int]) -> None:
    names = [f"{number}{'n' * length}" for number, length in enumerate(lengths)]
    drawn = ET.fromstring(as_file(lines({name: [0.0, 0.5] for name in names}, ["left", "right"], "widths")))
    placed = {one.text: float(one.attrib["x"]) for one in drawn.iter() if one.tag.endswith("text")}
    ends = [placed[name] + TextPath((0, 0), name, size=9).get_extents().width for name in names]
    assert max(ends) <= float(drawn.attrib["viewBox"].split()[2])


def test_sixteen_lines_differ_in_colour_or_dashes() -> None:
    drawn = lines({str(number): [0.0, 0.5] for number in range(16)}, ["left", "right"], "looks")
    looks = Counter(re.findall(r'style="fill: none;([^"]*stroke-width: 2[^"]*)"', drawn))
    assert len(looks) == 16 and set(looks.values()) == {2}, "each once in the picture and once in the legend"
