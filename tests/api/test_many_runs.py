"""Many runs in a chart and in a list: what is drawn is what the tables hold, now and at any moment."""

import random
import re
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from agent0.api.pages.compare_routes import MOST_RUNS
from agent0.api.pages.rendering import static_files
from agent0.assembly.runtime.read_models import reading
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.tracking.measured import RunSeries, measured
from agent0.events.runs import RunLabelled
from agent0.report.charts.run_charts import (
    COLOURS,
    DASHES,
    LineCache,
    LineValues,
    Style,
    line_values,
    run_chart,
    scale,
    smoothed,
    thinned,
)
from agent0.report.charts.run_series import Series, metrics
from agent0.settings import Settings
from tests.api.conftest import everything, seeing
from tests.api.served import stored
from tests.story import renumbered, whole_run
from tests.test_report import Reader

CHARTED = "/compare.json?run=r1&run=r2"
LABEL = RunLabelled(tags=("sweep", "a b"), note="Half <the> rate")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, of which the second is tagged and has a note."""
    told = everything()
    return stored(tmp_path_factory.mktemp("many"), [*told, *renumbered([recorded("r2", LABEL)], len(told))])


@pytest.fixture(scope="module")
def browser(home: Path) -> TestClient:
    return seeing(home)


@pytest.fixture(scope="module")
def exported(home: Path) -> RunSeries:
    with reading(Settings(home=home)) as db:
        return measured(db, "r1")


@pytest.mark.parametrize("name", metrics())
def test_a_line_has_the_values_that_are_exported(browser: TestClient, exported: RunSeries, name: str) -> None:
    points = [*exported.points, *exported.trainings]
    wanted = [(point.step, point.value) for point in points if point.series == name]
    line = browser.get(f"{CHARTED}&y={name}").json()["drawn"][0]["lines"][0]
    assert line["run"] == "r1" and line["raw"] == line["y"]
    assert line["x"] == [step for step, _ in wanted] and line["y"] == pytest.approx(
        [value for _, value in wanted], 1e-5
    )


def test_every_group_of_metrics_is_drawn(browser: TestClient) -> None:
    """Else the comparison above would compare nothing with nothing."""
    names = ("curve/validation", "iteration/solve_rate", "training/student/loss", "training/student/replay_loss")
    for name in (*names, "training/teacher/gradient_norm", "training/student/mismatch"):
        assert len(browser.get(f"{CHARTED}&y={name}").json()["drawn"][0]["lines"][0]["x"]) > 1, name


@pytest.mark.parametrize("name", ["curve/validation", "iteration/solve_rate", "training/student/learning_rate"])
def test_along_time_and_tokens_a_line_has_the_same_values(browser: TestClient, exported: RunSeries, name: str) -> None:
    steps, time, tokens = (
        browser.get(f"{CHARTED}&y={name}&x={x}").json()["drawn"][0]["lines"][0] for x in ("step", "time", "tokens")
    )
    assert steps["y"] == time["y"] == tokens["y"]
    assert time["x"] == sorted(time["x"]) and time["x"][0] >= 0 and time["x"][-1] > time["x"][0]
    learned = sum(point.value for point in exported.trainings if point.series == "training/student/tokens")
    last = learned if name.startswith(("curve", "training")) else learned * 2 / 3  # measured before the third training
    assert tokens["x"] == sorted(tokens["x"]) and tokens["x"][-1] == pytest.approx(last)


def test_a_run_has_one_colour_whoever_is_beside_it_and_whenever(browser: TestClient) -> None:
    def style(query: str, run: str = "r1") -> tuple[int, int]:
        rows = browser.get(f"/compare.json?{query}").json()["runs"]
        return next((row["colour"], row["dash"]) for row in rows if row["run"] == run)

    assert style("run=r1") == style("run=r2&run=r1") == style("run=r1&at=150") == style("left=r2&right=r1")
    assert style("run=r1") != style("run=r2", "r2")
    listed = browser.get("/runs").text
    assert f'spark r{style("run=r1")[0]}"' in listed
    assert len({Style.of(place) for place in range(COLOURS * DASHES)}) == COLOURS * DASHES


@pytest.mark.parametrize("runs", [1, MOST_RUNS, COLOURS * DASHES])
def test_as_many_runs_as_a_chart_has_are_told_apart(runs: int) -> None:
    """Whenever they started; a run keeps its style where nobody that started before it has the same."""
    rng = random.Random(runs)
    for _ in range(20):
        places = rng.sample(range(500), runs)
        styles = Style.apart(places)
        assert len(set(styles)) == runs
        assert styles[places.index(min(places))] == Style.of(min(places))
    drawn = re.findall(r"\.d(\d) \.run {([^}]*)}", static_files()["pages.css"].decode())
    assert sorted(int(dash) for dash, _ in drawn) == [*range(1, DASHES)]
    assert len({css for _, css in drawn}) == DASHES - 1


def test_at_a_moment_a_chart_has_what_was_known_then(browser: TestClient) -> None:
    evaluated = [row["seq"] for row in browser.get("/v1/events?run=r1&type=CheckpointEvaluated").json()["data"]]
    then, end = browser.get(f"{CHARTED}&at={evaluated[0]}").json(), browser.get(CHARTED).json()
    assert then["absent"] == ["r2"] and [row["run"] for row in then["runs"]] == ["r1"] and end["absent"] == []
    [line], [whole, _] = then["drawn"][0]["lines"], end["drawn"][0]["lines"]
    assert 1 == len(line["x"]) < len(whole["x"]) and whole["y"][:1] == line["y"]
    page = browser.get(f"/compare?run=r1&run=r2&at={evaluated[0]}").text
    assert "Not begun at this moment: r2." in page and f'name="at" value="{evaluated[0]}"' in page


def test_a_chart_follows_runs_under_way_alone(browser: TestClient, tmp_path: Path) -> None:
    under_way = seeing(stored(tmp_path, whole_run(iterations=1)[:90]))
    assert "data-poll" in under_way.get("/compare").text and "data-poll" not in under_way.get("/compare?at=50").text
    assert "data-poll" not in browser.get("/compare").text
    assert "--profile tiny" in under_way.get("/compare?y=training/student/loss").text, "nothing was trained yet"


def test_who_sees_no_picture_reads_the_values(browser: TestClient) -> None:
    page = browser.get("/compare?run=r1&run=r2&smooth=0.5").text
    rows = browser.get(f"{CHARTED}&smooth=0.5").json()["drawn"][0]["lines"]
    text = " ".join(Reader(page).words)
    assert all(f"{value:.1%}" in text for line in rows for value in line["y"])
    assert re.search(r'<a href="/runs/r1/iterations/1">\d', page)


@pytest.mark.parametrize("query", ["", "y=training/student/loss&smooth=0.5", "y=iteration/solve_rate&x=time"])
def test_a_line_drawn_before_is_as_one_drawn_anew(tmp_path: Path, query: str) -> None:
    """Of a run that goes on, of its past, and beside another."""
    told = everything()
    known = seeing(stored(tmp_path, told[:400]))
    for end, ask in ((400, ""), (400, "&at=200"), (len(told), "&at=200"), (len(told), ""), (len(told), "&run=r2")):
        stored(tmp_path, told[:end])
        address = f"/compare.json?run=r1&{query}{ask}"
        assert known.get(address).json() == known.get(address).json() == seeing(tmp_path).get(address).json()


def test_a_line_is_read_once_and_few_are_kept() -> None:
    read = list[int]()

    def line(number: int) -> LineValues:
        read.append(number)
        return LineValues((1.0,), (float(number),), (float(number),))

    cache = LineCache(most=3)
    for number in (1, 2, 3, 1, 2, 4, 1, 2, 3):
        assert cache.line(("run", number), lambda number=number: line(number)).ys == (number,)
    assert read == [1, 2, 3, 4, 3]


def test_what_cannot_be_drawn_says_what_can(browser: TestClient) -> None:
    for query, status in (
        ("y=loss", 404), ("run=nobody", 404), ("x=moon", 422), ("smooth=1", 422), ("smooth=nan", 422),
        ("&".join(f"y={name}" for name in [*metrics()][:5]), 422), ("&".join(["run=r1"] * 51), 422),
        ("run=r1&left=r1/base&right=r2", 422), ("tag=none", 200), ("text=%27%22%25", 200),
    ):  # fmt: skip
        assert browser.get(f"/compare.json?{query}").status_code == status, query
    assert "the filter lets through: no run has the tag none." in browser.get("/compare?tag=none").text
    assert "no run has" not in browser.get("/compare?tag=sweep&text=nothing").text


@pytest.mark.parametrize("name", ["r1/base", "r1/t0-000-a0", "submission-00aa11"])
@pytest.mark.parametrize(("side", "missing"), [("left", "right"), ("right", "left")])
def test_one_side_alone_says_which_is_missing(browser: TestClient, name: str, side: str, missing: str) -> None:
    refused = browser.get(f"/compare.json?{side}={name}")
    assert refused.status_code == 422 and f"The {missing} side is missing" in refused.json()["title"]
    assert name in refused.json()["title"] and browser.get(f"/compare.json?{side}=r1").status_code == 200


def test_an_unknown_status_or_column_names_those_that_there_are(browser: TestClient) -> None:
    for path in ("/runs", "/runs.json", "/v1/runs", "/compare"):
        refused = browser.get(f"{path}?status=nope")
        assert refused.status_code == 422 and "finished" in refused.text and "paused" in refused.text, path
    page = browser.get("/runs?column=seed&column=%3Cb%3Enope").text
    assert "There is no column &lt;b&gt;nope: there are status, iteration," in page
    assert "There is no column" not in browser.get("/runs?column=seed").text


def test_event_0_is_no_past_moment_and_the_page_says_so(browser: TestClient) -> None:
    for path in ("/runs", "/runs/r1", "/compare"):
        assert "0 names no event" in browser.get(f"{path}?at=0").text, path
        assert "0 names no event" not in browser.get(path).text + browser.get(f"{path}?at=200").text, path


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("", ["r1", "r2"]), ("tag=sweep", ["r2"]), ("tag=a b", ["r2"]), ("tag=swee", []),
        ("profile=tiny", ["r1", "r2"]),
        ("profile=other", []), ("status=finished&text=R1", ["r1"]), ("status=running", []), ("text=half <THE>", ["r2"]),
        ("text=%25", []), ("status=deleted", []),
    ],
)  # fmt: skip
def test_lists_let_the_same_runs_through(browser: TestClient, query: str, runs: list[str]) -> None:
    listed = [row["run"] for row in browser.get(f"/v1/runs?{query}").json()["data"]]
    shown = [row["run"] for row in browser.get(f"/runs.json?{query}").json()["runs"]]
    assert listed == shown == runs
    if query and runs:
        assert [row["run"] for row in browser.get(f"/compare.json?{query}").json()["runs"]] == runs
    empty = "All runs</a>" in browser.get(f"/runs?{query}").text
    assert empty == (not runs), "an empty list leads back"


def test_a_list_has_the_columns_that_are_chosen(browser: TestClient) -> None:
    def heads(query: str) -> list[str]:
        return re.findall(r"<th[^>]*>([^<]+)</th>", browser.get(f"/runs?{query}").text)

    assert heads("column=seed&column=curve") == ["run", "its curve", "seed"]
    assert heads("column=nothing") == heads("") and "validation" in heads("")
    page = browser.get("/runs?text=r2").text
    assert "Half &lt;the&gt; rate" in page and 'href="/runs?tag=a+b"' in page


def test_no_spike_is_lost_and_the_ends_stay() -> None:
    rng = random.Random(0)
    for size, most in [(0, 60), (1, 60), (60, 60), (61, 60), (2000, 60), (2000, 400), (1999, 161)]:
        values = [rng.gauss(0, 1) for _ in range(size)]
        kept = thinned(values, most)
        assert kept == sorted(set(kept)) and len(kept) <= min(size, most + 4)
        if values:
            assert {0, size - 1, values.index(min(values)), values.index(max(values))} <= set(kept)


def test_a_moving_average_is_one_of_what_came_before() -> None:
    rng = random.Random(1)
    values = [rng.random() for _ in range(50)]
    assert smoothed(values, 0.0) == values and smoothed([0.3] * 9, 0.99) == pytest.approx([0.3] * 9)
    for n, mean in enumerate(smoothed(values, 0.8), 1):
        weights = np.array([0.8 ** (n - k) for k in range(1, n + 1)])
        assert mean == pytest.approx(float(weights @ values[:n] / weights.sum()))


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 0), (0, 1), (-0.31, 0.02), (1e-5, 1.1e-5), (-1e300, 1e300), (0, 1e-320), (5, 5), (1e9, 1e9 + 1), (0, 2000)],
)
def test_an_axis_holds_what_it_is_of(low: float, high: float) -> None:
    for whole in (False, True):
        axis = scale("", low, high, whole=whole)
        apart = np.diff(axis.ticks)
        assert (
            axis.low <= low <= high <= axis.high and 1 < len(axis.ticks) < 10 and len(axis.labels()) == len(axis.ticks)
        )
        assert apart.min() > 0 and apart == pytest.approx(apart.mean(), rel=1e-3, abs=0)
        assert not whole or all(tick == int(tick) for tick in axis.ticks)


def test_a_single_value_and_what_is_no_number_are_no_defect() -> None:
    metric = metrics()["training/student/loss"]
    lines = [line_values(values, 0.9, 2) for values in (Series([3.0], [0.25]), Series((), ()))]
    chart = run_chart(metric, "time", ["a", "b"], lines, 0.9)
    assert len(chart.lines[0].points.split()) == 2 and chart.lines[1].points == "" and chart.table()[1][1] == (None,)


def test_lines_on_each_other_are_all_seen() -> None:
    """A later one is narrower than those that it lies on; apart, all are alike."""
    lines = [LineValues((0.0, 1.0, 2.0), ys, ys) for ys in ((0.1, 0.2, 0.3), (0.1, 0.2, 0.9), (0.5, 0.6, 0.7))]
    chart = run_chart(metrics()["curve/validation"], "step", [*"abcde"], [*lines, lines[0], lines[2]], 0.0)
    assert [line.above for line in chart.lines] == [2, 1, 1, 0, 0]
    same = run_chart(metrics()["curve/validation"], "step", [*"abcdef"], lines[:1] * 6, 0.0)
    assert [line.above for line in same.lines] == [3, 3, 3, 2, 1, 0]
    rng = random.Random(7)
    many = [LineValues((0.0, 1.0, 2.0), ys, ys) for ys in (tuple(rng.choices((0.1, 0.5), k=3)) for _ in range(40))]
    drawn = run_chart(metrics()["curve/validation"], "step", [*map(str, range(40))], many, 0.0).lines
    shared = [{*pairwise(line.points.split())} for line in drawn]
    for n, line in enumerate(drawn):
        assert line.above == min(3, sum(not shared[n].isdisjoint(later) for later in shared[n + 1 :]))
    style = static_files()["pages.css"].decode()
    widths = [float(re.findall(rf"\.u{n} \.run {{ stroke-width: (\d+)", style)[0]) for n in (1, 2, 3)]
    assert widths == sorted(set(widths)) and widths[0] > 2


def test_a_single_step_stands_in_the_middle() -> None:
    one = line_values(Series([1.0], [0.25]), 0.0, 1)
    chart = run_chart(metrics()["training/student/loss"], "step", ["a"], [one], 0.0)
    assert {point.partition(",")[0] for point in chart.lines[0].points.split()} == {"1000"}


MIXED = {
    "all cones": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""Linear RGB as eyes without a kind of cone see it (Machado, Oliveira and Fernandes 2009)."""
LMS = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
LAB = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
"""To Oklab (Ottosson 2020)."""


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_stay_apart_for_every_eye_and_from_the_paper(scheme: int) -> None:
    css = static_files()["pages.css"].decode()
    found = [re.findall(rf"--r{number}: (#[0-9a-f]{{6}})", css) for number in range(COLOURS)]
    paper = linear({0: "#ffffff", 1: re.findall(r"--paper: (#[0-9a-f]{6})", css)[-1]}[scheme])
    colours = [linear(pair[scheme]) for pair in found]
    light = np.array([0.2126, 0.7152, 0.0722])
    for colour in colours:
        dark, bright = sorted((float(light @ colour), float(light @ paper)))
        assert (bright + 0.05) / (dark + 0.05) >= 3, "WCAG 2.1, 1.4.11"
    for eye, mixing in MIXED.items():
        seen = [LAB @ np.cbrt(LMS @ np.clip(np.array(mixing) @ colour, 0, 1)) for colour in colours]
        assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)) > 0.1, eye
