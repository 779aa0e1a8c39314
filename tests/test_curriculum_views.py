"""What people see of a curriculum: tables that count what happened, a picture that any reader of SVG accepts."""

import re
import xml.etree.ElementTree as ET
from contextlib import closing

from agent0.events.tasks import TaskAccepted, TaskRequested
from agent0.projections.iterations import list_iterations, list_slots, slots_by_iteration
from agent0.report.charts.curriculum_heatmap import heatmap
from agent0.report.charts.plots import as_file
from tests.story import whole_run
from tests.test_report import told


def test_the_tables_count_what_happened() -> None:
    story = whole_run(iterations=3, tasks=6, attempts=3)
    with closing(told(story)) as db:
        arms, split, iterations = list_slots(db, "r1"), slots_by_iteration(db, "r1"), list_iterations(db, "r1")
    asked = [r for r in story if isinstance(r.event, TaskRequested)]
    accepted = [r for r in story if isinstance(r.event, TaskAccepted)]
    assert sum(arm["asked"] for arm in arms) == sum(arm["asked"] for arm in split) == len(asked)
    assert sum(arm["tasks"] for arm in arms) == len(accepted)
    assert all(arm["solved"] <= arm["tried"] for arm in arms)
    assert [row["iteration"] for row in iterations] == [0, 1, 2]


def test_the_picture_is_one() -> None:
    rows = [
        {"family": "<b>&", "level": level, "iteration": n, "tasks": n, "solve_rate": rate}
        for n, (level, rate) in enumerate([(1, None), (1, 0.0), (2, 0.5), (3, 1.0)])
    ]
    found = ET.fromstring(as_file(heatmap(rows, "a <run>")))
    squares = [group for group in found.iter() if group.find("{*}title") is not None]
    assert [group.findtext("{*}title") for group in squares][-1] == "<b>& 3, iteration 3: 3 tasks, solved 100%"
    assert len(squares) == len(rows)
    assert len({re.findall("fill: ([^;]+)", group.find("{*}path").get("style"))[0] for group in squares}) == 4
    assert heatmap([], "nothing") == ""
